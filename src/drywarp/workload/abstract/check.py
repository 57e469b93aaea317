"""Reading an abstract kernel file, and what must hold beyond each key's own type."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from ...errors import InputFileError
from ...support.expressions import ExpressionError, evaluate
from ...support.folders import read_toml
from .file import (
    FORMAT,
    AbstractClass,
    AbstractKernel,
    Amount,
    Cycles,
    Graph,
    Group,
    Launch,
    Measured,
    Own,
    Setting,
    Step,
    Table,
)


@dataclass(frozen=True)
class AbstractFile:
    """A file with its name, its content, and its errors."""

    name: str
    path: str
    kernel: AbstractKernel

    def error(self, key: str, problem: str) -> InputFileError:
        """An error at a dotted key."""
        return InputFileError(f"{self.path}: {key}: {problem}")


# Errors in an abstract kernel file, in TOML's terms.

_WORDS = {"float": "number", "str": "text", "object": "table", "array": "list", "bool": "true or false", "null": ""}


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean X?` if a known name is similar, else the known names."""
    names = list(known)
    nearest = difflib.get_close_matches(word, names, n=1)
    return f"; did you mean {nearest[0]}?" if nearest else f"; known: {', '.join(names) or 'none'}"


def in_words(problem: str, key: str, keys: Callable[[str], list[str]]) -> str:
    """msgspec's error for the table at `key`, as `key: expected …`; `keys` gives the keys that a table may hold."""
    text, _, place = problem.partition(" - at `")
    inner = re.sub(r"^\$|\[\.\.\.\]", "", place.rstrip("`"))
    at = f"{key}{inner}".lstrip(".") or "the file"
    if unknown := re.match(r"Object contains unknown field `(.*)`", text):
        return f"{at}: unknown key {unknown[1]!r}{did_you_mean(unknown[1], keys(at))}"
    if missing := re.match(r"Object missing required field `(.*)`", text):
        return f"{at}: expected the key {missing[1]!r}"
    for word, said in _WORDS.items():
        text = re.sub(rf"\b{word}\b", said, text)
    text = text.replace("number | ", "").replace(" | `", "`").replace("int", "number").replace(" | ", " or ")
    return f"{at}: {text[0].lower()}{text[1:]}".replace("`", "")


OCCUPANCY = "occupancy"
"""The name that λ and Λ may use in addition to the settings."""


def check_abstract(file: AbstractFile) -> None:
    """Raise InputFileError for inconsistencies."""
    kernel = file.kernel
    if kernel.format != FORMAT:
        raise file.error("format", f"expected {FORMAT}, got {kernel.format}")
    for name in kernel.settings:
        if not name.isidentifier() or name == OCCUPANCY:
            raise file.error(f"settings.{name}", "expected a name of letters, digits and _, other than occupancy")
    _classes(file)
    _groups(file)
    for name, program in kernel.programs().items():
        known = dict(steps(program, program_key(name)))
        _ids(file, known)
        for key, step in known.items():
            if step.id:
                _step(file, key, step, [other.id for other in known.values() if other.id])
        _no_cycle(file, known)
        _order(file, known)


def program_key(graph: str) -> str:
    """The key of a graph's program; "" is the graph of a file that has only one."""
    return f"graphs.{graph}.program" if graph else "program"


def steps(program: Iterable[Step], key: str) -> Iterator[tuple[str, Step]]:
    """Every step with its key, in the order of the file; `then` stands before `else`."""
    for number, step in enumerate(program):
        here = f"{key}[{number}]"
        yield here, step
        for inner, name in ((step.body, "body"), (step.then, "then"), (step.else_, "else")):
            yield from steps(inner or (), f"{here}.{name}")


def _groups(file: AbstractFile) -> None:
    kernel = file.kernel
    if bool(kernel.program) == bool(kernel.graphs):
        raise file.error("program", "expected either program or [graphs.NAME]: at least one instruction")
    used = {name for group in kernel.groups for name in group.graphs}
    for number, group in enumerate(kernel.groups):
        for name in group.graphs:
            if name not in kernel.graphs:
                problem = f"unknown graph {name!r}{did_you_mean(name, kernel.graphs)}"
                raise file.error(f"groups[{number}].graphs", problem)
        expression(file, f"groups[{number}].weight", group.weight, {})
    if len(kernel.graphs) > 1 and not kernel.groups:
        raise file.error("groups", "missing; expected [[groups]], which say which warps run which graph")
    if unused := [name for name in kernel.graphs if kernel.groups and name not in used]:
        raise file.error(f"graphs.{unused[0]}", "no group uses it; expected its name in [[groups]]")


def _classes(file: AbstractFile) -> None:
    kernel = file.kernel
    for name, class_ in kernel.classes.items():
        key = f"classes.{name}"
        for setting in class_.when:
            if setting not in kernel.settings:
                problem = f"unknown setting {setting!r}{did_you_mean(setting, kernel.settings)}"
                raise file.error(f"{key}.when", problem)
        for at, costs in ((key, class_), *((f"{key}.when.{s}", c) for s, c in class_.when.items())):
            for field, value in (("lambda", costs.lambda_), ("latency", costs.latency)):
                _cycles(file, f"{at}.{field}", value)
        if class_.fallback:
            _cycles(file, f"{key}.fallback.lambda", class_.fallback.lambda_)
            _cycles(file, f"{key}.fallback.latency", class_.fallback.latency)
        whole = None not in (class_.subsystem, class_.lambda_, class_.latency)
        if class_.from_ is None and class_.fallback is None and not whole:
            raise file.error(key, "expected from (the GPU's class), or subsystem, lambda and latency")


def _cycles(file: AbstractFile, key: str, value: Cycles | None) -> None:
    if isinstance(value, Measured):
        if len(value.occupancy) != len(value.cycles):
            problem = f"expected as many cycles as occupancies, got {len(value.cycles)} and {len(value.occupancy)}"
            raise file.error(key, problem)
        if sorted(set(value.occupancy)) != value.occupancy:
            raise file.error(f"{key}.occupancy", "expected increasing numbers")
        if min(value.cycles) < 0:
            raise file.error(f"{key}.cycles", f"expected numbers of 0 or more, got {min(value.cycles):g}")
    elif isinstance(value, str):
        expression(file, key, value, {OCCUPANCY: 1})
    elif value is not None and value < 0:
        raise file.error(key, f"expected 0 or more cycles, got {value:g}")


def expression(file: AbstractFile, key: str, value: Amount, more: dict[str, int]) -> None:
    """Check an expression using the settings' defaults."""
    if isinstance(value, str):
        names = {name: setting.default for name, setting in file.kernel.settings.items()} | more
        try:
            evaluate(value, names)
        except ExpressionError as error:
            raise file.error(key, str(error)) from None


def _ids(file: AbstractFile, known: dict[str, Step]) -> None:
    seen: set[str] = set()
    for key, step in known.items():
        loop, branch = step.loop is not None or step.body is not None, step.branch is not None or step.then is not None
        if loop or branch:
            kind = "loop" if loop else "branch"
            if loop and (step.loop is None or not step.body):
                raise file.error(key, "a loop needs loop (its trip count) and body (a non-empty list of steps)")
            if branch and (step.branch is None or not step.then):
                raise file.error(key, "a branch needs branch (its probability) and then (a non-empty list of steps)")
            if step.id or step.class_ or step.needs or step.previous:
                raise file.error(key, f"a {kind} has no id, class, needs or previous: its instructions do")
            if loop and branch:
                raise file.error(key, "expected either a loop or a branch; a branch may stand in the loop's body")
            for name, value in (("loop", step.loop), ("branch", step.branch), ("both", step.both)):
                if value is not None:
                    expression(file, f"{key}.{name}", value, {})
        if not branch and (step.both or step.else_):
            raise file.error(key, "both and else belong to a branch; expected branch (its probability) and then")
        if loop or branch:
            continue
        if not step.id or not step.class_:
            raise file.error(key, "expected id and class, or loop and body, or branch and then")
        if step.id in seen:
            raise file.error(f"{key}.id", f"{step.id!r} is used twice; expected a unique name")
        seen.add(step.id)


def _step(file: AbstractFile, key: str, step: Step, ids: list[str]) -> None:
    classes = file.kernel.classes
    if step.class_ not in classes:
        raise file.error(f"{key}.class", f"unknown class {step.class_!r}{did_you_mean(step.class_ or '', classes)}")
    if classes[step.class_].kind == "barrier" and re.search(r"\.(then|else)\[", key):
        raise file.error(f"{key}.class", "a barrier in a branch; expected barriers that all warps reach")
    for field, names in (("needs", step.needs), ("previous", step.previous)):
        for name in names:
            if name not in ids:
                raise file.error(f"{key}.{field}", f"unknown instruction {name!r}{did_you_mean(name, ids)}")
    if step.previous and ".body[" not in key:
        raise file.error(f"{key}.previous", "only an instruction in a loop has a previous iteration")
    expression(file, f"{key}.copies", step.copies, {})
    if step.stall is not None:
        expression(file, f"{key}.stall", step.stall, {})


def _no_cycle(file: AbstractFile, known: dict[str, Step]) -> None:
    by_id = {step.id: (key, step) for key, step in known.items() if step.id}
    done: set[str] = set()
    for start in by_id:
        trail: list[str] = []
        stack: list[tuple[str, Iterator[str]]] = [(start or "", iter([start or ""]))]
        while stack:
            name = next(stack[-1][1], None)
            if name is None:
                stack.pop()
                if trail:
                    done.add(trail.pop())
                continue
            if name in trail:
                ring = " needs ".join([*trail[trail.index(name) :], name])
                problem = f"dependence cycle: {ring}; expected none (use previous across iterations)"
                raise file.error(f"{by_id[name][0]}.needs", problem)
            if name not in done:
                trail.append(name)
                stack.append((name, iter(by_id[name][1].needs)))


def _order(file: AbstractFile, known: dict[str, Step]) -> None:
    before: set[str] = set()
    for key, step in known.items():
        for name in step.needs:
            if name not in before:
                raise file.error(f"{key}.needs", f"{name!r} comes later; expected instructions in program order")
        if step.id:
            before.add(step.id)


# Reading a file.


def read_abstract(path: Path, name: str | None = None) -> AbstractFile:
    """Read and check a file. Raises InputFileError naming file, key and what was expected."""
    content = read_toml(path, "an abstract kernel")
    for section, kind in (("settings", Setting), ("classes", AbstractClass), ("graphs", Graph)):
        tables = content.get(section)
        for key, table in tables.items() if isinstance(tables, dict) else ():
            _convert(table, kind, path, f"{section}.{key}")  # the whole file's error would not name the table
    kernel = _convert(content, AbstractKernel, path, "")
    file = AbstractFile(name or str(path), str(path), kernel)
    check_abstract(file)
    return file


_T = TypeVar("_T", bound=Table)
_KINDS: dict[str, tuple[type[Table], ...]] = {
    "settings": (Setting,),
    "classes": (AbstractClass, Own, Measured),
    "program": (Step,),
    "graphs": (Graph, Step),
    "groups": (Group,),
    "launch": (Launch,),
}
"""Keys that the tables of a section may hold."""


def _convert(value: object, kind: type[_T], path: Path, key: str) -> _T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InputFileError(f"{path}: {in_words(str(error), key, _keys)}") from None


def _keys(at: str) -> list[str]:
    """Keys that the table at a dotted key may hold."""
    kinds = _KINDS.get(re.split(r"[.\[]", at)[0], (AbstractKernel,))
    return sorted({field.encode_name for kind in kinds for field in msgspec.structs.fields(kind)})
