"""Turn PTX into a `Kernel`: assemble, disassemble, and name the parameters."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...errors import CompileError, InputFileError, UsageError
from ...kernel.kernel import Kernel, Parameter
from .. import cache
from ..binary.cubin import kernels_of
from ..binary.sass import listing_of
from ..cache import tool_versions
from ..cuda.options import CudaOptions
from ..cuda.source import blank_comments
from ..loaded import chosen
from .assembler import assemble, find_ptxas, machine_for, needed_ptxas, ptxas_version

# What PTX text states without assembling it: its target, its entries and their parameters.

_TARGET = re.compile(r"^[ \t]*+\.target\s+(sm_\d+[a-z]?|compute_\d+[a-z]?)", re.M)
_ENTRY = re.compile(r"\.entry\s++([\w$%]++)\s*+(\([^();{}]*+\))?")
_PARAMETER = re.compile(
    r"\.param\s++(?:\.align\s++\d++\s++)?\.(?P<type>[a-z]+\d*)\b"
    r"(?P<pointer>\s*\.ptr\b(?:\s*\.(?:global|shared|const|local|generic)\b)?(?:\s*\.align\s+\d+)?)?"
    r"\s+(?P<name>[\w$%]+)\s*(?P<array>\[\d*\])?"
)
_LINES = re.compile(r"^[ \t]*+\.loc\s", re.M)
_FILE_NUMBER = re.compile(r"^[ \t]*+\.file\s+(\d{1,9})\b", re.M)
_LABELS = re.compile(r"(?:\s*+[\w$%]++\s*+:)*+\s*+")
_FUNCTION = re.compile(r"\.(?:entry|func)\b")


@dataclass(frozen=True, slots=True)
class PtxParameter:
    """A kernel parameter: `type` as PTX spells it (``u64``, ``f32``, ``b8``), empty for an array of bytes.

    `pointer` is true if the text marks it as an address.
    """

    name: str
    type: str
    pointer: bool


@dataclass(frozen=True, slots=True)
class PtxModule:
    """Outline of a PTX text: its `target` (``sm_90a``), its entries by symbol, and whether it has line numbers."""

    target: str
    entries: dict[str, tuple[PtxParameter, ...]]
    has_lines: bool


def read_ptx(text: str) -> PtxModule:
    """The outline of a PTX text; the target is empty if the text has none."""
    clean = blank_comments(text)
    target = _TARGET.search(clean)
    entries = {match[1]: tuple(_parameters(match[2] or "")) for match in _ENTRY.finditer(clean)}
    return PtxModule(target[1] if target else "", entries, _LINES.search(clean) is not None)


def _parameters(text: str) -> list[PtxParameter]:
    return [
        PtxParameter(match["name"], "" if match["array"] else match["type"], match["pointer"] is not None)
        for match in _PARAMETER.finditer(text)
    ]


def with_own_lines(text: str, path: str) -> str:
    """Add a `.loc` with its own line number to every instruction; no line moves.

    For PTX without source line numbers: instruction costs are then attributed to the PTX lines.
    """
    number = max((int(n) for n in _FILE_NUMBER.findall(text)), default=0) + 1
    depth, ended, header, lines = 0, False, "", []
    for count, (line, clean) in enumerate(zip(text.split("\n"), blank_comments(text).split("\n"), strict=True), 1):
        labels = _LABELS.match(clean)
        begin = labels.end() if labels else 0
        # An instruction begins with a letter or its guard, a directive with a dot.
        instruction = clean[begin : begin + 1].isalpha() or clean[begin : begin + 1] == "@"
        if depth and ended and instruction and _FUNCTION.search(header):
            line = f"{line[:begin]} .loc {number} {count} 0 {line[begin:]}"
        lines.append(line)
        if not depth:
            header = clean if ended else header + clean
        depth += clean.count("{") - clean.count("}")
        if rest := clean.strip():
            ended = rest[-1] in ";{}:"
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return "\n".join(lines) + f'\n.file {number} "{escaped}"\n'


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
