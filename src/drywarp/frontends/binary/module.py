"""Load a whole file as a module: every kernel in it, and the template instances that its own host code launches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...errors import CompileError, InputFileError
from ...kernel.kernel import Kernel
from .. import cache
from ..cuda import CudaOptions
from ..cuda.build import compile_translation
from ..cuda.compile import name_parameters, with_including
from ..cuda.instances import Instance, instances
from ..cuda.nvrtc import Translation, gather
from ..cuda.source import KernelDeclaration, blank_comments, decode, find_kernels
from ..load import read_input
from ..loaded import LaunchComment, launch_comment
from ..ptx import is_ptx, read_ptx
from ..ptx.assembler import ptx_kernels
from . import is_binary
from .containers import load_binary_module
from .cubin import kernels_of
from .signatures import plain_name

_BAD_NAME = re.compile(r"^__nv_name_map\((\d+)\): error", re.M)


@dataclass(frozen=True)
class Module:
    """All kernels in a file, under the names that `--entry` takes.

    `compiler` names the compiler that generated the machine code (``nvrtc``; empty if the file contained it).
    `uninstantiated` lists the templates without machine code, because no launch in the source gives their arguments.
    """

    kernels: tuple[Kernel, ...]
    comment: LaunchComment
    compiler: str = ""
    uninstantiated: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def load_module(
    path: Path, *, arch: str, options: CudaOptions | None = None, on_stage: Callable[[str], None] = lambda stage: None
) -> Module:
    """Load every kernel in a file for `arch`: CUDA C++, PTX, or machine code in any of its containers.

    `on_stage` is called before compiling (``compile``) and before reading the machine code (``parse``).
    Raises the same errors as `load_kernel`. A file without a kernel gives an empty module.
    """
    data = read_input(path)
    if is_binary(data):
        on_stage("parse")
        return Module(tuple(load_binary_module(path, data, arch=arch).values()), LaunchComment())
    try:
        text = decode(data).replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise InputFileError(f"{path}: neither text nor CUDA machine code") from None
    comment = launch_comment(text, str(path))
    given = options or CudaOptions()
    if is_ptx(text):
        module = read_ptx(text)
        on_stage("compile")
        found = ptx_kernels(text, module, arch, str(path), given) if module.entries else {}
        return Module(tuple(found.values()), comment)
    merged = given.over(comment.options)
    translation = gather(text, str(path), path.parent, [Path(i) for i in merged.includes])
    try:
        return _module(translation, arch, merged, comment, on_stage)
    except CompileError as error:
        raise with_including(error, path) from None


def holds_kernels(translation: Translation) -> bool:
    """Whether the source, or a file that it includes, mentions `__global__`; macros may define kernels."""
    return any("__global__" in blank_comments(text) for text in (translation.text, *translation.bodies))


def _module(
    translation: Translation, arch: str, options: CudaOptions, comment: LaunchComment, on_stage: Callable[[str], None]
) -> Module:
    if not holds_kernels(translation):
        return Module((), comment)
    declared = _declared(translation)
    wanted = list(instances(translation))
    if comment.entry and "<" in comment.entry and comment.entry not in [i.expression for i in wanted]:
        wanted.append(Instance(comment.entry, comment.entry.partition("<")[0].strip()))
    on_stage("compile")
    entry, refused = _compile_named(translation, arch, [i.expression for i in wanted], options)
    on_stage("parse")
    kernels = kernels_of(entry.cubin, entry.listing, arch, translation.origin, entry.log)
    expressions = {symbol: expression for expression, symbol in entry.symbols.items()}
    named = _named(kernels, expressions, declared, translation, options, entry.notes)
    made = {declaration_of(k.symbol, k.name, declared) for k in named}
    missing = tuple(d.qualified for d in declared if d.template and d not in made)
    notes = [*entry.notes, *(f"{name}: this template instance does not compile" for name in refused)]
    return Module(named, comment, entry.compiler, missing, tuple(notes))


def _declared(translation: Translation) -> list[KernelDeclaration]:
    found: dict[str, KernelDeclaration] = {}
    for text in (translation.text, *translation.bodies):
        for declaration in find_kernels(text, translation.bodies):
            found.setdefault(declaration.qualified, declaration)
    return list(found.values())


def _compile_named(
    translation: Translation, arch: str, expressions: Sequence[str], options: CudaOptions
) -> tuple[cache.Entry, list[str]]:
    """Compile with these template instances; drop those that the compiler rejects, and return them."""
    left = list(dict.fromkeys(expressions))
    refused: list[str] = []
    while True:
        try:
            return compile_translation(translation, arch, left, options), refused
        except CompileError as error:
            # Line 2 of NVRTC's file of names holds the first expression.
            numbers = {int(number) - 2 for number in _BAD_NAME.findall(error.log)}
            bad = [expression for n, expression in enumerate(left) if n in numbers]
            if not bad:
                raise
            refused += bad
            left = [e for e in left if e not in bad]


def _named(
    kernels: Mapping[str, Kernel],
    expressions: Mapping[str, str],
    declared: Sequence[KernelDeclaration],
    translation: Translation,
    options: CudaOptions,
    entry_notes: tuple[str, ...],
) -> tuple[Kernel, ...]:
    """The kernels under the names that a user writes, with parameters as the source declares them."""
    plain = [plain_name(symbol) for symbol in kernels]
    named = []
    for symbol, kernel in kernels.items():
        name = expressions.get(symbol) or plain_name(symbol)
        if symbol not in expressions and plain.count(name) > 1:
            name = symbol
        kernel = replace(kernel, name=name, source_file=translation.origin, notes=entry_notes)
        declaration = declaration_of(symbol, name, declared)
        if declaration is not None:
            kernel = name_parameters(kernel, declaration, name, translation, options)
        named.append(kernel)
    return tuple(named)


def declaration_of(symbol: str, name: str, declared: Iterable[KernelDeclaration]) -> KernelDeclaration | None:
    """The declaration of a kernel; None if it cannot be found, such as for kernels defined by a macro."""
    plain = name.partition("<")[0].strip() if "<" in name else plain_name(symbol)
    parts = [part for part in plain.split("::") if not part.startswith("_GLOBAL__N_")]
    candidates = [d for d in declared if d.qualified == "::".join(parts)]
    candidates = candidates or [d for d in declared if d.name == parts[-1]]
    return candidates[0] if len(candidates) == 1 else None
