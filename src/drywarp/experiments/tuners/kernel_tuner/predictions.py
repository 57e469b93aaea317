"""Predicted times of a space's configurations, from any source."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ....errors import InputFileError, UsageError
from ...rows.row_file import Form, read_file
from ...validate.read import read_header, read_table
from .space import TuningSpace, tuning_space

Key = tuple[str, ...]
"""A configuration: its values as texts, in parameter order."""


def key_text(value: Any) -> str:
    """A parameter's value as text, independent of its type: 32, 32.0 and "32" are equal, as are 1 and True."""
    if isinstance(value, bool):
        return str(int(value))
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return str(int(number)) if number.is_integer() else repr(number)


@dataclass(frozen=True)
class Predictions:
    """Predicted seconds of each configuration, and why others could not be predicted."""

    names: tuple[str, ...]
    times: Mapping[Key, float]
    failed: Mapping[Key, str] = field(default_factory=dict)

    def key(self, configuration: Mapping[str, Any] | Sequence[Any], names: Sequence[str] | None = None) -> Key:
        """The key of a configuration: a mapping, or values in the order of `names` (None: of the parameters)."""
        values = configuration
        if not isinstance(values, Mapping):
            values = dict(zip(names or self.names, values, strict=True))
        return tuple(key_text(values[name]) if name in values else "" for name in self.names)

    def ordered(self, configurations: Iterable[Sequence[Any]], names: Sequence[str], seed: Any = None) -> list[Any]:
        """Configurations with a prediction, fastest first; ties in an order determined by `seed`."""
        listed = [c for c in configurations if self.key(c, names) in self.times]
        random.Random(seed).shuffle(listed)
        return sorted(listed, key=lambda c: self.times[self.key(c, names)])

    def over(self, names: Sequence[str]) -> Predictions:
        """The predictions by the parameters `names` only. Raises UsageError if they differ in other parameters."""
        kept = [place for place, name in enumerate(self.names) if name in names]
        keys = {key: tuple(key[place] for place in kept) for key in (*self.times, *self.failed)}
        if len(set(keys.values())) < len(keys):
            others = ", ".join(name for name in self.names if name not in names) or "none"
            raise UsageError(f"the predictions differ in parameters that the space does not have ({others})")
        return Predictions(
            tuple(self.names[place] for place in kept),
            {keys[key]: time for key, time in self.times.items()},
            {keys[key]: reason for key, reason in self.failed.items()},
        )

    @classmethod
    def read(cls, rows: str | Path, *, model: str | None = None, gpu: str | None = None) -> Predictions:
        """Read predictions written by `drywarp sweep` or `drywarp validate`; `gpu` is needed if they are for several.

        `model` None is the primary one. Raises InputFileError or UsageError for a file without predictions.
        """
        path = Path(rows)
        columns, held = read_file(path, _AS_IT_STANDS)
        names, time = _layout(columns, model, str(path))
        gpus = sorted({str(row["gpu"]) for row in held})
        if gpu is None and len(gpus) > 1:
            raise UsageError(f"{path}: holds predictions for {', '.join(gpus)} (expected gpu= with one of them)")
        if gpu is not None and gpu not in gpus:
            raise UsageError(f"{path}: holds no predictions for {gpu!r}; it holds: {', '.join(gpus)}")
        times: dict[Key, float] = {}
        failed: dict[Key, str] = {}
        for row in held:
            if gpu not in (None, row["gpu"]):
                continue
            key = tuple(key_text("" if row[column] is None else row[column]) for column in names.values())
            # If a configuration was predicted again, the later row counts.
            times.pop(key, None)
            failed.pop(key, None)
            if row.get(time) not in (None, ""):
                times[key] = float(row[time])
            else:
                failed[key] = str(row["reason"] or "no prediction")
        return cls(tuple(names), times, failed)


# Files of predicted rows, from a sweep or a validation.


def _layout(columns: Sequence[str], model: str | None, place: str) -> tuple[dict[str, str], str]:
    """The parameter columns by name, and the time column. Parameters are contiguous in either file."""
    swept = "time_s" in columns and "measured_s" not in columns
    before, prefix = ("reason", "space.") if swept else ("wall_s", "table.")
    if not {"gpu", "reason", before} <= {*columns}:
        raise InputFileError(f"{place}: expected rows that drywarp sweep or drywarp validate wrote")
    if swept:
        held, own, ends = [], "time_s", columns.index("time_s")
    else:
        stems = [column.removesuffix("_limiter") for column in columns if column.endswith("_limiter")]
        held = [stem for stem in stems if stem + "_s" in columns]
        own, ends = (held[0] + "_s" if held else ""), columns.index("clock_mhz")
    if model is not None:
        own = model + "_s"
    if own not in columns:
        raise InputFileError(f"{place}: holds no predictions of {model or 'any model'}; it holds: {', '.join(held)}")
    own_columns = columns[columns.index(before) + 1 : ends]
    return {column.removeprefix(prefix): column for column in own_columns}, own


_AS_IT_STANDS: Form[Mapping[str, Any]] = Form(
    verb="sweep or validate",
    columns=(),
    cells=lambda row: row,
    read=lambda cells, columns, place: dict(cells),
    key=lambda row: tuple(row.values()),
)


# Corrects predicted times with measured ones during a search.
#
# Prediction errors are often similar wherever a parameter has a certain value, because of a proxy in the GPU file or an
# instruction that costs more than modelled. The logarithm of measured over predicted time is modelled as a common term
# plus one term for each value of each parameter, fitted to the measurements so far by least squares with all terms but
# the common one shrunk towards zero (ridge regression).

STIFFNESS = 1.0
"""Weight of "no correction" relative to one measurement."""
_FREE = 1e-9
"""The same for the common term, on which the order does not depend."""
FEWEST = 3
"""Measurements before the first correction."""

Floats = npt.NDArray[np.float64]


class Correction:
    """Predicted times, corrected as measurements arrive. Configurations are identified by index in `configurations`.

    `times` are in seconds; a configuration is the values of all parameters.
    """

    def __init__(self, configurations: Sequence[Sequence[Any]], times: Sequence[float]) -> None:
        self._logs: Floats = np.log(np.asarray(times, np.float64))
        self._features = _features(configurations)
        columns = self._features.shape[1]
        self._square: Floats = np.diag([_FREE] + [STIFFNESS] * (columns - 1))
        self._side: Floats = np.zeros(columns)
        self._known = 0

    def learn(self, place: int, measured: float) -> None:
        """Add a measurement, in any unit; a failed one (no positive time) is ignored."""
        if not 0 < measured < 1e15:
            return
        row = self._features[place]
        self._square += np.outer(row, row)
        self._side += row * (math.log(measured) - self._logs[place])
        self._known += 1

    def places(self) -> Iterator[int]:
        """Every configuration once, always the one predicted fastest given the measurements so far."""
        left = np.ones(len(self._logs), bool)
        while left.any():
            place = int(np.argmin(np.where(left, self.scores(), np.inf)))
            left[place] = False
            yield place

    def scores(self) -> Floats:
        """The logarithm of each configuration's corrected time, in the unit of the measurements."""
        if self._known < FEWEST:
            return self._logs
        return np.asarray(self._logs + self._features @ np.linalg.solve(self._square, self._side))


def _features(configurations: Sequence[Sequence[Any]]) -> Floats:
    """A first column of ones, then one for each value of each parameter that varies."""
    columns = [np.ones(len(configurations))]
    for values in zip(*configurations, strict=True):
        distinct = list(dict.fromkeys(values))
        if len(distinct) > 1:
            columns += [np.array([value == one for value in values], np.float64) for one in distinct]
    return np.stack(columns, axis=1)


# The space of a finished tuning run, from Kernel Tuner's cache or its results in the T4 format.


def measured_space(
    file: str | Path,
    kernel_source: Any,
    arguments: Sequence[Any],
    *,
    kernel_name: str | None = None,
    problem_size: Any = None,
    **options: Any,
) -> TuningSpace:
    """The configurations with times in a cache or T4 file, as a space.

    A cache, unlike a T4 file, contains the kernel's name and the problem size; arguments override them. `options` are
    further arguments of `tune_kernel`, such as `grid_div_x`. Raises InputFileError for another file.
    """
    path = Path(file)
    table, header = read_table(path), read_header(path)
    name = kernel_name or header.get("kernel_name")
    size = problem_size if problem_size is not None else header.get("problem_size")
    if not name:
        raise UsageError(f"{path}: does not contain the kernel's name (expected kernel_name=)")
    if size is None or (isinstance(size, str) and not size.strip().isdecimal()):
        raise UsageError(f"{path}: does not contain the problem size (expected problem_size=)")
    rows = [row.values() for row in table.rows]
    names = table.parameters
    params = {name: list(dict.fromkeys(row[name] for row in rows if name in row)) for name in names}
    held = {tuple(key_text(row.get(name, "")) for name in names) for row in rows}
    wanted = options.pop("restrictions", None)
    among = (lambda *values: tuple(map(key_text, values)) in held, list(names))
    more = wanted if isinstance(wanted, list) else [] if wanted is None else [wanted]
    return tuning_space(name, kernel_source, size, arguments, params, restrictions=[*more, among], **options)
