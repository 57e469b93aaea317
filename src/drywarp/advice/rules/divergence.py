"""Steps of warps in which not all lanes take part."""

from __future__ import annotations

import numpy as np

from ..case import Case
from ..whatifs.no_divergence import no_divergence
from .base import Documentation, Suspicion, register

_MOST_FULL = 0.98


@register
class Divergence:
    """Active lanes over those that a warp started with, over all issued instructions."""

    name = "divergence"
    title = "lanes of a warp take different ways, or leave a loop at different times"
    documentation = Documentation(
        what="Finds code that warps run with a part of their lanes.",
        why="A warp issues both sides of a branch if its lanes disagree, and turns a loop until its last lane is "
        "done. Lanes that take no part cost as much as those that do.",
        evidence="The share of lanes that take part, over all instructions, and the lines that lose most. The gain is "
        "that of simulating the same work of the threads packed into full warps.",
        change="Let whole warps agree: give consecutive threads work of the same kind, sort or bin items by length, "
        "replace a short branch by a select, and in reductions let the first threads go on instead of every "
        "second one.",
        before="if (threadIdx.x % (2 * s) == 0) sum[threadIdx.x] += sum[threadIdx.x + s];",
        after="if (threadIdx.x < s) sum[threadIdx.x] += sum[threadIdx.x + s];",
    )

    def look(self, case: Case) -> Suspicion | None:
        """The lines that lose most lanes."""
        profile = case.setting.profile
        lengths = np.array([block.end - block.start for block in profile.cfg.blocks], dtype=np.float64)
        lost = np.zeros(len(lengths))
        issued = 0.0
        for number, times in enumerate(_warps_on_each_path(case)):
            path = profile.paths[number]
            if not times or not len(path.lanes):
                continue
            idle = np.clip(1 - path.lanes.astype(np.float64) / max(1.0, float(path.lanes[0])), 0, 1)
            lost += times * np.bincount(path.blocks, idle * lengths[path.blocks], minlength=len(lengths))
            issued += times * float(lengths[path.blocks].sum())
        full = 1 - float(lost.sum()) / issued if issued else 1.0
        if full >= _MOST_FULL:
            return None
        blocks = [int(block) for block in np.argsort(-lost, kind="stable") if lost[block] > 0.05 * lost.sum()]
        code = [profile.cfg.blocks[block] for block in blocks]
        return Suspicion(
            no_divergence(),
            case.setting.places(index for block in code for index in range(block.start, block.end)),
            f"{full:.0%} of the lanes take part in the mean instruction",
            "regroup work so that neighbouring threads take the same branch and as many turns",
            1 - full,
        )


def _warps_on_each_path(case: Case) -> list[float]:
    profile = case.setting.profile
    times = [0.0] * len(profile.paths)
    for block in profile.blocks:
        for path in block.paths:
            times[path] += block.weight
    return times
