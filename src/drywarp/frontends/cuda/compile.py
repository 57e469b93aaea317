"""Turn CUDA C++ into a `Kernel`: compile, disassemble, parse, and name the parameters."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from ...errors import CompileError, InputFileError, UsageError
from ...kernel.kernel import Kernel, Parameter
from ...kernel.launch.layout import Layouts
from ...kernel.launch.values import number_code
from ...support.folders import read_bytes
from ...support.text import kernels_text
from .. import cache
from ..binary.cubin import kernels_of
from ..binary.signatures import demangled, layouts_in, without_parameters
from . import CudaOptions
from .build import build_key, compile_translation, debug_build
from .instances import constant_types, typed
from .nvrtc import Translation, gather
from .source import Declared, KernelDeclaration, decode, find_kernels, includes, resolve, template_arguments, type_names

INLINE_NAME = "<source>"
"""The file name of source that came as a string or from standard input, in messages and for the compiler."""


def read_source(path: Path) -> str:
    """Read the text of a source file. Raises InputFileError if it cannot be read."""
    data = read_bytes(path, "CUDA C++ source")
    try:
        return decode(data).replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise InputFileError(f"{path}: not text (expected CUDA C++ source)") from None


def choose_entry(declared: Sequence[KernelDeclaration], entry: str | None, origin: str) -> KernelDeclaration:
    """The selected kernel. Raises UsageError listing the kernels in the file."""
    names = kernels_text([d.qualified + ("<…>" if d.template else "") for d in declared], entry, origin)
    if not declared:
        raise UsageError(f"{origin}: no __global__ function found (expected a CUDA kernel{elsewhere(Path(origin))})")
    if entry is None:
        if len(declared) > 1:
            raise UsageError(f"{origin}: several kernels; name one with --entry: {names}")
        if declared[0].template and not declared[0].all_default:
            raise UsageError(f"{origin}: {declared[0].name} is a template; give its arguments: --entry '{names}'")
        return declared[0]
    plain = entry.split("<")[0].strip().removeprefix("::")
    meant = [d for d in declared if d.qualified == plain] or [d for d in declared if d.name == plain]
    if len({d.qualified for d in meant}) > 1:
        raise UsageError(f"{origin}: several kernels named {plain!r}: {', '.join(d.qualified for d in meant)}")
    if not meant:
        raise UsageError(f"{origin}: no kernel named {entry!r}; it holds: {names}")
    if meant[0].template and "<" not in entry and not meant[0].all_default:
        raise UsageError(f"{origin}: {plain} is a template; give its arguments: --entry '{plain}<…>'")
    return meant[0]


def compile_cuda(
    source: str | Path, *, arch: str, entry: str | None = None, options: CudaOptions | None = None, name: str = ""
) -> Kernel:
    """Compile one kernel for `arch` (``sm_80``). A `Path` is read; a string is the source itself.

    `entry` selects the kernel if the file has several; a template needs its arguments. `name` is the file name
    that messages and source lines use for a string, instead of the default one. Raises CompileError with the
    compiler's own message, UsageError for an unknown entry.
    """
    options = options or CudaOptions()
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
    """The compiled source of one of its kernels, `symbol` among `kernels`."""

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
    translation, declaration, expression = _wanted(source, entry, options, name, arch)
    origin = translation.origin
    try:
        compiled = _with_names(translation, arch, _asked_for(declaration, expression), options)
    except CompileError as error:
        raise with_including(error, source) from None
    kernels = kernels_of(compiled.cubin, compiled.listing, arch, origin, compiled.log)
    symbol = compiled.symbols.get(expression) or only_named(kernels, expression)
    if symbol not in kernels:
        names = [without_parameters(demangled(one)) for one in kernels]
        held = kernels_text(names, expression, origin) or "none"
        raise UsageError(f"{origin}: no kernel named {expression!r}; it holds: {held}")
    return MachineCode(compiled, kernels, symbol, expression, declaration, translation)


def _asked_for(declaration: KernelDeclaration | None, expression: str) -> list[str]:
    """What the compiler is asked to instantiate: nothing if the source itself makes the only instance."""
    return [] if declaration is not None and declaration.template and "<" not in expression else [expression]


def _with_names(translation: Translation, arch: str, names: Sequence[str], options: CudaOptions) -> cache.Entry:
    try:
        return compile_translation(translation, arch, names, options)
    except CompileError as error:
        if any("<" in name for name in names) or "overloaded function" not in str(error):
            raise
    # A kernel named like one of CUDA's functions (`all`): it is no template, so it is compiled without being asked for.
    return compile_translation(translation, arch, [], options)


def layouts_of(
    source: str | Path, arch: str, entry: str | None, options: CudaOptions, kernel: Kernel, needed: bool = True
) -> Layouts:
    """The layouts of a kernel's parameters and of the variables, from a build with debug information; nothing runs it.

    Where it is not `needed`, a build that takes long is given up earlier.
    Raises CompileError if the source does not compile with debug information, UsageError if that lacks the kernel.
    """
    translation, declaration, expression = _wanted(source, entry, options, "", arch)
    names = _asked_for(declaration, expression)
    flags = [f"--gpu-architecture={arch}", "--device-debug", *options.flags()]
    key = cache.key_of("layouts", kernel.symbol, build_key(translation, names, flags))
    kept_layouts = cache.load(key)
    if kept_layouts is None:
        cubin = debug_build(translation, arch, names, options, key, needed)
        found = layouts_in(cubin, kernel.symbol, translation.origin)
        if found is None:
            raise UsageError(f"{translation.origin}: {kernel.name}: the debug information does not describe it")
        kept_layouts = cache.Entry(b"", msgspec.json.encode(found).decode(), "", {})
        cache.store(key, kept_layouts)
    return msgspec.json.decode(kept_layouts.listing, type=Layouts)


def _wanted(
    source: str | Path, entry: str | None, options: CudaOptions, name: str, arch: str
) -> tuple[Translation, KernelDeclaration | None, str]:
    """The compiler's input, the kernel's declaration, and the expression that names it. Raises UsageError."""
    text = read_source(source) if isinstance(source, Path) else source
    origin = str(source) if isinstance(source, Path) else name or INLINE_NAME
    folder = source.parent if isinstance(source, Path) else Path(name).parent if name else None
    translation = gather(text, origin, folder, [Path(i) for i in options.includes])
    try:
        declaration = declaration_of(text, translation.bodies, entry, origin)
    except UsageError as error:
        if (declaration := _only_instance(translation, entry, options, arch)) is not None:
            return translation, declaration, declaration.qualified
        other = beside(source, lambda found: any(d.name == plain_entry(entry) for d in find_kernels(found)))
        raise UsageError(f"{error}{f'; {other} holds it' if other and entry else ''}") from None
    expression = entry or ""
    if declaration:
        arguments = "".join((entry or "").partition("<")[1:])
        expression = declaration.qualified + (arguments or ("<>" if declaration.template else ""))
    return translation, declaration, expression


def _only_instance(
    translation: Translation, entry: str | None, options: CudaOptions, arch: str
) -> KernelDeclaration | None:
    """The template that `entry` names without arguments, if the source itself makes one instance of it; else None."""
    meant = (entry or "").strip().removeprefix("::")
    declared = find_kernels(translation.text, translation.bodies)
    declared += tuple(kernel for body in translation.bodies for kernel in find_kernels(body, translation.bodies))
    held = {one.qualified: one for one in declared if one.template and meant in (one.qualified, one.name)}
    if len(held) != 1 or not meant:
        return None
    try:
        made = compile_translation(translation, arch, [], options)
    except CompileError:
        return None
    kernels = kernels_of(made.cubin, made.listing, arch, translation.origin, made.log)
    found = next(iter(held.values()))
    return found if [kernel.name for kernel in kernels.values()].count(found.qualified) == 1 else None


_MOST_BESIDE = 500
"""Files that are looked at for a hint."""


def beside(source: str | Path, fits: Callable[[str], bool]) -> Path | None:
    """The first CUDA source in the folder of `source`, or in the one above, whose text `fits`; None without one."""
    if not isinstance(source, Path):
        return None
    for folder in (source.parent, Path(os.path.normpath(source.parent / ".."))):
        files = [*folder.glob("*.cu"), *folder.glob("*.cuh")]
        for file in sorted(files)[:_MOST_BESIDE]:
            with contextlib.suppress(OSError):
                if file != source and fits(file.read_text(encoding="utf-8", errors="replace")):
                    return file
    return None


def elsewhere(source: Path) -> str:
    """A hint for a source without kernels: a file beside it that has some."""
    other = beside(source, lambda text: "__global__" in text) if source.is_file() else None
    return f"; {other} has some" if other else ""


def with_including(error: CompileError, source: str | Path) -> CompileError:
    """The error, which also names a file beside that includes this one: a part of a program does not compile alone."""
    if not isinstance(source, Path):
        return error
    other = beside(source, lambda text: source.name in {Path(name).name for name, _ in includes(text)})
    hint = f"; {other} includes this file, so try that with --entry" if other else ""
    return CompileError(f"{error}{hint}", error.log)


def plain_entry(entry: str | None) -> str:
    """The name of a kernel without namespaces and template arguments."""
    return (entry or "").split("<")[0].strip().split("::")[-1]


def only_named(kernels: Mapping[str, Kernel], name: str) -> str:
    """The symbol of the only kernel with this name; the name itself if there is none, or more than one."""
    found = [symbol for symbol, kernel in kernels.items() if name in (symbol, kernel.name)]
    return found[0] if len(found) == 1 else name


def predefined(arch: str) -> dict[str, str]:
    """Macros of the compiler itself that sources ask for, such as ``__CUDA_ARCH__``."""
    number = re.match(r"sm_(\d+)", arch)
    always = {"__CUDACC__": "1", "__NVCC__": "1", "__CUDACC_RTC__": "1"}
    return {**always, "__CUDA_ARCH__": f"{number[1]}0"} if number else always


def name_parameters(
    kernel: Kernel, declaration: KernelDeclaration, expression: str, translation: Translation, options: CudaOptions
) -> Kernel:
    """The kernel with parameter names and types as the source declares them."""
    names = type_names((*translation.bodies, translation.text), {**predefined(kernel.arch), **(options.defines or {})})
    names.update(template_arguments(declaration, expression))
    parameters = [resolve(parameter, names) for parameter in declaration.parameters]
    declared: dict[str, tuple[str, bool, bool]] = {}
    for body in (*translation.bodies, translation.text):
        declared.update(constant_types(body))
    symbols = typed(kernel.symbols, declared, names)
    return replace(kernel, parameters=with_names(kernel.parameters, parameters), symbols=symbols)


def declaration_of(text: str, bodies: Sequence[str], entry: str | None, origin: str) -> KernelDeclaration | None:
    """The kernel's declaration in the file or its includes; None if only a macro could define it."""
    declared = find_kernels(text, bodies)
    plain = plain_entry(entry) if entry else None
    if not any(plain in (None, d.name) for d in declared):
        declared += tuple(kernel for body in bodies for kernel in find_kernels(body, bodies))
    if plain and not any(plain == d.name for d in declared) and re.search(rf"\b{re.escape(plain)}\b", text):
        return None
    return choose_entry(declared, entry, origin)


def with_names(parameters: Sequence[Parameter], declarations: Sequence[Declared]) -> tuple[Parameter, ...]:
    """Machine-code parameters with the names and types of their declarations, if the counts match.

    Where the compiler says in the symbol that a parameter is another number type, or a number type of a name that the
    text leaves open (a typedef under `#if`), the compiler is right.
    """
    if len(parameters) != len(declarations):
        return tuple(parameters)
    return tuple(_with_name(*both) for both in zip(parameters, declarations, strict=True))


def _with_name(parameter: Parameter, declared: Declared) -> Parameter:
    code = number_code(parameter.type)
    if code and parameter.pointer == declared.pointer and number_code(declared.type) != code:
        return replace(parameter, name=declared.name)
    return replace(parameter, name=declared.name, type=declared.type, pointer=declared.pointer)
