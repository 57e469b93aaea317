"""What must hold in an abstract kernel file beyond each key's own type: names, dependences, expressions."""

from __future__ import annotations

from collections.abc import Iterator

from .abstract import FORMAT, AbstractFile, Amount, Cycles, Measured, Step
from .abstract_expression import ExpressionError, evaluate
from .abstract_words import did_you_mean

OCCUPANCY = "occupancy"
"""The name that λ and Λ may use besides the settings."""


def check_abstract(file: AbstractFile) -> None:
    """Raise InputFileError for what contradicts itself."""
    kernel = file.kernel
    if kernel.format != FORMAT:
        raise file.error("format", f"expected {FORMAT}, got {kernel.format}")
    for name in kernel.settings:
        if not name.isidentifier() or name == OCCUPANCY:
            raise file.error(f"settings.{name}", "expected a name of letters, digits and _, other than occupancy")
    _classes(file)
    _ids(file)
    known = dict(steps(kernel.program))
    for key, step in known.items():
        if step.loop is None:
            _step(file, key, step)
    _no_cycle(file, known)
    _order(file, known)


def steps(program: list[Step], key: str = "program") -> Iterator[tuple[str, Step]]:
    """Every step with its key, in the order of the file."""
    for number, step in enumerate(program):
        here = f"{key}[{number}]"
        yield here, step
        if step.body:
            yield from steps(step.body, f"{here}.body")


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
            raise file.error(f"{key}.occupancy", "expected rising numbers")
        if min(value.cycles) < 0:
            raise file.error(f"{key}.cycles", f"expected numbers of 0 or more, got {min(value.cycles):g}")
    elif isinstance(value, str):
        expression(file, key, value, {OCCUPANCY: 1})
    elif value is not None and value < 0:
        raise file.error(key, f"expected 0 or more cycles, got {value:g}")


def expression(file: AbstractFile, key: str, value: Amount, more: dict[str, int]) -> None:
    """Check an expression with the settings' defaults."""
    if isinstance(value, str):
        names = {name: setting.default for name, setting in file.kernel.settings.items()} | more
        try:
            evaluate(value, names)
        except ExpressionError as error:
            raise file.error(key, str(error)) from None


def _ids(file: AbstractFile) -> None:
    seen: set[str] = set()
    for key, step in steps(file.kernel.program):
        if step.loop is not None or step.body is not None:
            if step.loop is None or not step.body:
                raise file.error(key, "a loop needs loop (its turns) and body (a list of steps, not empty)")
            if step.id or step.class_ or step.needs or step.previous:
                raise file.error(key, "a loop has no id, class, needs or previous: its instructions do")
            expression(file, f"{key}.loop", step.loop, {})
            continue
        if not step.id or not step.class_:
            raise file.error(key, "expected id and class, or loop and body")
        if step.id in seen:
            raise file.error(f"{key}.id", f"{step.id!r} stands twice; expected a new name")
        seen.add(step.id)


def _step(file: AbstractFile, key: str, step: Step) -> None:
    classes = file.kernel.classes
    if step.class_ not in classes:
        raise file.error(f"{key}.class", f"unknown class {step.class_!r}{did_you_mean(step.class_ or '', classes)}")
    ids = [other.id for _, other in steps(file.kernel.program) if other.id]
    for field, names in (("needs", step.needs), ("previous", step.previous)):
        for name in names:
            if name not in ids:
                raise file.error(f"{key}.{field}", f"unknown instruction {name!r}{did_you_mean(name, ids)}")
    if step.previous and ".body[" not in key:
        raise file.error(f"{key}.previous", "only an instruction in a loop has a turn before")
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
                raise file.error(f"{by_id[name][0]}.needs", f"a cycle: {ring}; expected none (previous is for loops)")
            if name not in done:
                trail.append(name)
                stack.append((name, iter(by_id[name][1].needs)))


def _order(file: AbstractFile, known: dict[str, Step]) -> None:
    before: set[str] = set()
    for key, step in known.items():
        for name in step.needs:
            if name not in before:
                raise file.error(f"{key}.needs", f"{name!r} stands later; expected instructions in program order")
        if step.id:
            before.add(step.id)
