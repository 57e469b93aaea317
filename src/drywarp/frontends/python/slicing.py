"""The part of a Python file that a kernel needs: its definition and what that names, and nothing else.

A file with kernels usually runs them too, with a framework and a GPU. Neither is needed to compile one:
of the file's outermost statements only those are kept that bind a name which the kernel's definition
uses, directly or through other statements that are kept. Line numbers stay.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Statement:
    node: ast.stmt
    binds: frozenset[str]
    uses: frozenset[str]


def needed_part(tree: ast.Module, name: str) -> ast.Module:
    """The statements of `tree` that define `name` and all that it uses, as a module of its own."""
    statements = [_statement(node) for node in tree.body if not _is_main_guard(node)]
    bound = {n for s in statements for n in s.binds}
    imported = {n for s in statements if isinstance(s.node, ast.Import | ast.ImportFrom) for n in s.binds}
    needed, kept = {name}, set[int]()
    while True:
        unknown = {n for n in needed - bound if not hasattr(builtins, n)}
        fresh = [
            number
            for number, statement in enumerate(statements)
            if number not in kept
            and (statement.binds & needed or _matters(statement.node, bool(unknown), needed - imported))
        ]
        if not fresh:
            break
        kept.update(fresh)
        for number in fresh:
            needed |= statements[number].uses
    body = [_narrowed(statements[number].node, needed) for number in sorted(kept)]
    return ast.Module(body=body, type_ignores=[])


def _matters(node: ast.stmt, unknown_names: bool, needed: set[str]) -> bool:
    """Whether a statement that binds nothing needed matters all the same. `needed` are names that no import binds."""
    match node:
        case ast.ImportFrom(module="__future__"):
            return True
        case ast.ImportFrom(names=[ast.alias(name="*")]):
            return unknown_names
        case ast.Expr(value=ast.Call(func=ast.Attribute() as called)):
            # `sys.path.append(…)` before an import, `configs.append(…)` after an assignment.
            owner = ast.unparse(called.value)
            return owner == "sys.path" or owner in needed
        case _:
            return False


def _statement(node: ast.stmt) -> _Statement:
    table = symtable.symtable(ast.unparse(node), "<statement>", "exec")
    binds = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}
    uses = {s.get_name() for s in table.get_symbols() if s.is_referenced()}
    for inner in _inner(table):
        uses |= {s.get_name() for s in inner.get_symbols() if s.is_global()}
        # A function may assign a global, too.
        binds |= {s.get_name() for s in inner.get_symbols() if s.is_declared_global() and s.is_assigned()}
    return _Statement(node, frozenset(binds | _changed(node)), frozenset(uses))


def _inner(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        yield child
        yield from _inner(child)


def _changed(node: ast.stmt) -> set[str]:
    """Names whose value an assignment changes in part: `table["a"] = 1`, `settings.a = 1`."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
    changed = set()
    for target in targets:
        while isinstance(target, ast.Subscript | ast.Attribute):
            target = target.value
        if isinstance(target, ast.Name):
            changed.add(target.id)
    return changed


def _narrowed(node: ast.stmt, needed: set[str]) -> ast.stmt:
    """An import without the names that nobody needs: `import torch, triton` may keep triton alone."""
    if isinstance(node, ast.Import | ast.ImportFrom) and getattr(node, "module", None) != "__future__":
        kept = [a for a in node.names if a.name == "*" or (a.asname or a.name.split(".")[0]) in needed]
        names = kept or node.names
        fresh = ast.Import(names) if isinstance(node, ast.Import) else ast.ImportFrom(node.module, names, node.level)
        return ast.copy_location(fresh, node)
    return node


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test) and "__main__" in ast.unparse(node.test)
