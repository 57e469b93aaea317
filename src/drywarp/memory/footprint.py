"""The distinct sectors that a set of blocks touches in global memory, as sorted intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..core.library import Function
from ..kernel.profile import SPACE_GLOBAL, Profile
from .affine import rows_of
from .requests import lane_masks
from .stream import lines_touched
from .table import MemoryGeometry, distinct

# Sets of integers as sorted, disjoint, half-open runs: int64 arrays of shape (runs, 2).
#
# The footprint of a regular kernel is a few long runs, however many sectors they hold. An irregular one breaks up into
# single sectors and costs as much as a sorted array of them.

Runs = npt.NDArray[np.int64]

_MOST_DISTANCES = 16
"""Most changes in the distance between shifts for which shifts at equal distances are merged."""

EMPTY: Runs = np.zeros((0, 2), np.int64)

_both, _common_or_other = Function("both", "anana"), Function("common_or_other", "ananna")
_new_members, _touched = Function("new_members", "aaaananaa"), Function("touched", "aaaanannnaaa")


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
        return found[: _both(left, len(left), right, len(right), found)].copy()
    return merged(np.concatenate(some)) if some else EMPTY


def shifted(runs: Runs, shifts: npt.NDArray[np.int64], most: int) -> Runs | None:
    """All members moved by any of the shifts (ascending, distinct); None if that is more than `most` runs.

    Shifts at equal distances are handled by doubling: adjacent runs merge before the next step, so the cost depends on
    the result and not on the number of shifts.
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
    """The runs, `number` times, each shifted one more step."""
    done, found = 1, runs
    while done < number:
        more = min(done, number - done)
        if len(found) > most:
            return None
        # The last `more` copies of what exists, moved by that many steps, are the next ones.
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
    """A set with every member moved by `by`; several such sets share the underlying one."""

    runs: Runs
    by: int = 0

    def whole(self) -> Runs:
        """The set itself."""
        return self.runs + self.by if self.by else self.runs


def new_in_turn(sets: Sequence[Moved], known: Runs) -> tuple[list[int], Runs]:
    """For each of several sets, how many members neither `known` nor an earlier set has; and the union of all."""
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
    runs = np.concatenate(list(different.values()))
    size = _new_members(runs, begin, end, move, len(sets), kept, len(known), other, new)
    counts: list[int] = new.tolist()
    return counts, kept[:size].copy()


def count(runs: Runs) -> int:
    """Number of members."""
    return int((runs[:, 1] - runs[:, 0]).sum())


def lines(runs: Runs, sectors: int) -> int:
    """Number of lines of this many sectors that contain members, however many of each."""
    starts, ends = runs[:, 0] // sectors, -(-runs[:, 1] // sectors)
    # Runs are ordered and disjoint, so only neighbours can share a line.
    return int((ends - starts).sum() - (starts[1:] < ends[:-1]).sum())


def last(runs: Runs, members: int) -> Runs:
    """The `members` largest members, or all if there are fewer."""
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
    return found[: _common_or_other(left, len(left), right, len(right), int(wanted), found)].copy()


def _plain(runs: Runs) -> Runs:
    """In the form in which the core takes arrays."""
    return np.ascontiguousarray(runs, np.int64)


TOGETHER = 1 << 15
"""Most log rows that are processed together."""


class Stage(NamedTuple):
    """Part `number`, from 0, of a block's run that is cut into `of` parts with equally many accesses."""

    number: int
    of: int

    def among(self, profile: Profile, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        """Which log rows fall into it, counted separately for each warp."""
        log = profile.accesses
        total = np.zeros(int(log.warp.max(initial=-1)) + 1, np.int64)
        lasts = np.flatnonzero(np.append(log.warp[1:] != log.warp[:-1], len(log) > 0))
        total[log.warp[lasts]] = log.order[lasts] + 1
        part: npt.NDArray[np.bool_] = log.order[rows] * self.of // total[log.warp[rows]] == self.number
        return part


class Footprint:
    """Distinct sectors, as runs of sector numbers, by instruction index, in program order.

    Each may be given as a function, which is called on demand.
    """

    def __init__(
        self,
        sectors: Mapping[int, Runs] | Callable[[], Mapping[int, Moved]],
        whole: Callable[[], Runs] | None = None,
    ) -> None:
        self._sectors, self._whole = sectors, whole

    @cached_property
    def parts(self) -> Mapping[int, Moved]:
        """The sectors of each instruction, as sets that share an underlying set."""
        if callable(self._sectors):
            return self._sectors()
        return {index: Moved(runs) for index, runs in self._sectors.items()}

    @cached_property
    def sectors(self) -> Mapping[int, Runs]:
        """The sectors of each instruction."""
        return {index: part.whole() for index, part in self.parts.items()}

    def union(self) -> Runs:
        """All distinct sectors."""
        return self._whole() if self._whole else union(EMPTY, *self.sectors.values())


def sampled_footprint(
    profile: Profile, samples: Sequence[int], geometry: MemoryGeometry, stage: Stage | None = None
) -> Footprint:
    """The footprint of some emulated blocks, in one stage of their runs or in all."""
    log = profile.accesses
    rows = np.concatenate([np.zeros(0, np.intp), *(rows_of(profile, sample) for sample in samples)])
    rows = rows[log.space[rows] == SPACE_GLOBAL]
    rows = rows if stage is None else rows[stage.among(profile, rows)]
    rows = rows[np.argsort(log.instruction[rows], kind="stable")]
    used, first = np.unique(log.instruction[rows], return_index=True)
    groups, owner = [], []
    for index, mine in zip(used.tolist(), np.split(rows, first[1:]), strict=False):
        pieces = [mine[start : start + TOGETHER] for start in range(0, len(mine), TOGETHER)]
        groups += pieces
        owner += [index] * len(pieces)
    parts: dict[int, list[Runs]] = {}
    for index, runs in zip(owner, distinct_by_group(profile, groups, geometry), strict=True):
        parts.setdefault(index, []).append(runs)
    return Footprint({index: union(*some) for index, some in parts.items()})


def distinct_sectors(profile: Profile, rows: npt.NDArray[np.intp], geometry: MemoryGeometry, shift: int = 0) -> Runs:
    """The sectors touched by the requests of some log rows when all are moved by `shift` bytes."""
    parts = []
    for start in range(0, len(rows), TOGETHER):
        _, line, mask = lines_touched(profile.accesses, rows[start : start + TOGETHER], shift, geometry)
        per_line = geometry.line_bytes // geometry.sector_bytes
        which, bit = np.nonzero((mask[:, None] >> np.arange(per_line)) & 1)
        parts.append(from_points(line[which] * per_line + bit))
    return union(EMPTY, *parts)


def distinct_by_group(
    profile: Profile, groups: Sequence[npt.NDArray[np.intp]], geometry: MemoryGeometry, shift: int = 0
) -> list[Runs]:
    """`distinct_sectors` of each of several sets of log rows, computed together."""
    log = profile.accesses
    found: list[Runs] = []
    start = 0
    while start < len(groups):
        end, rows = start + 1, len(groups[start])
        if rows > TOGETHER:
            found.append(distinct_sectors(profile, groups[start], geometry, shift))
            start = end
            continue
        while end < len(groups) and rows + len(groups[end]) <= TOGETHER:
            rows += len(groups[end])
            end += 1
        joined = np.concatenate(groups[start:end])
        first = np.cumsum([0, *map(len, groups[start:end])])
        some, pattern = distinct(log.pattern[joined].astype(np.int64))
        patterns = log.pattern[joined[some]]
        offsets = np.ascontiguousarray(log.offsets[patterns], np.int64)
        active = np.ascontiguousarray(lane_masks(log.masks[patterns]), np.uint8)
        base = np.array(log.base[joined], np.int64)
        sector, lanes = geometry.sector_bytes, offsets.shape[1]
        runs = np.empty((int(active.sum(1, dtype=np.int64)[pattern].sum()) + lanes, 2), np.int64)
        until = np.zeros(len(first), np.int64)
        spare = np.empty_like(runs)
        _touched(base, pattern, offsets, active, lanes, first, end - start, shift, sector, runs, spare, until)
        bounds = until.tolist()
        found += [runs[a:b].copy() for a, b in pairwise(bounds)]
        start = end
    return found
