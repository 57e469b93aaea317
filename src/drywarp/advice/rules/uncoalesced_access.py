"""Accesses to global memory that touch more sectors than their bytes fill."""

from __future__ import annotations

from ..case import Case
from ..ideals import SPACE_GLOBAL, ideal_units
from ..whatifs.coalesced import coalesced
from .base import Documentation, Suspicion, register

_CLASSES = ("global_load", "global_store", "async_copy")
_LEAST_RATIO = 1.25


@register
class UncoalescedAccess:
    """Sectors per request against the fewest that hold the same bytes."""

    name = "uncoalesced-access"
    title = "lanes of a warp touch scattered sectors of global memory"
    documentation = Documentation(
        what="Finds loads and stores of global memory whose warp touches more 32-byte sectors than the bytes of "
        "its lanes would fill if they lay side by side.",
        why="Memory moves whole sectors. Each further sector takes time in the load-store unit, the L1, the L2 "
        "and often in DRAM, whether its other bytes are used or not.",
        evidence="Sectors per request as the emulated addresses give them, beside the fewest for as many bytes. The "
        "gain is that of simulating the kernel with the fewest.",
        change="Let neighbouring threads read neighbouring elements: swap loop and thread index, store arrays of "
        "structures as structures of arrays, or go through shared memory, reading along rows and writing "
        "along columns there.",
        before="float v = in[threadIdx.x * stride + k];          // 32 sectors per warp",
        after="float v = in[k * blockDim.x + threadIdx.x];      // 4 sectors per warp",
    )

    def look(self, case: Case) -> Suspicion | None:
        """The accesses, those with most sectors too many first."""
        setting = case.setting
        wanted = set(setting.indices(*_CLASSES))
        wasteful = {
            index: ideal
            for index, ideal in ideal_units(setting, SPACE_GLOBAL).items()
            if index in wanted and ideal.ratio >= _LEAST_RATIO
        }
        if not wasteful:
            return None
        lost = {i: (ideal.units - ideal.least) * setting.executions[i] for i, ideal in wasteful.items()}
        order = sorted(wasteful, key=lambda index: -lost[index])
        worst, active = wasteful[order[0]], setting.behaviour.accesses[order[0]].requests
        sectors, least = worst.units / active, worst.least / active
        many = f", and {len(order) - 1} other instructions like it" if len(order) > 1 else ""
        return Suspicion(
            coalesced(wasteful.keys()),
            setting.places(order),
            f"{sectors:.1f} sectors per request where {least:.1f} hold the same bytes{many}",
            "let neighbouring threads access neighbouring elements, or transpose through shared memory",
            max(case.use_by("global_load"), case.use("l2"), case.use("dram")) * (1 - 1 / worst.ratio),
        )
