"""Loops over sets of runs (`footprint.py`), compiled: in Python they would dominate the cost of a wave.

Each is cached as machine code (`stored_code.py`), so only the first run on a machine needs Numba. They take contiguous
int64 arrays, runs of shape (n, 2) that are sets (sorted, disjoint), and write into arrays that the caller has made
large enough.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from ..support.folders import sources_digest
from ..support.stored_code import Stored

F = TypeVar("F", bound=Callable[..., Any])

SOURCES = ("memory/run_loops.py",)
"""The source of the loops."""


_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}


def _compile(function: Callable[..., Any]) -> Any:
    from numba import njit

    return njit(**_OPTIONS)(function)


def _loop(function: F) -> F:
    return cast(F, Stored(function, _compile, f"{function.__qualname__} {sources_digest(*SOURCES)}"))


@_loop
def common_or_other(left: Any, right: Any, wanted: int, found: Any) -> int:
    """The parts of `left` that lie in `right` (`wanted` 1) or outside it (0); returns the number of runs."""
    runs, at = 0, 0
    for i in range(len(left)):
        start, end = left[i, 0], left[i, 1]
        if at < len(right) and right[at, 1] <= start:
            # The first run that ends after the start, found by doubling steps.
            low, step = at, 1
            while low + step < len(right) and right[low + step, 1] <= start:
                low += step
                step *= 2
            high = min(low + step, len(right))
            while high - low > 1:
                middle = (low + high) // 2
                if right[middle, 1] <= start:
                    low = middle
                else:
                    high = middle
            at = high
        k = at
        while start < end:
            inside = k < len(right) and right[k, 0] <= start
            if inside:
                until = min(end, right[k, 1])
                k += 1
            elif k < len(right):
                until = min(end, right[k, 0])
            else:
                until = end
            if inside == (wanted == 1) and until > start:
                if runs > 0 and found[runs - 1, 1] == start:
                    found[runs - 1, 1] = until
                else:
                    found[runs, 0], found[runs, 1] = start, until
                    runs += 1
            start = max(start, until)
    return runs


@_loop
def both(left: Any, right: Any, found: Any) -> int:
    """All members of either of two sets; returns the number of runs."""
    runs, i, j = 0, 0, 0
    while i < len(left) or j < len(right):
        if j == len(right) or (i < len(left) and left[i, 0] <= right[j, 0]):
            start, end = left[i, 0], left[i, 1]
            i += 1
        else:
            start, end = right[j, 0], right[j, 1]
            j += 1
        if runs > 0 and start <= found[runs - 1, 1]:
            found[runs - 1, 1] = max(found[runs - 1, 1], end)
        else:
            found[runs, 0], found[runs, 1] = start, end
            runs += 1
    return runs


@_loop
def new_members(runs: Any, begin: Any, end: Any, move: Any, kept: Any, count: int, other: Any, new: Any) -> int:
    """For each of several sets in turn, the members that neither an earlier set nor the set `kept` has.

    Set n consists of the rows `begin[n]` to `end[n]` of `runs`, all moved by `move[n]`. `kept` holds `count` runs; it
    and `other` have room for all that is added. The number of new members of each set is written to `new`; returns the
    final number of runs in `kept`.
    """
    size = count
    one, two = kept, other
    swapped = False
    for n in range(len(begin)):
        by = move[n]
        new[n] = 0
        at = 0
        for i in range(begin[n], end[n]):
            start, stop = runs[i, 0] + by, runs[i, 1] + by
            # The first run that ends after the start, found by doubling steps.
            if at < size and one[at, 1] <= start:
                low, step = at, 1
                while low + step < size and one[low + step, 1] <= start:
                    low += step
                    step *= 2
                high = min(low + step, size)
                while high - low > 1:
                    middle = (low + high) // 2
                    if one[middle, 1] <= start:
                        low = middle
                    else:
                        high = middle
                at = high
            missing = stop - start
            k = at
            while k < size and one[k, 0] < stop:
                missing -= min(stop, one[k, 1]) - max(start, one[k, 0])
                k += 1
            new[n] += missing
        if new[n] == 0:
            continue
        made, i, j = 0, begin[n], 0
        while i < end[n] or j < size:
            if j == size or (i < end[n] and runs[i, 0] + by <= one[j, 0]):
                start, stop = runs[i, 0] + by, runs[i, 1] + by
                i += 1
            else:
                start, stop = one[j, 0], one[j, 1]
                j += 1
            if made > 0 and start <= two[made - 1, 1]:
                two[made - 1, 1] = max(two[made - 1, 1], stop)
            else:
                two[made, 0], two[made, 1] = start, stop
                made += 1
        one, two = two, one
        swapped = not swapped
        size = made
    if swapped:
        for i in range(size):
            two[i, 0], two[i, 1] = one[i, 0], one[i, 1]
    return size


@_loop
def touched(
    base: Any, pattern: Any, offsets: Any, active: Any, first: Any, shift: int, sector: int, found: Any, until: Any
) -> int:
    """The sectors that groups of requests touch, as runs of sector numbers; returns the total number of runs.

    A request has a `base` address and the number of a `pattern`, whose lanes' `offsets` and activity (`active`, 0 or 1)
    have shape (patterns, lanes). Group n are the requests `first[n]` to `first[n + 1]`, all moved by `shift` bytes; its
    runs are the rows of `found` from `until[n]` to `until[n + 1]`.
    """
    total = 0
    for n in range(len(first) - 1):
        until[n] = total
        begin = total
        ascends = True
        for row in range(first[n], first[n + 1]):
            p = pattern[row]
            for lane in range(offsets.shape[1]):
                if not active[p, lane]:
                    continue
                number = (base[row] + offsets[p, lane] + shift) // sector
                if total > begin:
                    last = total - 1
                    if found[last, 0] <= number <= found[last, 1]:
                        found[last, 1] = max(found[last, 1], number + 1)
                        continue
                    if number < found[last, 0]:
                        ascends = False
                found[total, 0], found[total, 1] = number, number + 1
                total += 1
        if ascends or total - begin < 2:
            continue
        # Sort the runs by their starts: a heap sort, which needs no extra memory and has no bad worst case.
        size = total - begin
        heap = size // 2
        left = size
        while left > 1:
            if heap > 0:
                heap -= 1
                start, stop = found[begin + heap, 0], found[begin + heap, 1]
            else:
                left -= 1
                start, stop = found[begin + left, 0], found[begin + left, 1]
                found[begin + left, 0], found[begin + left, 1] = found[begin, 0], found[begin, 1]
            parent = heap
            child = 2 * parent + 1
            while child < left:
                if child + 1 < left and found[begin + child + 1, 0] > found[begin + child, 0]:
                    child += 1
                if found[begin + child, 0] <= start:
                    break
                found[begin + parent, 0] = found[begin + child, 0]
                found[begin + parent, 1] = found[begin + child, 1]
                parent = child
                child = 2 * parent + 1
            found[begin + parent, 0], found[begin + parent, 1] = start, stop
        kept = begin
        for i in range(begin + 1, total):
            if found[i, 0] <= found[kept, 1]:
                found[kept, 1] = max(found[kept, 1], found[i, 1])
            else:
                kept += 1
                found[kept, 0], found[kept, 1] = found[i, 0], found[i, 1]
        total = kept + 1
    until[len(first) - 1] = total
    return total
