"""What measured times teach about predicted ones while a search goes on.

Where predictions are off they are often off alike wherever a parameter has a certain value: a proxy in the GPU's file,
an instruction that costs more than the model thinks. The logarithm of measured over predicted time is taken as a sum of
one unknown for all and one for each value of each parameter, and the unknowns as the least squares of the measurements
so far, all but the first drawn towards none (ridge regression).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

STIFFNESS = 1.0
"""Weight of "no correction" against that of one measurement."""
_FREE = 1e-9
"""The same for what all configurations have in common: the order does not depend on it."""
FEWEST = 3
"""Measurements before the first correction."""

Floats = npt.NDArray[np.float64]


class Correction:
    """Predicted times of configurations, corrected as measurements come in. They go by their place in `configurations`.

    `times` are seconds; a configuration is the values of all parameters.
    """

    def __init__(self, configurations: Sequence[Sequence[Any]], times: Sequence[float]) -> None:
        self._logs: Floats = np.log(np.asarray(times, np.float64))
        self._features = _features(configurations)
        columns = self._features.shape[1]
        self._square: Floats = np.diag([_FREE] + [STIFFNESS] * (columns - 1))
        self._side: Floats = np.zeros(columns)
        self._known = 0

    def learn(self, place: int, measured: float) -> None:
        """Take in a measurement, in any unit; one that failed (no positive time) teaches nothing."""
        if not 0 < measured < 1e15:
            return
        row = self._features[place]
        self._square += np.outer(row, row)
        self._side += row * (math.log(measured) - self._logs[place])
        self._known += 1

    def places(self) -> Iterator[int]:
        """Every configuration once, each time the one that is the fastest by what is known by then."""
        left = np.ones(len(self._logs), bool)
        while left.any():
            place = int(np.argmin(np.where(left, self.scores(), np.inf)))
            left[place] = False
            yield place

    def scores(self) -> Floats:
        """The logarithm of each configuration's corrected time; the unit is that of the measurements."""
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
