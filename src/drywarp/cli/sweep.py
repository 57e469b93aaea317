"""`drywarp sweep`: predict every configuration of a search space."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from ..errors import UsageError
from . import options as take
from .options import check_positive
from .output import FigureTheme, check_theme, named_figures, print_json, print_text
from .progress import SILENT_S, rated, resumable

if TYPE_CHECKING:
    from ..experiments.sweep import SweepResult, SweepRow


Out = Annotated[
    str | None,
    typer.Option(
        help="Write each row when it is done (.csv, .jsonl, .parquet); interrupted runs resume.", metavar="FILE"
    ),
]
Prune = Annotated[
    float | None,
    typer.Option(
        help="Keep this fraction of configurations to try on hardware, and report the expected loss.", metavar="SHARE"
    ),
]


@dataclass(frozen=True)
class BenefitOptions:
    """GPUPerf's potential benefits of the rows, and their figures."""

    PANEL: ClassVar = "Potential benefits"

    benefits: Annotated[
        bool,
        typer.Option(
            "--benefits", help="Also compute GPUPerf's potential benefits, and the gain from each optimisation."
        ),
    ] = False
    figure: Annotated[
        list[str] | None,
        typer.Option(
            help="With --benefits: draw steps, variants, alone, or an optimisation.", metavar="NAME=FILE.svg|FILE.png"
        ),
    ] = None
    figure_theme: FigureTheme = None

    def wanted(self, space: str) -> list[tuple[str, Path]]:
        """The figures by name with their files, all checked before anything is predicted. Raises UsageError."""
        check_theme(self.figure_theme, bool(self.figure), "--figure NAME=FILE")
        if not self.figure:
            return []
        if not self.benefits:
            raise UsageError("--figure requires --benefits")
        from ..experiments.sweep import figure_names

        return named_figures(self.figure, figure_names(space))

    def draw(self, found: SweepResult, wanted: list[tuple[str, Path]]) -> None:
        """Draw and write them."""
        from ..report.figures import write

        for name, path in wanted:
            write(found.figure(name, theme=self.figure_theme or "light"), path, "--figure")


def sweep_command(
    space: Annotated[
        str, typer.Argument(help="The search space: kernel, parameters, restrictions, launch.", metavar="TOML")
    ],
    *,
    gpu: Annotated[
        str | None, typer.Option(help="GPUs, overriding those of the search space: a100,h100.", metavar="NAMES")
    ] = None,
    out: Out = None,
    prune: Prune = None,
    kept: Annotated[
        str | None, typer.Option(help="With --prune: write the remaining configurations to this file.", metavar="FILE")
    ] = None,
    export: Annotated[
        str | None, typer.Option(help="Also write all rows for another tuner, in --format.", metavar="FILE.json")
    ] = None,
    format: Annotated[str, typer.Option(help="With --export: kernel-tuner or t4.", metavar="NAME")] = "kernel-tuner",
    best: Annotated[int, typer.Option(help="Number of best configurations to show per GPU.", min=1)] = 10,
    jobs: take.Workers = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Run predictions on this Dask scheduler's workers: tcp://host:8786.", metavar="ADDRESS"),
    ] = None,
    band: Annotated[bool, typer.Option("--band", help="Also compute each row's confidence interval; slower.")] = False,
    study: BenefitOptions,
    time_limit: Annotated[float, typer.Option(help="Time limit per configuration, in seconds.", metavar="S")] = 300.0,
    restart: Annotated[bool, typer.Option("--restart", help="Discard existing rows in --out.")] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Retry rows that failed.")] = False,
    count: Annotated[bool, typer.Option("--count", help="Only count the configurations.")] = False,
    json: take.Json = False,
) -> None:
    """Predict every configuration in a space of macros, block sizes, register limits, arguments and GPUs."""
    check_positive(time_limit, "--time-limit")
    if kept is not None and prune is None:
        raise UsageError("--kept requires --prune, as in --prune 0.05")
    from ..experiments.sweep import check_export, check_target, count_of, sweep, write_rows

    if count:
        print(count_of(space, gpu))
        return
    drawn = study.wanted(space)
    if prune is not None and not 0 < prune <= 1:
        raise UsageError(f"--prune {prune:g}: expected a fraction above 0 and at most 1, such as 0.05")
    if kept is not None:
        check_target(Path(kept), Path(out) if out else None)
    if export is not None:
        check_export(space, gpu, Path(export), format)
    with rated(SILENT_S) as shown, resumable(shown, out) as tell:
        found = sweep(
            space,
            gpus=gpu,
            out=out,
            jobs=jobs,
            scheduler=scheduler,
            band=band,
            benefits=study.benefits,
            time_limit_s=time_limit,
            restart=restart,
            retry_failed=retry_failed,
            on_row=lambda row, done, of: tell(_line(row), done, of),
            on_note=lambda note: print(f"drywarp: {note}", file=sys.stderr, flush=True),
        )
    study.draw(found, drawn)
    if json:
        print_json(found.to_dict(prune))
    else:
        from ..report.ranking import render_sweep

        print_text(render_sweep(found, best, prune))
    if kept is not None and prune is not None:
        write_rows(Path(kept), found, found.prune(prune).rows)
    if export is not None:
        found.export(export, format)
        print(f"drywarp: wrote {export}", file=sys.stderr)


def _line(row: SweepRow) -> str:
    from ..support.text import time_text

    said = " ".join(f"{name}={value}" for name, value in row.parameters.items())
    return f"{row.gpu} {said}: " + (f"failed: {row.reason}" if row.time_s is None else time_text(row.time_s))
