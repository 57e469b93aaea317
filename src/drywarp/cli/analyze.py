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
    from ..api import Options
    from ..result import Analysis, LaunchSeries


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
    trace: Annotated[
        str | None,
        typer.Option(help="Write what every warp of an SM issues when, for Perfetto; .gz compresses.", metavar="FILE"),
    ] = None,
    trace_events: Annotated[
        int | None, typer.Option(help="Events of --trace at most (500,000).", metavar="N", min=1000)
    ] = None,
    advice: Annotated[
        bool,
        typer.Option("--advice", help="Every what-if, and what compiling again gives: registers, blocks, unrolling."),
    ] = False,
    other_gpu: Annotated[
        list[str] | None, typer.Option("--other-gpu", help="--advice: predict on this GPU as well.", metavar="NAME")
    ] = None,
    html: Annotated[
        str | None, typer.Option(help="Write a report to look into: one file that opens offline.", metavar="FILE")
    ] = None,
    events: Annotated[
        int, typer.Option(help="--html: instructions of the execution profile, 0 for none.", min=0)
    ] = 100_000,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
) -> None:
    """Predict a kernel's time, occupancy curve and limiter."""
    # Imported here: --help and usage errors should not wait for NumPy.
    from ..advice import analyze, analyze_launches
    from ..api import Options
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
        advice=advice,
        other_gpus=tuple(other_gpu or ()),
        limits=Limits(seconds=seconds, lane_steps=int(lane_steps)),
        static=static,
        trips=parse_trips(trip),
        taken=parse_shares(taken),
        access=pairs(access, "--access"),
        detail=events if html else None,
    )
    if html and (launches or list_loops):
        raise UsageError("--html shows one launch: it goes with neither --launches nor --list-loops")
    if not static and (trip or taken or access or list_loops) and not always_static(gpu):
        raise UsageError("--trip, --taken, --access and --list-loops are for --static")
    source = read_stdin() if kernel == "-" else Path(kernel)
    macros = pairs(define, "-D", value_needed=False)
    if list_loops:
        _print_loops(source, gpu, entry, macros, include or (), std, json)
        return
    if trace is None and trace_events is not None:
        raise UsageError("--trace-events is for --trace FILE")
    if trace is not None:
        if launches:
            raise UsageError("--trace is for one launch: it goes without --launches")
        chosen = _with_trace(chosen, trace, trace_events)
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
    written = 0
    if trace is not None:
        from ..report.trace import write_trace

        written = write_trace(result, trace)
    if html:
        _write_html(result, Path(html))
    if json:
        from ..report.json_text import json_text

        sys.stdout.write(json_text(result.to_dict()))
    else:
        from rich.console import Console

        from ..report.terminal import print_analysis

        console = Console(highlight=False)
        print_analysis(result, console)
        if trace is not None:
            console.print(
                f"{written:,} events in {trace}: open it at https://ui.perfetto.dev", markup=False, soft_wrap=True
            )


def _with_trace(chosen: Options, trace: str, events: int | None) -> Options:
    """The options with a trace; where its file cannot be, that is said before anything takes time."""
    from ..execution_trace import DEFAULT_EVENTS

    place = Path(trace)
    if place.is_dir() or not place.parent.is_dir():
        raise UsageError(f"--trace {trace}: expected the name of a file in a folder that exists")
    return replace(chosen, trace=events or DEFAULT_EVENTS)


def _write_html(result: Analysis, path: Path) -> None:
    from ..report.html import html_page

    try:
        path.write_text(html_page(result), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--html {path}: cannot be written ({error.strerror})") from None


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
