"""Code that warps execute with only some of their lanes active."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ....kernel.isa.nvidia.opcodes import is_barrier
from ....kernel.profile import SPACE_SHARED, Profile, WarpPath
from ....memory.behaviour import AccessBehaviour
from ....workload.build import build_workload
from ..case import Case, Setting
from ..whatif import WhatIf
from .base import Suspicion, rule

# The same thread work, packed into full warps.
#
# A divergent warp issues each side of a branch for some of its lanes, and a warp whose lanes exit a loop at different
# times iterates until the last one. Each path keeps only as many steps as full warps would need: code that runs with
# a quarter of the lanes is kept one time in four. Basic blocks with a barrier are all kept. Each remaining step of a
# global access moves proportionally more data, so the total is unchanged.

FULL = 0.98
"""A step counts as full from this share of the warp's lanes."""
OFTEN, ROUNDING = 8, 1e-6
"""Executions from which a basic block is accounted for on its own; rounding slack in the sum of shares."""


def no_divergence() -> WhatIf:
    """Run every step with all lanes that the warp started with."""
    return WhatIf("no divergence", "code", _apply)


def _apply(setting: Setting) -> Setting | None:
    profile = setting.profile
    if len(profile.syncs):
        return None  # synchronization refers to steps by number
    keep = [kept_steps(profile, path) for path in profile.paths]
    if all(bool(kept.all()) for kept in keep):
        return None
    paths = tuple(WarpPath(path.blocks[kept], path.lanes[kept]) for path, kept in zip(profile.paths, keep, strict=True))
    fuller = replace(profile, paths=paths)
    before, after = profile.executions(), fuller.executions()
    accesses = {
        index: _denser(access, float(before[index]), float(after[index]))
        for index, access in setting.behaviour.accesses.items()
    }
    return replace(
        setting,
        profile=fuller,
        workload=build_workload(fuller),
        behaviour=replace(setting.behaviour, accesses=accesses),
    )


def kept_steps(profile: Profile, path: WarpPath) -> npt.NDArray[np.bool_]:
    """Which steps of a path remain when lanes are packed into full warps, shape (steps,).

    Code that runs often keeps its own share of its executions. Code that runs a few times shares one account, counted
    in instructions, so that one of two branch sides with half of the lanes each remains.
    """
    lanes = path.lanes.astype(np.float64)
    kept = np.ones(len(lanes), dtype=bool)
    if not len(lanes):
        return kept
    shares = np.minimum(1.0, lanes / max(1.0, lanes[0]))
    shares[(shares >= FULL) | _holding_barriers(profile)[path.blocks]] = 1.0
    iterations = np.bincount(path.blocks, minlength=len(profile.cfg.blocks))
    for block in np.flatnonzero(iterations >= OFTEN).tolist():
        at = np.flatnonzero(path.blocks == block)
        kept[at] = np.diff(np.floor(np.cumsum(shares[at]) + ROUNDING), prepend=0.0) > 0
    lengths = np.array([block.end - block.start for block in profile.cfg.blocks], dtype=np.float64)
    owed = 0.0
    for step in np.flatnonzero(iterations[path.blocks] < OFTEN).tolist():
        length = lengths[path.blocks[step]]
        owed += shares[step] * length
        kept[step] = shares[step] >= 1.0 or owed >= length / 2
        owed -= length if kept[step] else 0.0
    return kept


def _holding_barriers(profile: Profile) -> npt.NDArray[np.bool_]:
    code = profile.kernel.instructions
    return np.array([any(is_barrier(code[i]) for i in range(b.start, b.end)) for b in profile.cfg.blocks])


def _denser(access: AccessBehaviour, before: float, after: float) -> AccessBehaviour:
    if not after or access.space == SPACE_SHARED:
        return replace(access, executions=after)
    ratio = before / after
    return replace(
        access,
        executions=after,
        units=access.units * ratio,
        lines=access.lines * ratio,
        dram_read=access.dram_read * ratio,
        dram_write=access.dram_write * ratio,
    )


_MOST_FULL = 0.98


@rule("divergence")
def divergence(case: Case) -> Suspicion | None:
    """The lines that lose most lanes to divergence, of those that a warp started with."""
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
        f"{full:.0%} of the lanes are active in the average instruction",
        "regroup work so that neighbouring threads take the same branches and run equally many iterations",
        1 - full,
    )


def _warps_on_each_path(case: Case) -> list[float]:
    profile = case.setting.profile
    times = [0.0] * len(profile.paths)
    for block in profile.blocks:
        for path in block.paths:
            times[path] += block.weight
    return times
