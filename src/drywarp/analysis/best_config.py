"""The configuration, among those that a kernel's author lists, that is predicted to be fastest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ..errors import DrywarpError, UsageError
from ..support.text import some_text

BEST = "best"


def config_number(given: int | str | None, said: str | None) -> int | str | None:
    """The requested configuration: a number, ``best``, ``best:N``, or None; `said` is the launch comment's.

    Raises UsageError for anything else.
    """
    value = said if given is None else given
    if value is None or value == BEST or isinstance(value, int):
        return value
    if value.isdecimal():
        return int(value)
    most_configs(value)
    return value


def most_configs(value: str) -> int | None:
    """How many configurations ``best:N`` predicts; None for ``best``, which predicts all. Raises UsageError."""
    word, colon, most = value.partition(":")
    if word != BEST or (colon and not (most.isdecimal() and int(most) > 0)):
        raise UsageError(f"--config {value!r}: expected a number, best, or best:N for N configurations evenly spaced")
    return int(most) if colon else None


def _staged(on_stage: Callable[[str], None], configuration: str, stage: str) -> None:
    on_stage(f"{configuration}: {stage}")


def best(
    configs: Sequence[str],
    time_of: Callable[[int, Callable[[str], None]], float],
    most: int | None = None,
    on_stage: Callable[[str], None] = lambda stage: None,
) -> tuple[int, tuple[str, ...]]:
    """The number of the fastest configuration, and notes that list the shortest times.

    Configurations that cannot run are skipped, as in tuning. `most` configurations are predicted, evenly spaced, the
    next one instead of one that cannot run; None: all. `time_of` takes a configuration's number, and a function to call
    with the name of each stage. Raises the first error if none can run.
    """
    found: dict[int, float] = {}
    failed: dict[int, DrywarpError] = {}
    parts = len(configs) if most is None else min(most, len(configs))
    for part in range(parts):
        say = partial(_staged, on_stage, f"configuration {part + 1} of {parts}")
        say("compiling")
        for number in range(part * len(configs) // parts, (part + 1) * len(configs) // parts):
            try:
                found[number] = time_of(number, say)
                break
            except DrywarpError as error:
                failed[number] = error
    if not found:
        first = next(iter(failed.values()), None)
        raise first or UsageError("--config best: the kernel has no configurations to choose from")
    order = sorted(found, key=lambda number: found[number])
    times = some_text([f"{number}: {found[number] * 1e6:.4g} µs" for number in order])
    among = "" if parts == len(configs) else f" of the {len(found)} that were predicted"
    notes = [f"configuration {order[0]} is predicted to be fastest{among}: {configs[order[0]]} ({times})"]
    if unknown := len(configs) - len(found) - len(failed):
        notes.append(
            f"{unknown} of {len(configs)} configurations were not predicted and may be faster"
            f" (--config best:{most}; --config best predicts all)"
        )
    notes += [f"configuration {number} cannot run: {error}" for number, error in failed.items()]
    return order[0], tuple(notes)
