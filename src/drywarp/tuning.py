"""Of the configurations that a kernel's author lists, the one that is predicted to be the fastest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from .errors import DrywarpError, UsageError
from .ready import BoundKernel

BEST = "best"


def config_number(given: int | str | None, said: str | None) -> int | str | None:
    """What was asked for: a number, ``best``, or None; `said` is the launch comment's. Raises UsageError."""
    value = said if given is None else given
    if value is None or value == BEST or isinstance(value, int):
        return value
    if value.isdecimal():
        return int(value)
    raise UsageError(f"--config {value!r}: expected a number, or best")


def best(
    configs: Sequence[str], bind: Callable[[int], BoundKernel], time_of: Callable[[BoundKernel], float]
) -> BoundKernel:
    """Bind every configuration and keep the fastest; those that cannot run are passed over, as in tuning.

    The kept one's notes list all times. Raises the first error where none can run.
    """
    found: dict[int, tuple[float, BoundKernel]] = {}
    failed: dict[int, DrywarpError] = {}
    for number in range(len(configs)):
        try:
            ready = bind(number)
            found[number] = (time_of(ready), ready)
        except DrywarpError as error:
            failed[number] = error
    if not found:
        raise failed[0] if failed else UsageError("--config best: the kernel has no configurations to choose from")
    chosen = min(found, key=lambda number: found[number][0])
    times = ", ".join(
        f"{number}: {found[number][0] * 1e6:.4g} µs" for number in sorted(found, key=lambda n: found[n][0])
    )
    notes = [f"configuration {chosen} is the fastest predicted: {configs[chosen]} ({times})"]
    notes += [f"configuration {number} cannot run: {error}" for number, error in failed.items()]
    return replace(found[chosen][1], notes=tuple(notes))
