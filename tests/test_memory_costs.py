"""λ, Λ and levels of accesses to memory, worked out by hand on a GPU of round numbers (`tests/round_gpu.py`).

There a wavefront of global memory takes 128 B / 64 B = 2 cycles, a pass of the banks 128 B / 128 B = 1 cycle, and
Λ are 20 (shared), 30 (L1), (100 + 200) / 2 = 150 (L2) and 400 (DRAM) cycles.
"""

from __future__ import annotations

from typing import Any

import pytest

from drywarp.hardware import Gpu
from drywarp.hardware.gpu import L3Level
from drywarp.kernel.profile import SPACE_GLOBAL, SPACE_LOCAL, SPACE_SHARED
from drywarp.memory.behaviour import AccessBehaviour
from drywarp.workload.cost import Level, to_ticks
from drywarp.workload.cost_model import dram_share
from drywarp.workload.memory_costs import MemoryCosts
from tests.round_gpu import MIB, round_gpu, ticks

SLOT = 3.0
"""λ of the classes, which is an access's slot of the load-store unit."""


def costs(gpu: Gpu | None = None, blocks: int = 23, clock: float = 1000.0, **moved: float) -> MemoryCosts:
    gpu = gpu or round_gpu()
    index = {name: number for number, name in enumerate(gpu.subsystems)}
    return MemoryCosts(gpu, clock, blocks, index, moved.get("read", 1.0), moved.get("write", 0.0))


def access(units: float, space: int = SPACE_GLOBAL, **others: Any) -> AccessBehaviour:
    return AccessBehaviour(100.0, space, units, **{"lines": 1.0, "l1_hit": 1.0, "l2_hit": 1.0, "passes": 1.0, **others})


def named(gpu: Gpu, levels: tuple[Level, ...]) -> dict[str, tuple[int, int]]:
    names = list(gpu.subsystems)
    return {names[level.subsystem]: (level.lambda_ticks, level.tail_ticks) for level in levels}


@pytest.mark.parametrize(
    ("what", "behaviour", "lambda_", "latency"),
    [
        # One line, one wavefront of 2 cycles, which the slot of 3 covers.
        ("consecutive floats", access(4), 3, 30),
        ("broadcast", access(1), 3, 30),
        # 2 lines: 2 wavefronts, 4 cycles; the last comes 2 cycles after the first.
        ("consecutive doubles", access(8, lines=2.0, passes=2.0), 4, 32),
        # 16 bytes a lane: 512 B are 4 lines, 8 cycles.
        ("consecutive float4", access(16, lines=4.0, passes=4.0), 8, 36),
        # 32 sectors are worth 8 lines, but 32 lines take 32 / 2 look-ups.
        ("a sector a lane", access(32, lines=32.0), 32, 60),
        # 9 sectors are worth 9 / 4 lines, more than the 3 / 2 look-ups.
        ("misaligned doubles", access(9, lines=3.0), 2 * 9 / 4, 30 + 2 * 9 / 4 - 2),
        ("8 lines of a sector", access(8, lines=8.0), 8, 36),
        # The mean of an execution of 12 lines and one of none, which takes its slot: (6 + 1) / 2 wavefronts.
        ("12 lines every other time", access(6, lines=6.0, passes=0.5, requests=0.5), 7, 35),
        # 48 passes of the banks that are the L1's data stage too.
        ("a column of wide rows", access(32, lines=32.0, passes=48.0), 48, 76),
        # Half of the executions have no lane that is on: the mean of 4 and of 1 wavefronts.
        ("half idle", access(8, lines=2.0, passes=0.5, requests=0.5), 2 * 2.5, 30 + 5 - 2),
        ("half idle, by banks", access(2, lines=0.5, passes=16.0, requests=0.5), 16.5, 30 + 16.5 - 2),
    ],
)  # fmt: skip
def test_wavefronts_of_global_accesses(what: str, behaviour: AccessBehaviour, lambda_: float, latency: float) -> None:
    assert costs().cost(False, behaviour, SLOT) == (pytest.approx(lambda_), pytest.approx(latency), ())


@pytest.mark.parametrize(
    ("what", "behaviour", "returned", "lambda_"),
    [
        # 32 lanes of 16 bytes fill 4 registers, at 2 cycles each, though all read the same sector.
        ("one float4 for all lanes", access(1), 512, 8),
        ("consecutive float4, which are as many lines", access(16, lines=4.0, passes=4.0), 512, 8),
        ("one float for all lanes", access(1), 128, 3),
        # The mean of four registers and of the wavefront of an execution without a lane.
        ("half idle", access(0.5, lines=0.5, passes=0.5, requests=0.5), 512, 5),
    ],
)
def test_a_load_takes_a_wavefront_for_each_register_that_it_fills(
    what: str, behaviour: AccessBehaviour, returned: int, lambda_: float
) -> None:
    assert costs().cost(False, behaviour, SLOT, returned=returned)[0] == lambda_


def test_a_slot_shorter_than_a_wavefront_is_what_one_wavefront_takes() -> None:
    # λ of the class is 1 cycle: so is a wavefront, though the L1's rate says 2; four of them take 4.
    assert costs().cost(False, access(16, lines=4.0, passes=4.0), 1.0) == (4, 33, ())
    # And a slot of half a cycle makes passes of half a cycle: 8 of them take 4.
    assert costs().cost(True, access(8, SPACE_SHARED), 0.5) == (4, 20 + 3.5, ())


def test_banks_of_half_the_rate_take_twice_the_time_for_a_pass() -> None:
    # 128 B at 64 B a cycle: a pass takes 2 cycles, a column of 32 passes 64, with a quarter of idle ones 24.25 · 2.
    slow = costs(round_gpu(shared_rate=64.0))
    assert slow.cost(False, access(32, lines=32.0, passes=32.0), SLOT) == (64, 30 + 62, ())
    idle = access(24, lines=24.0, passes=24.0, requests=0.75)
    assert slow.cost(False, idle, SLOT) == (48.5, 30 + 46.5, ())
    assert slow.cost(True, access(32, SPACE_SHARED), SLOT) == (64, 20 + 62, ())


@pytest.mark.parametrize(
    ("what", "units", "requests", "lambda_", "latency"),
    [
        ("without conflicts", 1, 1.0, 3, 20),
        ("8 bytes a lane", 2, 1.0, 3, 21),
        ("16 bytes a lane", 4, 1.0, 4, 23),
        ("all in one bank", 32, 1.0, 32, 51),
        ("a quarter idle, 8 wavefronts in the others", 6, 0.75, 6.25, 25.25),
        ("never executed", 0, 0.0, 3, 20),
    ],
)
def test_wavefronts_of_shared_accesses(
    what: str, units: float, requests: float, lambda_: float, latency: float
) -> None:
    found = costs().cost(True, access(units, SPACE_SHARED, requests=requests), SLOT)
    assert found == (lambda_, latency, ())


def test_what_nobody_saw_costs_its_slot_and_a_hit() -> None:
    assert costs().cost(True, None, SLOT) == (3, 20, ())
    assert costs().cost(False, None, SLOT) == (3, 30, ())
    assert costs().bulk_cost(None, SLOT, 50.0) == (3, 50, ())


def test_latency_is_the_mean_over_where_the_sectors_are_found() -> None:
    # Half hits the L1 (30), of the rest three quarters the L2 (150), the others come from DRAM (400):
    # 15 + (112.5 + 100) / 2 = 121.25 cycles.
    _, latency, _ = costs().cost(False, access(4, l1_hit=0.5, l2_hit=0.75), SLOT)
    assert latency == 121.25
    # The same of local memory, with 2 cycles more for its second wavefront.
    _, latency, _ = costs().cost(False, access(8, SPACE_LOCAL, l1_hit=0.5, l2_hit=0.75, lines=2.0), SLOT)
    assert latency == 123.25


def test_a_late_hit_waits_as_long_as_a_miss() -> None:
    # A quarter misses, a quarter is still on its way: 15 + 150 / 2; what goes to the L2 is the misses alone.
    _, latency, levels = costs().cost(False, access(4, l1_hit=0.75, l1_late=0.25), SLOT)
    assert latency == 90
    assert levels == costs().cost(False, access(4, l1_hit=0.75), SLOT)[2]


def test_dram_serves_what_no_cache_does() -> None:
    # Half misses the L1, a quarter of that the L2.
    assert dram_share(access(4, l1_hit=0.5, l2_hit=0.75)) == 0.125
    assert dram_share(access(4, SPACE_LOCAL, l1_hit=0.5, l2_hit=0.75)) == 0.125
    assert dram_share(access(4, SPACE_SHARED, l1_hit=0.0, l2_hit=0.0)) == 0
    assert dram_share(None) == 0


def test_levels_take_bytes_times_sms_over_bandwidth() -> None:
    gpu = round_gpu()
    mine = access(4, l1_hit=0.5, l2_hit=0.75, dram_read=0.5, dram_write=0.25)
    _, _, levels = costs(gpu, blocks=40).cost(False, mine, SLOT)
    # L2: 2 sectors, 64 B · 10 SMs / 100 B a cycle = 6.4 cycles. DRAM: 0.75 sectors, 24 B · 10 / 100 = 2.4 cycles.
    # 40 blocks fill all 10 SMs evenly: the tail is as the rest.
    assert named(gpu, levels) == {"l2": (ticks(6.4), ticks(6.4)), "dram": (ticks(2.4), ticks(2.4))}


def test_the_partial_last_wave_shares_the_bandwidth_among_fewer() -> None:
    gpu = round_gpu()
    mine = access(4, l1_hit=0.0, l2_hit=0.0, dram_read=4.0)
    # 23 blocks on 10 SMs: 3 work in the tail. 128 B · 10 / 100 = 12.8 cycles, then 128 · 3 / 100 = 3.84.
    assert named(gpu, costs(gpu, blocks=23).cost(False, mine, SLOT)[2]) == {
        "l2": (ticks(12.8), ticks(3.84)),
        "dram": (ticks(12.8), ticks(3.84)),
    }
    # 21 blocks: one alone works, and takes in 64 B a cycle, as its L1 does: 2 cycles, where its share would be 1.28.
    assert named(gpu, costs(gpu, blocks=21).cost(False, mine, SLOT)[2])["dram"] == (ticks(12.8), ticks(2))


def test_an_sm_takes_in_no_more_than_its_port_lets_through() -> None:
    gpu = round_gpu(intake=8.0)
    mine = access(4, l1_hit=0.0, l2_hit=1.0)
    # 128 B / 8 B = 16 cycles, more than the 12.8 of its share of the L2.
    assert named(gpu, costs(gpu).cost(False, mine, SLOT)[2]) == {"l2": (ticks(16), ticks(16))}


def test_stores_write_to_dram_at_the_rate_of_their_mixture() -> None:
    gpu = round_gpu()
    mine = access(4, l1_hit=0.0, l2_hit=1.0, dram_write=4.0)
    # Writing alone reaches 60 GB/s: 128 · 10 / 60 = 21.33 cycles. Half and half 80: 16. A quarter written: 90.
    for read, write, rate in ((0.0, 1.0, 60), (5.0, 5.0, 80), (3.0, 1.0, 90), (1.0, 3.0, 70), (1.0, 0.0, 100)):
        found = named(gpu, costs(gpu, blocks=10, read=read, write=write).cost(False, mine, SLOT)[2])
        assert found["dram"] == (to_ticks(1280 / rate),) * 2


def test_dram_keeps_its_pace_at_half_the_clock() -> None:
    gpu = round_gpu()
    mine = access(4, l1_hit=0.0, l2_hit=0.0, dram_read=4.0)
    _, latency, levels = costs(gpu, blocks=10, clock=500.0).cost(False, mine, SLOT)
    # The L2 takes its 150 cycles at any clock; what DRAM adds is 250 ns, 125 cycles of 2 ns.
    assert latency == 275
    # 100 GB/s are 200 B a cycle of 2 ns: 1280 / 200 = 6.4 cycles, while the L2's λ stays 12.8.
    assert named(gpu, levels) == {"l2": (ticks(12.8),) * 2, "dram": (ticks(6.4),) * 2}


def test_a_third_level_stands_between_the_l2_and_dram() -> None:
    gpu = round_gpu(base="mi300x", l3=L3Level(bytes=8 * MIB, bytes_per_cycle=50.0, latency_ns=300.0))
    sector = gpu.memory.sector_bytes
    mine = access(4, l1_hit=0.0, l2_hit=0.5, l3_hit=0.25, dram_read=1.5, dram_write=1.0)
    _, latency, levels = costs(gpu, blocks=10, clock=500.0).cost(False, mine, SLOT)
    # At half the clock Λ of the L3 is 150 + (300 - 150) / 2 = 225, of DRAM 275:
    # 150 / 2 + (225 / 4 + 275 · 3 / 4) / 2 = 206.25 cycles, and what the accesses themselves take beyond a wavefront.
    busy, _, _ = costs(gpu, blocks=10).cost(False, access(4), SLOT)
    wavefront = gpu.memory.line_bytes / 64
    moved = max(1.0, 4 * sector / gpu.memory.line_bytes, 1 / 4) * min(SLOT, wavefront)
    assert latency == pytest.approx(206.25 + max(moved, 1) - min(SLOT, wavefront))
    assert busy == max(SLOT, moved)
    # L2: 4 sectors at 100 B a cycle. L3: the 2 that miss it and 1 that is written, at 50. DRAM: 2.5 at 200.
    found = named(gpu, levels)
    assert found["l2"][0] == to_ticks(4 * sector * 10 / 100)
    assert found["l3"][0] == to_ticks(3 * sector * 10 / 50)
    assert found["dram"][0] == to_ticks(2.5 * sector * 10 / 200)


def test_a_bulk_copy_takes_a_slot_for_each_line_and_time_of_the_banks() -> None:
    gpu = round_gpu(base="h100")
    # 64 sectors are 2048 B: 16 lines, 48 cycles of the copy engine; 2048 / (32 · 4) = 16 cycles of the banks;
    # 2048 · 10 / 100 = 204.8 cycles of the L2; 16 sectors from DRAM, 512 · 10 / 100 = 51.2.
    mine = access(64, l2_hit=0.75, dram_read=16.0)
    lambda_, latency, levels = costs(gpu, blocks=10).bulk_cost(mine, SLOT, 50.0)
    assert lambda_ == 48
    assert latency == 50 + 0.75 * 150 + 0.25 * 400
    assert named(gpu, levels) == {
        "async_shared": (ticks(16), ticks(16)),
        "l2": (ticks(204.8), ticks(204.8)),
        "dram": (ticks(51.2), ticks(51.2)),
    }
    assert [level.queues for level in levels] == [False, True, True]
    # A store of 8 sectors, all written to DRAM. 256 B: 2 slots.
    lambda_, _, levels = costs(gpu, blocks=10).bulk_cost(access(8, dram_write=8.0), SLOT, 50.0)
    assert lambda_ == 6
    assert named(gpu, levels)["dram"] == (ticks(25.6), ticks(25.6))
    # One sector takes the slot of a line; one that moves nothing visits nothing further.
    assert costs(gpu).bulk_cost(access(1), SLOT, 50.0)[0] == SLOT
    assert set(named(gpu, costs(gpu).bulk_cost(access(0), SLOT, 50.0)[2])) == {"async_shared"}
