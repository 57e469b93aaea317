"""Sectors of many groups of requests at once are those of each group."""

from __future__ import annotations

import numpy as np
import pytest

from drywarp.memory import footprint
from drywarp.memory.footprint import distinct_by_group, distinct_sectors
from tests.memory.profiles import LANES, access, geometry, profile

LOAD = "LDG.E R1, desc[UR4][R2.64]"


@pytest.mark.parametrize("together", [1 << 15, 3])
@pytest.mark.parametrize("shift", [0, 4, 36])
def test_groups_at_once(shift: int, together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(7)

    def accesses(block: tuple[int, int, int], warp: int) -> list[tuple[int, np.ndarray, int, int]]:
        far = 1 << 20
        return [
            access(0, far + 128 * block[0] + 4 * LANES),
            access(1, far + 4096 * warp + 64 * LANES[::-1]),
            access(2, far + 4 * random.integers(0, 5000, 32), mask=int(random.integers(0, 1 << 32))),
            access(3, far - 8192 * warp + 8 * LANES, mask=0x0F0F0000),
            access(0, far + 4 * LANES, mask=0),
        ]

    made = profile([LOAD] * 4, (5, 1, 1), accesses, warps=3)
    monkeypatch.setattr(footprint, "TOGETHER", together)
    rows = np.arange(len(made.accesses))
    groups = [rows[made.accesses.instruction == index] for index in range(4)]
    groups += [rows, rows[:0], rows[::-1], rows[7:8]]
    found = distinct_by_group(made, groups, geometry(), shift)
    for group, runs in zip(groups, found, strict=True):
        assert np.array_equal(runs, distinct_sectors(made, group, geometry(), shift))
