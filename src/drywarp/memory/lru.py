"""A fully associative LRU cache of sectored lines, for the L1 of one SM. Compiled."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..support.stored_code import cached


@cached("memory/lru.py")
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
    before = np.full(line_count + 1, -1, np.int64)
    after = np.full(line_count + 1, -1, np.int64)
    valid = np.zeros(line_count, np.int64)
    resident = np.zeros(line_count, np.bool_)
    head = line_count  # a sentinel: after[head] is the most recent line, before[head] the least
    before[head] = head
    after[head] = head
    used = 0
    hits = np.zeros(len(line), np.int64)
    for i in range(len(line)):
        n = line[i]
        wanted = sector_mask[i]
        if resident[n]:
            found = valid[n] & wanted
            while found:
                hits[i] += 1
                found &= found - 1
            after[before[n]] = after[n]
            before[after[n]] = before[n]
        elif not allocate[i]:
            continue
        else:
            if used == capacity:
                last = before[head]
                before[head] = before[last]
                after[before[last]] = head
                resident[last] = False
                valid[last] = 0
                used -= 1
            resident[n] = True
            used += 1
        if allocate[i]:
            valid[n] |= wanted
        first = after[head]
        after[head] = n
        before[n] = head
        after[n] = first
        before[first] = n
    return hits
