"""The settings of an abstract kernel, and the numbers that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import InputFileError, UsageError
from ..frontends.abstract import AbstractFile, Amount, Cycles, Measured
from ..frontends.abstract_check import OCCUPANCY
from ..frontends.abstract_expression import ExpressionError, Number, evaluate
from ..frontends.abstract_words import did_you_mean


def settings_of(file: AbstractFile, given: Mapping[str, float | str]) -> dict[str, Number]:
    """Every setting's value. Raises UsageError for an unknown name or a value out of its range."""
    declared = file.kernel.settings
    values: dict[str, Number] = {name: setting.default for name, setting in declared.items()}
    for name, value in given.items():
        if name not in declared:
            raise UsageError(f"--set {name}: {file.name} has no such setting{did_you_mean(name, declared)}")
        values[name] = number = _number(name, value)
        least, most = declared[name].least, declared[name].most
        if (least is not None and number < least) or (most is not None and number > most):
            bounds = " and ".join(
                f"{word} {bound:g}" for word, bound in (("at least", least), ("at most", most)) if bound is not None
            )
            raise UsageError(f"--set {name}={number:g}: expected {bounds}")
    return values


def _number(name: str, value: float | str) -> Number:
    try:
        number = float(value)
    except ValueError:
        raise UsageError(f"--set {name}={value}: expected a number") from None
    if abs(number) > 1e15 or number != number:
        raise UsageError(f"--set {name}={value}: expected a number within ±1e15")
    return int(number) if number.is_integer() else number


@dataclass(frozen=True)
class Settings:
    """The settings' values with the file that declares them."""

    file: AbstractFile
    values: Mapping[str, Number]

    def number(self, key: str, value: Amount, more: Mapping[str, Number] | None = None) -> Number:
        """The value of a number or expression."""
        if not isinstance(value, str):
            return value
        try:
            return evaluate(value, {**self.values, **(more or {})})
        except ExpressionError as error:
            raise self._error(key, str(error)) from None

    def whole(self, key: str, value: Amount, least: int = 0) -> int:
        """A whole number of at least `least`."""
        number = self.number(key, value)
        if number != int(number) or number < least:
            said = f"{value!r} = {number:g}" if isinstance(value, str) else f"{number:g}"
            raise self._error(key, f"expected a whole number of at least {least}, got {said}")
        return int(number)

    def cycles(self, key: str, value: Cycles, occupancy: int) -> float:
        """λ or Λ at an occupancy."""
        if isinstance(value, Measured):
            return _between(value, occupancy)
        number = float(self.number(key, value, {OCCUPANCY: occupancy}))
        if number < 0:
            raise self._error(key, f"expected 0 or more cycles, got {value!r} = {number:g}")
        return number

    def _error(self, key: str, problem: str) -> InputFileError:
        return self.file.error(key, problem)


def _between(table: Measured, occupancy: int) -> float:
    at, cycles = table.occupancy, table.cycles
    if occupancy <= at[0]:
        return cycles[0]
    for place in range(1, len(at)):
        if occupancy < at[place]:
            if table.steps:
                return cycles[place - 1]
            part = (occupancy - at[place - 1]) / (at[place] - at[place - 1])
            return cycles[place - 1] + part * (cycles[place] - cycles[place - 1])
    return cycles[-1]
