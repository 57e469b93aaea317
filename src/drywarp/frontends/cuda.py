"""CUDA C++ in, a `Kernel` out: compile, disassemble, parse, and give the parameters their names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import CompileError, InputFileError, UsageError
from ..kernel.kernel import Kernel, Parameter
from . import cache
from .constant_types import constant_types, typed
from .cubin import kernels_of
from .disassemble import disassemble
from .headers import header_folder
from .host_code import holds_host_code
from .last_resort import compile_otherwise, kept
from .nvrtc import Compiled, compile_program
from .repair import NAME_MAP, compile_repaired
from .source import (
    Declared,
    KernelDeclaration,
    decode,
    find_kernels,
    resolve,
    template_arguments,
    type_names,
)
from .stand_ins import HOST_HEADERS, RELOCATABLE, stand_in_texts
from .toolchain import library_folders, tool_versions
from .translation import Translation, gather

_PRE_INCLUDED = HOST_HEADERS / "cuda_runtime.h"

OPEN_CALLS = "calls functions that are defined elsewhere: what they do is not part of the answer"

INLINE_NAME = "<source>"
"""What source that came as a string, or from standard input, is called: in messages and to the compiler."""


@dataclass(frozen=True, slots=True)
class CudaOptions:
    """What a user may tell the compiler: `-D`, `-I`, `--std`, the register cap, and flags of arithmetic."""

    defines: Mapping[str, str] | None = None
    includes: Sequence[str] = ()
    std: str | None = None
    max_registers: int | None = None
    arithmetic: Sequence[str] = ()

    def flags(self) -> list[str]:
        """The options as NVRTC spells them."""
        flags = [f"-D{name}={value}" if value else f"-D{name}" for name, value in (self.defines or {}).items()]
        flags += [f"-I{folder}" for folder in self.includes]
        if self.std:
            flags.append(f"--std={self.std}")
        if self.max_registers:
            flags.append(f"--maxrregcount={self.max_registers}")
        return [*flags, *self.arithmetic]

    def over(self, own: CudaOptions) -> CudaOptions:
        """These, with those that a source brings of its `own` where these are silent."""
        return CudaOptions(
            {**(own.defines or {}), **(self.defines or {})},
            (*self.includes, *own.includes),
            self.std or own.std,
            self.max_registers or own.max_registers,
            (*own.arithmetic, *self.arithmetic),
        )


def read_source(path: Path) -> str:
    """The text of a source file. Raises InputFileError where there is none."""
    try:
        return decode(path.read_bytes()).replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        raise InputFileError(f"{path}: no such file (expected CUDA C++ source)") from None
    except IsADirectoryError:
        raise InputFileError(f"{path}: is a folder (expected CUDA C++ source)") from None
    except UnicodeDecodeError:
        raise InputFileError(f"{path}: not text (expected CUDA C++ source)") from None
    except OSError as error:
        raise InputFileError(f"{path}: cannot be read ({error.strerror})") from None


def choose_entry(declared: Sequence[KernelDeclaration], entry: str | None, origin: str) -> KernelDeclaration:
    """The kernel that is meant. Raises UsageError naming those that the file holds."""
    names = ", ".join(d.qualified + ("<…>" if d.template else "") for d in declared)
    if not declared:
        raise UsageError(f"{origin}: no __global__ function found (expected a CUDA kernel)")
    if entry is None:
        if len(declared) > 1:
            raise UsageError(f"{origin}: several kernels, name one with --entry: {names}")
        if declared[0].template:
            raise UsageError(f"{origin}: {declared[0].name} is a template, name its arguments: --entry '{names}'")
        return declared[0]
    plain = entry.split("<")[0].strip().removeprefix("::")
    meant = [d for d in declared if d.qualified == plain] or [d for d in declared if d.name == plain]
    if len(meant) > 1:
        raise UsageError(f"{origin}: several kernels named {plain!r}: {', '.join(d.qualified for d in meant)}")
    if not meant:
        raise UsageError(f"{origin}: no kernel named {entry!r}; it holds: {names}")
    if meant[0].template and "<" not in entry:
        raise UsageError(f"{origin}: {plain} is a template, name its arguments: --entry '{plain}<…>'")
    return meant[0]


def compile_cuda(
    source: str | Path,
    *,
    arch: str,
    entry: str | None = None,
    options: CudaOptions | None = None,
    defines: Mapping[str, str] | None = None,
    name: str = "",
) -> Kernel:
    """Compile one kernel for `arch` (``sm_80``). A `Path` is read; a string is the source itself.

    `entry` names the kernel where the file holds several, a template with its arguments. `name` is the
    file that messages and source lines name in place of a string's usual one. Raises CompileError with the
    compiler's own message, UsageError for an unknown entry.
    """
    options = options or CudaOptions(defines=defines)
    made = machine_code_of(source, arch, entry, options, name)
    kernel = replace(
        made.kernels[made.symbol],
        name=entry or made.expression,
        source_file=made.translation.origin,
        notes=made.compiled.notes,
    )
    if made.declaration is None:
        return kernel
    return name_parameters(kernel, made.declaration, made.expression, made.translation, options)


@dataclass(frozen=True)
class MachineCode:
    """What the compiler made of a source for one of its kernels, `symbol` among `kernels`."""

    compiled: cache.Entry
    kernels: Mapping[str, Kernel]
    symbol: str
    expression: str
    declaration: KernelDeclaration | None
    translation: Translation


def machine_code_of(
    source: str | Path, arch: str, entry: str | None, options: CudaOptions, name: str = ""
) -> MachineCode:
    """Compile one kernel, as `compile_cuda` describes; the CUBIN is in `compiled`."""
    text = read_source(source) if isinstance(source, Path) else source
    origin = str(source) if isinstance(source, Path) else name or INLINE_NAME
    folder = source.parent if isinstance(source, Path) else Path(name).parent if name else None
    translation = gather(text, origin, folder, [Path(i) for i in options.includes])
    declaration = declaration_of(text, translation.bodies, entry, origin)
    expression = entry or ""
    if declaration:
        expression = declaration.qualified + "".join((entry or "").partition("<")[1:])
    compiled = compile_translation(translation, arch, [expression], options)
    kernels = kernels_of(compiled.cubin, compiled.listing, arch, origin, compiled.log)
    symbol = compiled.symbols.get(expression) or only_named(kernels, expression)
    if symbol not in kernels:
        raise UsageError(f"{origin}: no kernel named {expression!r}; it holds: {', '.join(kernels) or 'none'}")
    return MachineCode(compiled, kernels, symbol, expression, declaration, translation)


def only_named(kernels: Mapping[str, Kernel], name: str) -> str:
    """The symbol of the only kernel of this name; the name itself where there is none or more than one."""
    found = [symbol for symbol, kernel in kernels.items() if name in (symbol, kernel.name)]
    return found[0] if len(found) == 1 else name


def name_parameters(
    kernel: Kernel, declaration: KernelDeclaration, expression: str, translation: Translation, options: CudaOptions
) -> Kernel:
    """The kernel with its parameters' names and types as the source declares them."""
    names: dict[str, str] = {}
    for body in (*translation.bodies, translation.text):
        names.update(type_names(body))
    names.update({name: value for name, value in (options.defines or {}).items() if value})
    names.update(template_arguments(declaration, expression))
    parameters = [resolve(parameter, names) for parameter in declaration.parameters]
    declared: dict[str, tuple[str, bool, bool]] = {}
    for body in (*translation.bodies, translation.text):
        declared.update(constant_types(body))
    symbols = typed(kernel.symbols, declared, names)
    return replace(kernel, parameters=with_names(kernel.parameters, parameters), symbols=symbols)


def declaration_of(text: str, bodies: Sequence[str], entry: str | None, origin: str) -> KernelDeclaration | None:
    """The kernel's declaration in the file or in what it includes; None where only a macro may make it."""
    declared = find_kernels(text)
    plain = entry.split("<")[0].strip().split("::")[-1] if entry else None
    if not any(plain in (None, d.name) for d in declared):
        declared += tuple(kernel for body in bodies for kernel in find_kernels(body))
    if plain and not any(plain == d.name for d in declared) and re.search(rf"\b{re.escape(plain)}\b", text):
        return None
    return choose_entry(declared, entry, origin)


def with_names(parameters: Sequence[Parameter], declarations: Sequence[Declared]) -> tuple[Parameter, ...]:
    """Parameters of machine code with the names and types of their declarations, where there are as many."""
    if len(parameters) != len(declarations):
        return tuple(parameters)
    return tuple(
        replace(parameter, name=declared.name, type=declared.type, pointer=declared.pointer)
        for parameter, declared in zip(parameters, declarations, strict=True)
    )


def compile_translation(
    translation: Translation, arch: str, expressions: Sequence[str], options: CudaOptions
) -> cache.Entry:
    """Compile a source and disassemble it, through the cache. `expressions` are kernels to be there by name.

    Raises CompileError with the compiler's own message, and its log.
    """
    origin = translation.origin
    flags = [f"--gpu-architecture={arch}", "-lineinfo", "--ptxas-options=-v", *options.flags()]
    key = _key(translation, expressions, flags)
    if (entry := cache.load(key) or kept(key)) is not None:
        return entry
    if translation.folder:
        flags.append(f"-I{translation.folder}")
    headers = header_folder()
    flags += [f"-I{place}" for place in (headers, headers / "cccl")]
    # As nvcc does, so that a file may take INFINITY and the like for granted.
    flags += [f"-I{HOST_HEADERS}", *(f"-I{place}" for place in library_folders()), f"--pre-include={_PRE_INCLUDED}"]
    try:
        compiled = _compiled(translation, flags, expressions)
    except CompileError as error:
        # The compiler reports a bad name expression in a file of its own making.
        if str(error).startswith(NAME_MAP):
            reason = str(error).partition("error: ")[2]
            names = " or ".join(map(repr, expressions))
            raise CompileError(f"{origin}: kernel {names}: {reason}", error.log) from None
        return compile_otherwise(translation, arch, expressions, options.flags(), key, error)
    # The compiler writes absolute places; the user's own file keeps the user's spelling.
    listing = disassemble(compiled.cubin, origin).replace(f'"{os.path.abspath(origin)}"', f'"{origin}"')
    entry = cache.Entry(compiled.cubin, listing, compiled.log, compiled.symbols, compiled.notes, compiled.compiler)
    cache.store(key, entry)
    return entry


def _key(translation: Translation, expressions: Sequence[str], flags: Sequence[str]) -> str:
    """What a compilation depends on: the texts, the names by which they are included, options and tools."""
    included = [part for i in translation.included for part in (i.name, str(i.path), i.text)]
    tools = [*sorted(tool_versions().values()), *(part for stand_in in stand_in_texts() for part in stand_in)]
    return cache.key_of(
        translation.text, translation.origin, *expressions, "flags", *flags, "included", *included, *tools
    )


def _compiled(translation: Translation, flags: Sequence[str], expressions: Sequence[str]) -> Compiled:
    """Compile as it stands; where that fails, without host code and with what makes up for its headers."""

    def attempt(text: str, headers: Mapping[str, str], more: Sequence[str]) -> Compiled:
        # What the user said of the standard stands.
        more = [flag for flag in more if not (flag.startswith("--std") and any(f.startswith("--std") for f in flags))]
        made = compile_program(text, translation.origin, [*flags, *more], expressions, headers)
        return replace(made, notes=(OPEN_CALLS,)) if RELOCATABLE in more else made

    try:
        return attempt(translation.text, {}, ())
    except CompileError as error:
        # Functions without a qualifier that are left may be called from device code: constexpr ones can.
        flags = [*flags, "--device-as-default-execution-space"]
        return compile_repaired(translation, attempt, error, whole=holds_host_code(translation))
