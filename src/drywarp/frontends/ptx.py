"""PTX in, a `Kernel` out: assemble, disassemble, and give the parameters their names."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace

from ..errors import CompileError, InputFileError, UsageError
from ..kernel.kernel import Kernel, Parameter
from . import cache
from .assembler import assemble, find_ptxas, machine_for, needed_ptxas, ptxas_version
from .cubin import kernels_of
from .disassemble import disassemble
from .entry import chosen
from .ptx_text import PtxModule, PtxParameter, read_ptx, with_own_lines
from .toolchain import tool_versions

_TYPES = {"f16": "half", "f32": "float", "f64": "double", "s8": "signed char", "s16": "short", "s32": "int"}
"""PTX types that say what a value is, as C++ spells them. Unsigned and untyped ones of C compilers do not:
they write `.u32` for an int, `.u64` for an address and `.b32` for a float."""


def load_ptx(
    text: str, *, arch: str, origin: str, entry: str | None = None, max_registers: int | None = None
) -> Kernel:
    """One kernel of a PTX text, for a GPU of `arch`.

    `entry` is a kernel's name, or its symbol; `max_registers` caps those of a thread. Instructions are
    traced to the source lines that the text names, or else to its own lines. Raises CompileError with
    ptxas' message, UsageError where the GPU is too old for the text's `.target`.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    module = read_ptx(text)
    if not module.entries:
        raise UsageError(f"{origin}: no .entry found (expected a PTX kernel)")
    found = ptx_kernels(text, module, arch, origin, max_registers)
    return chosen(found, entry, origin)


def ptx_kernels(
    text: str, module: PtxModule, arch: str, origin: str, max_registers: int | None = None
) -> dict[str, Kernel]:
    """All kernels of a PTX text by symbol; `max_registers` caps those of a thread."""
    if not module.target:
        raise InputFileError(f"{origin}: no .target directive (expected one, such as .target sm_80)")
    machine = machine_for(module.target, arch, origin)
    place = os.path.abspath(origin)
    numbered = text if module.has_lines else with_own_lines(text, place)
    try:
        made = _assembled(numbered, machine, origin, max_registers)
    except CompileError:
        # Of its own text a user gets the assembler's own words.
        made = _assembled(text, machine, origin, max_registers)
    listing = made.listing.replace(f'"{place}"', f'"{origin}"')
    kernels = kernels_of(made.cubin, listing, machine, origin, made.log)
    return {
        symbol: replace(kernel, parameters=_named(kernel.parameters, module.entries.get(symbol, ()), symbol))
        for symbol, kernel in kernels.items()
    }


def ptx_tools() -> dict[str, str]:
    """The version of the assembler, where there is one."""
    path = find_ptxas()
    return {"ptxas": ptxas_version(path)} if path else {}


def _assembled(text: str, machine: str, origin: str, max_registers: int | None) -> cache.Entry:
    tool = needed_ptxas(origin)
    state = tool.stat()
    assembler = f"{tool} {state.st_size} {state.st_mtime_ns} {max_registers}"
    key = cache.key_of(text, machine, assembler, tool_versions()["nvdisasm"])
    if (entry := cache.load(key)) is not None:
        return entry
    made = assemble(text, machine, origin, max_registers)
    entry = cache.Entry(made.cubin, disassemble(made.cubin, origin), made.log, {})
    cache.store(key, entry)
    return entry


def _named(parameters: Sequence[Parameter], declared: Sequence[PtxParameter], symbol: str) -> tuple[Parameter, ...]:
    if len(parameters) != len(declared):
        return tuple(parameters)
    return tuple(
        replace(
            parameter,
            # A compiler numbers what had a name in the source; such a parameter is argN, as in a cubin.
            name="" if re.fullmatch(rf"{re.escape(symbol)}_param_\d+", text.name) else text.name,
            type=_TYPES.get(text.type, ""),
            pointer=text.pointer,
        )
        for parameter, text in zip(parameters, declared, strict=True)
    )
