"""How well a sample of thread blocks is known to stand for a grid."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sampling:
    """How well the emulated blocks are known to stand for the grid: `blocks` of them, of `of`.

    `estimate` is the number of warp instructions of the whole grid, `low` and `high` the interval that holds it with
    probability `confidence` (None where nothing can be said). `basis` says why:

    - ``all``: every block was emulated; ``proven``: no branch depends on the block index or on loaded data.
      Both are exact.
    - ``uniform``: within each stratum no variation was seen; exact if none was missed.
    - ``estimated``: blocks differ from neighbour to neighbour, and were sampled at random.
    - ``limited``: the limits of emulation left too few blocks to tell.
    - ``chosen``: the caller said which, or how many.

    `extrapolated_loops` is how many loops were not run to their ends, but followed where they repeat.
    """

    blocks: int
    of: int
    estimate: float
    low: float | None
    high: float | None
    basis: str
    confidence: float = 0.95
    extrapolated_loops: int = 0
