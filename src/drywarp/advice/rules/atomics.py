"""Atomics that go to the L2 one by one, or that meet at the same address."""

from __future__ import annotations

import numpy as np

from ...memory.requests import distinct_per_row
from ...memory.table import active_lanes
from ..case import Case
from ..setting import Setting
from ..whatifs.fewer import dropped
from ..whatifs.private_atomics import private_atomics
from .base import Documentation, Suspicion, register

_MOST_ROWS, _LEAST_MEETING = 1 << 14, 2.0


@register
class Atomics:
    """Atomics on global memory; those on shared memory where lanes of a warp meet."""

    name = "atomics"
    title = "many atomics on few addresses"
    documentation = Documentation(
        what="Finds atomics on global memory that a block could collect first, and atomics on shared memory where "
        "lanes of a warp want the same address.",
        why="An atomic on global memory is done by the L2, sector by sector, and lanes at the same address one "
        "after the other, whatever SM they come from. The busiest address bounds the time.",
        evidence="Lanes per distinct address in a request, from the emulated addresses. The gain is that of simulating "
        "global atomics at the cost of shared ones, or shared ones where lanes meet as if they were not "
        "there.",
        change="Add up within the warp (__shfl_down_sync, __reduce_add_sync), then once per warp or block; count in "
        "shared memory and add the counts to global memory at the end; give each warp a copy of its own.",
        before="atomicAdd(&bins[bin], 1);                          // every thread, global memory",
        after="atomicAdd(&mine[bin], 1);                          // shared memory\n"
        "__syncthreads();\n"
        "if (threadIdx.x < BINS) atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);",
    )

    def look(self, case: Case) -> Suspicion | None:
        """Global ones first; shared ones only where lanes meet."""
        setting = case.setting
        if found := setting.indices("global_atomic"):
            what_if = private_atomics(frozenset(found))
            remedy = "collect per warp or in shared memory, and go to global memory once per block"
        else:
            found = setting.indices("shared_atomic")
            what_if = dropped(frozenset(found), "no atomics on shared memory")
            remedy = "collect per warp first, or give each warp its own copy"
        meeting = lanes_per_address(setting, found)
        if not found or (meeting < _LEAST_MEETING and what_if.name.startswith("no ")):
            return None
        count = sum(setting.executions[index] for index in found)
        return Suspicion(
            what_if,
            setting.places(case.costliest(found)),
            f"{count:.3g} warp-wide atomics, {meeting:.1f} lanes per address of a warp",
            remedy,
            sum(case.waiting(index) for index in found) / case.stalled + count / sum(setting.executions),
        )


def lanes_per_address(setting: Setting, instructions: list[int]) -> float:
    """Active lanes of a request over their distinct addresses, in the mean over logged requests."""
    log = setting.profile.accesses
    rows = np.flatnonzero(np.isin(log.instruction, instructions) & (log.masks[log.pattern] > 0))[:_MOST_ROWS]
    if not len(rows):
        return 1.0
    addresses, active = active_lanes(log, rows)
    return float(active.sum() / max(1, distinct_per_row(addresses, active).sum()))
