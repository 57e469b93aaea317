"""`drywarp sweep`: predict every configuration of a search space."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ..errors import UsageError
from .output import check_theme, named_figures, show, write_figures
from .progress import SILENT_S, rated, resumable
from .values import check_positive

if TYPE_CHECKING:
    from ..experiments.sweep.row import SweepRow


@dataclass(frozen=True)
class BenefitOptions:
    """GPUPerf's potential benefits of the rows, and their figures."""

    PANEL: ClassVar = "Potential benefits"

    benefits: bool = False
    figure: list[str] | None = None
    figure_theme: str | None = None

    def wanted(self, space: str) -> list[tuple[str, Path]]:
        """The figures by name with their files, all checked before anything is predicted. Raises UsageError."""
        check_theme(self.figure_theme, bool(self.figure), "--figure NAME=FILE")
        if not self.figure:
            return []
        if not self.benefits:
            raise UsageError("--figure requires --benefits")
        from ..experiments.sweep import figure_names

        return named_figures(self.figure, figure_names(space))


def sweep_command(
    space: str,
    *,
    gpu: str | None = None,
    out: str | None = None,
    prune: float | None = None,
    kept: str | None = None,
    export: str | None = None,
    format: str = "kernel-tuner",
    best: int = 10,
    jobs: int | None = None,
    scheduler: str | None = None,
    band: bool = False,
    study: BenefitOptions,
    time_limit: float = 300.0,
    restart: bool = False,
    retry_failed: bool = False,
    count: bool = False,
    json: bool = False,
) -> None:
    """Predict every configuration in a space of macros, block sizes, register limits, arguments and GPUs."""
    check_positive(time_limit, "--time-limit")
    if kept is not None and prune is None:
        raise UsageError("--kept requires --prune, as in --prune 0.05")
    from ..experiments.sweep import check_export, count_of, sweep
    from ..experiments.sweep.result import check_target, write_rows

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
    write_figures(found, drawn, study.figure_theme)
    from ..report.ranking import render_sweep

    show(json, lambda: found.to_dict(prune), lambda: render_sweep(found, best, prune))
    if kept is not None and prune is not None:
        write_rows(Path(kept), found, found.prune(prune).rows)
    if export is not None:
        found.export(export, format)
        print(f"drywarp: wrote {export}", file=sys.stderr)


def _line(row: SweepRow) -> str:
    from ..support.text import time_text

    said = " ".join(f"{name}={value}" for name, value in row.parameters.items())
    return f"{row.gpu} {said}: " + (f"failed: {row.reason}" if row.time_s is None else time_text(row.time_s))
