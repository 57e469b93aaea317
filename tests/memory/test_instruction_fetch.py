"""Code that the L2 serves: none where it fits the instruction cache, and what lies beyond at each pass of a block."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from drywarp.kernel.profile import Profile
from drywarp.memory.dram import fetched_sectors
from tests.memory.profiles import profile


def straight(instructions: int, grid: int = 10, warps: int = 4) -> Profile:
    return profile(["MOV R0, RZ"] * (instructions - 1), (grid, 1, 1), lambda block, warp: [], warps=warps)


@pytest.mark.parametrize(("cache", "beyond"), [(1 << 20, 0), (1600, 0), (1584, 16), (800, 800), (1, 1599)])
def test_what_lies_beyond_the_cache_is_fetched_once_for_each_block(cache: int, beyond: int) -> None:
    found = fetched_sectors(straight(100), cache, 1.0, 32)
    assert found == pytest.approx(10 * beyond / 32)
    assert fetched_sectors(straight(100), cache, 0.25, 32) == pytest.approx(found / 4)


def test_what_runs_most_often_stays_in_the_cache() -> None:
    # A loop of 16 instructions behind a head of 32; the head is what does not fit.
    lines = ["MOV R0, RZ"] * 32 + [".L_x_0:"] + ["MOV R0, RZ"] * 15 + ["@P0 BRA `(.L_x_0)"]
    found = profile(lines, (10, 1, 1), lambda block, warp: [])
    path = replace(found.paths[0], blocks=np.array([0] + [1] * 50 + [2], np.int32), lanes=np.full(52, 32, np.float32))
    looped = replace(found, paths=(path,))
    head = 32 * 16
    assert fetched_sectors(looped, 16 * 16 + 64, 1.0, 32) == pytest.approx(10 * (head + 16 - 64) / 32)
