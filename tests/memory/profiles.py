"""Profiles made by hand: a kernel of a few memory instructions, and the addresses that every block uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from drywarp.kernel.cfg import build_cfg
from drywarp.kernel.kernel import Kernel, Resources
from drywarp.kernel.launch.launch import Dim3, Launch
from drywarp.kernel.profile import AccessLog, Profile, SampledBlock, WarpPath
from drywarp.memory.table import MemoryGeometry
from tests.listing import code

LANES = np.arange(32, dtype=np.int64)
FULL = 0xFFFFFFFF

Access = tuple[int, npt.NDArray[np.int64], int, int]
"""Instruction index, address of each lane, mask of active lanes, and space."""


def geometry(l1: int = 1 << 17, l2: int = 1 << 22, sms: int = 4, blocks_per_sm: int = 2) -> MemoryGeometry:
    return MemoryGeometry(
        sector_bytes=32,
        line_bytes=128,
        banks=32,
        bank_bytes=4,
        l1_bytes=l1,
        l2_bytes=l2,
        sm_count=sms,
        blocks_per_sm=blocks_per_sm,
    )


def access(instruction: int, addresses: npt.NDArray[np.int64], mask: int = FULL, space: int = 0) -> Access:
    return instruction, np.asarray(addresses, np.int64), mask, space


def profile(
    lines: Sequence[str],
    grid: Dim3,
    accesses_of: Callable[[Dim3, int], Sequence[Access]],
    *,
    samples: Sequence[int] | None = None,
    weights: Sequence[float] | None = None,
    warps: int = 1,
    allocations: dict[str, tuple[int, int]] | None = None,
    local_bytes: int = 0,
) -> Profile:
    """A profile whose sampled blocks do what `accesses_of(block coordinates, warp)` says, in that order.

    `lines` are the kernel's instructions in SASS; each runs once in every warp. Without `samples` all blocks are.
    """
    instructions = code(*lines, "EXIT")
    kernel = Kernel("k", "k", "sm_80", instructions, (), 0, Resources(32, 0, local_bytes=local_bytes))
    launch = Launch(grid, (32 * warps, 1, 1))
    chosen = list(range(launch.blocks)) if samples is None else list(samples)
    shares = [launch.blocks / len(chosen)] * len(chosen) if weights is None else list(weights)
    rows: list[tuple[int, int, int, int, int]] = []
    patterns: dict[tuple[bytes, int], int] = {}
    for number, linear in enumerate(chosen):
        for warp in range(warps):
            for index, addresses, mask, space in accesses_of(launch.coordinates(linear), warp):
                first = next((n for n in range(32) if mask >> n & 1), 0)
                base = int(addresses[first])
                offsets = np.where(mask >> LANES & 1, addresses - base, 0)
                pattern = patterns.setdefault((offsets.tobytes(), mask), len(patterns))
                rows.append((index, number * warps + warp, base, pattern, space))
    columns = np.array(rows, np.int64).reshape(-1, 5).T
    log = AccessLog(
        instruction=columns[0].astype(np.int32),
        warp=columns[1].astype(np.int32),
        base=columns[2],
        pattern=columns[3].astype(np.int32),
        space=columns[4].astype(np.int8),
        offsets=np.array([np.frombuffer(o, np.int64) for o, _ in patterns], np.int64).reshape(-1, 32),
        masks=np.array([mask for _, mask in patterns], np.uint32),
    )
    cfg = build_cfg(instructions)
    path = WarpPath(np.arange(len(cfg.blocks), dtype=np.int32), np.full(len(cfg.blocks), 32, np.float32))
    blocks = tuple(
        SampledBlock(linear, launch.coordinates(linear), share, (0,) * warps)
        for linear, share in zip(chosen, shares, strict=True)
    )
    return Profile(
        kernel,
        launch,
        cfg,
        blocks,
        (path,),
        log,
        np.zeros((len(blocks), len(instructions)), np.int64),
        allocations or {},
    )


def sectors(addresses: npt.NDArray[np.int64], mask: int = FULL) -> set[int]:
    """Sectors of one request, by definition."""
    return {int(a) // 32 for n, a in enumerate(addresses) if mask >> n & 1}
