"""`drywarp validate`: predictions against a table of measurements."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UsageError
from . import options as take
from .figures import FigureTheme, Plot, check_plot, write_plot
from .progress import rated
from .values import check_positive, pairs, parse_blocks

if TYPE_CHECKING:
    from ..validation import RatioReport, RowResult, ValidationReport


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(name="validate")(command)


def command(
    tables: Annotated[
        list[str],
        typer.Argument(
            help="Measurements: CSV, Kernel Tuner's cache or T4 file, or a profiler's export; with --report and "
            "--compare outputs of this verb.",
            metavar="TABLE",
        ),
    ],
    kernel: Annotated[str | None, typer.Option(help="The kernel's file.", metavar="FILE")] = None,
    gpu: take.GpuName = "a100",
    entry: Annotated[
        str | None, typer.Option(help="Kernel in the file; may hold columns in braces: 'gemm<{bm},{bn}>'.")
    ] = None,
    grid: Annotated[
        str | None, typer.Option(help="Blocks, sums over columns: 'cdiv(4096,bx*tile),64'.", metavar="X[,Y[,Z]]")
    ] = None,
    block: Annotated[str | None, typer.Option(help="Threads of a block, likewise.", metavar="X[,Y[,Z]]")] = None,
    arg: Annotated[
        list[str] | None,
        typer.Option(help="An argument; extents and numbers may be sums: a=f32[n*n].", metavar="NAME=VALUE"),
    ] = None,
    const: take.Constants = None,
    shared: Annotated[str | None, typer.Option(help="Dynamic shared memory, a sum.", metavar="BYTES")] = None,
    macros: Annotated[
        str | None, typer.Option(help="Columns that become macros; all parameters unless said.", metavar="A,B")
    ] = None,
    define: take.Defines = None,
    include: take.Includes = None,
    std: take.Std = None,
    max_registers: Annotated[
        str | None, typer.Option(help="Registers per thread at most: a number, or a sum over columns.")
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="The column of the times; found by usual names.", metavar="COLUMN[:UNIT]")
    ] = None,
    where: Annotated[
        str | None, typer.Option(help="Keep rows that fulfil this: 'bx>=32 and use_shmem==1'.", metavar="CONDITION")
    ] = None,
    rows: Annotated[int | None, typer.Option(help="Take so many rows, evenly spread.", min=1)] = None,
    split: Annotated[
        str | None, typer.Option(help="Set this half of the table aside, take the other.", metavar="even|odd")
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(help="Take the configurations of another output, to compare two GPUs.", metavar="FILE"),
    ] = None,
    models: Annotated[
        str | None, typer.Option(help="Models to ask, the believed one first; all unless said.", metavar="A,B")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(help="Append rows as they are done (.csv, .jsonl, .parquet); skip those there.", metavar="FILE"),
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Rows side by side; all cores unless said.", min=1)] = None,
    time_limit: Annotated[float, typer.Option(help="Seconds that one row may take.", metavar="S")] = 300.0,
    seconds: take.Seconds = None,
    clock: Annotated[
        str | None, typer.Option(help="SM clock in MHz instead of the boost clock: a number, or a sum over columns.")
    ] = None,
    scheduler: take.Scheduler = None,
    warm_l2: take.WarmL2 = False,
    blocks: take.Blocks = None,
    full_simulation: Annotated[
        bool, typer.Option("--full-simulation", help="Simulate every instruction: no jumps, no extrapolation.")
    ] = False,
    report: Annotated[bool, typer.Option("--report", help="Only report what an output holds already.")] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Two outputs: the ratio of times by configuration.")
    ] = False,
    plot: Plot = None,
    figure_theme: FigureTheme = None,
    json: take.Json = False,
) -> None:
    """Predict every row of a table of measurements, and say how far off the predictions are."""
    wanted = _names(models)
    check_plot(plot, figure_theme)
    if compare:
        _compare(tables, json, plot)
        return
    if len(tables) != 1:
        raise UsageError(f"{len(tables)} tables, expected one (two with --compare)")
    from ..validation import Settings, report_again, validate

    check_positive(time_limit, "--time-limit")
    if report:
        if kernel is not None:
            raise UsageError("--report reads an output of this verb: it takes no --kernel")
        found = report_again(tables[0], split=split, models=wanted)
        write_plot(found, plot, figure_theme)
        _show(found, json)
        return
    with rated() as tell:

        def on_row(row: RowResult, done: int, of: int) -> None:
            tell(_line(row), done, of)

        found = validate(
            tables[0],
            kernel=None if kernel is None else Path(kernel),
            gpu=gpu,
            entry=entry,
            grid=grid,
            block=block,
            args=pairs(arg, "--arg"),
            constants=pairs(const, "--const"),
            shared=shared,
            macros=None if macros is None else [name for name in macros.split(",") if name],
            defines=pairs(define, "-D", value_needed=False),
            includes=include or (),
            std=std,
            max_registers=max_registers,
            clock=clock,
            time=time,
            where=where,
            rows=rows,
            split=split,
            like=like,
            models=wanted,
            out=out,
            jobs=jobs,
            time_limit_s=time_limit,
            settings=Settings(
                warm_l2=warm_l2,
                scheduler=scheduler,
                blocks=parse_blocks(blocks),
                full_simulation=full_simulation,
            ),
            on_row=on_row,
        )
    write_plot(found, plot, figure_theme)
    _show(found, json)


def _names(models: str | None) -> list[str] | None:
    return None if models is None or models == "all" else [name for name in models.split(",") if name]


def _line(row: RowResult) -> str:
    from ..report.units import time_text

    if not row.ok:
        return f"row {row.row} failed: {row.reason}"
    believed = next(iter(row.times.values()), None)
    said = "no prediction" if believed is None else time_text(believed)
    return f"row {row.row}: {said} predicted, {time_text(row.measured_s)} measured"


def _show(report: ValidationReport, json: bool) -> None:
    if json:
        _print_json(report.to_dict())
        return
    from rich.console import Console

    from ..report.validation import render_validation

    Console(highlight=False).print(render_validation(report), soft_wrap=True)


def _compare(tables: list[str], json: bool, plot: str | None) -> None:
    if len(tables) != 2:
        raise UsageError(f"--compare: {len(tables)} files, expected two outputs of this verb")
    if plot is not None:
        raise UsageError("--plot is not for --compare")
    from ..validation import compare_rows

    report: RatioReport = compare_rows(tables[0], tables[1])
    if json:
        _print_json(report.to_dict())
        return
    from rich.console import Console

    from ..report.validation import render_ratios

    Console(highlight=False).print(render_ratios(report), soft_wrap=True)


def _print_json(value: dict[str, Any]) -> None:
    from ..report.json_text import json_text

    sys.stdout.write(json_text(value))
