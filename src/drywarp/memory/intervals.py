"""Sets of integers as sorted, disjoint, half-open runs: int64 arrays of shape (runs, 2).

The footprint of a regular kernel is a few long runs, however many sectors they hold; that of an
irregular one falls apart into single sectors, and costs what a sorted array of them would.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .run_loops import both, common_or_other, new_members

Runs = npt.NDArray[np.int64]

_MOST_DISTANCES = 16
"""Changes of the distance between shifts up to which those at equal distances are taken together."""

EMPTY: Runs = np.zeros((0, 2), np.int64)


def from_points(points: npt.NDArray[np.int64]) -> Runs:
    """The set of some integers, in any order, repeated or not."""
    if not len(points):
        return EMPTY
    ordered = np.sort(points)
    cut = np.flatnonzero(ordered[1:] > ordered[:-1] + 1) + 1
    starts = ordered[np.r_[0, cut]]
    ends = ordered[np.r_[cut - 1, len(ordered) - 1]] + 1
    return np.stack([starts, ends], axis=1)


def merged(runs: Runs) -> Runs:
    """Runs in any order, overlapping or not, as a set."""
    if len(runs) < 2:
        return runs
    ordered = runs[np.argsort(runs[:, 0], kind="stable")]
    reach = np.maximum.accumulate(ordered[:, 1])
    cut = np.flatnonzero(ordered[1:, 0] > reach[:-1]) + 1
    return np.stack([ordered[np.r_[0, cut], 0], reach[np.r_[cut - 1, len(ordered) - 1]]], axis=1)


def union(*sets: Runs) -> Runs:
    """All members of any of the sets."""
    some = [runs for runs in sets if len(runs)]
    if len(some) == 2:
        left, right = _plain(some[0]), _plain(some[1])
        found = np.empty((len(left) + len(right), 2), np.int64)
        return found[: both(left, right, found)].copy()
    return merged(np.concatenate(some)) if some else EMPTY


def shifted(runs: Runs, shifts: npt.NDArray[np.int64], most: int) -> Runs | None:
    """All members moved by any of the shifts (ascending, distinct); None where that is more than `most` runs.

    Shifts at equal distances are taken by doubling: what lies side by side has grown together before the next
    step, so that the cost follows the result and not the number of shifts.
    """
    if np.count_nonzero(np.diff(shifts, 2)) > _MOST_DISTANCES:
        direct = merged((runs[None] + shifts[:, None, None]).reshape(-1, 2))
        return direct if len(direct) <= most else None
    found = EMPTY
    start = 0
    while start < len(shifts):
        step = int(shifts[start + 1] - shifts[start]) if start + 1 < len(shifts) else 0
        ends = np.flatnonzero(np.diff(shifts[start:]) != step)
        number = int(ends[0]) + 1 if len(ends) else len(shifts) - start
        part = _repeated(runs, step, number, most)
        if part is None:
            return None
        found = union(found, part + shifts[start])
        if len(found) > most:
            return None
        start += number
    return found


def _repeated(runs: Runs, step: int, number: int, most: int) -> Runs | None:
    """The runs, `number` times, each a step further on."""
    done, found = 1, runs
    while done < number:
        more = min(done, number - done)
        if len(found) > most:
            return None
        # Of what is there, the last `more` times moved by as many steps are those that follow.
        found = union(found, found + more * step)
        done += more
    return found if len(found) <= most else None


def difference(left: Runs, right: Runs) -> Runs:
    """Members of `left` that are not in `right`."""
    return _segments(left, right, wanted=False)


def intersection(left: Runs, right: Runs) -> Runs:
    """Members of both."""
    return _segments(left, right, wanted=True)


class Moved(NamedTuple):
    """A set that is another one, which many have in common, with every member moved by `by`."""

    runs: Runs
    by: int = 0

    def whole(self) -> Runs:
        """The set itself."""
        return self.runs + self.by if self.by else self.runs


def new_in_turn(sets: Sequence[Moved], known: Runs) -> tuple[list[int], Runs]:
    """Of each of several sets, how many members neither `known` nor a set before it has; and all of them together."""
    if not sets:
        return [], known
    different = {id(moved.runs): moved.runs for moved in sets}
    at = dict(zip(different, np.cumsum([0, *map(len, different.values())]).tolist(), strict=False))
    begin = np.array([at[id(moved.runs)] for moved in sets], np.int64)
    end = begin + np.array([len(moved.runs) for moved in sets], np.int64)
    move = np.array([moved.by for moved in sets], np.int64)
    most = len(known) + int((end - begin).sum())
    kept, other, new = np.empty((most, 2), np.int64), np.empty((most, 2), np.int64), np.zeros(len(sets), np.int64)
    kept[: len(known)] = known
    size = new_members(np.concatenate(list(different.values())), begin, end, move, kept, len(known), other, new)
    counts: list[int] = new.tolist()
    return counts, kept[:size].copy()


def count(runs: Runs) -> int:
    """Number of members."""
    return int((runs[:, 1] - runs[:, 0]).sum())


def last(runs: Runs, members: int) -> Runs:
    """The `members` largest members, or all where there are fewer."""
    lengths = runs[:, 1] - runs[:, 0]
    above = np.cumsum(lengths[::-1])[::-1]
    kept: Runs = runs[above - lengths < members].copy()
    if len(kept):
        excess = max(0, count(kept) - members)
        kept[0, 0] += excess
    return kept


def _segments(left: Runs, right: Runs, wanted: bool) -> Runs:
    """The parts of `left` that lie in `right` (`wanted`) or outside it."""
    if not len(left) or not len(right):
        return EMPTY if wanted or not len(left) else left
    left, right = _plain(left), _plain(right)
    found = np.empty((len(left) + len(right), 2), np.int64)
    return found[: common_or_other(left, right, int(wanted), found)].copy()


def _plain(runs: Runs) -> Runs:
    """As the compiled loops take arrays."""
    return runs if runs.flags.c_contiguous and runs.flags.writeable else np.array(runs)
