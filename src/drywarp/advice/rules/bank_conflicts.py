"""Accesses to shared memory that need several passes of the banks."""

from __future__ import annotations

from ..case import Case
from ..ideals import SPACE_SHARED, ideal_units
from ..whatifs.conflict_free import conflict_free
from .base import Documentation, Suspicion, register

_LEAST_RATIO = 1.05


@register
class BankConflicts:
    """Wavefronts per request against those without conflicts."""

    name = "bank-conflicts"
    title = "lanes of a warp want different words of the same bank of shared memory"
    documentation = Documentation(
        what="Finds accesses to shared memory that take more wavefronts than their bytes need.",
        why="Shared memory has 32 banks of 4 bytes. Lanes that want different words of one bank are served one "
        "after the other, and the load-store unit is busy that much longer; all warps of the SM wait for it.",
        evidence="Wavefronts per request as the emulated addresses give them, beside those without a conflict. The "
        "gain is that of simulating the kernel without conflicts.",
        change="Give rows of a shared array one element more than a multiple of 32 words, change which thread takes "
        "which element (consecutive threads, consecutive words), or permute columns with the row (swizzle).",
        before="__shared__ float tile[32][32];\nfloat v = tile[threadIdx.x][k];   // all lanes in one bank",
        after="__shared__ float tile[32][33];\nfloat v = tile[threadIdx.x][k];   // 32 banks",
    )

    def look(self, case: Case) -> Suspicion | None:
        """The accesses, those with most further wavefronts first."""
        setting = case.setting
        found = {i: ideal for i, ideal in ideal_units(setting, SPACE_SHARED).items() if ideal.ratio >= _LEAST_RATIO}
        if not found:
            return None
        lost = {i: (ideal.units - ideal.least) * setting.executions[i] for i, ideal in found.items()}
        order = sorted(found, key=lambda index: -lost[index])
        worst, active = found[order[0]], setting.behaviour.accesses[order[0]].requests
        return Suspicion(
            conflict_free(),
            setting.places(order),
            f"{worst.units / active:.1f} wavefronts per access where {worst.least / active:.1f} would do",
            "pad rows of the shared array by one element, or let consecutive threads take consecutive words",
            case.use_by("shared_load") * (1 - 1 / worst.ratio),
        )
