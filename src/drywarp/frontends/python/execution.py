"""Run the part of a user's Python file that defines a kernel.

This is the only place where drywarp runs user code on the host: a Triton or Numba kernel exists only after Python has
run its definition. Only the statements that the kernel needs are run, of its file and of the files beside it.
"""

from __future__ import annotations
import __future__

import ast
import importlib
import importlib.abc
import importlib.util
import os
import sys
import traceback
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from ...errors import InputFileError, ToolError
from ...hardware import Gpu
from .isolation import Unknown, UnknownValue
from .slicing import Statement, Statements, imports_all, receiver
from .torch_stand_in import TorchModule, torch_values

# A module that is not installed makes the names imported from it unknown, unless the code is ready for its absence.

_ABSENCE = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
_MISSING, _STAR = "__drywarp_missing__", "__drywarp_star__"


class _Imports(ast.NodeTransformer):
    """Put each import in a `try` that calls `_MISSING`; imports of everything become calls of `_STAR`."""

    def visit_Try(self, node: ast.Try) -> ast.Try:
        caught = {name for h in node.handlers for name in (_names(h.type) if h.type else _ABSENCE)}
        ready, node.body = (node.body, []) if caught & _ABSENCE else ([], node.body)
        self.generic_visit(node)
        node.body = ready or node.body
        return node

    def visit_With(self, node: ast.With) -> ast.AST:
        suppressed = any("suppress" in _names(item.context_expr) for item in node.items)
        return node if suppressed else self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        return [s for alias in node.names for s in self._guarded(ast.Import([alias]), "", alias, node)]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.stmt]:
        if node.module == "__future__":
            return [node]
        if node.names[0].name == "*":
            return self._parsed(f"{_STAR}(globals(), {node.module or ''!r}, {node.level})", node)
        origin = "." * node.level + (node.module or "")
        parts = [(ast.ImportFrom(node.module, [alias], node.level), alias) for alias in node.names]
        return [s for one, alias in parts for s in self._guarded(one, origin, alias, node)]

    def _guarded(self, one: ast.stmt, origin: str, alias: ast.alias, at: ast.stmt) -> list[ast.stmt]:
        what = f"{origin}{'' if not origin or origin.endswith('.') else '.'}{alias.name}"
        whole = not origin and not alias.asname
        bound = alias.asname or (alias.name.split(".")[0] if whole else alias.name)
        text = f"try:\n    {ast.unparse(one)}\nexcept ImportError:\n"
        return self._parsed(f"{text}    {bound} = {_MISSING}(__file__, {at.lineno}, {what!r}, {whole})", at)

    def _parsed(self, text: str, node: ast.stmt) -> list[ast.stmt]:
        made = ast.parse(text).body
        for statement in made:
            for inner in ast.walk(statement):
                ast.copy_location(inner, node)
        return made


def _names(node: ast.expr) -> set[str]:
    return {getattr(n, "id", getattr(n, "attr", "")) for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute)}


def _listed(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [found]


def _missing(file: str, line: int, what: str, whole: bool) -> Any:
    """What a name is bound to whose import fails: called while the error is handled."""
    error = sys.exc_info()[1]
    head = what.split(".")[0]
    if whole and head != what and importlib.util.find_spec(head):
        return importlib.import_module(head)
    if what.rpartition(".")[2] == "Version" and importlib.util.find_spec("packaging"):
        # Projects pass the class on that compares versions, and decide between releases of Triton with it.
        return importlib.import_module("packaging.version").Version
    place = f"{os.path.relpath(file) if not os.path.relpath(file).startswith('..') else file}:{line}"
    if isinstance(error, ModuleNotFoundError) and error.name and not what.startswith("."):
        return Unknown(f"the module {error.name!r}", "which is not installed", place)
    if _FOLDERS in str(error):
        return Unknown(f"the name {what!r}", "which no file beside it defines", place)
    return Unknown(f"the name {what!r}", f"which cannot be imported: {' '.join(str(error).split())}", place)


# Modules of the user run statement by statement, as names are asked of them.

_SYSTEM = ("__path__", "__file__", "__loader__", "__spec__", "__package__", "__cached__")
"""Attributes that the import system asks for, and sets."""


class LocalModule(ModuleType):
    """A module of the user's own: its statements run when a name that they bind is first asked for."""

    def __init__(self, name: str, around: Surroundings, tree: ast.Module, path: str) -> None:
        super().__init__(name)
        self.__file__ = path
        vars(self).update({_MISSING: _missing, _STAR: around.star}, _around=around, _done=set(), _wanted=set())
        vars(self)["_statements"] = Statements(tree)

    def __setattr__(self, name: str, value: Any) -> None:
        # Importing a submodule sets its name here, which must not hide what the module itself binds to it.
        if not (isinstance(value, ModuleType) and name in self._statements.bound):
            super().__setattr__(name, value)

    def offers(self, name: str) -> bool:
        """Whether the module binds a name, without running anything."""
        return name in vars(self) or name in self._statements.bound

    def __getattr__(self, name: str) -> Any:
        if name in _SYSTEM:
            raise AttributeError(name)
        numbers, wanted = self._statements.needed(name)
        if self.offers(name) or (name in wanted and not name.startswith("__")):
            self._wanted.update(wanted)
            with self._around:
                for number in numbers:
                    statement = self._statements.all[number]
                    if number not in self._done or imports_all(statement.node):
                        self._done.add(number)
                        self._run(statement)
            if name in vars(self):
                return vars(self)[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def _run(self, statement: Statement) -> None:
        node = _Imports().visit(ast.fix_missing_locations(statement.node))
        flags = sum(
            getattr(__future__, alias.name).compiler_flag
            for s in self._statements.all
            if isinstance(s.node, ast.ImportFrom) and s.node.module == "__future__"
            for alias in s.node.names
        )
        code = compile(ast.Module(_listed(node), []), self.__file__ or "", "exec", flags, dont_inherit=True)
        try:
            exec(code, vars(self))
        except AttributeError as error:
            # Python would take it for the absence of the name that was asked for.
            place = f"{self._around.shown(self.__file__)}:{_line(error, self.__file__)}"
            raise InputFileError(f"{place}: AttributeError: {error}") from None
        except UnknownValue as stopped:
            # The names that the statement would have bound are as unknown; it may be that nobody needs them.
            value = stopped.value.at(f"{self._around.shown(self.__file__)}:{_line(stopped, self.__file__)}")
            vars(self).update(dict.fromkeys(statement.binds | receiver(statement.node), value))


def _line(error: BaseException, file: str | None) -> int:
    """The line of a file where an error arose; 0 if it arose elsewhere."""
    return next((f.lineno or 0 for f in reversed(traceback.extract_tb(error.__traceback__)) if f.filename == file), 0)


_PREFIX = "_drywarp_input_"
"""Prefix of the modules created here, so that a file may have the same name as a package."""

_FOLDERS = "_drywarp_folders"
"""A package above the folder of a file that belongs to no package, so that its relative imports lead to its folder."""

_INSTALLED = {"triton", "numba", "numba_cuda", "numpy", "cupy", "drywarp", *sys.stdlib_module_names}
"""What is never taken from the folder of a file."""


class Surroundings(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """What a kernel's file can import, while this is entered: the modules beside it, its package, and stand-ins.

    `gpu` is the GPU that PyTorch's stand-in speaks of.
    """

    def __init__(self, path: Path, tree: ast.Module, gpu: Gpu | None = None) -> None:
        self._depth, self._torch = 0, torch_values(gpu)
        self._modules: dict[str, ModuleType] = {}
        self._hidden: dict[str, ModuleType] = {}
        self._origin, self._place = str(path), os.path.abspath(path)
        folder = os.path.dirname(self._place)
        root, package = _package(Path(self._place))
        self._folders = (folder, root)
        if not package:
            levels = max((n.level for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)), default=0)
            parents = Path(self._place).parents[: max(1, levels)]
            package = ".".join([_FOLDERS, *(parent.name for parent in reversed(parents[:-1]))])
            top = LocalModule(_FOLDERS, self, ast.Module([], []), "")
            top.__path__ = [str(parents[-1])]
            self._modules[_FOLDERS] = top
        self.entry = LocalModule(_PREFIX + path.stem, self, tree, self._place)
        self.entry.__package__ = package
        sys.modules[self.entry.__name__] = self.entry

    def shown(self, path: str | None) -> str:
        """A file as messages name it: the kernel's own as the user does."""
        return self._origin if path == self._place else os.path.relpath(path or "")

    def star(self, names: dict[str, Any], module: str, level: int) -> None:
        """`from module import *`: of a module of the user's, only the names that are wanted."""
        found = importlib.import_module("." * level + module, names["__package__"] if level else None)
        listed = getattr(found, "__all__", None) or [name for name in vars(found) if not name.startswith("_")]
        if isinstance(found, LocalModule):
            listed = [name for name in names["_wanted"] if found.offers(name)]
        names.update({name: getattr(found, name) for name in listed})

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        """Where a module lies: PyTorch's are stand-ins, the user's are run by need."""
        parent, _, tail = name.rpartition(".")
        if name.partition(".")[0] == "torch":
            return ModuleSpec(name, self, is_package=True)
        if tail in _INSTALLED if not parent else parent not in self._modules:
            return None
        for folder in self._folders if not parent else path:
            for file, inside in ((Path(folder, tail, "__init__.py"), True), (Path(folder, f"{tail}.py"), False)):
                if file.is_file():
                    places = [str(file.parent)] if inside else None
                    return importlib.util.spec_from_file_location(
                        name, file, loader=self, submodule_search_locations=places
                    )
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is None:
            spec.loader = self  # a folder without __init__.py
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """A module that has run nothing yet."""
        if spec.name.partition(".")[0] == "torch":
            made: ModuleType = TorchModule(spec.name, self._torch)
        else:
            text = Path(spec.origin).read_bytes() if spec.origin and spec.has_location else b""
            made = LocalModule(spec.name, self, ast.parse(text, spec.origin or ""), spec.origin or "")
        self._modules[spec.name] = made
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: its statements run when they are needed."""

    def __enter__(self) -> None:
        self._depth += 1
        if self._depth == 1:
            self._hidden = {n: m for n, m in sys.modules.items() if n.partition(".")[0] == "torch"}
            self._hidden |= {n: sys.modules[n] for n in self._modules.keys() & sys.modules.keys()}
            for name in self._hidden:
                del sys.modules[name]
            sys.modules.update(self._modules)
            sys.meta_path.insert(0, self)
            sys.path.extend(self._folders)

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if not self._depth:
            sys.meta_path.remove(self)
            for folder in self._folders:
                sys.path.remove(folder)
            for name in self._modules.keys() & sys.modules.keys():
                del sys.modules[name]
            sys.modules.update(self._hidden)

    def kernel(self, name: str) -> Any:
        """The object that the file defines as `name`, running no more than necessary.

        Raises InputFileError naming file and line if that fails.
        """
        try:
            with self:
                found = getattr(self.entry, name, None)
        except InputFileError as error:
            raise InputFileError(f"{error} (while {name} is being defined)") from None
        except Exception as error:
            raise _failure(error, self._origin, self._place, name) from None
        except SystemExit:
            raise InputFileError(f"{self._origin}: exits the program while {name} is being defined") from None
        if isinstance(found, Unknown):
            raise InputFileError(found.said(self._origin, name))
        if name not in vars(self.entry):
            raise InputFileError(f"{self._origin}: does not define {name} (expected at module level)")
        return found


def _package(path: Path) -> tuple[str, str]:
    """The parent folder of the package that a file belongs to, and the package's name (empty if there is none)."""
    folder, names = path.parent, list[str]()
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    return str(folder), ".".join(names)


def _failure(error: Exception, origin: str, place: str, name: str) -> InputFileError | ToolError:
    line = _line(error, place)
    where = f"{origin}:{line}" if line else origin
    if isinstance(error, ModuleNotFoundError):
        return InputFileError(f"{where}: kernel {name} needs the module {error.name!r}, which is not installed")
    reason = " ".join(str(error).split())
    return InputFileError(f"{where}: defining {name} failed: {type(error).__name__}: {reason}")
