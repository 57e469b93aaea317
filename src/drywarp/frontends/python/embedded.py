"""Find CUDA C++ in strings of a Python program: CuPy, PyTorch, PyCUDA and CUDA Python. Nothing is run.

The calls that identify device code are `RawKernel`, `RawModule`, `load_inline`, `_compile_kernel`, `SourceModule` and
`Program(code, "c++")`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...errors import UsageError
from ..cuda.options import CudaOptions, known_options
from ..cuda.source import find_kernels
from .constants import Constants, Text, Unknown

_CALLS: Mapping[str, tuple[str, ...]] = {
    "RawKernel": ("code", "name", "options"),
    "RawModule": (),
    "SourceModule": ("source",),
    "load_inline": ("name", "cpp_sources", "cuda_sources"),
    "_compile_kernel": ("kernel_source", "kernel_name"),
    "Program": ("code", "code_type"),
}
"""Functions that take device code, with the names of their first parameters by position."""

_CODE = ("code", "source", "cuda_sources", "kernel_source")
_FLAGS = ("options", "extra_cuda_cflags", "nvcc_options")
_GENERATED = ("ElementwiseKernel", "ReductionKernel")


@dataclass(frozen=True)
class EmbeddedSource:
    """Device code in a Python file. If `placed`, the line numbers in `text` match those of the file.

    `kernels` are the names of its kernels; `line` is the line of the call that receives it.
    """

    text: str
    kernels: tuple[str, ...]
    options: CudaOptions
    line: int
    placed: bool


def embedded_sources(tree: ast.Module, source: str, origin: str) -> tuple[list[EmbeddedSource], list[str]]:
    """Device code in the strings of a file, and the reasons why some was skipped, as sentences."""
    constants = Constants(tree, source)
    found, passed = [], []
    for call, function in _calls(tree):
        if function in _GENERATED:
            passed.append(f"{origin}:{call.lineno}: the source of a CuPy {function} is generated at run time")
            continue
        given = _arguments(call, function)
        code = next((given[name] for name in _CODE if name in given), None)
        if code is None or (function == "Program" and not _is_cpp(given)):
            continue
        try:
            found.append(_source(call, given, constants.texts(code), constants))
        except Unknown as unknown:
            passed.append(f"{origin}:{unknown.line}: the source is built at run time")
    return found, passed


def chosen_source(found: list[EmbeddedSource], entry: str, origin: str) -> EmbeddedSource:
    """The source that defines a kernel. Raises UsageError if several do."""
    plain = entry.split("<")[0].strip().split("::")[-1]
    holds = [source for source in found if plain in source.kernels]
    texts = {source.text.strip() for source in holds}
    if len(texts) > 1:
        lines = ", ".join(str(source.line) for source in holds)
        raise UsageError(f"{origin}: several sources define a kernel {plain!r} (lines {lines}); expected one")
    return holds[0]


def _calls(tree: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _CALLS or name in _GENERATED:
                yield node, name


def _arguments(call: ast.Call, function: str) -> dict[str, ast.expr]:
    given = dict(zip(_CALLS[function], call.args, strict=False))
    return given | {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}


def _flags(node: ast.expr, constants: Constants) -> list[str]:
    """Compiler flags: texts, None, or CUDA Python's `ProgramOptions(std="c++17", use_fast_math=True)`."""
    match node:
        case ast.Constant(value=None):
            return []
        case ast.Call(func=ast.Name(id="ProgramOptions") | ast.Attribute(attr="ProgramOptions"), keywords=keywords):
            flags = []
            for keyword in keywords:
                if keyword.arg == "std":
                    flags.append(f"--std={constants.text(keyword.value).value}")
                elif keyword.arg == "use_fast_math":
                    fast = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
                    flags += ["--use_fast_math"] if fast else []
                elif keyword.arg != "arch":
                    raise Unknown(node.lineno)
            return flags
        case _:
            return [flag.value for flag in constants.texts(node)]


def _is_cpp(given: Mapping[str, ast.expr]) -> bool:
    kind = given.get("code_type")
    return isinstance(kind, ast.Constant) and kind.value in ("c++", "cpp")


def _source(call: ast.Call, given: Mapping[str, ast.expr], texts: list[Text], constants: Constants) -> EmbeddedSource:
    if header := given.get("header_code"):
        texts = [constants.text(header), *texts]
    only = texts[0] if len(texts) == 1 else None
    text = "\n".join(part.value for part in texts)
    placed = only is not None and only.line > 0
    if placed and only is not None:
        text = "\n" * (only.line - 1) + text
    flags = [flag for name in _FLAGS if name in given for flag in _flags(given[name], constants)]
    kernels = [kernel.name for kernel in find_kernels(text)]
    for key in ("name", "kernel_name"):
        # RawKernel takes the kernel's name; load_inline's name is that of the extension.
        if key in given and "cuda_sources" not in given:
            named = constants.text(given[key]).value
            kernels = [name for name in kernels if name == named.split("<")[0].split("::")[-1]] or kernels
    return EmbeddedSource(text, tuple(kernels), known_options(flags), call.lineno, placed)
