"""The same work of the threads in full warps.

A warp that diverges issues each side for a part of its lanes, and one whose lanes leave a loop at different times goes
on for the last. Of each path only as many steps stay as full warps would need: code with a quarter of the lanes stays
one time in four. Blocks of code with a barrier stay. Per remaining step an access to global memory moves so much more,
and the sum stays what it was.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ...kernel.classes import is_barrier
from ...kernel.profile import SPACE_SHARED, Profile, WarpPath
from ...memory.behaviour import AccessBehaviour
from ...workload import build_workload
from ..setting import Setting
from .base import WhatIf

FULL = 0.98
"""Share of a warp's lanes from which on a step is taken to be full."""
OFTEN, ROUNDING = 8, 1e-6
"""Turns of a block of code from which on it keeps its own account; what the sum of shares may lack of a whole one."""


def no_divergence() -> WhatIf:
    """Every step with all lanes that the warp started with."""
    return WhatIf("no divergence", "code", _apply)


def _apply(setting: Setting) -> Setting | None:
    profile = setting.profile
    if len(profile.syncs):
        return None  # who waits for whom is numbered by the steps
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
    """Which steps of a path stay when lanes are packed into full warps, shape (steps,).

    Code that runs often keeps its share of its own turns; what runs a few times shares one account, in
    instructions, so that of two sides with half of the lanes one stays.
    """
    lanes = path.lanes.astype(np.float64)
    kept = np.ones(len(lanes), dtype=bool)
    if not len(lanes):
        return kept
    shares = np.minimum(1.0, lanes / max(1.0, lanes[0]))
    shares[(shares >= FULL) | _holding_barriers(profile)[path.blocks]] = 1.0
    turns = np.bincount(path.blocks, minlength=len(profile.cfg.blocks))
    for block in np.flatnonzero(turns >= OFTEN).tolist():
        at = np.flatnonzero(path.blocks == block)
        kept[at] = np.diff(np.floor(np.cumsum(shares[at]) + ROUNDING), prepend=0.0) > 0
    lengths = np.array([block.end - block.start for block in profile.cfg.blocks], dtype=np.float64)
    owed = 0.0
    for step in np.flatnonzero(turns[path.blocks] < OFTEN).tolist():
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
