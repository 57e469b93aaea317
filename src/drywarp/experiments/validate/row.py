"""A predicted row of a table, and its flat form in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...errors import InputFileError
from ..rows import BAND, FACTS
from ..rows.recipe import as_value
from ..rows.row_file import Cells

OK, FAILED = "ok", "failed"
_HEAD = ("row", "gpu", "settings", "status", "reason", "measured_s", "wall_s")
_TIME, _LIMITER = "_s", "_limiter"
_OWN = "table."
"""Prefix of a table column with the same name as one of ours."""


@dataclass(frozen=True)
class RowResult:
    """One row of a table, predicted.

    `settings` identifies everything predictions depend on besides the row. `times` maps each model to seconds,
    `limiters` to the limiter, or to `NOT_APPLICABLE` and the reason; both are empty for a failed row, whose `reason`
    explains why. `wall_s` is the row's wall time.
    """

    row: int
    gpu: str
    settings: str
    measured_s: float
    parameters: Mapping[str, str]
    status: str = OK
    reason: str = ""
    facts: Mapping[str, float | str] = field(default_factory=dict)
    times: Mapping[str, float] = field(default_factory=dict)
    limiters: Mapping[str, str] = field(default_factory=dict)
    wall_s: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the row was predicted."""
        return self.status == OK


def columns_of(parameters: Sequence[str], models: Sequence[str]) -> tuple[str, ...]:
    """The columns of the flat form."""
    ours = [*_HEAD, *FACTS, *(model + ending for model in models for ending in (_TIME, _LIMITER))]
    return (*_HEAD, *(_OWN + name if name in ours else name for name in parameters), *ours[len(_HEAD) :])


def flat(result: RowResult, parameters: Sequence[str], models: Sequence[str]) -> dict[str, str | float | int | None]:
    """The row's values under the names of `columns_of`, in order; None if missing."""
    head = [getattr(result, name) for name in _HEAD]
    own = [as_value(result.parameters.get(name, "")) for name in parameters]
    facts = [result.facts.get(name) for name in FACTS]
    said = [value for m in models for value in (result.times.get(m), result.limiters.get(m))]
    values = [*head, *own, *facts, *said]
    names = columns_of(parameters, models)
    return {name: None if value == "" else value for name, value in zip(names, values, strict=True)}


def layout(columns: Sequence[str], origin: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Parameters and models of a file with these columns. Raises InputFileError for any other file."""
    missing = [name for name in (*_HEAD, *FACTS) if name not in columns and name not in BAND]
    if missing:
        raise InputFileError(f"{origin}: no column {missing[0]!r} (expected rows that drywarp validate wrote)")
    models = tuple(
        name.removesuffix(_LIMITER)
        for name in columns
        if name.endswith(_LIMITER) and name.removesuffix(_LIMITER) + _TIME in columns
    )
    ours = {*_HEAD, *FACTS, *(model + ending for model in models for ending in (_TIME, _LIMITER))}
    return tuple(name.removeprefix(_OWN) for name in columns if name not in ours), models


def from_flat(cells: Mapping[str, object], columns: Sequence[str], place: str) -> RowResult:
    """The row that `flat` wrote; cells may be texts. Raises InputFileError with place and column."""
    parameters, models = layout(columns, place)

    text, number = Cells(cells, place).text, Cells(cells, place).number
    facts = {name: as_value(text(name)) for name in FACTS if text(name)}
    return RowResult(
        row=int(number("row")),
        gpu=text("gpu"),
        settings=text("settings"),
        measured_s=number("measured_s"),
        parameters={name: text(_OWN + name if _OWN + name in columns else name) for name in parameters},
        status=text("status"),
        reason=text("reason"),
        facts=facts,
        times={m: number(m + _TIME) for m in models if text(m + _TIME)},
        limiters={m: text(m + _LIMITER) for m in models if text(m + _LIMITER)},
        wall_s=number("wall_s") if text("wall_s") else 0.0,
    )
