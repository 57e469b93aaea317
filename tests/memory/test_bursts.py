"""Bursts: what a warp issues before it waits for one of its accesses, and what that does to the L1."""

from __future__ import annotations

import numpy as np
import pytest

from drywarp.kernel.launch.launch import Dim3
from drywarp.kernel.profile import SPACE_LOCAL, Profile
from drywarp.memory.behaviour import analyse_memory
from drywarp.memory.requests import bursts_of
from tests.listing import control
from tests.memory.profiles import LANES, Access, access, geometry, profile

KIB = 1 << 10
A = 1 << 20
LOAD = "LDG.E R2, [R4.64]"


def two_loads(waits: tuple[int, ...]) -> Profile:
    """Each block reads its own 4 KiB twice; before the second time it may wait for the first."""

    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(index, A + block[0] * 4 * KIB + LANES * 128) for index in (0, 1)]

    lines = [(LOAD, control(write=0)), (LOAD, control(write=1, waits=waits))]
    return profile(lines, (64, 1, 1), of, allocations={"a": (A, 64 * 4 * KIB)})


def bursts(found: Profile) -> list[int]:
    log = found.accesses
    rows = np.flatnonzero(log.warp == 0)
    return bursts_of(found, rows[np.argsort(log.order[rows])]).tolist()


def test_a_wait_for_an_access_ends_a_burst_and_any_other_does_not() -> None:
    assert bursts(two_loads(())) == [0, 0]
    assert bursts(two_loads((0,))) == [0, 1]
    assert bursts(two_loads((3,))) == [0, 0]


def test_a_step_back_in_the_code_begins_a_burst() -> None:
    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(index, A + LANES * 4) for index in (0, 1, 0, 1, 1)]

    assert bursts(profile([LOAD, LOAD], (4, 1, 1), of)) == [0, 0, 1, 1, 2]


def test_blocks_evict_each_other_between_bursts_only() -> None:
    # Four resident blocks of 4 KiB in an L1 of 8: what a block reads again at once it still finds, but for what its own
    # lines have evicted. The third and the fourth block do so; and after the others, less than half is left.
    sizes = geometry(sms=1, blocks_per_sm=4, l1=8 * KIB)
    assert 0.8 < analyse_memory(two_loads(()), sizes).accesses[1].l1_hit < 1
    assert 0.1 < analyse_memory(two_loads((0,)), sizes).accesses[1].l1_hit < 0.5
    assert analyse_memory(two_loads((0,)), geometry(sms=1, blocks_per_sm=4, l1=16 * KIB)).accesses[1].l1_hit == 1


def test_dram_delivers_no_more_than_the_l1_asks_for() -> None:
    # An L2 of 16 lines keeps nothing for the second time; the L1 keeps some, which DRAM need not deliver again.
    sizes = geometry(sms=1, blocks_per_sm=4, l1=8 * KIB, l2=2 * KIB)
    found = analyse_memory(two_loads((0,)), sizes)
    assert 0 < found.accesses[1].l1_hit < 1
    requested = 64 * 32 * (2 - found.accesses[1].l1_hit)
    assert found.dram_read_bytes == pytest.approx(requested * 32)


def test_local_and_global_memory_share_the_l1() -> None:
    def of(block: Dim3, warp: int) -> list[Access]:
        stored = [access(0, np.zeros(32), space=SPACE_LOCAL)]
        read = [access(1, A + block[0] * 4 * KIB + LANES * 128)]
        return [*stored, *read, access(2, np.zeros(32), space=SPACE_LOCAL)]

    lines = ["STL [R1], R2", LOAD, "LDL R3, [R1]"]
    spilled = profile(lines, (8, 1, 1), of, local_bytes=4, allocations={"a": (A, 32 * KIB)})
    for l1, hit in ((5 * KIB, 1), (128, 0)):
        assert analyse_memory(spilled, geometry(blocks_per_sm=1, l1=l1)).accesses[2].l1_hit == hit


def test_what_is_asked_for_in_the_burst_of_its_miss_is_late() -> None:
    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(index, A + LANES * 4) for index in (0, 1)]

    def both(waits: tuple[int, ...]) -> list[tuple[float, float]]:
        lines = [(LOAD, control(write=0)), (LOAD, control(write=1, waits=waits))]
        found = analyse_memory(profile(lines, (1, 1, 1), of, warps=4), geometry(sms=1, blocks_per_sm=1))
        return [(found.accesses[n].l1_hit, found.accesses[n].l1_late) for n in (0, 1)]

    # One of four warps misses; the others, and all of their next loads, ask for what it has asked for.
    assert both(()) == [(0.75, 0.75), (1, 1)]
    # Whoever waits in between finds it there.
    assert both((0,)) == [(0.75, 0.75), (1, 0)]


def test_what_comes_in_halves_is_late_by_half() -> None:
    # The first load fetches two sectors of the line; the second wants all four, and misses the other two itself.
    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(0, A + LANES // 2 * 4), access(1, A + LANES * 4)]

    found = analyse_memory(profile([(LOAD, control(write=0))] * 2, (1, 1, 1), of), geometry(sms=1, blocks_per_sm=1))
    assert (found.accesses[1].l1_hit, found.accesses[1].l1_late) == (0.5, 0.5)


def test_a_warp_waits_for_the_slowest_load_of_a_burst() -> None:
    # Two loads that miss by turns: the second one's line is what the first one of the next burst asks for.
    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(n % 2, A + (n + n % 2) // 2 * 128 + LANES * 4) for n in range(16)]

    def late(together: bool) -> list[float]:
        waits = ((0, 1), ()) if together else ((0,), (1,))
        lines = [
            (LOAD, control(write=0)),
            ("LDG.E R3, [R6.64]", control(write=1)),
            ("FADD R4, R2, R2", control(waits=waits[0])),
            ("FADD R5, R3, R3", control(waits=waits[1])),
        ]
        found = analyse_memory(profile(lines, (1, 1, 1), of), geometry(sms=1, blocks_per_sm=1))
        assert [found.accesses[n].l1_hit for n in (0, 1)] == [7 / 8, 0]
        return [found.accesses[n].l1_late for n in (0, 1)]

    # Awaited together, the first load's result comes when the second's does; awaited first, it does not.
    assert late(together=True) == [7 / 8, 0]
    assert late(together=False) == [0, 0]


def test_a_table_that_all_blocks_read_is_late_in_the_first_wave_only_if_it_fits() -> None:
    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(0, A + LANES * 4), access(1, A + (1 + block[0]) * 64 * KIB + warp * 4 * KIB + LANES * 128)]

    def late(blocks: int, l1: int) -> float:
        awaited = [("FADD R6, R2, R2", control(waits=[board])) for board in (0, 1)]
        lines = [(LOAD, control(write=0)), (LOAD, control(write=1)), *awaited]
        found = profile(lines, (blocks, 1, 1), of, warps=4)
        return analyse_memory(found, geometry(sms=1, blocks_per_sm=1, l1=l1)).accesses[0].l1_late

    # A line for all, and 128 lines of each block. In nine of ten waves its blocks find the line there, if it stays.
    assert [late(1, 32 * KIB), late(10, 32 * KIB), late(10, 8 * KIB)] == pytest.approx([0.75, 0.075, 0.75])
