"""`drywarp models`: every model on one workload."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError
from . import options as take
from .progress import stages
from .values import pairs, parse_blocks, parse_occupancies, parse_trips

if TYPE_CHECKING:
    from ..models.comparison import Comparison


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(name="models")(command)


def command(
    workload: Annotated[
        str,
        typer.Argument(help="A name of `drywarp workloads`, an abstract kernel (.toml), or a kernel's file."),
    ],
    gpu: Annotated[
        str | None, typer.Option(help="A GPU, or a GPU file (.toml); the abstract kernel's own, else a100.")
    ] = None,
    occupancy: Annotated[str | None, typer.Option(help="Warps per SM on the curves: 8,16 or 1-12.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of an abstract kernel.", metavar="NAME=VALUE")
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="Abstract kernels: run so many times the warps, replacing those that end.", min=1)
    ] = None,
    inputs: Annotated[bool, typer.Option("--inputs", help="Show what the models were given.")] = False,
    plot: Annotated[str | None, typer.Option(help="Write the curves as a figure.", metavar="FILE.svg")] = None,
    entry: Annotated[str | None, typer.Option(help="Kernel in the file, as `analyze` takes it.")] = None,
    grid: Annotated[str | None, typer.Option(help="Blocks in x,y,z.", metavar="X[,Y[,Z]]")] = None,
    block: Annotated[str | None, typer.Option(help="Threads of a block in x,y,z.", metavar="X[,Y[,Z]]")] = None,
    arg: Annotated[list[str] | None, typer.Option(help="An argument of the kernel.", metavar="NAME=VALUE")] = None,
    const: Annotated[
        list[str] | None, typer.Option(help="Content of a __constant__ variable.", metavar="NAME=VALUE")
    ] = None,
    shared: Annotated[int | None, typer.Option(help="Dynamic shared memory in bytes.", metavar="BYTES")] = None,
    define: Annotated[list[str] | None, typer.Option("--define", "-D", help="Macro.", metavar="NAME[=VALUE]")] = None,
    include: Annotated[list[str] | None, typer.Option("--include", "-I", help="Folder of headers.")] = None,
    std: Annotated[str | None, typer.Option(help="C++ standard, such as c++17.")] = None,
    config: take.Config = None,
    clock: Annotated[float | None, typer.Option(help="SM clock in MHz instead of the GPU's.")] = None,
    scheduler: Annotated[str | None, typer.Option(help="Warp scheduler policy instead of the GPU's own.")] = None,
    warm_l2: Annotated[bool, typer.Option("--warm-l2", help="As in a timing loop: the L2 holds data already.")] = False,
    static: Annotated[
        bool, typer.Option("--static", help="Follow the code without running it, as `analyze --static`.")
    ] = False,
    trip: Annotated[list[str] | None, typer.Option(help="--static: turns of a loop.", metavar="L1=N or LINE=N")] = None,
    blocks: Annotated[str | None, typer.Option(help="Blocks to emulate: a number, all, or indices 0,5,9.")] = None,
    profile: take.ProfileFile = None,
    memory: take.Mapper = None,
    full_simulation: Annotated[
        bool, typer.Option("--full-simulation", help="Simulate every instruction: no jumps, no extrapolation.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
) -> None:
    """All models' curves over occupancy for one workload, in one table and one chart."""
    from ..api import Options
    from ..models_api import compare_models
    from ..static_api import always_static

    if plot is not None and not plot.endswith(".svg"):
        raise UsageError(f"--plot {plot}: expected a file name that ends in .svg")
    if clock is not None and clock <= 0:
        raise UsageError(f"--clock {clock:g}: expected a positive number of MHz")
    if trip and not static and not (gpu and always_static(gpu)):
        raise UsageError("--trip is for --static")
    wanted = parse_occupancies(occupancy)
    with stages() as on_stage:
        options = Options(
            clock_mhz=clock,
            scheduler=scheduler,
            warm_l2=warm_l2,
            blocks=parse_blocks(blocks),
            profile=Path(profile) if profile else None,
            memory=memory,
            on_stage=on_stage,
            static=static,
            trips=parse_trips(trip),
            full_simulation=full_simulation,
        )
        result = compare_models(
            workload,
            gpu,
            occupancies=wanted,
            settings=pairs(set_, "--set"),
            runs=runs,
            options=options,
            entry=entry,
            grid=grid,
            block=block,
            args=pairs(arg, "--arg"),
            constants=pairs(const, "--const"),
            shared=shared,
            defines=pairs(define, "-D", value_needed=False),
            includes=include or (),
            std=std,
            config=config,
        )
    if plot is not None:
        _write_plot(result, Path(plot))
    _print(result, json, inputs)


def _write_plot(result: Comparison, path: Path) -> None:
    from ..report.curves_svg import curves_svg

    try:
        path.write_text(curves_svg(result), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--plot {path}: cannot be written ({error.strerror})") from None


def _print(result: Comparison, json: bool, inputs: bool) -> None:
    if json:
        from ..report.json_text import json_text
        from ..report.models import comparison_dict

        sys.stdout.write(json_text(comparison_dict(result)))
        return
    from rich.console import Console

    from ..report.models import render_comparison

    Console(highlight=False).print(render_comparison(result, inputs), soft_wrap=True)
