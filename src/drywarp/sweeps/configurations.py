"""The configurations of a space, in canonical order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count

from ..errors import InputFileError
from ..frontends.abstract_expression import ExpressionError, evaluate, names_in
from ..hardware import Gpu
from ..rows.cells import Row, as_value
from .space import GPU, Cell, Space, text_of

MOST_ROWS = 1_000_000
"""Configurations of one sweep."""


@dataclass(frozen=True)
class Configuration(Row):
    """One configuration on one GPU; `number` counts the rows of the space in canonical order, `cells` are texts."""

    gpu: str
    parameters: Mapping[str, Cell]

    @property
    def key(self) -> tuple[str, ...]:
        """What tells it apart from all others, whatever else the space holds."""
        return (self.gpu, *(self.cells[name] for name in self.parameters))


def configurations(space: Space, gpus: Mapping[str, Gpu], origin: str) -> list[Configuration]:
    """All configurations: GPU by GPU, and of the parameters the last one fastest.

    Raises InputFileError where a restriction has no value, none is left, or there are too many.
    """
    found: list[Configuration] = []
    numbers = count(1)
    for gpu in gpus:
        for chosen in _of(space, gpu, origin):
            number = next(numbers)
            said = " ".join(f"{name}={text_of(value)}" for name, value in chosen.items())
            cells = {name: text_of(value) for name, value in chosen.items()}
            found.append(Configuration(number, f"{origin}: {gpu} {said}", cells, gpu, chosen))
            if number > MOST_ROWS:
                raise InputFileError(f"{origin}: more than {MOST_ROWS} configurations (expected more restrictions)")
    if not found:
        raise InputFileError(f"{origin}: no configuration fulfils the restrictions")
    return found


def _of(space: Space, gpu: str, origin: str) -> Iterator[dict[str, Cell]]:
    names = space.names()
    place = {name: at for at, name in enumerate(names)}
    # Each restriction is asked as soon as all that it reads is chosen, so that whole branches fall away early.
    due: dict[int, list[str]] = {}
    for text in space.restrictions:
        due.setdefault(max((place[name] for name in names_in(text) if name in place), default=0), []).append(text)
    if space.configurations:
        for configuration in space.configurations:
            chosen = {name: configuration[name] for name in names}
            if all(_holds(text, chosen, gpu, origin) for texts in due.values() for text in texts):
                yield chosen
        return
    values = list(space.parameters.values())

    def choose(at: int, chosen: dict[str, Cell]) -> Iterator[dict[str, Cell]]:
        if at == len(names):
            yield dict(chosen)
            return
        for value in values[at]:
            chosen[names[at]] = value
            if all(_holds(text, chosen, gpu, origin) for text in due.get(at, ())):
                yield from choose(at + 1, chosen)
        del chosen[names[at]]

    yield from choose(0, {})


def _holds(text: str, chosen: Mapping[str, Cell], gpu: str, origin: str) -> bool:
    try:
        return bool(evaluate(text, {GPU: gpu, **{name: as_value(text_of(value)) for name, value in chosen.items()}}))
    except ExpressionError as error:
        said = " ".join(f"{name}={text_of(value)}" for name, value in chosen.items())
        raise InputFileError(f"{origin}: restrictions: {text!r} at {said}: {error}") from None
