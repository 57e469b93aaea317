"""Instructions that the L2 is asked for: code too long for the instruction cache next to the SMs."""

from __future__ import annotations

import numpy as np

from ..kernel.profile import Profile

INSTRUCTION_BYTES = 16


def fetched_sectors(profile: Profile, cache_bytes: int, share: float, sector_bytes: int) -> float:
    """Sectors of code that the L2 serves over the whole grid; 0 where the code that runs fits the cache.

    The cache keeps the code that runs most often. The rest is wanted anew each time that a thread block comes by: its
    warps go together, and SMs that share the cache find what one of them has just fetched. `share` is what then
    remains for the L2. First touches are left out: they are no more than the code itself, once for each cache.
    """
    executions = profile.executions()
    starts = np.array([block.start for block in profile.cfg.blocks], np.int64)
    size = np.array([block.end - block.start for block in profile.cfg.blocks], np.int64) * INSTRUCTION_BYTES
    # Times that a thread block comes by, over the grid.
    visits = executions[starts] / profile.launch.warps_per_block
    order = np.argsort(-visits, kind="stable")
    order = order[visits[order] > 0]
    reach = np.cumsum(size[order])
    beyond = np.clip(reach - cache_bytes, 0, size[order])
    return float(share * (beyond * visits[order]).sum() / sector_bytes)
