"""What is known about a number besides its value, and the array shapes of a walk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Lanes = npt.NDArray[np.bool_]
Flags = npt.NDArray[np.uint16]

KNOWN, ASSUMED, DATA, VARYING = 0, 1, 2, 4
"""What is known about a number, one bit each; a result has the bits of everything that it is computed from.

ASSUMED: it depends on an argument that was not given. DATA: it depends on memory content. VARYING: it may differ
between the lanes of a warp.
"""
UNSURE = ASSUMED | DATA
TURNS = (8, 16, 32, 64)
"""It changes between iterations of the loop that is watched at this depth, outermost first (see `forward`)."""
ANY_TURN = sum(TURNS)
BENT_SHIFT = 4
ANY_BENT = ANY_TURN << BENT_SHIFT
"""It is computed from such changing numbers but is not affine in them: a bit for each depth."""

Value = Any
"""An array that broadcasts against (rows, lanes)."""


@dataclass(frozen=True)
class FileShape:
    """A register file: number of registers, their type, and one value per lane or per warp."""

    count: int
    kind: type[np.generic]
    per_lane: bool


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """A compare of two numbers that move with the iterations: `gap` is left minus right where `lanes` count."""

    instruction: int
    how: str
    rows: npt.NDArray[np.int64]
    lanes: Lanes
    gap: npt.NDArray[np.int64]
