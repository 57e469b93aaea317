"""Select the part of a Python file that a kernel needs: its definition and its dependences, and nothing else.

A file with kernels usually also runs them, with a framework and a GPU. Compiling a kernel needs neither. Of the file's
top-level statements, only those are selected that bind a name which the kernel's definition uses, directly or through
other selected statements. Line numbers stay.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, the names that it binds, and those that it uses."""

    node: ast.stmt
    binds: frozenset[str]
    uses: frozenset[str]


class Statements:
    """The top-level statements of a file, each import of a name on its own, and which of them a name needs."""

    def __init__(self, tree: ast.Module) -> None:
        parts = [part for node in tree.body if not _is_main_guard(node) for part in single_imports(node)]
        self.all = [_statement(node) for node in parts]
        self.bound = {n for s in self.all for n in s.binds}
        self._imported = {n for s in self.all if isinstance(s.node, ast.Import | ast.ImportFrom) for n in s.binds}

    def needed(self, name: str) -> tuple[list[int], set[str]]:
        """The statements that define `name` and all that it uses, and the names that none of them binds."""
        needed, kept = {name}, set[int]()
        while True:
            unknown = {n for n in needed - self.bound if not hasattr(builtins, n)}
            fresh = [
                number
                for number, statement in enumerate(self.all)
                if number not in kept
                and (statement.binds & needed or _matters(statement.node, bool(unknown), needed - self._imported))
            ]
            if not fresh:
                return sorted(kept), unknown
            kept.update(fresh)
            for number in fresh:
                needed |= self.all[number].uses


def _matters(node: ast.stmt, unknown_names: bool, needed: set[str]) -> bool:
    """Whether a statement matters even though it binds no needed name. `needed` are names that no import binds."""
    match node:
        case ast.ImportFrom(module="__future__"):
            return True
        case ast.ImportFrom() if imports_all(node):
            return unknown_names
        case ast.Expr(value=ast.Call(func=ast.Attribute() as called)):
            # `sys.path.append(…)` before an import, `configs.append(…)` after an assignment.
            owner = ast.unparse(called.value)
            return owner == "sys.path" or owner in needed
        case _:
            return False


def _statement(node: ast.stmt) -> Statement:
    table = symtable.symtable(ast.unparse(node), "<statement>", "exec")
    binds = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}
    uses = {s.get_name() for s in table.get_symbols() if s.is_referenced()}
    for inner in _inner(table):
        uses |= {s.get_name() for s in inner.get_symbols() if s.is_global()}
        # A function may also assign a global.
        binds |= {s.get_name() for s in inner.get_symbols() if s.is_declared_global() and s.is_assigned()}
    return Statement(node, frozenset(binds | _changed(node)), frozenset(uses))


def _inner(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        yield child
        yield from _inner(child)


def _changed(node: ast.stmt) -> set[str]:
    """Names whose value an assignment changes partially: `table["a"] = 1`, `settings.a = 1`."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
    changed = set()
    for target in targets:
        while isinstance(target, ast.Subscript | ast.Attribute):
            target = target.value
        if isinstance(target, ast.Name):
            changed.add(target.id)
    return changed


def single_imports(node: ast.stmt) -> Iterator[ast.stmt]:
    """An import of several names as several: `import torch, triton` may become `import triton`."""
    if isinstance(node, ast.Import):
        yield from (ast.copy_location(ast.Import([alias]), node) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from (ast.copy_location(ast.ImportFrom(node.module, [alias], node.level), node) for alias in node.names)
    else:
        yield node


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test) and "__main__" in ast.unparse(node.test)


def receiver(node: ast.stmt) -> set[str]:
    """The object that a statement such as `configs.append(…)` changes."""
    call = node.value if isinstance(node, ast.Expr) else None
    owner = call.func if isinstance(call, ast.Call) else None
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    return {owner.id} if isinstance(owner, ast.Name) else set()


def imports_all(node: ast.stmt) -> bool:
    """Whether a statement is `from module import *`."""
    return isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
