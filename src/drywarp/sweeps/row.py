"""One predicted configuration, and its flat form in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import InputFileError
from ..rows.cells import as_value
from ..rows.facts import BAND, FACTS, SPENT
from ..rows.row_file import Form
from .space import Cell, text_of

OK, FAILED = "ok", "failed"
KEPT = tuple(name for name in FACTS if name not in (*SPENT, *BAND, "register_cap"))
_HEAD = ("row", "gpu", "settings", "status", "reason")
_BELIEVED = ("time_s", "limiter")
_OWN = "space."
"""Before a parameter that is named as a column of ours."""


@dataclass(frozen=True)
class SweepRow:
    """One configuration on one GPU, predicted.

    `number` is its place in the canonical order of the space, from 1. `settings` identifies all that a prediction
    depends on besides the configuration. `time_s` (seconds) and `limiter` are the believed model's, None and empty for
    a row that failed, of which `reason` says why; `times` and `limiters` are those of all models. `facts` are
    registers, occupancy and the like (docs/sweep.md), and with a band its ends. `wall_s` is what drywarp took.
    """

    number: int
    gpu: str
    parameters: Mapping[str, Cell]
    settings: str = ""
    status: str = OK
    reason: str = ""
    time_s: float | None = None
    limiter: str = ""
    facts: Mapping[str, float | str] = field(default_factory=dict)
    times: Mapping[str, float] = field(default_factory=dict)
    limiters: Mapping[str, str] = field(default_factory=dict)
    wall_s: float = field(default=0.0, compare=False)

    @property
    def ok(self) -> bool:
        """Whether the configuration was predicted."""
        return self.status == OK

    @property
    def key(self) -> tuple[str, ...]:
        """What tells its configuration apart from all others."""
        return (self.gpu, *(text_of(value) for value in self.parameters.values()))


def form_of(parameters: Sequence[str], models: Sequence[str], band: bool) -> Form[SweepRow]:
    """How rows with these parameters and models stand in a file; the first model is the believed one."""
    facts = (*KEPT, *(BAND if band else ()))
    others = [model + ending for model in models[1:] for ending in ("_s", "_limiter")]
    ours = {*_HEAD, *_BELIEVED, *facts, *others}
    own = [_OWN + name if name in ours else name for name in parameters]
    columns = (*_HEAD, *own, *_BELIEVED, *facts, *others)

    def cells(row: SweepRow) -> dict[str, Any]:
        head = [row.number, row.gpu, row.settings, row.status, row.reason]
        said = [value for model in models[1:] for value in (row.times.get(model), row.limiters.get(model))]
        values = [*head, *(row.parameters[name] for name in parameters), row.time_s, row.limiter]
        values += [*(row.facts.get(name) for name in facts), *said]
        plain = (text_of(value) if isinstance(value, bool) else value for value in values)
        return {name: None if value == "" else value for name, value in zip(columns, plain, strict=True)}

    def read(found: Mapping[str, Any], there: Sequence[str], place: str) -> SweepRow:
        if missing := [name for name in columns if name not in there]:
            raise InputFileError(f"{place}: no column {missing[0]!r} (expected rows of this space)")

        def text(name: str) -> str:
            value = found.get(name)
            return "" if value is None else text_of(value)

        def number(name: str) -> float:
            try:
                return float(text(name))
            except ValueError:
                raise InputFileError(f"{place}: {name} is {text(name)!r}, expected a number") from None

        times = {model: number(f"{model}_s") for model in models[1:] if text(f"{model}_s")}
        limiters = {model: text(f"{model}_limiter") for model in models[1:] if text(f"{model}_limiter")}
        if text("time_s"):
            times[models[0]], limiters[models[0]] = number("time_s"), text("limiter")
        return SweepRow(
            number=int(number("row")),
            gpu=text("gpu"),
            parameters={name: text(column) for name, column in zip(parameters, own, strict=True)},
            settings=text("settings"),
            status=text("status"),
            reason=text("reason"),
            time_s=times.get(models[0]),
            limiter=text("limiter"),
            facts={name: as_value(text(name)) for name in facts if text(name)},
            times=times,
            limiters=limiters,
        )

    return Form("sweep", columns, cells, read, lambda row: row.key, tuple(own))
