"""How often the measured time lies within the confidence band of its prediction, and how wide the bands are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..rows.facts import BAND_HIGH, BAND_LEVEL, BAND_LOW, CLOCK_HIGH, CLOCK_LOW
from .row import RowResult


@dataclass(frozen=True)
class Coverage:
    """Of the rows with a band, the share whose measured time it holds, and the median of its end over its beginning.

    `level` is the share that the bands claim. `held` and `width` are those of the whole band, which allows for every
    clock of the GPU; the two with `at_clock` those of the band at the clock that was assumed. `below` and `above` count
    rows whose measured time lies outside the whole band, on that side.
    """

    level: float
    rows: int
    held: float
    width: float
    held_at_clock: float
    width_at_clock: float
    below: int
    above: int

    def to_dict(self) -> dict[str, Any]:
        """As in the documented JSON object."""
        return {
            "level": self.level,
            "rows": self.rows,
            "held": self.held,
            "width": self.width,
            "held_at_clock": self.held_at_clock,
            "width_at_clock": self.width_at_clock,
            "below": self.below,
            "above": self.above,
        }


def coverage_of(rows: Sequence[RowResult]) -> Coverage | None:
    """The coverage over the rows that have a band; None where none has."""
    banded = [row for row in rows if row.ok and BAND_LOW in row.facts]
    if not banded:
        return None
    measured = np.array([row.measured_s for row in banded])
    ends = {
        name: np.array([float(row.facts[name]) for row in banded])
        for name in (BAND_LEVEL, BAND_LOW, BAND_HIGH, CLOCK_LOW, CLOCK_HIGH)
    }
    below, above = measured < ends[BAND_LOW], measured > ends[BAND_HIGH]
    at_clock = (measured >= ends[CLOCK_LOW]) & (measured <= ends[CLOCK_HIGH])
    return Coverage(
        level=float(np.median(ends[BAND_LEVEL])),
        rows=len(banded),
        held=float((~below & ~above).mean()),
        width=float(np.median(ends[BAND_HIGH] / ends[BAND_LOW])),
        held_at_clock=float(at_clock.mean()),
        width_at_clock=float(np.median(ends[CLOCK_HIGH] / ends[CLOCK_LOW])),
        below=int(below.sum()),
        above=int(above.sum()),
    )
