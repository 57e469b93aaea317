"""Run the part of a user's Python file that defines a kernel.

This is the only place where drywarp runs user code on the host: a Triton or Numba kernel exists only after Python has
run its definition. Only the statements that `needed_part` selects are run.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import os
import symtable
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from ...errors import InputFileError, ToolError

# Select the part of a Python file that a kernel needs: its definition and its dependences, and nothing else.
#
# A file with kernels usually also runs them, with a framework and a GPU. Compiling a kernel needs neither. Of the
# file's top-level statements, only those are selected that bind a name which the kernel's definition uses, directly or
# through other selected statements. Line numbers stay.


@dataclass(frozen=True, slots=True)
class _Statement:
    node: ast.stmt
    binds: frozenset[str]
    uses: frozenset[str]


def needed_part(tree: ast.Module, name: str) -> ast.Module:
    """The statements of `tree` that define `name` and everything it uses, as a separate module."""
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
    """Whether a statement matters even though it binds no needed name. `needed` are names that no import binds."""
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
        # A function may also assign a global.
        binds |= {s.get_name() for s in inner.get_symbols() if s.is_declared_global() and s.is_assigned()}
    return _Statement(node, frozenset(binds | _changed(node)), frozenset(uses))


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


def _narrowed(node: ast.stmt, needed: set[str]) -> ast.stmt:
    """An import without unneeded names: `import torch, triton` may become `import triton`."""
    if isinstance(node, ast.Import | ast.ImportFrom) and getattr(node, "module", None) != "__future__":
        kept = [a for a in node.names if a.name == "*" or (a.asname or a.name.split(".")[0]) in needed]
        names = kept or node.names
        fresh = ast.Import(names) if isinstance(node, ast.Import) else ast.ImportFrom(node.module, names, node.level)
        return ast.copy_location(fresh, node)
    return node


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test) and "__main__" in ast.unparse(node.test)


_PREFIX = "_drywarp_input_"
"""Prefix of the modules created here, so that a file may have the same name as a package."""


def define(path: Path, tree: ast.Module, name: str) -> Any:
    """The object that the file at `path` defines as `name`, running no more of the file than necessary.

    Raises InputFileError naming file and line if that fails.
    """
    place = os.path.abspath(path)
    module = ModuleType(_PREFIX + path.stem)
    module.__file__ = place
    root, module.__package__ = _package(Path(place))
    part = needed_part(tree, name)
    sys.modules[module.__name__] = module
    with import_folders(os.path.dirname(place), root):
        try:
            exec(compile(part, place, "exec"), module.__dict__)
        except Exception as error:
            raise _failure(error, str(path), place, name) from None
        except SystemExit:
            raise InputFileError(f"{path}: exits the program while {name} is being defined") from None
    if name not in module.__dict__:
        raise InputFileError(f"{path}: does not define {name} (expected at module level)")
    return module.__dict__[name]


def _package(path: Path) -> tuple[str, str]:
    """The parent folder of the package that a file belongs to, and the package's name (empty if there is none)."""
    folder, names = path.parent, list[str]()
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    return str(folder), ".".join(names)


@contextlib.contextmanager
def import_folders(*folders: str) -> Iterator[None]:
    """Let imports find modules beside a file, as `python file.py` does, and the package that it belongs to."""
    before = list(sys.path)
    sys.path[:0] = folders
    try:
        yield
    finally:
        sys.path[:] = before


def _failure(error: Exception, origin: str, place: str, name: str) -> InputFileError | ToolError:
    line = next((f.lineno for f in reversed(traceback.extract_tb(error.__traceback__)) if f.filename == place), None)
    where = f"{origin}:{line}" if line else origin
    if isinstance(error, ModuleNotFoundError):
        return InputFileError(f"{where}: kernel {name} needs the module {error.name!r}, which is not installed")
    reason = " ".join(str(error).split())
    return InputFileError(f"{where}: defining {name} failed: {type(error).__name__}: {reason}")
