"""Compile and disassemble a source, from the cache if possible: with NVRTC, else with nvcc if it is installed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ...errors import CompileError, DrywarpError, ToolError
from ...support.text import some_text
from .. import cache
from ..binary.elf import parse_elf
from ..binary.sass import listing_of
from ..cache import library_folders, tool_versions
from . import RELOCATABLE, CudaOptions
from .headers import DEVICE_LIBRARIES, HOST_HEADERS, Remedy, header_folder, stand_in_texts
from .host_code import holds_host_code
from .nvcc import (
    OPEN_CALLS,
    SECONDS,
    compile_with_nvcc,
    curand_notes,
    expressions_of,
    find_nvcc,
    find_nvlink,
    link_alone,
    nvcc_state,
)
from .nvrtc import NAME_MAP, Compiled, Translation, compile_program
from .repair import compile_repaired
from .source import blank_comments, type_names

_PRE_INCLUDED = HOST_HEADERS / "cuda_runtime.h"

STAND_INS = "compiled with drywarp's stand-ins for PyTorch's headers, whose device code may differ from PyTorch's own"


def compile_translation(
    translation: Translation, arch: str, expressions: Sequence[str], options: CudaOptions
) -> cache.Entry:
    """Compile and disassemble a source, using the cache. `expressions` are the names of the kernels to instantiate.

    Raises CompileError with the compiler's own message and its log.
    """
    origin = translation.origin
    flags = [f"--gpu-architecture={arch}", "-lineinfo", "--ptxas-options=-v", *options.flags()]
    key = build_key(translation, expressions, flags)
    if (entry := cache.load(key) or _cached_result(key)) is not None:
        return entry
    flags += _folders(translation)
    try:
        compiled = _compiled(translation, flags, expressions, arch)
    except CompileError as error:
        # The compiler reports a bad name expression in a file that it generates.
        if str(error).startswith(NAME_MAP):
            reason = str(error).partition("error: ")[2]
            names = " or ".join(map(repr, expressions))
            raise CompileError(f"{origin}: kernel {names}: {reason}", error.log) from None
        return _compile_otherwise(translation, arch, expressions, options.flags(), key, error)
    # The compiler writes absolute paths; restore the user's spelling for the user's own file.
    listing = listing_of(compiled.cubin, origin).replace(f'"{os.path.abspath(origin)}"', f'"{origin}"')
    entry = cache.Entry(compiled.cubin, listing, compiled.log, compiled.symbols, compiled.notes, compiled.compiler)
    cache.store(key, entry)
    return entry


def debug_build(
    translation: Translation, arch: str, expressions: Sequence[str], options: CudaOptions, key: str, needed: bool
) -> bytes:
    """The CUBIN of a source with debug information, which is not cached: by NVRTC, else by nvcc."""
    tool = find_nvcc()
    if tool and cache.load(_instead(translation, options.flags())) is not None:
        return _by_nvcc(tool, translation, arch, options, SECONDS if needed else _UNNEEDED_SECONDS)
    flags = [f"--gpu-architecture={arch}", "--device-debug", *options.flags()]
    try:
        return _compiled(translation, [*flags, *_folders(translation)], expressions, arch).cubin
    except CompileError as error:
        return _compile_otherwise(translation, arch, expressions, ["-G", *options.flags()], key, error).cubin


_last: list[tuple[str, bytes | DrywarpError]] = []
"""The last build with debug information by nvcc, which holds all kernels of a source, or why it failed, and its key."""
_UNNEEDED_SECONDS = 120
"""Time limit of such a build where nobody states a field: of large templates the assembler may take many minutes."""


def _by_nvcc(tool: Path, translation: Translation, arch: str, options: CudaOptions, seconds: float) -> bytes:
    """The CUBIN with debug information of a source that NVRTC is known to reject."""
    flags = ["-G", *options.flags()]
    key = build_key(translation, [arch], flags)
    if seconds == SECONDS and _last and isinstance(_last[0][1], ToolError):
        _last.clear()  # it may have been given up early
    if not _last or _last[0][0] != key:
        try:
            _last[:] = [(key, compile_with_nvcc(tool, translation, arch, flags, seconds).cubin)]
        except DrywarpError as error:
            _last[:] = [(key, error)]
    found = _last[0][1]
    if isinstance(found, DrywarpError):
        raise found
    return found


def _instead(translation: Translation, flags: Sequence[str]) -> str:
    """The cache key that says that nvcc compiles a source which NVRTC rejects."""
    return cache.key_of("nvcc instead", build_key(translation, [], flags))


def _folders(translation: Translation) -> list[str]:
    """Options that name the folders in which headers are searched."""
    beside = [translation.folder] if translation.folder else []
    headers = header_folder()
    places = [*beside, headers, headers / "cccl", HOST_HEADERS, *library_folders(), DEVICE_LIBRARIES]
    # As nvcc does: files may rely on INFINITY and the like.
    return [*(f"-I{place}" for place in places), f"--pre-include={_PRE_INCLUDED}"]


def build_key(translation: Translation, expressions: Sequence[str], flags: Sequence[str]) -> str:
    """The cache key of a compilation: all texts, the names that include them, options and tools."""
    included = [part for i in translation.included for part in (i.name, str(i.path), i.text)]
    tools = [*sorted(tool_versions().values()), *(part for stand_in in stand_in_texts() for part in stand_in)]
    if RELOCATABLE in flags:
        linker = find_nvlink()
        tools.append(f"linked by {nvcc_state(linker) if linker else None}")
    return cache.key_of(
        translation.text, translation.origin, *expressions, "flags", *flags, "included", *included, *tools
    )


def _compiled(translation: Translation, flags: Sequence[str], expressions: Sequence[str], arch: str) -> Compiled:
    return _linked(lambda these: _compiled_once(translation, these, expressions), flags, arch)


def _linked(compiled: Callable[[Sequence[str]], Compiled], flags: Sequence[str], arch: str) -> Compiled:
    """Compile, and link the result alone if it is for separate compilation; else a whole program and a note why."""
    if RELOCATABLE not in flags:
        return compiled(flags)
    linked = link_alone(compiled(flags), arch)
    if isinstance(linked, Compiled):
        return linked
    made = compiled([flag for flag in flags if flag != RELOCATABLE])
    return made if linked in made.notes else replace(made, notes=(*made.notes, linked))


def _compiled_once(translation: Translation, flags: Sequence[str], expressions: Sequence[str]) -> Compiled:
    """Compile the source unchanged; if that fails, without host code and with stand-ins for host headers."""

    def attempt(text: str, headers: Mapping[str, str], more: Sequence[str]) -> Compiled:
        # The user's --std takes precedence.
        more = [flag for flag in more if not (flag.startswith("--std") and any(f.startswith("--std") for f in flags))]
        made = compile_program(text, translation.origin, [*flags, *more], expressions, headers)
        told = [STAND_INS] if Remedy("torch").flags()[0] in more else []
        told += curand_notes(translation)
        told += [OPEN_CALLS] if RELOCATABLE in more else []
        return replace(made, notes=tuple(told))

    try:
        return attempt(translation.text, {}, ())
    except CompileError as error:
        # The remaining unqualified functions may be called from device code, as constexpr ones can.
        flags = [*flags, "--device-as-default-execution-space"]
        return compile_repaired(translation, attempt, error, whole=holds_host_code(translation))


def _cached_result(key: str) -> cache.Entry | None:
    """The cached nvcc result for the compilation whose NVRTC cache key is `key`."""
    tool = find_nvcc()
    return cache.load(_with_tool(key, tool)) if tool else None


def _compile_otherwise(
    translation: Translation, arch: str, expressions: Sequence[str], flags: Sequence[str], key: str, error: CompileError
) -> cache.Entry:
    """Compile with nvcc what NVRTC rejected with `error`, and add a note. Raises that error if nvcc does not help."""
    tool = find_nvcc()
    if tool is None:
        raise _with_undefined(error, translation)
    try:
        made = _linked(lambda these: compile_with_nvcc(tool, translation, arch, these), flags, arch)
    except CompileError as refused:
        reason = str(refused).replace(os.path.abspath(translation.origin), translation.origin)
        if _reason(reason) == _reason(str(error)):
            reason = ""
        told = f"{error}; {reason}" if reason else str(error)
        raise _with_undefined(CompileError(told, f"{error.log}\n{refused.log}"), translation) from None
    except ToolError as trouble:
        raise CompileError(f"{error} ({trouble})", error.log) from None
    origin = translation.origin
    symbols = [symbol.name for symbol in parse_elf(made.cubin, origin).symbols if symbol.info & 15 == 2]
    listing = listing_of(made.cubin, origin).replace(f'"{os.path.abspath(origin)}"', f'"{origin}"')
    notes = [*made.notes, *curand_notes(translation)]
    note = f"compiled with {made.compiler}, because NVRTC rejects it: {error}"
    named = dict(expressions_of(symbols, expressions, type_names((*translation.bodies, translation.text))))
    entry = cache.Entry(made.cubin, listing, made.log, named, (*notes, note), made.compiler)
    cache.store(_with_tool(key, tool), entry)
    cache.store(_instead(translation, flags), cache.Entry(b"", str(error), "", {}))
    return entry


def _reason(message: str) -> str:
    """What a compiler complains about, without place and number."""
    return re.sub(r" \(and \d+ more\)", "", message.partition("error: ")[2]).partition(";")[0].strip()


def _with_tool(key: str, tool: Path) -> str:
    return cache.key_of(key, nvcc_state(tool))


# Macros that a build file defines.

_UNDEFINED = re.compile(r'identifier "([A-Za-z_]\w*)" is undefined')


def _with_undefined(error: CompileError, translation: Translation) -> CompileError:
    """The error, which also names undefined values: macros that a build file may set by ``-D``."""
    text = "\n".join(blank_comments(text) for text in (translation.text, *translation.bodies))
    named = {*_UNDEFINED.findall(f"{error}\n{error.log}")}
    # A name in lower case is rather a mistake in the source.
    missing = sorted(name for name in named if name != name.lower() and _is_value(name, text))
    if not missing:
        return error
    options = " ".join(f"-D {name}=VALUE" for name in missing)
    told = f"{error}; not defined: {some_text(missing)} (a build file may set them: {options})"
    return CompileError(told, error.log)


def _is_value(name: str, text: str) -> bool:
    """Whether a text computes with a name, or sizes an array by it, and neither calls it nor uses it as a type."""
    value = rf"(?:[-+/%|^?\[]|[<>=!]=)\s*{name}\b|\b{name}\s*(?:[-+/%\]]|[<>=!]=)"
    other = rf"\b{name}\s*(?:[({{.]|<(?![<=\s\d])|::|->)|\b{name}\s+[A-Za-z_]"
    return re.search(value, text) is not None and re.search(other, text) is None
