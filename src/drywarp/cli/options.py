"""Options shared by several verbs, declared once."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Sequence
from copy import copy
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

from ..errors import InputFileError, UsageError
from ..support import folders as time_box

# Parsers from option values as typed to the API's types.


def kernel_source(name: str) -> str | Path:
    """The path of a kernel's file, or for ``-`` the text on standard input. Raises UsageError if that is not text."""
    if name != "-":
        return Path(name)
    try:
        return sys.stdin.buffer.read().decode("utf-8") + "\n"
    except UnicodeDecodeError:
        raise UsageError("standard input: not text (expected CUDA C++ source or PTX)") from None


def check_positive(value: float | None, option: str) -> None:
    """Raise UsageError if a number is given that is not positive and finite."""
    if value is not None and not (math.isfinite(value) and value > 0):
        raise UsageError(f"{option} {value:g}: expected a positive number")


def parse_clock(text: str | None) -> float | str | None:
    """A clock in MHz, or the name of one in the GPU file. Raises UsageError for an invalid number."""
    try:
        mhz = None if text is None else float(text)
    except ValueError:
        return text
    check_positive(mhz, "--clock")
    return mhz


def pairs(texts: list[str] | None, option: str, value_needed: bool = True) -> dict[str, str]:
    """The values of a repeated `NAME=VALUE` option, by name."""
    pairs = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not name or (value_needed and not equals):
            raise UsageError(f"{option} {text!r}: expected NAME=VALUE")
        if name in pairs:
            raise UsageError(f"{option} {text!r}: {name} is given twice")
        pairs[name] = value
    return pairs


def argument_file(name: str | None) -> dict[str, Any]:
    """The arguments in a TOML file, by name: strings as on the command line, numbers, lists of numbers, tables.

    Raises InputFileError that names the file for anything else.
    """
    if name is None:
        return {}
    from ..support.folders import read_toml

    given = read_toml(Path(name), "a TOML file of arguments, as in n = 4096")
    return {argument: _argument_text(value, f"{name}: {argument}") for argument, value in given.items()}


def _argument_text(value: Any, place: str) -> Any:
    if isinstance(value, bool | int | float | str):
        return str(value).lower() if isinstance(value, bool) else value
    if isinstance(value, list) and value and all(isinstance(one, int | float) for one in value):
        return ",".join(map(str, value))
    if isinstance(value, dict):  # the fields of a structure, read by its layout
        return value
    raise InputFileError(f"{place}: expected a number, a string such as 'f32[64]:ones', a list of numbers, or a table")


def parse_percent(text: str | None, option: str) -> float | None:
    """`5%` as the fraction 0.05; the percent sign is required, so that 0.05 and 5 cannot be confused."""
    if text is None:
        return None
    try:
        value = float(text.removesuffix("%")) if text.endswith("%") else math.nan
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise UsageError(f"{option} {text!r}: expected a percentage such as 5%")
    return value / 100


def numbers_by_name(texts: list[str] | None, option: str) -> dict[str, float]:
    """The values of a repeated option such as `a100=1.2`, by name."""
    found = {}
    for name, value in pairs(texts, option).items():
        try:
            found[name] = float(value)
        except ValueError:
            raise UsageError(f"{option} {name}={value}: expected a number, as in a100=1.2") from None
    return found


def launch_values(text: str | None, option: str) -> dict[str, Any]:
    """Parse launch options, as in a launch comment (`--grid 64 -D TILE=16`), into the API's launch arguments."""
    if text is None:
        return {}
    from ..frontends.loaded import launch_options

    return launch_options(text, option).stated()


def parse_trips(texts: list[str] | None) -> dict[str, int]:
    """Trip counts by loop, from `L1=64` or `file.cu:21=64`."""
    found = {}
    for name, value in pairs(texts, "--trip").items():
        if not value.isdecimal():
            raise UsageError(f"--trip {name}={value}: expected a whole number, as in L1=64 or file.cu:21=64")
        found[name] = int(value)
    return found


def parse_shares(texts: list[str] | None) -> dict[str, float]:
    """Taken fractions by line, from `21=0.25` or `file.cu:21=0.25`."""
    found = {}
    for name, value in pairs(texts, "--taken").items():
        try:
            found[name] = float(value)
        except ValueError:
            raise UsageError(f"--taken {name}={value}: expected a fraction between 0 and 1, as in 21=0.25") from None
    return found


def parse_blocks(text: str | None) -> int | list[int] | Literal["all"] | None:
    """A number of blocks to sample, `all`, or several indices."""
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


def parse_occupancies(text: str | None) -> Sequence[int] | None:
    """`8,16` as listed; `8-64` as every number in the range; only multiples of the block size are used."""
    if text is None:
        return None
    try:
        if "-" in text:
            first, last = (int(part) for part in text.split("-"))
            return range(first, last + 1)
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--occupancy {text!r}: expected numbers of warps, as in 8,16,32 or 8-64") from None


def _use_threads(count: int | None) -> int | None:
    time_box.use_threads(count)
    return count


def _stop_after(seconds: float | None) -> float | None:
    """Start the timer that ends the whole command; `main` stops it."""
    if seconds is not None:
        check_positive(seconds, "--seconds")
        time_box.start(seconds)
    return seconds


KernelFile = Annotated[
    str,
    typer.Argument(
        help="File with a kernel: CUDA C++, PTX, Python or machine code; - reads standard input.", metavar="FILE"
    ),
]
GpuName = Annotated[
    str, typer.Option(help="A GPU as `drywarp gpus` or its driver names it, or a GPU file (.toml).", metavar="NAME")
]
Entry = Annotated[
    str | None,
    typer.Option(help="Name of the kernel; templates with their arguments: 'sgemm<128,8>'.", metavar="NAME"),
]
Grid = Annotated[
    str | None,
    typer.Option(help="Grid size in blocks; may be an expression over arguments: cdiv(n,256).", metavar="X[,Y[,Z]]"),
]
Block = Annotated[str | None, typer.Option(help="Block size in threads.", metavar="X[,Y[,Z]]")]
Arguments = Annotated[
    list[str] | None,
    typer.Option(
        help="A kernel argument, or a field of one: n=4096, a=f32[64,64]:random, a=@file.npy, p.n=4096.",
        metavar="NAME=VALUE",
    ),
]
ArgumentFile = Annotated[
    str | None,
    typer.Option("--arg-file", help="Arguments from a TOML file: n = 4096, a = 'f32[64]:ones'.", metavar="FILE"),
]
Constants = Annotated[
    list[str] | None, typer.Option(help="Contents of a __constant__ or __device__ variable.", metavar="NAME=VALUE")
]
Shared = Annotated[int | None, typer.Option(help="Dynamic shared memory in bytes.", metavar="BYTES")]
Cluster = Annotated[
    str | None,
    typer.Option(help="Thread block cluster size in blocks, as in a launch attribute.", metavar="X[,Y[,Z]]"),
]
Defines = Annotated[list[str] | None, typer.Option("--define", "-D", help="Define a macro.", metavar="NAME[=VALUE]")]
Includes = Annotated[
    list[str] | None, typer.Option("--include", "-I", help="Add a folder to the header search path.", metavar="DIR")
]
Std = Annotated[str | None, typer.Option(help="C++ standard, such as c++17.", metavar="STANDARD")]
MaxRegisters = Annotated[
    int | None,
    typer.Option(help="Maximum registers per thread, like nvcc's -maxrregcount.", min=16, max=255, metavar="N"),
]
CompilerOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--compiler-option",
        help="A compiler option in nvcc's spelling: -use_fast_math, -Xptxas=-dlcm=cg.",
        metavar="OPTION",
    ),
]
FastMath = Annotated[
    bool, typer.Option("--use_fast_math", "--use-fast-math", help="Compile with nvcc's -use_fast_math.")
]
Config = Annotated[
    str | None,
    typer.Option(
        help="For an autotuned Triton kernel: a configuration's number, best, or best:N of N evenly spaced.",
        metavar="N|best[:N]",
    ),
]
Clock = Annotated[
    str | None,
    typer.Option(help="SM clock: MHz, or base, boost or highest (default: the boost clock).", metavar="MHZ|NAME"),
]
Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", "--policy", help="Warp scheduler policy (default: the GPU's own).", metavar="POLICY"),
]
WarmL2 = Annotated[bool, typer.Option("--warm-l2", help="Start with a warm L2, as in a timing loop.")]
ProfileFile = Annotated[
    str | None,
    typer.Option(
        help="A profiler's export, or output of import-ncu; measured values override emulated ones.", metavar="FILE"
    ),
]
Mapper = Annotated[
    str | None,
    typer.Option(
        help="How memory accesses are modelled: emulated (each individually) or averaged (mean of its memory space).",
        metavar="emulated|averaged",
    ),
]
Blocks = Annotated[
    str | None, typer.Option(help="Blocks to emulate: a number, all, or indices such as 0,5,9.", metavar="N|all|I,J,…")
]
Confidence = Annotated[
    float | None,
    typer.Option(
        help="Where blocks differ, sample them until the 95 % interval is within ± this fraction; 0 emulates all.",
        metavar="FRACTION",
    ),
]
Static = Annotated[
    bool, typer.Option("--static", help="Analyse the code without running it; unspecified inputs are assumed.")
]
FullSimulation = Annotated[
    bool, typer.Option("--full-simulation", help="Simulate every instruction: no fast-forwarding, no extrapolation.")
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Reject out-of-bounds reads that a GPU would serve, and results beyond a limit."),
]
FullEmulation = Annotated[bool, typer.Option("--full-emulation", help="Emulate every iteration of long loops.")]
LaneSteps = Annotated[
    float,
    typer.Option(
        help="Maximum lane steps of the emulation: instructions times active threads (default: 2e9).",
        metavar="COUNT",
        show_default=False,
    ),
]
RecordedAccesses = Annotated[
    float,
    typer.Option(
        help="Maximum memory accesses that the emulation records, about 50 bytes each (default: 4e7).",
        metavar="COUNT",
        show_default=False,
    ),
]
Seconds = Annotated[
    float | None,
    typer.Option(
        help="Time limit: exit with status 2 and no result (default: none).",
        metavar="SECONDS",
        callback=_stop_after,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        help="Threads that emulate blocks and simulate (default: all cores). The answer is the same for any number.",
        min=1,
        callback=_use_threads,
    ),
]
Workers = Annotated[int | None, typer.Option(help="Parallel workers (default: all cores).", min=1)]
DeviceIndex = Annotated[int, typer.Option(help="Device index of the GPU, as numbered by the driver.", min=0)]
Advice = Annotated[
    bool,
    typer.Option("--advice", help="Show every what-if, including recompilation: registers, block size, unrolling."),
]
OtherGpus = Annotated[
    list[str] | None, typer.Option("--other-gpu", help="With --advice: also predict on this GPU.", metavar="NAME")
]
CompareTo = Annotated[
    list[str] | None,
    typer.Option(help="Also predict on this GPU, and compare times and limiters.", metavar="NAME[,NAME…]"),
]
Occupancies = Annotated[
    str | None,
    typer.Option(help="Points of the occupancy curve, in warps per SM: 8,16 or 8-64.", metavar="WARPS"),
]
Trips = Annotated[list[str] | None, typer.Option(help="With --static: trip count of a loop.", metavar="L1=N or LINE=N")]
Taken = Annotated[
    list[str] | None,
    typer.Option(help="With --static: fraction of threads that take a branch.", metavar="LINE=SHARE"),
]
Access = Annotated[
    list[str] | None,
    typer.Option(help="With --static: access pattern: coalesced, random or uniform.", metavar="LINE=PATTERN"),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Full = Annotated[
    bool,
    typer.Option("--full", help="Print everything: occupancy curve, utilization, memory, stalls, other models, notes."),
]


# What verbs that compile tell beside their results.


class Shown:
    """What this process prints in addition to results."""

    whole_logs = False


def _show_whole_logs(wanted: bool) -> None:
    Shown.whole_logs = Shown.whole_logs or wanted


Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        callback=_show_whole_logs,
        help="If a source does not compile, print all compiler messages to standard error.",
    ),
]


def as_flag(hint: Any) -> Any:
    """The same option; a flag shows no type in --help."""
    if get_origin(hint) is not Annotated or get_args(hint)[0] is not bool:
        return hint
    option = copy(hint.__metadata__[0])
    option.metavar = ""
    return Annotated[bool, option]


def with_verbose(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command of a verb that compiles, with the option --verbose."""

    @wraps(command)
    def run(verbose: bool = False, **given: Any) -> Any:
        status = command(**given)
        _mention_unusable_cache()
        return status

    own = inspect.signature(command)
    verbose_ = as_flag(Verbose)
    option = inspect.Parameter("verbose", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=verbose_)
    run.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=[*own.parameters.values(), option]
    )
    run.__annotations__ = {**command.__annotations__, "verbose": verbose_}
    return run


def _mention_unusable_cache() -> None:
    from ..frontends.cache import writable
    from ..support.folders import cache_folder

    if not writable():
        hint = "so every run starts from scratch (set DRYWARP_CACHE_DIR to use another)"
        print(f"drywarp: the cache {cache_folder()} is not writable, {hint}", file=sys.stderr)
