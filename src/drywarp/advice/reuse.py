"""How often a block asks for the same sectors of a buffer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernel.profile import SPACE_GLOBAL
from ..memory.table import active_lanes
from .setting import Setting

MOST_ROWS = 1 << 16
"""Accesses of one block that are looked at."""


@dataclass(frozen=True, slots=True)
class Reuse:
    """Sectors that a block asks for, request by request, how many of them are distinct, and who loads them."""

    requested: float
    distinct: int
    instructions: tuple[int, ...]

    @property
    def times(self) -> float:
        """How often each is asked for in the mean."""
        return self.requested / self.distinct if self.distinct else 0.0


def reuse_by_buffer(setting: Setting) -> dict[str, Reuse]:
    """By parameter name, of the sampled block that stands for most others; empty names for other data."""
    profile, log, table = setting.profile, setting.profile.accesses, setting.requests
    loads = np.array([bool(i.memory and i.memory.kind in ("load", "copy")) for i in setting.instructions])
    if not len(log) or not loads.any():
        return {}
    block = max(range(len(profile.blocks)), key=lambda n: profile.blocks[n].weight)
    at = (table.sample == block) & loads[log.instruction] & (log.space == SPACE_GLOBAL) & (table.units > 0)
    rows = np.flatnonzero(at)[:MOST_ROWS]
    if not len(rows):
        return {}
    size = 32 if setting.gpu.machine_code is not None else setting.gpu.memory.sector_bytes
    addresses, active = active_lanes(log, rows)
    starts = sorted((start, length, name) for name, (start, length) in profile.allocations.items())
    found: dict[str, Reuse] = {}
    first = np.where(active, addresses, np.iinfo(np.int64).max).min(axis=1)
    owner = np.searchsorted(np.array([start for start, _, _ in starts], dtype=np.int64), first, side="right") - 1
    for number in np.unique(owner).tolist():
        mine = owner == number
        distinct = np.unique(addresses[mine][active[mine]] // size)
        instructions = np.unique(log.instruction[rows[mine]])
        found[starts[number][2] if number >= 0 else ""] = Reuse(
            float(table.units[rows[mine]].sum()), len(distinct), tuple(instructions.tolist())
        )
    return found
