"""`drywarp analyze`: one kernel on one GPU."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError
from . import options as take
from .progress import stages
from .values import check_positive, pairs, parse_blocks, parse_occupancies, read_stdin

if TYPE_CHECKING:
    from ..result import LaunchSeries


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(name="analyze", rich_help_panel=None)(command)


def command(
    kernel: Annotated[str, typer.Argument(help="CUDA C++ file; - reads standard input.", metavar="FILE")],
    gpu: Annotated[str, typer.Option(help="A GPU that `drywarp gpus` lists, or a GPU file (.toml).")] = "a100",
    entry: Annotated[
        str | None, typer.Option(help="Kernel in the file; a template with its arguments: 'sgemm<128,8>'.")
    ] = None,
    grid: Annotated[str | None, typer.Option(help="Blocks in x,y,z.", metavar="X[,Y[,Z]]")] = None,
    block: Annotated[str | None, typer.Option(help="Threads of a block in x,y,z.", metavar="X[,Y[,Z]]")] = None,
    arg: Annotated[
        list[str] | None,
        typer.Option(help="An argument: n=4096, a=f32[64,64]:random, a=@file.npy.", metavar="NAME=VALUE"),
    ] = None,
    const: Annotated[
        list[str] | None, typer.Option(help="Content of a __constant__ variable.", metavar="NAME=VALUE")
    ] = None,
    shared: Annotated[int | None, typer.Option(help="Dynamic shared memory in bytes.", metavar="BYTES")] = None,
    launches: Annotated[str | None, typer.Option(help="Launches file (.toml): several launches in one run.")] = None,
    define: Annotated[list[str] | None, typer.Option("--define", "-D", help="Macro.", metavar="NAME[=VALUE]")] = None,
    include: Annotated[list[str] | None, typer.Option("--include", "-I", help="Folder of headers.")] = None,
    std: Annotated[str | None, typer.Option(help="C++ standard, such as c++17.")] = None,
    clock: Annotated[float | None, typer.Option(help="SM clock in MHz instead of the boost clock.")] = None,
    scheduler: Annotated[str | None, typer.Option(help="Warp scheduler policy instead of the GPU's own.")] = None,
    warm_l2: Annotated[bool, typer.Option("--warm-l2", help="As in a timing loop: the L2 holds data already.")] = False,
    blocks: Annotated[str | None, typer.Option(help="Blocks to emulate: a number, all, or indices 0,5,9.")] = None,
    occupancy: Annotated[str | None, typer.Option(help="Warps per SM on the curve: 8,16 or 8-64.")] = None,
    occupancy_trace: Annotated[
        bool, typer.Option("--occupancy-trace", help="Show the number of active warps over time.")
    ] = False,
    seconds: Annotated[float, typer.Option(help="Time limit of the emulation.")] = 20.0,
    lane_steps: Annotated[float, typer.Option(help="Limit of lane steps of the emulation.")] = 2e9,
    profile: take.ProfileFile = None,
    memory: take.Mapper = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
) -> None:
    """Predict a kernel's time, occupancy curve and limiter."""
    # Imported here: --help and usage errors should not wait for NumPy.
    from ..api import Options, analyze, analyze_launches
    from ..emulator import Limits

    check_positive(clock, "--clock")
    check_positive(seconds, "--seconds")
    check_positive(lane_steps, "--lane-steps")
    options = Options(
        clock_mhz=clock,
        scheduler=scheduler,
        warm_l2=warm_l2,
        blocks=parse_blocks(blocks),
        occupancies=parse_occupancies(occupancy),
        occupancy_trace=occupancy_trace,
        profile=Path(profile) if profile else None,
        memory=memory,
        limits=Limits(seconds=seconds, lane_steps=int(lane_steps)),
    )
    source = read_stdin() if kernel == "-" else Path(kernel)
    macros = pairs(define, "-D", value_needed=False)
    if launches:
        if grid or block or arg or const or shared is not None:
            raise UsageError("--launches takes the place of --grid, --block, --arg, --const and --shared")
        with stages() as on_stage:
            series = analyze_launches(
                source,
                launches,
                gpu=gpu,
                entry=entry,
                defines=macros,
                includes=include or (),
                std=std,
                options=replace(options, on_stage=on_stage),
            )
        _print_series(series, json)
        return
    with stages() as on_stage:
        result = analyze(
            source,
            gpu=gpu,
            entry=entry,
            grid=grid,
            block=block,
            args=pairs(arg, "--arg"),
            constants=pairs(const, "--const"),
            shared=shared,
            defines=macros,
            includes=include or (),
            std=std,
            options=replace(options, on_stage=on_stage),
        )
    if json:
        from ..report.json_text import json_text

        sys.stdout.write(json_text(result.to_dict()))
    else:
        from rich.console import Console

        from ..report.terminal import print_analysis

        print_analysis(result, Console(highlight=False))


def _print_series(series: LaunchSeries, json: bool) -> None:
    if json:
        from ..report.json_text import json_text

        sys.stdout.write(json_text(series.to_dict()))
        return
    from rich.console import Console

    from ..report.series import render_series

    Console(highlight=False).print(render_series(series), soft_wrap=True)
