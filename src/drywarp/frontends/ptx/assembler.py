"""PTX as a `Kernel`: assembled to a CUBIN with an installed ptxas, disassembled, and its parameters named.

NVIDIA's smaller nvJitLink is not a substitute. It compiles for linking: device functions remain calls, and atomics
whose result is unused still return it. `nvcc` generates different code.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...errors import CompileError, InputFileError, ToolError, UsageError
from ...kernel.kernel import Kernel, Parameter
from ...support.by_name import folders_of
from ...support.folders import scratch_folder
from .. import cache
from ..binary.cubin import kernels_of
from ..binary.sass import listing_of
from ..cache import programs, release_of, tool_versions, toolkit_folder
from ..cuda import CudaOptions
from ..loaded import chosen
from . import PtxModule, PtxParameter, read_ptx, with_own_lines

_ERROR = re.compile(r"line (\d+); (?:error|fatal)\s*:\s*(.*)$", re.M)
_FATAL = re.compile(r"^ptxas (?:error|fatal)\s*:\s*(.*)$", re.M)


@dataclass(frozen=True, slots=True)
class Assembled:
    """A CUBIN and ptxas' verbose log."""

    cubin: bytes
    log: str


VARIABLE = "DRYWARP_PTXAS"
"""Environment variable with the path of the ptxas to use, such as the one in the user's own toolkit."""


def find_ptxas() -> Path | None:
    """Find ptxas: `$DRYWARP_PTXAS`, then pip's, `$CUDA_HOME`, `$CUDA_PATH`, PATH and Triton's own.

    Raises ToolError if the variable does not name a program.
    """
    if chosen := os.environ.get(VARIABLE):
        if not os.access(chosen, os.X_OK):
            raise ToolError(f"{VARIABLE}={chosen}: no such program (expected the path of a ptxas)")
        return Path(chosen)
    return next((path for path in places() if os.access(path, os.X_OK)), None)


def places() -> Iterator[Path]:
    """Candidate paths of ptxas, in order of preference."""
    with contextlib.suppress(ToolError):
        yield toolkit_folder() / "bin" / "ptxas"
    yield from programs("ptxas")
    for place in folders_of("triton"):
        for name in ("ptxas-blackwell", "ptxas"):
            yield place / "backends" / "nvidia" / "bin" / name


def needed_ptxas(origin: str) -> Path:
    """Like `find_ptxas`, but raises a ToolError with install instructions if there is none."""
    path = find_ptxas()
    if path is None:
        raise ToolError(
            f"{origin}: PTX needs an assembler: pip install 'drywarp[ptx]', or a ptxas on PATH or in $CUDA_HOME"
        )
    return path


def machine_for(target: str, arch: str, origin: str) -> str:
    """The architecture to assemble PTX with this `target` for, to run on a GPU of `arch` (both as ``sm_90``).

    PTX runs on its target and on anything newer; ``sm_90a`` on that target only, ``sm_100f`` within its family.
    Raises UsageError if the PTX cannot run on the GPU.
    """
    wanted, number = _number(arch), _number(target)
    suffix = target[-1] if target[-1:].isalpha() else ""
    fits = number == wanted if suffix == "a" else number <= wanted
    if suffix == "f":
        fits = fits and number // 10 == wanted // 10
    if not fits:
        reach = {"a": "only", "f": "and newer ones of its family"}.get(suffix, "and newer")
        raise UsageError(f"{origin}: its .target {target} runs on sm_{number} {reach}; the GPU is {arch}")
    return f"sm_{wanted}{suffix}"


def _number(arch: str) -> int:
    return int("".join(c for c in arch.partition("_")[2] if c.isdigit()))


def assemble(ptx: str, arch: str, origin: str, flags: Sequence[str] = ()) -> Assembled:
    """Assemble for `arch`, with line numbers; `flags` are further options of ptxas.

    Raises CompileError naming `origin` and the line in it.
    """
    tool = needed_ptxas(origin)
    with scratch_folder("ptx") as folder:
        source, made = folder / "kernel.ptx", folder / "kernel.cubin"
        source.write_text(ptx, encoding="utf-8")
        command = [str(tool), f"--gpu-name={arch}", "-lineinfo", "-v", str(source), "-o", str(made), *flags]
        try:
            run = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
        except OSError as error:
            raise ToolError(f"ptxas cannot be run from {tool}: {error}") from None
        log = run.stdout + run.stderr
        if run.returncode or not made.exists():
            raise CompileError(_message(log, origin), log)
        return Assembled(made.read_bytes(), log)


def _message(log: str, origin: str) -> str:
    """The first error on one line, in compiler format, and the number of further errors."""
    errors = _ERROR.findall(log)
    if errors:
        line, text = errors[0]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        return f"{origin}({line}): error: {text.strip()}{more}"
    fatal = _FATAL.search(log)
    return f"{origin}: ptxas: {fatal[1].strip() if fatal else 'failed without a message'}"


# Turn PTX into a `Kernel`: assemble, disassemble, and name the parameters.


_TYPES = {"f16": "half", "f32": "float", "f64": "double", "s8": "signed char", "s16": "short", "s32": "int"}
"""PTX types that identify the C++ type of a value. Unsigned and untyped PTX types do not: C compilers emit `.u32`
for an int, `.u64` for an address and `.b32` for a float."""


def load_ptx(
    text: str, *, arch: str, origin: str, entry: str | None = None, options: CudaOptions | None = None
) -> Kernel:
    """Load one kernel from PTX text, for a GPU of `arch`.

    `entry` is the kernel's name or symbol; of `options`, the assembler's apply. Instructions are
    attributed to the source lines in the PTX, or to the PTX lines if it has none. Raises CompileError with
    ptxas' message, or UsageError if the GPU is too old for the PTX `.target`.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    module = read_ptx(text)
    if not module.entries:
        raise UsageError(f"{origin}: no .entry found (expected a PTX kernel)")
    found = ptx_kernels(text, module, arch, origin, options)
    return chosen(found, entry, origin)


def ptx_kernels(
    text: str, module: PtxModule, arch: str, origin: str, options: CudaOptions | None = None
) -> dict[str, Kernel]:
    """All kernels of a PTX text by symbol; of `options`, the assembler's apply."""
    flags = (options or CudaOptions()).assembler_flags(origin)
    if not module.target:
        raise InputFileError(f"{origin}: no .target directive (expected one, such as .target sm_80)")
    machine = machine_for(module.target, arch, origin)
    place = os.path.abspath(origin)
    numbered = text if module.has_lines else with_own_lines(text, place)
    try:
        made = _assembled(numbered, machine, origin, flags)
    except CompileError:
        # Report the assembler's message for the user's unmodified text.
        made = _assembled(text, machine, origin, flags)
    listing = made.listing.replace(f'"{place}"', f'"{origin}"')
    kernels = kernels_of(made.cubin, listing, machine, origin, made.log)
    return {
        symbol: replace(kernel, parameters=_named(kernel.parameters, module.entries.get(symbol, ()), symbol))
        for symbol, kernel in kernels.items()
    }


def ptx_tools() -> dict[str, str]:
    """The version of the assembler, if there is one."""
    path = find_ptxas()
    return {"ptxas": release_of(path)} if path else {}


def _assembled(text: str, machine: str, origin: str, flags: Sequence[str]) -> cache.Entry:
    tool = needed_ptxas(origin)
    state = tool.stat()
    assembler = f"{tool} {state.st_size} {state.st_mtime_ns} {' '.join(flags)}"
    key = cache.key_of(text, machine, assembler, tool_versions()["nvdisasm"])
    if (entry := cache.load(key)) is not None:
        return entry
    made = assemble(text, machine, origin, flags)
    entry = cache.Entry(made.cubin, listing_of(made.cubin, origin), made.log, {})
    cache.store(key, entry)
    return entry


def _named(parameters: Sequence[Parameter], declared: Sequence[PtxParameter], symbol: str) -> tuple[Parameter, ...]:
    if len(parameters) != len(declared):
        return tuple(parameters)
    return tuple(
        replace(
            parameter,
            # Compilers replace source names by numbers; such a parameter is argN, as in a CUBIN.
            name="" if re.fullmatch(rf"{re.escape(symbol)}_param_\d+", text.name) else text.name,
            type=_TYPES.get(text.type, ""),
            pointer=text.pointer,
        )
        for parameter, text in zip(parameters, declared, strict=True)
    )
