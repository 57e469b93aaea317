"""`drywarp analyze`: one kernel on one GPU."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError
from . import options as take
from .progress import stages
from .values import check_positive, pairs, parse_blocks, parse_occupancies, parse_shares, parse_trips, read_stdin

if TYPE_CHECKING:
    from ..result import LaunchSeries


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(name="analyze", rich_help_panel=None)(command)


def command(
    kernel: take.KernelFile,
    gpu: Annotated[str, typer.Option(help="A GPU that `drywarp gpus` lists, or a GPU file (.toml).")] = "a100",
    entry: Annotated[
        str | None, typer.Option(help="Kernel in the file; a template with its arguments: 'sgemm<128,8>'.")
    ] = None,
    grid: take.Grid = None,
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
    config: take.Config = None,
    clock: Annotated[float | None, typer.Option(help="SM clock in MHz instead of the boost clock.")] = None,
    scheduler: Annotated[str | None, typer.Option(help="Warp scheduler policy instead of the GPU's own.")] = None,
    warm_l2: Annotated[bool, typer.Option("--warm-l2", help="As in a timing loop: the L2 holds data already.")] = False,
    blocks: Annotated[str | None, typer.Option(help="Blocks to emulate: a number, all, or indices 0,5,9.")] = None,
    confidence: Annotated[
        float | None,
        typer.Option(help="Sample blocks that differ until the 95 % interval is ± this fraction; 0 for all blocks."),
    ] = None,
    occupancy: Annotated[str | None, typer.Option(help="Warps per SM on the curve: 8,16 or 8-64.")] = None,
    occupancy_trace: Annotated[
        bool, typer.Option("--occupancy-trace", help="Show the number of active warps over time.")
    ] = False,
    static: Annotated[
        bool, typer.Option("--static", help="Follow the code without running it; what is not given is assumed.")
    ] = False,
    trip: Annotated[list[str] | None, typer.Option(help="--static: turns of a loop.", metavar="L1=N or LINE=N")] = None,
    taken: Annotated[
        list[str] | None, typer.Option(help="--static: share of threads that take a branch.", metavar="LINE=SHARE")
    ] = None,
    access: Annotated[
        list[str] | None,
        typer.Option(help="--static: pattern of accesses: coalesced, random, uniform.", metavar="LINE=PATTERN"),
    ] = None,
    list_loops: Annotated[bool, typer.Option("--list-loops", help="--static: list the loops and leave.")] = False,
    full_simulation: Annotated[
        bool, typer.Option("--full-simulation", help="Simulate every instruction: no jumps, no extrapolation.")
    ] = False,
    full_emulation: Annotated[
        bool, typer.Option("--full-emulation", help="Run long loops to their ends, turn by turn.")
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
    from ..static_api import always_static

    check_positive(clock, "--clock")
    check_positive(seconds, "--seconds")
    check_positive(lane_steps, "--lane-steps")
    chosen = Options(
        clock_mhz=clock,
        scheduler=scheduler,
        warm_l2=warm_l2,
        blocks=parse_blocks(blocks),
        confidence=confidence,
        occupancies=parse_occupancies(occupancy),
        occupancy_trace=occupancy_trace,
        profile=Path(profile) if profile else None,
        memory=memory,
        full_simulation=full_simulation,
        full_emulation=full_emulation,
        limits=Limits(seconds=seconds, lane_steps=int(lane_steps)),
        static=static,
        trips=parse_trips(trip),
        taken=parse_shares(taken),
        access=pairs(access, "--access"),
    )
    if not static and (trip or taken or access or list_loops) and not always_static(gpu):
        raise UsageError("--trip, --taken, --access and --list-loops are for --static")
    source = read_stdin() if kernel == "-" else Path(kernel)
    macros = pairs(define, "-D", value_needed=False)
    if list_loops:
        _print_loops(source, gpu, entry, macros, include or (), std, json)
        return
    if launches:
        if grid or block or arg or const or config or shared is not None:
            raise UsageError("--launches takes the place of --grid, --block, --arg, --const, --shared and --config")
        with stages() as on_stage:
            series = analyze_launches(
                source,
                launches,
                gpu=gpu,
                entry=entry,
                defines=macros,
                includes=include or (),
                std=std,
                options=replace(chosen, on_stage=on_stage),
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
            config=config,
            options=replace(chosen, on_stage=on_stage),
        )
    if json:
        from ..report.json_text import json_text

        sys.stdout.write(json_text(result.to_dict()))
    else:
        from rich.console import Console

        from ..report.terminal import print_analysis

        print_analysis(result, Console(highlight=False))


def _print_loops(
    source: str | Path, gpu: str, entry: str | None, macros: dict[str, str], includes: Sequence[str], std: str | None,
    json: bool,
) -> None:  # fmt: skip
    from ..report.static import loops_dict, render_loops
    from ..static_api import loops_of

    kernel, loops = loops_of(source, gpu=gpu, entry=entry, defines=macros, includes=includes, std=std)
    if json:
        from ..report.json_text import json_text

        sys.stdout.write(json_text(loops_dict(kernel, loops)))
        return
    from rich.console import Console

    Console(highlight=False).print(render_loops(kernel, loops), soft_wrap=True)


def _print_series(series: LaunchSeries, json: bool) -> None:
    if json:
        from ..report.json_text import json_text

        sys.stdout.write(json_text(series.to_dict()))
        return
    from rich.console import Console

    from ..report.series import render_series

    Console(highlight=False).print(render_series(series), soft_wrap=True)
