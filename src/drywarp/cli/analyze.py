"""`drywarp analyze`: one kernel on one GPU."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ..errors import UsageError

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
    seconds: Annotated[float, typer.Option(help="Time limit of the emulation.")] = 20.0,
    lane_steps: Annotated[float, typer.Option(help="Limit of lane steps of the emulation.")] = 2e9,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
) -> None:
    """Predict a kernel's time, occupancy curve and limiter."""
    # Imported here: --help and usage errors should not wait for NumPy.
    from ..api import Options, analyze, analyze_launches
    from ..emulator import Limits

    options = Options(
        clock_mhz=clock,
        scheduler=scheduler,
        warm_l2=warm_l2,
        blocks=_blocks(blocks),
        occupancies=_occupancies(occupancy),
        limits=Limits(seconds=seconds, lane_steps=int(lane_steps)),
    )
    source = sys.stdin.read() + "\n" if kernel == "-" else Path(kernel)
    if launches:
        if grid or block or arg or const or shared is not None:
            raise UsageError("--launches takes the place of --grid, --block, --arg, --const and --shared")
        series = analyze_launches(
            source,
            launches,
            gpu=gpu,
            entry=entry,
            defines=_pairs(define, "-D", value_needed=False),
            includes=include or (),
            std=std,
            options=options,
        )
        _print_series(series, json)
        return
    result = analyze(
        source,
        gpu=gpu,
        entry=entry,
        grid=grid,
        block=block,
        args=_pairs(arg, "--arg"),
        constants=_pairs(const, "--const"),
        shared=shared,
        defines=_pairs(define, "-D", value_needed=False),
        includes=include or (),
        std=std,
        options=options,
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


def _pairs(texts: list[str] | None, option: str, value_needed: bool = True) -> dict[str, str]:
    pairs = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not name or (value_needed and not equals):
            raise UsageError(f"{option} {text!r}: expected NAME=VALUE")
        pairs[name] = value
    return pairs


def _blocks(text: str | None) -> int | list[int] | Literal["all"] | None:
    if text is None:
        return None
    if text == "all":
        return "all"
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 0 or (len(numbers) == 1 and numbers[0] < 1):
        raise UsageError(f"--blocks {text!r}: expected a number of blocks, all, or indices such as 0,5,9")
    return numbers[0] if len(numbers) == 1 else numbers


def _occupancies(text: str | None) -> list[int] | None:
    """`8,16` as it stands; `8-64` as every number between, of which the whole blocks are taken."""
    if text is None:
        return None
    try:
        if "-" in text:
            first, last = (int(part) for part in text.split("-"))
            return list(range(first, last + 1))
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--occupancy {text!r}: expected numbers of warps, as in 8,16,32 or 8-64") from None
