"""Find CUDA C++ in strings of a Python program: CuPy, PyTorch, PyCUDA and CUDA Python. Nothing is run.

The calls that identify device code are `RawKernel`, `RawModule`, `load_inline`, `_compile_kernel`, `SourceModule` and
`Program(code, "c++")`. Below are strings whose values are known without running the file, and values and flags as users
type them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import UsageError
from ..cuda import CudaOptions, known_options
from ..cuda.source import find_kernels

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


# Strings in a Python file whose values are known without running it.


@dataclass(frozen=True, slots=True)
class Text:
    """A string: its value, and the file line of its first line; 0 if it has no single location."""

    value: str
    line: int


class Unknown(Exception):  # noqa: N818  (no error: a question without an answer)
    """A string whose value is only known at run time; `line` is its location."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


def assigned(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """Every value assigned to a name by a plain assignment anywhere in the file."""
    values: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets, value=value):
                names = [target.id for target in targets if isinstance(target, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                names = [name]
            case _:
                continue
        for name in names:
            values.setdefault(name, []).append(value)
    return values


class Constants:
    """Evaluates the expressions of a file as far as its text determines them."""

    def __init__(self, tree: ast.Module, source: str) -> None:
        self._values = assigned(tree)
        self._lines = source.splitlines()

    def text(self, node: ast.expr, depth: int = 0) -> Text:
        """Evaluate a string: a literal, a concatenation, an f-string of known values, or a name assigned to one.

        Raises Unknown.
        """
        match node:
            case ast.Constant(value=str() as value):
                return Text(value, self._place(node, value))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return Text(self.text(left, depth).value + self.text(right, depth).value, 0)
            case ast.JoinedStr(values=parts):
                value = "".join(self._part(part, depth) for part in parts)
                return Text(value, self._place(node, value))
            case ast.Name(id=name) if depth < 8 and len(self._values.get(name, ())) == 1:
                return self.text(self._values[name][0], depth + 1)
            case ast.Call(func=ast.Attribute(value=inner, attr="strip" | "lstrip" | "rstrip"), args=[], keywords=[]):
                return Text(self.text(inner, depth).value.strip(), 0)
            case ast.Call(func=ast.Attribute(attr="dedent"), args=[inner], keywords=[]):
                return self.text(inner, depth)  # indentation does not matter in C++
            case _:
                raise Unknown(node.lineno)

    def texts(self, node: ast.expr) -> list[Text]:
        """Evaluate a string, or a list or tuple of strings."""
        match node:
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return [self.text(element) for element in elements]
            case ast.Name(id=name) if len(self._values.get(name, ())) == 1:
                return self.texts(self._values[name][0])
            case _:
                return [self.text(node)]

    def _part(self, node: ast.expr, depth: int) -> str:
        """A piece of an f-string: its text, or a known value without a format."""
        match node:
            case ast.Constant(value=str() as value):
                return value
            case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
                return self._shown(inner, depth)
            case _:
                raise Unknown(node.lineno)

    def _shown(self, node: ast.expr, depth: int) -> str:
        match node:
            case ast.Constant(value=bool() | int() | float() | str() as value):
                return str(value)
            case ast.Name(id=name) if depth < 8 and len(self._values.get(name, ())) == 1:
                return self._shown(self._values[name][0], depth + 1)
            case _:
                return self.text(node, depth).value

    def _place(self, node: ast.expr, value: str) -> int:
        """The file line of a literal's first line; 0 if its lines differ from the file's."""
        for number, line in enumerate(value.split("\n")):
            at = node.lineno - 1 + number
            if line.strip() and (at >= len(self._lines) or line.rstrip() not in self._lines[at]):
                return 0
        return node.lineno


# Convert values as users type them to the Python objects that a launch in Python would receive.

_WORDS = {"true": True, "false": False, "null": None, "nullptr": None}
_CAST = re.compile(r"^(bool|u?int(?:8|16|32|64)|float(?:16|32|64))\((.*)\)$")


def literal(value: Any) -> Any:
    """Parse a text as a literal (``1024``, ``0.5``, ``True``, ``'tanh'``); other values are returned unchanged.

    `float32(0.5)` gives a NumPy scalar of that type. Values that already are NumPy scalars stay.
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if cast := _CAST.match(text):
        inner = literal(cast[2])
        if isinstance(inner, bool | int | float):
            return np.dtype(cast[1]).type(inner)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    try:
        return float(text)  # inf, nan
    except ValueError:
        return value


def plain(value: Any) -> Any:
    """Convert a NumPy scalar to a Python number."""
    return value.item() if isinstance(value, np.generic) else value
