"""Load a kernel from a Python file: Triton and Numba functions, and CUDA C++ in strings."""

from __future__ import annotations

import ast
import inspect
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import InputFileError, UsageError
from ...hardware import Gpu
from ...kernel.kernel import Kernel
from ..cuda import CudaOptions, known_options
from ..cuda.compile import compile_cuda
from ..loaded import Deferred
from .embedded import chosen_source, embedded_sources
from .execution import Surroundings
from .isolation import cupy_headers, diverted
from .numba_kernel import NumbaKernel, require_numba_cuda
from .numba_kernel import offline as numba_offline
from .triton_kernel import TritonKernel
from .triton_values import offline as triton_offline
from .triton_values import require_triton

# Find the kernels that a Python file defines, from its text alone.

_TRITON = ("triton.jit", "triton.runtime.jit", "triton.runtime.jit.jit", "triton.experimental.gluon.jit")
_TRITON_LAYERS = ("triton.autotune", "triton.heuristics", "triton.runtime.autotune", "triton.runtime.heuristics")
_NUMBA = ("numba.cuda.jit",)


@dataclass(frozen=True, slots=True)
class JitFunction:
    """A function that a just-in-time compiler turns into device code. `kind` is ``triton`` or ``numba``."""

    name: str
    kind: str
    line: int
    uses: frozenset[str]


def jit_functions(tree: ast.Module) -> list[JitFunction]:
    """The top-level jit-compiled functions of a file, in order, without device-only functions."""
    names = import_names(tree)
    functions = {node.name: node for node in outermost(tree.body) if isinstance(node, ast.FunctionDef)}
    found = []
    for node in outermost(tree.body):
        if isinstance(node, ast.FunctionDef):
            kinds = [kind for decorator in node.decorator_list if (kind := _kind(decorator, names))]
            if kinds:
                found.append(JitFunction(node.name, kinds[-1], node.lineno, _uses(node)))
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            # kernel = triton.jit(function)
            kind = _kind(node.value.func, names)
            target, wrapped = node.targets[0], node.value.args[:1]
            if kind and isinstance(target, ast.Name) and wrapped and isinstance(wrapped[0], ast.Name):
                inner = functions.get(wrapped[0].id)
                found.append(JitFunction(target.id, kind, node.lineno, _uses(inner) if inner else frozenset()))
    return found


def kernels(functions: list[JitFunction]) -> list[JitFunction]:
    """The functions that no other one calls: kernels, not their helpers. If there are none, all functions."""
    called = {name for function in functions for name in function.uses if name != function.name}
    return [f for f in functions if f.name not in called] or functions


def import_names(tree: ast.AST) -> dict[str, str]:
    """The full name of each imported name in a file: ``triton.language`` for ``tl``."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.split(".")[0]
                names[alias.asname or root] = alias.name if alias.asname else root
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return names


def dotted(node: ast.expr, names: dict[str, str]) -> str:
    """The full name of an expression such as `tl.load`; empty for any other expression."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute) and (owner := dotted(node.value, names)):
        return f"{owner}.{node.attr}"
    return ""


def _kind(decorator: ast.expr, names: dict[str, str]) -> str:
    call = decorator if isinstance(decorator, ast.Call) else None
    name = dotted(call.func if call else decorator, names)
    if name in _TRITON or name in _TRITON_LAYERS:
        return "triton"
    if name in _NUMBA:
        device = call and any(k.arg == "device" and getattr(k.value, "value", None) is True for k in call.keywords)
        return "" if device else "numba"
    return ""


def _uses(node: ast.AST) -> frozenset[str]:
    """Names that a function reads but does not bind itself."""
    names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    bound = {n.id for n in names if not isinstance(n.ctx, ast.Load)}
    bound |= {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
    return frozenset(n.id for n in names if isinstance(n.ctx, ast.Load)) - bound


def outermost(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements at module level, including those in `if`, `try` and `with`."""
    for node in body:
        yield node
        for part in ("body", "orelse", "finalbody"):
            if isinstance(node, ast.If | ast.Try | ast.With):
                yield from outermost(getattr(node, part, []))


def parsed(path: Path, text: str) -> ast.Module:
    """The syntax tree of a file. Raises InputFileError naming the line if it is not Python."""
    try:
        return ast.parse(text, str(path))
    except (SyntaxError, ValueError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise InputFileError(f"{path}{line}: not Python: {getattr(error, 'msg', error)}") from None


def load_python(
    path: Path, text: str, *, arch: str, entry: str | None, options: CudaOptions, gpu: Gpu | None = None
) -> tuple[Kernel | Deferred, str]:
    """The kernel that `entry` names, or the only one in the file, and its source if its lines differ from the file's.

    A Triton or Numba function is defined by running the part of the file that it needs, which may ask for the
    properties of `gpu`. CUDA C++ in a string is read without running anything. Raises InputFileError if the file is not
    valid Python, UsageError for an unknown entry.
    """
    origin, tree = str(path), parsed(path, text)
    functions = jit_functions(tree)
    sources, passed = embedded_sources(tree, text, origin)
    by_name = {function.name: function for function in functions}
    if entry in by_name:
        return _defined(path, tree, by_name[entry], arch, options, gpu), ""
    names = [f.name for f in kernels(functions)] + [name for source in sources for name in source.kernels]
    if entry is None:
        entry = _only(names, passed, origin)
        if entry in by_name:
            return _defined(path, tree, by_name[entry], arch, options, gpu), ""
    elif entry.split("<")[0].strip().split("::")[-1] not in names:
        skipped = "".join(f"; {reason.removeprefix(origin + ':')}" for reason in passed)
        holds = ", ".join(dict.fromkeys(names)) or "none"
        raise UsageError(f"{origin}: no kernel named {entry!r}; it holds: {holds}{skipped and f' (line{skipped[1:]})'}")
    source = chosen_source(sources, entry, origin)
    # If the file does not contain the source line by line, the source has its own line numbers.
    name = origin if source.placed else f"{origin}:{source.line}:{entry}"
    merged = options.over(source.options).over(CudaOptions(includes=cupy_headers()))
    kernel = compile_cuda(source.text, arch=arch, entry=entry, options=merged, name=name)
    return kernel, "" if source.placed else source.text


def _only(names: list[str], passed: list[str], origin: str) -> str:
    distinct = list(dict.fromkeys(names))
    if len(distinct) == 1:
        return distinct[0]
    if distinct:
        raise UsageError(f"{origin}: several kernels; name one with --entry: {', '.join(distinct)}")
    if passed:
        raise UsageError(f"{passed[0]}; pass the finished object to drywarp.analyze in Python instead")
    raise UsageError(
        f"{origin}: no kernel found (expected a function under @triton.jit or @numba.cuda.jit, "
        "or CUDA C++ in a RawKernel, RawModule, load_inline, SourceModule or Program)"
    )


def _defined(
    path: Path, tree: ast.Module, function: JitFunction, arch: str, options: CudaOptions, gpu: Gpu | None
) -> Deferred:
    origin = str(path)
    options.refuse(origin, f"{function.kind} kernels")
    around = Surroundings(path, tree, gpu)
    if function.kind == "triton":
        require_triton(origin)
        with diverted(), triton_offline(arch, origin, gpu):
            made = around.kernel(function.name)
        return TritonKernel(made, function.name, origin, options.max_registers, around, gpu)
    require_numba_cuda(origin)
    with diverted(), numba_offline(arch, origin):
        made = around.kernel(function.name)
    if not hasattr(made, "py_func"):
        raise UsageError(
            f"{origin}:{function.line}: {function.name} is not a @cuda.jit kernel after running its definition"
        )
    return NumbaKernel(made, function.name, origin, options.max_registers)


# Load a kernel from a Python object of Triton, Numba or CuPy.


def load_object(
    source: Any, *, arch: str, entry: str | None, options: CudaOptions, gpu: Gpu | None = None
) -> tuple[Kernel | Deferred, str]:
    """The kernel that an object represents, and its source if that is not in a file.

    Supported objects are a `triton.jit` function with its decorators, a `numba.cuda.jit` function, and CuPy's
    RawKernel and RawModule, whose source is recompiled. Raises UsageError for any other object.
    """
    package = type(source).__module__.partition(".")[0]
    if hasattr(source, "py_func") and package in ("numba", "numba_cuda"):
        options.refuse(_file(source.py_func), "numba kernels")
        return NumbaKernel(source, source.py_func.__name__, _file(source.py_func), options.max_registers), ""
    if package == "cupy" and isinstance(getattr(source, "code", None), str):
        return _raw(source, arch, entry, options), str(source.code)
    options.refuse(type(source).__name__, "Triton kernels")
    inner = source
    while hasattr(inner, "fn") and not inspect.isfunction(inner):
        inner = inner.fn
    if inner is not source and inspect.isfunction(inner):
        return TritonKernel(source, inner.__name__, _file(inner), options.max_registers, gpu=gpu), ""
    raise UsageError(
        f"{type(source).__name__}: expected a path, a source text, a function under @triton.jit or "
        "@numba.cuda.jit, or a CuPy RawKernel"
    )


def _raw(source: Any, arch: str, entry: str | None, options: CudaOptions) -> Kernel:
    own = known_options(list(getattr(source, "options", ()) or ()))
    merged = options.over(own).over(CudaOptions(includes=cupy_headers()))
    return compile_cuda(source.code, arch=arch, entry=entry or getattr(source, "name", None), options=merged)


def _file(function: Any) -> str:
    """The file of a function as a user would name it: relative to the current folder if it is inside it."""
    place = str(function.__code__.co_filename)
    here = os.path.relpath(place)
    return here if os.path.isabs(place) and not here.startswith("..") else place
