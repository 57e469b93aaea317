"""The configurations of a space, in canonical order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from ...errors import InputFileError, UsageError
from ...hardware import Gpu
from ...support.expressions import ExpressionError, evaluate, names_in
from ..rows import BAND, BENEFITS, FACTS, SPENT
from ..rows.recipe import Row, as_value
from ..rows.row_file import Cells, Form, text_of
from .space import GPU, Cell, Space

MOST_ROWS = 1_000_000
"""Most configurations of one sweep."""


@dataclass(frozen=True)
class Configuration(Row):
    """One configuration on one GPU; `number` counts the rows of the space in canonical order, `cells` are texts."""

    gpu: str
    parameters: Mapping[str, Cell]

    @property
    def key(self) -> tuple[str, ...]:
        """Identifies the configuration, whatever else the space holds."""
        return (self.gpu, *(self.cells[name] for name in self.parameters))


def configurations(space: Space, gpus: Mapping[str, Gpu], origin: str) -> list[Configuration]:
    """All configurations: by GPU, with the last parameter varying fastest.

    Raises InputFileError if a restriction cannot be evaluated, no configuration is left, or there are too many.
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
        raise InputFileError(f"{origin}: no configuration satisfies the restrictions")
    return found


def _of(space: Space, gpu: str, origin: str) -> Iterator[dict[str, Cell]]:
    names = space.names()
    place = {name: at for at, name in enumerate(names)}
    # Each restriction is checked as soon as all its parameters are chosen, to prune whole branches early.
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


# One predicted configuration, and its flat form in files.

OK, FAILED = "ok", "failed"
KEPT = tuple(name for name in FACTS if name not in (*SPENT, *BAND, "register_cap"))
_HEAD = ("row", "gpu", "settings", "status", "reason")
_PRIMARY = ("time_s", "limiter")
_OWN = "space."
"""Prefix of a parameter with the same name as one of our columns."""


@dataclass(frozen=True)
class SweepRow:
    """One configuration on one GPU, predicted.

    `number` is its place in the canonical order of the space, from 1. `settings` identifies everything a prediction
    depends on besides the configuration. `time_s` (seconds) and `limiter` are the primary model's, None and empty for a
    failed row, whose `reason` explains why; `times` and `limiters` are those of all models. `facts` are registers,
    occupancy and the like (docs/sweep.md), and, if requested, the ends of the band and GPUPerf's benefits. `wall_s` is
    drywarp's wall time.
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
        """Identifies the row's configuration."""
        return (self.gpu, *(text_of(value) for value in self.parameters.values()))


def form_of(parameters: Sequence[str], models: Sequence[str], band: bool, benefits: bool = False) -> Form[SweepRow]:
    """The file format of rows with these parameters and models; the first model is the primary one."""
    facts = (*KEPT, *(BAND if band else ()), *(BENEFITS if benefits else ()))
    others = [model + ending for model in models[1:] for ending in ("_s", "_limiter")]
    ours = {*_HEAD, *_PRIMARY, *facts, *others}
    own = [_OWN + name if name in ours else name for name in parameters]
    columns = (*_HEAD, *own, *_PRIMARY, *facts, *others)

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

        text, number = Cells(found, place).text, Cells(found, place).number
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


# The rows of one GPU and problem as other tuners' files: Kernel Tuner's cache, and auto-tuning results in T4.

TUNERS = ("kernel-tuner", "t4")
_MS = 1e3
_NOT_RUN = "RuntimeFailedConfig"
"""What Kernel Tuner writes for a configuration that did not run; ours may have failed earlier."""


Selected = TypeVar("Selected", SweepRow, Configuration)


def single(rows: Sequence[Selected], problem: Sequence[str]) -> Sequence[Selected]:
    """The rows. Raises UsageError if they are of several GPUs or problems: such a file holds one of each."""
    if len(gpus := list(dict.fromkeys(row.gpu for row in rows))) > 1:
        raise UsageError(f"tuners' files hold one GPU, the sweep has {', '.join(gpus)} (expected --gpu {gpus[0]})")
    for name in problem:
        if len(values := list(dict.fromkeys(text_of(row.parameters[name]) for row in rows))) > 1:
            raise UsageError(f"tuners' files hold one problem, {name} is {', '.join(values)} (expected one value)")
    return rows


def tuner_files(
    rows: Sequence[SweepRow], kernel: str, problem: Sequence[str], form: str, versions: Mapping[str, str]
) -> dict[str, str]:
    """The text of each file by what its name ends in; `form` is one of `TUNERS`, `problem` parameters are no choices.

    Times are predictions in ms, one per configuration; a cache names the device accordingly.
    """
    names = [name for name in rows[0].parameters if name not in problem]
    if form == "t4":
        requirements = [f"{tool}=={version}" for tool, version in versions.items()]
        device = {"device_query": {"drywarp": {"gpu": rows[0].gpu, "predicted": True}}, "requirements": requirements}
        metadata = {"hardware": {"hardware_description": []}, "environment": device}
        results = {
            "results": [_t4_result(row, names) for row in rows],
            "schema_version": "1.0.0",
            "metadata": {"timeunit": "milliseconds"},
        }
        about = {"metadata": metadata, "schema_version": "1.0.0"}
        return {".json": json.dumps(results, indent=1) + "\n", "-metadata.json": json.dumps(about, indent=1) + "\n"}
    head = {
        "schema_version": "1.0.0",
        "device_name": f"{rows[0].gpu} (predicted by drywarp)",
        "kernel_name": kernel,
        "problem_size": [rows[0].parameters[name] for name in problem] or [1],
        "tune_params_keys": names,
        "tune_params": {name: list(dict.fromkeys(row.parameters[name] for row in rows)) for name in names},
        "objective": "time",
        "cache": {},
    }
    entries = (
        json.dumps({",".join(str(row.parameters[name]) for name in names): _cached(row, names)})[1:-1] for row in rows
    )
    # Kernel Tuner takes a file for finished only if it ends like this, to the character.
    return {".json": json.dumps(head, indent="")[: -len("}\n}")] + "\n" + ",\n".join(entries) + "}\n}"}


def _cached(row: SweepRow, names: Sequence[str]) -> dict[str, Any]:
    spent = dict.fromkeys(("compile_time", "verification_time", "strategy_time", "framework_time"), 0.0)
    said: dict[str, Any] = {"time": _NOT_RUN, "times": [], "__error__": _NOT_RUN}
    if row.time_s is not None:
        said = {"time": _MS * row.time_s, "times": [_MS * row.time_s]}
    own = {name: row.parameters[name] for name in names}
    return {**own, **said, **spent, "benchmark_time": _MS * row.wall_s}


def _t4_result(row: SweepRow, names: Sequence[str]) -> dict[str, Any]:
    time = [] if row.time_s is None else [_MS * row.time_s]
    spent = dict.fromkeys(("compilation", "framework", "search_algorithm", "validation"), 0.0)
    return {
        "configuration": {name: row.parameters[name] for name in names},
        "times": {**spent, "benchmark": _MS * row.wall_s, "runtimes": time},
        "invalidity": "correct" if time else "runtime",
        "correctness": 1 if time else 0,
        "measurements": [{"name": "time", "value": value, "unit": "ms"} for value in time],
        "objectives": ["time"],
    }
