"""What NVRTC refuses, through nvcc where one is installed; kept in the cache beside what NVRTC compiles."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ..errors import CompileError, ToolError
from . import cache
from .disassemble import disassemble
from .elf import parse_elf
from .nvcc import compile_with_nvcc, expressions_of, find_nvcc, nvcc_state
from .translation import Translation


def kept(key: str) -> cache.Entry | None:
    """What nvcc made for the compilation that NVRTC would keep under `key`."""
    tool = find_nvcc()
    return cache.load(_key(key, tool)) if tool else None


def compile_otherwise(
    translation: Translation, arch: str, expressions: Sequence[str], flags: Sequence[str], key: str, error: CompileError
) -> cache.Entry:
    """Compile with nvcc what NVRTC refused with `error`; a note says so. Raises that error where nvcc does not help."""
    tool = find_nvcc()
    if tool is None:
        raise error
    try:
        made = compile_with_nvcc(tool, translation, arch, flags)
    except CompileError as refused:
        raise CompileError(str(error), f"{error.log}\n{refused.log}") from None
    except ToolError as trouble:
        raise CompileError(f"{error} ({trouble})", error.log) from None
    origin = translation.origin
    symbols = [symbol.name for symbol in parse_elf(made.cubin, origin).symbols if symbol.info & 15 == 2]
    listing = disassemble(made.cubin, origin).replace(f'"{os.path.abspath(origin)}"', f'"{origin}"')
    note = f"compiled with {made.compiler}, as NVRTC refuses it: {error}"
    named = dict(expressions_of(tool, symbols, expressions))
    entry = cache.Entry(made.cubin, listing, made.log, named, (*made.notes, note), made.compiler)
    cache.store(_key(key, tool), entry)
    return entry


def _key(key: str, tool: Path) -> str:
    return cache.key_of(key, nvcc_state(tool))
