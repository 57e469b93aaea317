"""Options that several verbs take, declared once."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import time_box
from .values import check_positive


def _stop_after(seconds: float | None) -> float | None:
    """Set the clock that ends the whole command; `main` takes it down."""
    if seconds is not None:
        check_positive(seconds, "--seconds")
        time_box.start(seconds)
    return seconds


KernelFile = Annotated[
    str,
    typer.Argument(help="CUDA C++, PTX, Python or machine code with a kernel; - reads standard input.", metavar="FILE"),
]
GpuName = Annotated[str, typer.Option(help="A GPU that `drywarp gpus` lists, or a GPU file (.toml).")]
Entry = Annotated[str | None, typer.Option(help="Kernel in the file; a template with its arguments: 'sgemm<128,8>'.")]
Grid = Annotated[
    str | None, typer.Option(help="Blocks in x,y,z; also sums over arguments: cdiv(n,256).", metavar="X[,Y[,Z]]")
]
Block = Annotated[str | None, typer.Option(help="Threads of a block in x,y,z.", metavar="X[,Y[,Z]]")]
Arguments = Annotated[
    list[str] | None,
    typer.Option(help="An argument: n=4096, a=f32[64,64]:random, a=@file.npy.", metavar="NAME=VALUE"),
]
Constants = Annotated[list[str] | None, typer.Option(help="Content of a __constant__ variable.", metavar="NAME=VALUE")]
Shared = Annotated[int | None, typer.Option(help="Dynamic shared memory in bytes.", metavar="BYTES")]
Defines = Annotated[list[str] | None, typer.Option("--define", "-D", help="Macro.", metavar="NAME[=VALUE]")]
Includes = Annotated[list[str] | None, typer.Option("--include", "-I", help="Folder of headers.")]
Std = Annotated[str | None, typer.Option(help="C++ standard, such as c++17.")]
MaxRegisters = Annotated[
    int | None, typer.Option(help="Registers per thread at most, as nvcc's -maxrregcount.", min=16, max=255)
]
Config = Annotated[
    str | None, typer.Option(help="Of a tuned Triton kernel: the number of a configuration, or best.", metavar="N|best")
]
Clock = Annotated[float | None, typer.Option(help="SM clock in MHz instead of the boost clock.")]
Scheduler = Annotated[str | None, typer.Option(help="Warp scheduler policy instead of the GPU's own.")]
WarmL2 = Annotated[bool, typer.Option("--warm-l2", help="As in a timing loop: the L2 holds data already.")]
ProfileFile = Annotated[
    str | None,
    typer.Option(
        help="A profiler's export (or what import-ncu wrote) whose figures go before emulated ones.", metavar="FILE"
    ),
]
Mapper = Annotated[
    str | None,
    typer.Option(help="How accesses are judged: emulated (each its own) or averaged (the mean one of its space)."),
]
Blocks = Annotated[str | None, typer.Option(help="Blocks to emulate: a number, all, or indices 0,5,9.")]
Confidence = Annotated[
    float | None,
    typer.Option(help="Sample blocks that differ until the 95 % interval is ± this fraction; 0 for all blocks."),
]
Static = Annotated[
    bool, typer.Option("--static", help="Follow the code without running it; what is not given is assumed.")
]
FullSimulation = Annotated[
    bool, typer.Option("--full-simulation", help="Simulate every instruction: no jumps, no extrapolation.")
]
FullEmulation = Annotated[bool, typer.Option("--full-emulation", help="Run long loops to their ends, turn by turn.")]
LaneSteps = Annotated[float, typer.Option(help="Limit of lane steps of the emulation.")]
Seconds = Annotated[
    float | None,
    typer.Option(
        help="Stop after this long, with exit status 2 and no answer (default: never).",
        metavar="SECONDS",
        callback=_stop_after,
    ),
]
Occupancies = Annotated[str | None, typer.Option(help="Warps per SM on the curve: 8,16 or 8-64.")]
Trips = Annotated[list[str] | None, typer.Option(help="--static: turns of a loop.", metavar="L1=N or LINE=N")]
Taken = Annotated[
    list[str] | None,
    typer.Option(help="--static: share of threads that take a branch.", metavar="LINE=SHARE"),
]
Access = Annotated[
    list[str] | None,
    typer.Option(help="--static: pattern of accesses: coalesced, random, uniform.", metavar="LINE=PATTERN"),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")]
