"""`drywarp validate`: compare predictions with a table of measurements."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from ..errors import UsageError
from . import options as take
from .options import check_positive, pairs, parse_blocks
from .output import FigureTheme, Plot, check_plot, print_json, print_text, write_plot
from .progress import rated, resumable

if TYPE_CHECKING:
    from ..experiments.validate import RatioReport, RowResult, ValidationReport


@dataclass(frozen=True)
class RowLaunchOptions:
    """How a row of the table becomes a launch; texts may be expressions over its columns."""

    PANEL: ClassVar = "Kernel and launch (may refer to columns)"

    kernel: Annotated[str | None, typer.Option(help="The kernel's file.", metavar="FILE")] = None
    entry: Annotated[
        str | None, typer.Option(help="Name of the kernel; may contain columns in braces: 'gemm<{bm},{bn}>'.")
    ] = None
    grid: Annotated[
        str | None,
        typer.Option(help="Grid size; expressions over columns: 'cdiv(4096,bx*tile),64'.", metavar="X[,Y[,Z]]"),
    ] = None
    block: Annotated[str | None, typer.Option(help="Block size; likewise expressions.", metavar="X[,Y[,Z]]")] = None
    arg: Annotated[
        list[str] | None,
        typer.Option(
            help="A kernel argument; extents and numbers may be expressions: a=f32[2*n].", metavar="NAME=VALUE"
        ),
    ] = None
    const: take.Constants = None
    shared: Annotated[
        str | None, typer.Option(help="Dynamic shared memory; an expression over columns.", metavar="BYTES")
    ] = None
    cluster: Annotated[
        str | None, typer.Option(help="Thread block cluster in blocks: expressions over columns.", metavar="X[,Y[,Z]]")
    ] = None
    macros: Annotated[
        str | None, typer.Option(help="Columns to define as macros (default: all parameters).", metavar="A,B")
    ] = None
    define: take.Defines = None
    include: take.Includes = None
    std: take.Std = None
    compiler_option: take.CompilerOptions = None
    max_registers: Annotated[
        str | None, typer.Option(help="Maximum registers per thread: a number, or an expression over columns.")
    ] = None
    clock: Annotated[
        str | None,
        typer.Option(help="SM clock: MHz, an expression over columns, base, boost or highest (default: boost)."),
    ] = None

    def given(self) -> dict[str, Any]:
        """The keyword arguments of `validate`. Raises UsageError for malformed values."""
        return {
            "kernel": None if self.kernel is None else Path(self.kernel),
            "entry": self.entry,
            "grid": self.grid,
            "block": self.block,
            "args": pairs(self.arg, "--arg"),
            "constants": pairs(self.const, "--const"),
            "shared": self.shared,
            "cluster": self.cluster,
            "macros": None if self.macros is None else [name for name in self.macros.split(",") if name],
            "defines": pairs(self.define, "-D", value_needed=False),
            "includes": self.include or (),
            "std": self.std,
            "compiler_options": tuple(self.compiler_option or ()),
            "max_registers": self.max_registers,
            "clock": self.clock,
        }


@dataclass(frozen=True)
class RowChoiceOptions:
    """Which rows of the table are used."""

    PANEL: ClassVar = "Rows of the table"

    time: Annotated[
        str | None,
        typer.Option(help="Column with the times (default: detected by its usual names).", metavar="COLUMN[:UNIT]"),
    ] = None
    where: Annotated[
        str | None,
        typer.Option(help="Keep only rows that satisfy this: 'bx>=32 and use_shmem==1'.", metavar="CONDITION"),
    ] = None
    rows: Annotated[int | None, typer.Option(help="Use this many rows, evenly spaced.", min=1)] = None
    split: Annotated[
        str | None, typer.Option(help="Hold out this half of the table and use the other.", metavar="even|odd")
    ] = None
    like: Annotated[
        str | None,
        typer.Option(help="Use the configurations of another output, to compare two GPUs.", metavar="FILE"),
    ] = None


def validate_command(
    tables: Annotated[
        list[str],
        typer.Argument(
            help="Measurements: CSV, Kernel Tuner's cache or T4 file, or a profiler's export; with --report or "
            "--compare, outputs of this verb.",
            metavar="TABLE",
        ),
    ],
    *,
    launch: RowLaunchOptions,
    choice: RowChoiceOptions,
    gpu: take.GpuName = "a100",
    models: Annotated[
        str | None, typer.Option(help="Models to evaluate, the primary one first (default: all).", metavar="A,B")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            help="Append each row when it is done (.csv, .jsonl, .parquet); skip existing rows.", metavar="FILE"
        ),
    ] = None,
    jobs: take.Workers = None,
    time_limit: Annotated[float, typer.Option(help="Time limit per row, in seconds.", metavar="S")] = 300.0,
    seconds: take.Seconds = None,
    scheduler: take.Scheduler = None,
    warm_l2: take.WarmL2 = False,
    blocks: take.Blocks = None,
    full_simulation: take.FullSimulation = False,
    report: Annotated[bool, typer.Option("--report", help="Report on an existing output without predicting.")] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Compare two outputs: the ratio of times per configuration.")
    ] = False,
    worst: Annotated[int, typer.Option(help="Number of worst rows to show, with a command for each.", min=0)] = 5,
    plot: Plot = None,
    figure_theme: FigureTheme = None,
    json: take.Json = False,
) -> None:
    """Predict every row of a table of measurements, and report the prediction errors."""
    wanted = _names(models)
    check_plot(plot, figure_theme)
    if compare:
        _compare(tables, json, plot)
        return
    if len(tables) != 1:
        raise UsageError(f"{len(tables)} tables, expected one (two with --compare)")
    from ..experiments.validate import Settings, report_again, validate

    check_positive(time_limit, "--time-limit")
    if report:
        if launch.kernel is not None:
            raise UsageError("--report reads an output of this verb: it cannot be combined with --kernel")
        found = report_again(tables[0], split=choice.split, models=wanted)
    else:
        settings = Settings(
            warm_l2=warm_l2, scheduler=scheduler, blocks=parse_blocks(blocks), full_simulation=full_simulation
        )
        with rated() as shown, resumable(shown, out) as tell:
            found = validate(
                tables[0],
                gpu=gpu,
                **launch.given(),
                **vars(choice),
                models=wanted,
                out=out,
                jobs=jobs,
                time_limit_s=time_limit,
                settings=settings,
                on_row=lambda row, done, of: tell(_line(row), done, of),
            )
    write_plot(found, plot, figure_theme)
    _show(found, worst, json)
    if out is not None and not json:
        print(f"\nthe same report without predicting: drywarp validate --report {out}")


def _names(models: str | None) -> list[str] | None:
    return None if models is None or models == "all" else [name for name in models.split(",") if name]


def _line(row: RowResult) -> str:
    from ..support.text import time_text

    if not row.ok:
        return f"row {row.row} failed: {row.reason}"
    primary = next(iter(row.times.values()), None)
    said = "no prediction" if primary is None else time_text(primary)
    return f"row {row.row}: {said} predicted, {time_text(row.measured_s)} measured"


def _show(report: ValidationReport, worst: int, json: bool) -> None:
    if json:
        print_json(report.to_dict(worst))
        return
    from ..report.validation import render_validation

    print_text(render_validation(report, worst))


def _compare(tables: list[str], json: bool, plot: str | None) -> None:
    if len(tables) != 2:
        raise UsageError(f"--compare: {len(tables)} files, expected two outputs of this verb")
    if plot is not None:
        raise UsageError("--plot cannot be combined with --compare")
    from ..experiments.validate import compare_rows

    report: RatioReport = compare_rows(tables[0], tables[1])
    if json:
        print_json(report.to_dict())
        return
    from ..report.validation import render_ratios

    print_text(render_ratios(report))
