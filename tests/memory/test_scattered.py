"""Sectors that lie apart from each other, each of which opens a row of DRAM."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.hardware import load_gpu
from drywarp.memory.behaviour import AccessBehaviour, analyse_memory
from drywarp.memory.table import MemoryGeometry
from drywarp.workload.memory_costs import MemoryCosts
from tests.memory.profiles import LANES, access, geometry, profile

A = 1 << 30
ROWS = replace(geometry(), row_bytes=2048)
GPU = load_gpu("rtx3080")


def behaviour(stride: int, lanes: int = 32, sizes: MemoryGeometry = ROWS) -> AccessBehaviour:
    mask = (1 << lanes) - 1
    made = profile(
        ["LDG.E R2, desc[UR4][R4.64]"],
        (8, 1, 1),
        lambda block, warp: [access(0, A + LANES * stride + block[0] * 32 * stride, mask)],
    )
    return analyse_memory(made, sizes).accesses[0]


@given(stride=st.sampled_from([4, 32, 128, 512, 1024, 2048, 4096, 40960]), lanes=st.integers(1, 32))
def test_sectors_in_as_many_rows_as_there_are(stride: int, lanes: int) -> None:
    """At least eight sectors of a request that are a row apart; never fewer, and never closer ones."""
    apart = behaviour(stride, lanes).apart
    assert apart == (1.0 if stride >= 2048 and lanes >= 8 else 0.0)


def test_rows_that_are_not_known() -> None:
    assert behaviour(4096, sizes=geometry()).apart == 0


def test_mixed_requests() -> None:
    """Half of an instruction's sectors lie apart."""
    made = profile(
        ["LDG.E R2, desc[UR4][R4.64]"],
        (8, 1, 1),
        lambda block, warp: [access(0, A + LANES * (4096 if block[0] % 2 else 32) + (block[0] << 20))],
    )
    assert analyse_memory(made, ROWS).accesses[0].apart == pytest.approx(0.5)


@given(apart=st.floats(0, 1), read=st.floats(0, 32))
def test_scattered_sectors_take_as_long_as_their_rate_says(apart: float, read: float) -> None:
    dram = GPU.memory.dram
    assert dram.scattered_gbs is not None
    costs = MemoryCosts(GPU, GPU.device.boost_clock_mhz, 680, {"l2": 0, "dram": 1}, 1.0, 0.0)

    def taken(share: float) -> float:
        one = AccessBehaviour(1.0, 0, read, read, dram_read=read, apart=share)
        return sum(level.lambda_ticks for level in costs.cost(False, one, 1.0)[2] if level.subsystem == 1)

    slower = 1 + apart * (dram.read_gbs / dram.scattered_gbs - 1)
    assert taken(apart) == pytest.approx(taken(0.0) * slower, rel=0.01, abs=1)


def test_the_published_rates_of_two_programs() -> None:
    """remap_kernel moves 213 GB/s and pcc's ker2 220 (HeCBench); 16 banks in each of 20 channels, a row in 47 ns."""
    rate = GPU.memory.dram.scattered_gbs
    assert rate is not None
    assert 213 <= rate <= 220
    assert rate == pytest.approx(16 * 20 * 32 / 47, rel=0.01)
    assert np.isclose(GPU.memory.dram.row_bytes, 2048)
