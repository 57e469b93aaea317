"""The distinct sectors that a set of thread blocks touches in global memory, by instruction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..kernel.profile import Profile
from .affine import global_rows
from .geometry import MemoryGeometry
from .intervals import EMPTY, Runs, from_points, union
from .stream import split_lines
from .table import active_lanes


class Footprint:
    """Distinct sectors, as runs of sector numbers, by instruction index, in program order.

    Each may be given as a function, which is called where it is asked for.
    """

    def __init__(
        self,
        sectors: Mapping[int, Runs] | Callable[[], Mapping[int, Runs]],
        whole: Callable[[], Runs] | None = None,
    ) -> None:
        self._sectors, self._whole = sectors, whole

    @cached_property
    def sectors(self) -> Mapping[int, Runs]:
        """Those of each instruction."""
        return self._sectors() if callable(self._sectors) else self._sectors

    def union(self) -> Runs:
        """All distinct sectors."""
        return self._whole() if self._whole else union(EMPTY, *self.sectors.values())


def sampled_footprint(profile: Profile, samples: Sequence[int], geometry: MemoryGeometry) -> Footprint:
    """The footprint of some emulated blocks."""
    rows = [global_rows(profile, sample) for sample in samples]
    joined = np.concatenate(rows) if rows else np.zeros(0, np.intp)
    found = {}
    instruction = profile.accesses.instruction[joined]
    for index in np.unique(instruction):
        found[int(index)] = distinct_sectors(profile, joined[instruction == index], geometry)
    return Footprint(found)


def distinct_sectors(profile: Profile, rows: npt.NDArray[np.intp], geometry: MemoryGeometry, shift: int = 0) -> Runs:
    """The sectors that the requests of some log rows touch when all are moved by `shift` bytes."""
    parts = []
    for start in range(0, len(rows), 1 << 15):
        addresses, active = active_lanes(profile.accesses, rows[start : start + (1 << 15)])
        _, line, mask = split_lines(addresses + shift, active, geometry)
        per_line = geometry.line_bytes // geometry.sector_bytes
        which, bit = np.nonzero((mask[:, None] >> np.arange(per_line)) & 1)
        parts.append(from_points(line[which] * per_line + bit))
    return union(EMPTY, *parts)
