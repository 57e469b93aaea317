"""The distinct sectors that a set of thread blocks touches in global memory, by instruction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ..kernel.profile import SPACE_GLOBAL, Profile
from .affine import rows_of
from .geometry import MemoryGeometry
from .intervals import EMPTY, Moved, Runs, from_points, union
from .requests import lane_masks
from .run_loops import touched
from .stream import split_lines
from .table import active_lanes

TOGETHER = 1 << 15
"""Log rows that are taken together at most."""


class Footprint:
    """Distinct sectors, as runs of sector numbers, by instruction index, in program order.

    Each may be given as a function, which is called where it is asked for.
    """

    def __init__(
        self,
        sectors: Mapping[int, Runs] | Callable[[], Mapping[int, Moved]],
        whole: Callable[[], Runs] | None = None,
    ) -> None:
        self._sectors, self._whole = sectors, whole

    @cached_property
    def parts(self) -> Mapping[int, Moved]:
        """Those of each instruction, as sets that several have in common."""
        if callable(self._sectors):
            return self._sectors()
        return {index: Moved(runs) for index, runs in self._sectors.items()}

    @cached_property
    def sectors(self) -> Mapping[int, Runs]:
        """Those of each instruction."""
        return {index: part.whole() for index, part in self.parts.items()}

    def union(self) -> Runs:
        """All distinct sectors."""
        return self._whole() if self._whole else union(EMPTY, *self.sectors.values())


def sampled_footprint(profile: Profile, samples: Sequence[int], geometry: MemoryGeometry) -> Footprint:
    """The footprint of some emulated blocks."""
    log = profile.accesses
    rows = np.concatenate([np.zeros(0, np.intp), *(rows_of(profile, sample) for sample in samples)])
    rows = rows[log.space[rows] == SPACE_GLOBAL]
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
    """The sectors that the requests of some log rows touch when all are moved by `shift` bytes."""
    parts = []
    for start in range(0, len(rows), TOGETHER):
        addresses, active = active_lanes(profile.accesses, rows[start : start + TOGETHER])
        _, line, mask = split_lines(addresses + shift, active, geometry)
        per_line = geometry.line_bytes // geometry.sector_bytes
        which, bit = np.nonzero((mask[:, None] >> np.arange(per_line)) & 1)
        parts.append(from_points(line[which] * per_line + bit))
    return union(EMPTY, *parts)


def distinct_by_group(
    profile: Profile, groups: Sequence[npt.NDArray[np.intp]], geometry: MemoryGeometry, shift: int = 0
) -> list[Runs]:
    """`distinct_sectors` of each of several sets of log rows, taken together."""
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
        patterns, pattern = np.unique(log.pattern[joined], return_inverse=True)
        offsets = np.ascontiguousarray(log.offsets[patterns], np.int64)
        active = np.ascontiguousarray(lane_masks(log.masks[patterns]), np.int64)
        base = np.array(log.base[joined], np.int64)
        runs = np.empty((int(active.sum(1)[pattern].sum()), 2), np.int64)
        until = np.zeros(len(first), np.int64)
        pattern = pattern.reshape(-1).astype(np.int64)
        touched(base, pattern, offsets, active, first, shift, geometry.sector_bytes, runs, until)
        bounds = until.tolist()
        found += [runs[a:b].copy() for a, b in pairwise(bounds)]
        start = end
    return found
