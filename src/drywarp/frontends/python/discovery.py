"""Which kernels a Python file defines, told from its text alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

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
    """The outermost jit-compiled functions of a file, in order; those for use on the device alone left out."""
    names = import_names(tree)
    functions = {node.name: node for node in _outermost(tree.body) if isinstance(node, ast.FunctionDef)}
    found = []
    for node in _outermost(tree.body):
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
    """Those that no other one calls: kernels, not their helpers. All of them where that leaves none."""
    called = {name for function in functions for name in function.uses if name != function.name}
    return [f for f in functions if f.name not in called] or functions


def import_names(tree: ast.AST) -> dict[str, str]:
    """What each imported name of a file stands for: ``tl`` for ``triton.language``."""
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
    """The full name that an expression such as `tl.load` stands for; empty for any other expression."""
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
    """Names that a function reads and does not bind itself."""
    names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    bound = {n.id for n in names if not isinstance(n.ctx, ast.Load)}
    bound |= {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
    return frozenset(n.id for n in names if isinstance(n.ctx, ast.Load)) - bound


def _outermost(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements at module level, those in `if`, `try` and `with` included."""
    for node in body:
        yield node
        for part in ("body", "orelse", "finalbody"):
            if isinstance(node, ast.If | ast.Try | ast.With):
                yield from _outermost(getattr(node, part, []))
