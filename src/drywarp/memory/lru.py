"""A fully associative LRU cache of sectored lines, for the L1 of one SM."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..core.library import Function

_sector_hits = Function("sector_hits", "aaannnaa")
_LINE_WORDS = 4


def sector_hits(
    line: npt.NDArray[np.int64],
    sector_mask: npt.NDArray[np.int64],
    allocate: npt.NDArray[np.bool_],
    line_count: int,
    capacity: int,
) -> npt.NDArray[np.int64]:
    """Sectors of each access that hit, in the order of the accesses.

    `line` are dense line numbers 0..line_count-1, `sector_mask` the requested sectors of the line (a bit each),
    `allocate` whether a miss fills them (loads) or not (stores, which are written through). `capacity` is in lines. The
    least recently used line is evicted first.
    """
    line, wanted = np.ascontiguousarray(line, np.int64), np.ascontiguousarray(sector_mask, np.int64)
    fills = np.ascontiguousarray(allocate, np.uint8)
    hits = np.zeros(len(line), np.int64)
    lines = np.empty((line_count + 1, _LINE_WORDS), np.int64)
    _sector_hits(line, wanted, fills, len(line), line_count, capacity, lines, hits)
    return hits
