"""Reads that several blocks make of the same sectors, and that reach the L2 as one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.hardware import load_gpu
from drywarp.kernel.launch.launch import Dim3
from drywarp.memory.behaviour import analyse_memory
from drywarp.memory.table import MemoryGeometry
from drywarp.memory.waves import merged_shares
from tests.memory.profiles import LANES, Access, access, geometry, profile

A = 1 << 20
H200 = load_gpu("h200")


def merging(cycles: float = 72.0, reads: float = 4.0, rate: float = 5000.0) -> MemoryGeometry:
    return replace(geometry(), merge_cycles=cycles, merged_reads=reads, l2_rate=rate)


def share(sharers: int, sectors: int, sizes: MemoryGeometry, private: float = 0.0) -> float:
    """Of blocks that read the same sectors once each, while other instructions request `private` ones."""
    asked = np.array([float(sharers * sectors), private])
    found = merged_shares(asked, sharers, {0: (sectors, sectors), 1: (max(private, 1.0), max(private, 1.0))}, sizes)
    return found.get(0, 1.0)


@pytest.mark.parametrize(
    ("kib", "gbs"), [(1536, 13527), (2048, 11745), (3072, 11049), (4096, 10619), (6144, 10260), (10240, 10085)]
)
def test_rates_of_one_set_of_data(kib: int, gbs: float) -> None:
    """gpu-l2-cache on an H200: 264 blocks read 512 KiB each, of `kib` in all; from 12 MiB on, 9770 GB/s."""
    rate, l2 = 9770e9 / H200.device.boost_clock_mhz / 1e6, H200.memory.l2
    sizes = merging(l2.merge_cycles or 0.0, l2.merged_reads or 1.0, rate)
    asked, distinct = np.array([264 * 512 * 1024 / 32]), kib * 1024 / 32
    found = merged_shares(asked, 264, {0: (distinct, 512 * 1024 / 32)}, sizes)
    assert 9770 / found[0] == pytest.approx(gbs, rel=0.08)


@given(
    sharers=st.integers(1, 300),
    sectors=st.integers(1, 100_000),
    cycles=st.floats(1, 1000),
    reads=st.integers(1, 64),
    private=st.integers(0, 10_000_000),
)
def test_shared_reads_cost_no_more_than_unshared_ones_and_no_less_than_one(
    sharers: int, sectors: int, cycles: float, reads: int, private: int
) -> None:
    found = share(sharers, sectors, merging(cycles, reads), private)
    assert 1 / min(reads, sharers) * (1 - 1e-9) <= found <= 1
    assert sharers > 1 or found == 1


@given(sharers=st.integers(2, 200), sectors=st.integers(100, 100_000), more=st.integers(0, 10_000_000))
def test_the_busier_the_l2_is_otherwise_the_fewer_reads_are_merged(sharers: int, sectors: int, more: int) -> None:
    sizes = merging()
    assert share(sharers, sectors, sizes, more) >= share(sharers, sectors, sizes) * (1 - 1e-9)


@pytest.mark.parametrize("wide", [False, True])
def test_what_all_blocks_load_is_merged_and_what_each_loads_is_not(wide: bool) -> None:
    """A block loads 128 bytes: the same as the others, or its own."""

    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(0, A + LANES * 4 + wide * 128 * block[0])]

    shared = profile(["LDG.E R4, [R2.64]"], (64, 1, 1), of, samples=(0, 1, 20, 63), allocations={"a": (A, 1 << 20)})
    sizes = replace(merging(), sm_count=64, blocks_per_sm=1)
    (found,) = analyse_memory(shared, sizes).accesses.values()
    (before,) = analyse_memory(shared, replace(sizes, merge_cycles=0.0)).accesses.values()
    assert before.merged == 1
    assert found.merged == (1 if wide else pytest.approx(1 / 4))
    assert replace(found, merged=1) == before
