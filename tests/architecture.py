"""The rooms of the package and who imports whom, read off the sources: for tests, and for the table in the docs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import drywarp

ROOT = Path(drywarp.__file__).parent

ROOMS = (
    *("support", "kernel", "hardware", "frontends", "core", "execution", "memory", "workload", "pipeline", "models"),
    *("analysis", "program", "experiments", "report", "cli"),
)
"""In the order in which data flows: a room may import what stands before it."""

ANYWHERE = ("_version", "errors")
"""Modules beside the rooms that every room may import."""

RULES: dict[str, tuple[str, ...]] = {
    # Loops know no words of the field but those that they are given.
    "core": (),
    "execution": ("support", "kernel", "core"),
    # A `MemoryGeometry` stands for the hardware.
    "memory": ("support", "kernel", "core"),
    # A bound workload is all that the simulation and the theories see.
    "pipeline": ("support", "workload", "core"),
    "models": ("support", "hardware", "workload", "pipeline"),
    # Timings are all that a fit sees.
    "experiments.calibrate.fits": (),
}
"""Rooms and parts of rooms that may import less than all that stands before them."""

TIMINGS_ALONE = tuple(f"experiments.calibrate.{name}" for name in ("caches", "chains", "dram", "issue", "load"))
"""Sees what a device says and how long kernels take on it: no hardware data, no prediction."""


@dataclass(frozen=True)
class Import:
    """That a module imports another, by their names below `drywarp`; `at_start`: loading the one loads the other."""

    importer: str
    imported: str
    line: int
    at_start: bool


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name; the package itself is the empty one."""
    named = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return named


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports() -> tuple[Import, ...]:
    """Every import of a module of ours by another."""
    return tuple(_imports())


def _imports() -> Iterator[Import]:
    known = modules()
    for name, path in known.items():
        tree = tree_of(path)
        package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                targets = [a.name.partition(".")[2] for a in node.names if a.name.split(".")[0] == "drywarp"]
            elif isinstance(node, ast.ImportFrom):
                base = _base(node, [part for part in package if part])
                if base is None:
                    continue
                full = [".".join(filter(None, (base, alias.name))) for alias in node.names]
                targets = [one if one in known else base for one in full]
            else:
                continue
            for target in targets:
                if target != name:
                    yield Import(name, target, node.lineno, node in tree.body)


def _base(node: ast.ImportFrom, package: list[str]) -> str | None:
    if node.level:
        parts = package[: len(package) - node.level + 1]
        return ".".join([*parts, *(node.module.split(".") if node.module else [])])
    if node.module and node.module.split(".")[0] == "drywarp":
        return node.module.partition(".")[2]
    return None


def room_of(module: str) -> str:
    """The room that a module lies in."""
    return module.split(".")[0]


def allowed(module: str) -> tuple[str, ...]:
    """The rooms besides its own that a module may import."""
    for part in sorted(RULES, key=len, reverse=True):
        if module == part or module.startswith(part + "."):
            return RULES[part]
    room = room_of(module)
    return ROOMS[: ROOMS.index(room)] if room in ROOMS else ROOMS


def question_of(room: str) -> str:
    """The question that a room answers: the first paragraph of its docstring."""
    text = ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text(encoding="utf-8"))) or ""
    return text.split("\n\n")[0].replace("\n", " ")


def table() -> str:
    """The table of rooms for docs/architecture.md."""
    lines = ["| room | question | imports |", "|---|---|---|"]
    used: dict[str, set[str]] = {room: set() for room in ROOMS}
    for one in imports():
        if room_of(one.importer) in used and room_of(one.imported) != room_of(one.importer):
            used[room_of(one.importer)].add(room_of(one.imported))
    for room in ROOMS:
        names = [f"`{other}`" for other in ROOMS if other in used[room]]
        lines.append(f"| `{room}/` | {question_of(room)} | {', '.join(names) or '–'} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
