"""Turn PTX into a `Kernel`: assemble, disassemble, and name the parameters."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace

from ...errors import CompileError, InputFileError, UsageError
from ...kernel.kernel import Kernel, Parameter
from .. import cache
from ..binary.cubin import kernels_of
from ..binary.sass import listing_of
from ..cache import tool_versions
from ..cuda import CudaOptions
from ..loaded import chosen
from . import PtxModule, PtxParameter, read_ptx, with_own_lines
from .assembler import assemble, find_ptxas, machine_for, needed_ptxas, ptxas_version

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
    return {"ptxas": ptxas_version(path)} if path else {}


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
