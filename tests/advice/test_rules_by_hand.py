"""What each rule says of small code, with its numbers worked out by hand, and where it just has nothing to say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from drywarp.analysis.advice.case import Setting
from drywarp.analysis.advice.resimulate import reuse_by_buffer
from drywarp.analysis.advice.rules.collisions import lanes_per_address
from drywarp.analysis.advice.rules.idle_threads import smaller_clusters
from drywarp.analysis.advice.rules.redundant_loads import reads_per_value, words_per_operation
from drywarp.analysis.advice.rules.slow_arithmetic import division_instructions, division_starts, refinement
from drywarp.analysis.advice.rules.tensor_memory import readers_phases, without_waits
from drywarp.analysis.advice.rules.uneven_work import imbalance
from drywarp.analysis.prepare import prepare_kernel
from drywarp.hardware import Gpu, load_gpu
from drywarp.kernel.launch.launch import Dim3
from drywarp.kernel.profile import SPACE_GLOBAL, SPACE_SHARED, Profile, WarpPath
from drywarp.memory.behaviour import AccessBehaviour
from drywarp.workload.cost import SYNC_AWAITS, SYNC_SIGNALS, BlockType, CostedNode, CostedPath
from tests.advice.cases import A, B, case, look, places, seen, setting
from tests.memory.profiles import LANES, Access, access
from tests.test_cluster_times import ARGS, COPIED, COPY

LOAD, STORE = "LDG.E R4, [R2.64]", "STG.E [R2.64], R4"
CONSECUTIVE, COLUMN = A + LANES * 4, A + LANES * 128
ADD = "FADD R4, R4, R5"
BUSY = {"dram": 0.8, "lsu": 0.4, "l2": 0.6}


# Memory ---------------------------------------------------------------------------------------------------------


def test_uncoalesced_accesses_by_sectors() -> None:
    # 8 times the sectors in a load, twice in a store. 28 and 4 sectors too many, so the load comes first.
    made = setting(
        LOAD, LOAD, STORE,
        accesses=[access(0, CONSECUTIVE), access(1, COLUMN), access(2, B + LANES * 8)],
    )  # fmt: skip
    found = seen("uncoalesced-access", made, use=BUSY)
    assert found.evidence == (
        "32.0 sectors per request where 4.0 hold the same bytes, and 1 other instructions like it"
    )  # fmt: skip
    assert places(found) == [2, 3]
    assert found.weight == pytest.approx(0.8 * 7 / 8)  # DRAM is the busiest


@pytest.mark.parametrize(
    ("addresses", "fires"),
    [
        (A + 4 + LANES * 4, True),  # 5 sectors for 4: a quarter more
        (A + LANES // 8 * 32, False),  # 4 words of as many sectors: what 4 sectors hold is more than they ask for
        (A + LANES * 8, True),
        (A + LANES * 4, False),
        (A + LANES * 0, False),
    ],
)
def test_a_quarter_more_sectors_are_too_many(addresses: np.ndarray, fires: bool) -> None:
    assert (look("uncoalesced-access", setting(LOAD, accesses=[access(0, addresses)])) is not None) == fires


def test_wide_loads_off_by_one_are_not_worth_a_word() -> None:
    # 9 sectors for 8.
    made = setting("LDG.E.64 R4, [R2.64]", accesses=[access(0, A + 8 + LANES * 8)])
    assert look("uncoalesced-access", made) is None
    # Atomics and shared memory are other rules' matter.
    shared = access(1, LANES * 128, space=SPACE_SHARED)
    made = setting("RED.E.ADD.STRONG.GPU [R2.64], R4", "LDS R4, [R2]", accesses=[access(0, COLUMN), shared])
    assert look("uncoalesced-access", made) is None


def test_what_is_lost_most_often_comes_first() -> None:
    """The second load loses 4 sectors 10 times over, the first 28 once."""

    def change(made: Profile) -> Profile:
        path = WarpPath(np.array([0, *[1] * 10, 2], np.int32), np.full(12, 32, np.float32))
        return replace(made, paths=(path,))

    code = (LOAD, ".L_0:", LOAD, "@P0 BRA `(.L_0)")
    often = [access(1, B + LANES * 8)] * 10
    made = setting(*code, accesses=[access(0, COLUMN), *often], change=change)
    assert made.executions[:2] == [40, 400]
    assert places(seen("uncoalesced-access", made)) == [3, 1]
    # Of shared memory: 7 wavefronts too many, and 4 of 8 that 16 bytes a lane take.
    shared = setting(
        "LDS.128 R4, [R2]",
        "LDS R4, [R2]",
        accesses=[access(0, LANES * 32, space=SPACE_SHARED), access(1, LANES * 32, space=SPACE_SHARED)],
    )
    assert places(seen("bank-conflicts", shared)) == [2, 1]


def test_requests_without_an_active_lane_do_not_thin_out_the_evidence() -> None:
    made = setting("@P0 " + LOAD, warps=2, accesses=lambda block, warp: [access(0, COLUMN)] if warp else [])
    assert made.behaviour.accesses[0].units == 16
    found = seen("uncoalesced-access", made)
    assert found.evidence == "32.0 sectors per request where 4.0 hold the same bytes"


def shared_every(conflicts: int, of: int) -> Setting:
    """One in so many warps has a conflict of two."""

    def accesses(block: Dim3, warp: int) -> list[Access]:
        return [access(0, LANES * (8 if warp < conflicts else 4), space=SPACE_SHARED)]

    return setting("LDS R4, [R2]", accesses=accesses, warps=of)


def test_bank_conflicts_by_wavefronts() -> None:
    made = setting(
        "STS [R2], R4", "LDS R4, [R2]", "LDS R5, [R2]",
        accesses=[
            access(0, LANES * 8, space=SPACE_SHARED), access(1, LANES * 128, space=SPACE_SHARED),
            access(2, LANES * 4, space=SPACE_SHARED),
        ],
    )  # fmt: skip
    found = seen("bank-conflicts", made, use={"lsu": 0.64})
    assert found.evidence == "32.0 wavefronts per access where 1.0 would do"
    assert places(found) == [2, 1]
    assert found.weight == pytest.approx(0.64 * 31 / 32)
    # 17 wavefronts of 16 requests are 6 % too many, 33 of 32 are 3 %.
    assert look("bank-conflicts", shared_every(1, 16)) is not None
    assert look("bank-conflicts", shared_every(1, 32)) is None
    assert look("bank-conflicts", setting("LDS.128 R4, [R2]", accesses=[access(0, LANES * 16, space=1)])) is None


def test_constants_by_addresses_per_load() -> None:
    load = "LDC R4, c[0x3][R2]"
    made = setting(load, ADD, load, change=lambda seen: replace(seen, constant_addresses={0: 4.0, 2: 6.0}))
    found = seen("divergent-constants", made, use={"adu": 0.9})
    assert found.evidence == "6.0 addresses per load of constants, which are served one after another"
    assert places(found) == [3, 1]
    assert found.weight == pytest.approx(0.9 * 5 / 6)
    assert look("divergent-constants", setting(load)) is None


def test_atomics_by_lanes_at_an_address() -> None:
    red, shared = "RED.E.ADD.STRONG.GPU [R2.64], R4", "ATOMS.ADD R4, [R2], R5"
    # 40 blocks of one warp; 32 lanes at 8 addresses.
    made = setting(ADD, red, accesses=[access(1, A + LANES // 4 * 4)])
    found = seen("atomics", made, stalls={"selected": 6.0, "lg_throttle": 2.0}, nodes={1: {"lg_throttle": 2.0}})
    assert found.evidence == "40 warp-level atomics, 4.0 lanes per distinct address"
    assert places(found) == [2]
    # A quarter of the time is spent there, and a third of the instructions (with EXIT) are atomics.
    assert found.weight == pytest.approx(0.25 + 1 / 3)
    # Global ones are worth a word wherever they go, shared ones where two lanes meet in the mean.
    assert look("atomics", setting(red, accesses=[access(0, CONSECUTIVE)])) is not None
    for addresses, fires in ((LANES * 4, False), (LANES // 2 * 4, True), (np.maximum(LANES - 1, 0) * 4, False)):
        made = setting(shared, accesses=[access(0, addresses, space=SPACE_SHARED)])
        assert (look("atomics", made) is not None) == fires
    assert look("atomics", setting(LOAD, accesses=[access(0, COLUMN)])) is None
    mixed = setting(red, red, accesses=[access(0, A + LANES * 0), access(1, CONSECUTIVE), access(1, CONSECUTIVE, 0)])
    assert lanes_per_address(mixed, [0, 1]) == 64 / 33
    assert lanes_per_address(mixed, []) == 1


def test_data_that_a_block_asks_for_again() -> None:
    # 4 warps ask for the same line of `a` and for a line of `b` each.
    def accesses(block: Dim3, warp: int) -> list[Access]:
        return [access(0, CONSECUTIVE), access(1, B + warp * 128 + LANES * 4)]

    made = setting(LOAD, LOAD, accesses=accesses, warps=4)
    reuse = reuse_by_buffer(made)
    assert (reuse["a"].requested, reuse["a"].distinct, reuse["a"].times, reuse["a"].instructions) == (16, 4, 4, (0,))
    assert (reuse["b"].requested, reuse["b"].distinct, reuse["b"].times) == (16, 16, 1)
    found = seen("redundant-loads", made, use={"dram": 0.3}, stalls={"selected": 1.0, "long_scoreboard": 1.0})
    assert found.evidence == "a block requests each sector several times: a 4 times"
    assert places(found) == [1]
    assert found.weight == 0.25  # half of the share of waiting, which is more than DRAM's use
    assert found.what_if.name == "each sector loaded once per block"
    # Where the load-store unit is busy, or warps wait for it, fewer loads help as well.
    for words in ({"use": {"lsu": 0.6}}, {"stalls": {"selected": 3.0, "lg_throttle": 0.6, "mio_throttle": 0.4}}):
        assert "a quarter of the loads" in seen("redundant-loads", made, **words).what_if.name
    for words in ({"use": {"lsu": 0.59}}, {"stalls": {"selected": 3.1, "short_scoreboard": 1.0}}):
        assert "a quarter" not in seen("redundant-loads", made, **words).what_if.name
    assert seen("redundant-loads", made, use={"lsu": 0.8}).weight == pytest.approx(0.8 * 0.75 / 2)
    # Also of one value that all lanes take: 4 warps, one sector.
    one = reuse_by_buffer(setting(LOAD, accesses=[access(0, A + LANES * 0)], warps=4))["a"]
    assert (one.requested, one.distinct, one.times) == (4, 1, 4)
    # 2 warps at one line ask twice; 8 of 9 at lines of their own do not.
    twice = setting(LOAD, accesses=[access(0, CONSECUTIVE)], warps=2)
    assert look("redundant-loads", twice) is not None
    once = setting(LOAD, accesses=lambda block, warp: [access(0, CONSECUTIVE + max(0, warp - 1) * 128)], warps=9)
    assert look("redundant-loads", once) is None


def test_values_in_shared_memory_that_are_read_often() -> None:
    def made(loads: int, adds: int, store: str = "STS [R2], R4") -> Setting:
        code = [store, *["LDS R4, [R2]"] * loads, *[ADD] * adds]
        return setting(*code, accesses=[access(n, LANES * 4, space=SPACE_SHARED) for n in range(loads + 1)])

    # 4 loads of 4 bytes for each 4 that are stored, and 8 additions: half a word for each.
    some = made(4, 8)
    assert (reads_per_value(some), words_per_operation(some)) == (4, 0.5)
    found = seen("redundant-loads", some, use={"lsu": 0.8})
    assert found.evidence == "each shared-memory value is read 4 times; the load-store unit is busy 80%"
    assert found.weight == pytest.approx(0.6)
    assert look("redundant-loads", some, use={"lsu": 0.59}) is None
    assert look("redundant-loads", made(3, 6), use={"lsu": 0.8}) is None
    assert look("redundant-loads", made(4, 9), use={"lsu": 0.8}) is None
    # 16 bytes put at once: four loads of 4 bytes read each of them once. Without operations there is no end of words.
    assert reads_per_value(made(4, 8, "STS.128 [R2], R4")) == 1
    assert words_per_operation(made(4, 0)) == float("inf")
    copied = setting("LDGSTS.E [R3], [R4.64]", "LDS.64 R4, [R2]")
    assert reads_per_value(copied) == 2
    assert reads_per_value(setting("LDS R4, [R2]")) == 0
    # More loads from global memory than from shared: those are what is looked at.
    outside = setting(*["LDS R4, [R2]"] * 4, "STS [R2], R4", *[LOAD] * 4)
    assert look("redundant-loads", outside, use={"lsu": 0.8}) is None


def test_local_memory() -> None:
    made = setting("STL [R1], R4", "LDL R4, [R1]", ADD, ADD)
    found = seen("register-spills", made, stalls={"selected": 8.0}, nodes={0: {"wait": 1.0}, 1: {"wait": 1.0}})
    # 2 of 5 instructions, EXIT included; a quarter of the time.
    assert found.evidence == ("40.0% of the instructions access local memory (64 B per thread; spills unknown)")
    assert found.weight == pytest.approx(0.4 + 0.25)
    assert places(found) == [1, 2]
    assert look("register-spills", setting(LOAD, ADD)) is None


# Waiting --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stalls", "use", "what", "percent", "weight"),
    [
        ({"long_scoreboard": 6.0, "wait": 1.0, "selected": 3.0}, {}, "twice the loads in flight", "60%", 0.3),
        ({"long_scoreboard": 2.0, "wait": 2.0, "short_scoreboard": 1.0, "selected": 5.0}, {},
         "twice the independent arithmetic", "30%", 0.15),
        ({"long_scoreboard": 3.0, "wait": 3.0, "selected": 4.0}, {}, "twice the loads in flight", "30%", 0.15),
        ({"long_scoreboard": 1.5, "selected": 8.5}, {"dram": 0.97}, "twice the loads in flight", "15%", 0.075),
        ({"long_scoreboard": 1.4, "wait": 1.4, "selected": 7.2}, {}, "", "", 0),
        ({"long_scoreboard": 6.0, "selected": 4.0}, {"dram": 0.98}, "", "", 0),  # nothing is faster than DRAM
    ],
)  # fmt: skip
def test_waiting_for_memory_or_arithmetic(
    stalls: dict[str, float], use: dict[str, float], what: str, percent: str, weight: float
) -> None:
    made = setting(LOAD, ADD, grid=40, warps=2, resident=3)
    nodes = {1: {"long_scoreboard": 5.0, "wait": 5.0}, 0: {"long_scoreboard": 0.4, "wait": 0.4, "selected": 9.0}}
    found = look("latency-bound", made, stalls=stalls, use=use, nodes=nodes)
    if not what:
        assert found is None
        return
    assert found is not None
    assert found.what_if.name == what
    assert found.evidence.startswith(percent)
    assert found.evidence.endswith("at 6 warps per SM")
    assert found.weight == pytest.approx(weight)
    assert places(found) == [2]  # nine tenths of the waiting is there


def test_the_lines_that_wait_for_nine_tenths_of_the_time() -> None:
    made = setting(LOAD, LOAD, LOAD, ADD)
    nodes = {n: {"long_scoreboard": wait} for n, wait in ((0, 3.0), (1, 6.0), (2, 1.0), (3, 0.0))}
    stalls = {"long_scoreboard": 10.0}
    assert places(seen("latency-bound", made, stalls=stalls, nodes=nodes)) == [2, 1]
    nodes[0] = {"long_scoreboard": 2.9}
    assert places(seen("latency-bound", made, stalls=stalls, nodes=nodes)) == [2, 1, 3]


def test_waiting_at_barriers() -> None:
    bar = "BAR.SYNC 0x0"
    made = setting(bar, ADD, bar, ADD, ADD)
    # The time is booked behind the barrier: 1 behind the first, 2 behind the second.
    nodes = {1: {"barrier": 1.0}, 3: {"barrier": 2.0}, 4: {"wait": 9.0}}
    found = seen("barrier-waits", made, stalls={"barrier": 3.0, "selected": 27.0}, nodes=nodes)
    assert found.evidence == "10% of warp time is spent at barriers; the code has 2"
    assert (places(found), found.weight) == ([3, 1], pytest.approx(0.05))
    for share, use, fires in ((0.031, 0.97, True), (0.029, 0.97, False), (0.031, 0.98, False)):
        stalls = {"barrier": share, "selected": 1 - share}
        assert (look("barrier-waits", made, stalls=stalls, use={"fma": use}) is not None) == fires


def test_waiting_for_products_and_copies() -> None:
    code = (
        "HGMMA.64x8x16.F32 R8, gdesc[UR4], R8, gsb0",
        "WARPGROUP.DEPBAR.LE gsb0, 0x0",
        "UTMALDG.2D [UR8], [UR12]",
        "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R2+URZ], R4",
        ADD,
    )
    made = setting(*code, gpu=load_gpu("h100"))
    nodes = {1: {"gmma": 2.0}, 3: {"short_scoreboard": 3.0}, 4: {"gmma": 1.0, "short_scoreboard": 3.0}}
    stalls = {"gmma": 3.0, "short_scoreboard": 6.0, "selected": 21.0}
    found = seen("product-waits", made, stalls=stalls, nodes=nodes, use={"tensor": 0.5})
    assert (
        found.evidence
        == "10% of warp time is spent waiting for products, while the tensor cores are busy 50% of the time"
    )
    assert (places(found), found.weight) == ([2, 5], pytest.approx(0.05))
    found = seen("copy-waits", made, stalls=stalls, nodes=nodes)
    assert found.evidence == "10% of warp time is spent at barriers in shared memory"
    assert (places(found), found.weight) == ([4], pytest.approx(0.05))
    for rule in ("product-waits", "copy-waits"):
        assert look(rule, made, stalls=stalls, nodes=nodes, use={"l2": 0.98}) is None
        assert look(rule, made, stalls={"selected": 200.0, "gmma": 3.0}, nodes=nodes) is None
        assert look(rule, setting(code[1], code[3], gpu=load_gpu("h100")), stalls=stalls, nodes=nodes) is None


def test_tiles_that_several_blocks_copy() -> None:
    code = ("UTMALDG.2D [UR8], [UR12]", "UTMALDG.2D [UR8], [UR16]", "UTMALDG.2D.MULTICAST [UR8], [UR12], UR4", ADD)
    small = AccessBehaviour(40, SPACE_GLOBAL, 512, 128, l2_hit=0.75)
    large = AccessBehaviour(40, SPACE_GLOBAL, 1024, 256, l2_hit=0.875)
    tiles = {0: small, 1: large, 2: large}

    def made(hits: float = 0.875, grid: int = 40, *, first: int = 0) -> Setting:
        accesses = {n: replace(tiles[n], l2_hit=min(hits, tiles[n].l2_hit)) for n in range(first, 3)}
        behaviour = replace(setting(ADD).behaviour, accesses=accesses)
        logged = [access(0, A + LANES * 16), access(1, B + LANES * 16)]
        return setting(*code, gpu=load_gpu("h100"), grid=grid, behaviour=behaviour, accesses=logged)

    found = seen("multicast", made(), use={"l2": 0.8})
    assert (
        found.evidence == "L2 is busy 80% of the time; 88% of the bytes copied as tiles of b are in L2 because "
        "another block has copied them too"
    )
    assert (places(found), found.weight) == ([2], pytest.approx(0.2))
    assert found.remedy == "let clusters of two blocks share tiles of b by multicast"
    assert look("multicast", made(), use={"l2": 0.74}) is None
    assert look("multicast", made(hits=0.49), use={"l2": 0.8}) is None
    assert look("multicast", made(first=2), use={"l2": 0.8}) is None
    assert look("multicast", made(grid=1), use={"l2": 0.8}) is None


def test_tiles_that_are_smaller_than_an_sm_has_room_for() -> None:
    code = ("UTMALDG.2D [UR8], [UR12]", "UTMALDG.2D [UR8], [UR16]", "HGMMA.64x8x16.F32 R8, gdesc[UR4], R8, gsb0", ADD)
    some = AccessBehaviour(40, SPACE_GLOBAL, 512, 128, l2_hit=0.75)
    behaviour = replace(setting(ADD).behaviour, accesses={0: some, 1: replace(some, units=1024)})
    logged = [access(0, A + LANES * 16), access(1, B + LANES * 16)]

    def made(*code: str, **more: Any) -> Setting:
        room = {"gpu": load_gpu("h100"), "threads": 256, "registers": 96, "shared": 100_000, "grid": 1056}
        room |= more
        return setting(*code, behaviour=behaviour, accesses=logged, **room)

    found = seen("small-tiles", made(*code), use={"l2": 0.8, "tensor": 0.5})
    assert (
        found.evidence
        == "the tensor cores are busy 50% of the time, L2 80%; 2 blocks on an SM copy their own tiles of b"
    )
    assert (places(found), found.weight) == ([2], pytest.approx(0.2))
    changed = found.what_if.apply(made(*code))
    assert changed is not None
    before, after = (
        {node.instruction: sum(level.lambda_ticks for level in node.levels) for node in one.costed.paths[0].nodes}
        for one in (made(*code), changed)
    )
    assert before[1] > 0
    assert (after[0], after[1]) == (before[0], before[1] // 2)
    assert look("small-tiles", made(*code), use={"l2": 0.5, "tensor": 0.4}) is None
    assert look("small-tiles", made(*code), use={"l2": 0.8, "tensor": 0.9}) is None
    assert look("small-tiles", made(*code[:2], ADD), use={"l2": 0.8}) is None
    assert look("small-tiles", made(*code, grid=200), use={"l2": 0.8}) is None
    # One block an SM, and two that would be too large as one.
    assert look("small-tiles", made(*code, shared=120_000), use={"l2": 0.8}) is None
    assert look("small-tiles", made(*code, threads=544, registers=56), use={"l2": 0.8}) is None


def node(instruction: int, class_: str, sync: int = 0) -> CostedNode:
    """A node of one tick."""
    return CostedNode(instruction, class_, 0, 1, 1, sync=sync)


PRODUCT = "gdesc[UR4], gdesc[UR6], tmem[UR8], tmem[UR10], idesc[UR11], UP0"


def cycles(made: Setting, subsystem: str) -> dict[int, float]:
    """Of every instruction in a subsystem beyond its first."""
    number = [one.name for one in made.costed.subsystems].index(subsystem)
    nodes = (node for path in made.costed.paths for node in path.nodes)
    return {n.instruction: sum(x.lambda_ticks for x in n.levels if x.subsystem == number) / 240 for n in nodes}


def test_blocks_that_multiply_alone() -> None:
    some = AccessBehaviour(40, SPACE_GLOBAL, 512, 128, l2_hit=0.75)
    behaviour = replace(setting(ADD).behaviour, accesses={0: some, 1: replace(some, units=1024)})
    logged = [access(0, A + LANES * 16), access(1, B + LANES * 16)]

    def made(product: str, grid: int = 40) -> Setting:
        code = ("UTMALDG.2D [UR8], [UR12]", "UTMALDG.2D [UR8], [UR16]", f"{product} {PRODUCT}", ADD)
        return setting(*code, behaviour=behaviour, accesses=logged, gpu=load_gpu("b200"), grid=grid)

    alone = made("UTCHMMA.128x256x16.F16")
    found = seen("single-blocks", alone, use={"async_shared": 0.9, "l2": 0.8, "async_tensor": 0.6})
    assert found.evidence == (
        "the data path of shared memory is busy 90% of the time, the tensor cores 60%;"
        " every block copies whole tiles of b"
    )
    assert (places(found), found.weight) == ([2, 3], pytest.approx(0.225))
    changed = found.what_if.apply(alone)
    assert changed is not None
    # Of 384 rows of 32 bytes 128 less are read, at 128 bytes a cycle; b's tiles are half as large.
    before, after = (cycles(one, "async_shared") for one in (alone, changed))
    assert (before[2], after[2]) == (96, 64)
    assert (after[0], after[1]) == (before[0], before[1] / 2)
    for product, grid, use in (
        ("UTCHMMA.2CTA.256x256x16.F16", 40, {"async_shared": 0.9}),
        ("UTCHMMA.128x64x16.F16", 40, {"async_shared": 0.9}),
        ("UTCHMMA.128x256x16.F16", 1, {"async_shared": 0.9}),
        ("UTCHMMA.128x256x16.F16", 40, {"async_shared": 0.74}),
        ("UTCHMMA.128x256x16.F16", 40, {"async_shared": 0.9, "async_tensor": 0.95}),
    ):
        assert look("single-blocks", made(product, grid), use=use) is None


def test_copies_of_scale_factors() -> None:
    copy = "UTCCP.T.S.4x32dp128bit tmem[UR5+0x100], gdesc[UR30]"
    scaled = f"UTCOMMA.4X.128x128x64.E2M1 {PRODUCT.replace(', UP0', ', tmem[UR24], UP0')}"
    made = setting(copy, copy, scaled, gpu=load_gpu("b200"))
    found = seen("scale-factors", made, use={"async_shared": 0.9})
    # 512 bytes each, beside 256 rows of 32 bytes.
    assert found.evidence == "copies of scale factors keep the data path of shared memory busy 10% of the time"
    assert (places(found), found.weight) == ([1, 2], pytest.approx(0.9 * 8 / 72))
    changed = found.what_if.apply(made)
    assert changed is not None
    assert cycles(changed, "async_shared") == {**cycles(made, "async_shared"), 0: 0, 1: 0}
    assert look("scale-factors", made, use={"async_shared": 0.1}) is None
    assert look("scale-factors", setting(copy, ADD, gpu=load_gpu("b200")), use={"async_shared": 0.9}) is None


def test_products_that_wait_for_readers() -> None:
    """Two warps multiply and read; the one's waits for what the other alone signals are left out, no others."""
    paths = (
        CostedPath((node(0, "tcgen05", SYNC_AWAITS), node(1, "bulk_copy", SYNC_SIGNALS)), (0, 1, 0, 0), 0),
        CostedPath((node(2, "tensor_load"), node(3, "mbarrier", SYNC_SIGNALS)), (0, 1), 0),
    )
    made = (
        replace(paths[0], events=(0, 1, 1, 0, 0, 0, 0, 2), signals=(1, 0, 1)),
        replace(paths[1], events=(2, 1, 2), signals=(0, 1, 1)),
    )
    costed = replace(setting(ADD).costed, paths=made, block_types=(BlockType((0, 1), 1.0),))
    waits = readers_phases(costed, {0})
    assert waits == {0: {1}}
    assert without_waits(costed, {0}).paths[0].events == (0, -1, 1, 0, 0, 0, 0, 2)


def test_clusters_that_leave_sms_idle() -> None:
    h100 = load_gpu("h100")

    def made(blocks: int, sms: int, grid: int = 1056, gpu: Gpu = h100) -> Setting:
        def clustered(seen: Profile) -> Profile:
            return replace(seen, launch=replace(seen.launch, cluster=(blocks, 1, 1)))

        multicast = "UTMALDG.2D.MULTICAST [UR8], [UR12], UR4"
        return setting(multicast, ADD, grid=grid, threads=1024, registers=64, gpu=gpu.with_sms(sms), change=clustered)

    # GPCs of 14, 16 and 18 SMs, a block on each: 15 clusters of 8, 33 of 4 and 66 of 2.
    found = seen("cluster-size", made(8, 120))
    assert found.evidence == "clusters of 8 blocks fill 120 of 132 SMs, of 2 would fill 132"
    assert (found.remedy, found.weight) == ("use clusters of 2 blocks", pytest.approx(1 - 120 / 132))
    changed = found.what_if.apply(made(8, 120))
    assert changed is not None
    assert changed.costed.sm_count == 132
    assert seen("cluster-size", made(16, 112)).remedy == "use clusters of 2 blocks"
    assert look("cluster-size", made(2, 132)) is None
    assert look("cluster-size", made(1, 132)) is None
    # As many blocks as 120 SMs hold; a GPU of which something else took SMs; one whose GPCs are not known.
    assert look("cluster-size", made(8, 120, grid=120)) is None
    assert look("cluster-size", made(8, 100)) is None
    assert look("cluster-size", made(8, 120, gpu=load_gpu("b200"))) is None


def test_smaller_clusters_read_more_often_what_they_share() -> None:
    source = COPIED.replace("MULTICAST", COPY[1]).replace("__global__ void k", "__global__ void __cluster_dims__(2) k")
    made = Setting.of(prepare_kernel(source, gpu="h100", grid=32, block=128, args=ARGS))
    changed = smaller_clusters(2, 1, 132).apply(made)
    assert changed is not None
    l2 = [s.name for s in made.costed.subsystems].index("l2")

    def times(setting: Setting) -> set[int]:
        return {
            level.lambda_ticks
            for path in setting.costed.paths
            for node in path.nodes
            if "MULTICAST" in setting.instructions[node.instruction].modifiers
            for level in node.levels
            if level.subsystem == l2
        }

    assert times(made)
    assert times(changed) == {2 * ticks for ticks in times(made)}


def test_threads_that_load_little_and_combine_it() -> None:
    def made(loads: int = 8, stores: int = 2, combine: str = "BAR.SYNC 0x0", grid: int = 160) -> Setting:
        return setting(*[LOAD] * loads, combine, *[STORE] * stores, grid=grid, resident=4)

    found = seen("idle-threads", made(), use={"dram": 0.5})
    # 160 blocks on 10 SMs, 4 at once: 4 waves.
    assert found.evidence == "each thread loads 8 elements and stores 0.25 results per element"
    assert found.weight == 0.5
    assert seen("idle-threads", made(), use={"dram": 0.1}).weight == 0.75
    assert look("idle-threads", made(combine="SHFL.IDX PT, R4, R5, R6, R7")) is not None
    assert look("idle-threads", made(combine=ADD)) is None
    assert look("idle-threads", made(loads=9)) is None
    assert look("idle-threads", made(stores=3)) is None
    assert look("idle-threads", made(loads=0, stores=0)) is None
    assert look("idle-threads", made(grid=159)) is None
    assert look("idle-threads", made(), limiter="dram") is None


def diverging(*lanes: float, first: float = 32) -> Setting:
    """A warp whose steps have so many lanes, each step a block of code of two instructions."""
    code = [text for n in range(len(lanes)) for text in (ADD, f"@P0 BRA `(.L_{n})", f".L_{n}:")]
    count = len(lanes) + 1

    def change(made: Profile) -> Profile:
        path = WarpPath(np.arange(count, dtype=np.int32), np.array([*lanes, first], np.float32))
        return replace(made, paths=(path,))

    return setting(*code, change=change)


def test_lanes_that_take_no_part() -> None:
    # Steps of 2 instructions with 32, 8, 24 lanes of 32, and EXIT with all: 7 instructions, of which 2 lack 3/4 and
    # 2 lack 1/4 of their lanes: 1 - 2 / 7.
    found = seen("divergence", diverging(32, 8, 24))
    assert found.evidence == "71% of the lanes are active in the average instruction"
    assert found.weight == pytest.approx(2 / 7)
    # The lines of the second step, which lose most, then those of the third; one that loses 1.6 % of all is left out.
    assert places(found) == [4, 5, 7, 8]
    assert places(seen("divergence", diverging(32, 1, 31.5))) == [4, 5]
    # A warp that begins with 16 lanes has them all.
    assert look("divergence", diverging(16, 16, 16, first=16)) is None
    # 7 instructions lose 2 · 0.06 or 2 · 0.08 of a warp: 98.3 % and 97.7 % take part.
    assert look("divergence", diverging(32, 32 * 0.94, 32)) is None
    assert look("divergence", diverging(32, 32 * 0.92, 32)) is not None


# Issue and pipes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overhead", "others", "use", "percent"),
    [
        (3, 6, 0.5, "40%"),  # with EXIT, a branch: 4 of 10
        (2, 7, 0.9, "30%"),
        (2, 8, 0.9, ""),  # 3 of 11
        (16, 3, 0.9, "85%"),
        (17, 3, 0.9, ""),  # 18 of 21
        (3, 6, 0.49, ""),
    ],
)
def test_issue_slots_for_indices_and_loops(overhead: int, others: int, use: float, percent: str) -> None:
    made = setting(*["IADD3 R4, R4, R5, RZ"] * overhead, *[ADD] * others)
    found = look("issue-bound", made, use={"issue": use})
    assert (found is not None) == bool(percent)
    if found is not None:
        assert (
            found.evidence
            == f"{use:.0%} of the issue slots are used, {percent} of them for indices, conditions and loops"
        )
        share = (overhead + 1) / (overhead + others + 1)
        assert found.weight == pytest.approx(use * share / 2)


def test_double_precision() -> None:
    pipe = setting(ADD).gpu.classes["fp64"].subsystem
    made = setting("DADD R4, R4, R6", "DMUL R4, R4, R6", *[ADD] * 5)
    found = seen("fp64", made, use={pipe: 0.1}, nodes={1: {"wait": 2.0}, 0: {"wait": 1.0}})
    # 2 of 8 instructions.
    assert found.evidence == "25.0% of the instructions are double precision; their pipe is busy 10% of the time"
    assert (found.weight, places(found)) == (0.25, [2, 1])
    assert seen("fp64", made, use={pipe: 0.4}).weight == 0.4
    # 1 of 200 is half a percent, 1 of 201 is less.
    assert look("fp64", setting("DADD R4, R4, R6", *[ADD] * 198)) is not None
    assert look("fp64", setting("DADD R4, R4, R6", *[ADD] * 199)) is None
    assert look("fp64", setting(ADD)) is None


DIVISION = ("I2F.U32.RP R6, R5", "MUFU.RCP R6, R6", "IADD3 R6, R6, 0xffffffe, RZ", "F2I.FTZ.U32.TRUNC.NTZ R7, R6",
            "IMAD.HI.U32 R7, R7, R4, R6")  # fmt: skip


def on_one_line(*code: str) -> Setting:
    """All of the code on source line 7, but for what stands behind a `|`."""
    return setting(*(text.removeprefix("|") for text in code), numbers=[8 if t.startswith("|") else 7 for t in code])


def test_integer_divisions_and_what_depends_on_them() -> None:
    made = on_one_line(*DIVISION, "|FADD R8, R7, R7", "FADD R9, R9, R9", LOAD)
    starts = division_starts(made)
    assert starts == [0]
    # The five of the chain; the sum on another line, the one that does not depend and the load stay.
    assert division_instructions(made, starts) == frozenset(range(5))
    found = seen("integer-division", made)
    assert found.evidence == f"1 divisions take {5 / 9:.0%} of the instructions"
    assert (found.weight, places(found)) == (pytest.approx(5 / 9), [7])
    # Rounded in another way it is a plain conversion.
    assert look("integer-division", on_one_line("I2F.U32 R6, R5", *DIVISION[1:])) is None
    # 48 instructions are within reach, three times as many of 64 bits.
    far = on_one_line(DIVISION[0], *["FADD R9, R9, R9"] * 46, "IADD3 R8, R6, R6, RZ")
    assert division_instructions(far, [0]) == {0, 47}
    farther = on_one_line(DIVISION[0], *["FADD R9, R9, R9"] * 47, "IADD3 R8, R6, R6, RZ")
    assert division_instructions(farther, [0]) == {0}
    wide = on_one_line("I2F.U64.RP R6, R4", *["FADD R9, R9, R9"] * 142, "IADD3 R8, R6, R6, RZ")
    assert division_instructions(wide, [0]) == {0, 143}


def test_special_functions_and_their_refinement() -> None:
    pipe = setting(ADD).gpu.classes["sfu"].subsystem
    steps = ("FFMA R7, R6, R5, R5", "FFMA R7, R7, R6, R6", "FFMA R8, R7, R4, RZ", "FFMA R9, R8, R5, R4")
    made = on_one_line("MUFU.RCP R6, R5", *steps)
    # Four follow: the last is the use of the result, three refine it; 3 of 6 instructions.
    assert refinement(made, [0]) == frozenset({1, 2, 3})
    found = seen("sfu-bound", made, use={pipe: 0.1})
    assert found.evidence == "50% of the instructions refine quotients and roots; the unit is busy 10% of the time"
    assert found.weight == pytest.approx(0.5)
    # What only stands on the same line is none.
    assert refinement(on_one_line("MUFU.RCP R6, R5", steps[0], ADD, *steps[1:]), [0]) == frozenset({1, 3, 4})
    # Three followers are no refinement: then it is the unit that counts.
    few = on_one_line("MUFU.RCP R6, R5", *steps[:3])
    assert refinement(few, [0]) == frozenset()
    assert look("sfu-bound", few, use={pipe: 0.39}) is None
    found = seen("sfu-bound", few, use={pipe: 0.4})
    assert found.evidence == "the special function unit is busy 40% of the time"
    assert found.weight == pytest.approx(0.2)
    # 3 refining of 60 instructions are a twentieth, of 61 less.
    assert "refine" in seen("sfu-bound", on_one_line("MUFU.RCP R6, R5", *steps, *["|" + ADD] * 54)).evidence
    assert look("sfu-bound", on_one_line("MUFU.RCP R6, R5", *steps, *["|" + ADD] * 55)) is None
    # That of an integer division is another rule's.
    assert look("sfu-bound", on_one_line(*DIVISION), use={pipe: 1.0}) is None


# Occupancy and the grid -----------------------------------------------------------------------------------------

WAITS = {"long_scoreboard": 1.0, "barrier": 1.0, "wait": 1.0, "short_scoreboard": 1.0, "selected": 4.0}


def test_registers_that_leave_room_for_few_blocks() -> None:
    # 8 warps a block. 65 registers: 72 allocated, 2304 a warp; 16384 / 2304 = 7 in a partition, 28 warps, 3 blocks.
    # 64: 2048 a warp, 8 in a partition, 32 warps, 4 blocks. 48: 40 warps and 5 blocks, but that is under 0.8 · 65 = 52.
    made = setting(ADD, warps=8, grid=400, registers=65)
    assert (made.fits.blocks_per_sm, made.fits.limiting) == (3, ("registers",))
    found = seen("occupancy-registers", made, stalls=WAITS)
    assert found.evidence == "65 registers per thread allow 3 blocks per SM (38% of the warps), 64 would allow 4"
    assert (found.what_if.name, found.weight) == ("4 blocks per SM", 0.25)
    # Nothing where another resource is as short, no more blocks wait, or something is in use all the time.
    assert look("occupancy-registers", setting(ADD, warps=8, grid=400, registers=32), stalls=WAITS) is None
    assert look("occupancy-registers", setting(ADD, warps=8, grid=30, registers=65), stalls=WAITS) is None
    assert look("occupancy-registers", setting(ADD, warps=8, grid=31, registers=65), stalls=WAITS) is not None
    assert look("occupancy-registers", made, stalls=WAITS, use={"fma": 0.98}) is None
    # 4 warps a block, 65 registers: 7 blocks. 64: 8. 56: 1792 a warp, 9 in a partition, 9 blocks, and more than 52.
    steps = setting(ADD, warps=4, grid=400, registers=65)
    assert "allow 7 blocks per SM" in seen("occupancy-registers", steps, stalls=WAITS).evidence
    assert seen("occupancy-registers", steps, stalls=WAITS).evidence.endswith("56 would allow 9")
    # 168 registers: the next step, 128, is less than four fifths of it.
    assert look("occupancy-registers", setting(ADD, warps=4, grid=400, registers=168), stalls=WAITS) is None


def test_shared_memory_that_leaves_room_for_few_blocks() -> None:
    # 47 KiB and the reserve of 1 KiB are 48 KiB: 3 blocks in 164 KiB. Registers allow 32 at 4 warps a block: 16.
    made = setting("STS [R2], R4", ADD, "LDS R4, [R2]", warps=4, grid=400, shared=47 * 1024)
    assert made.fits.blocks_per_sm == 3
    found = seen("occupancy-shared-memory", made, stalls=WAITS)
    assert found.evidence == (
        "49152 B of shared memory per block allow 3 blocks per SM (19% of the warps), 16 without that limit"
    )
    assert (found.what_if.name, found.weight, places(found)) == ("16 blocks per SM", 0.25, [1, 3])
    # No more than wait for it: 70 blocks on 10 SMs are 7.
    few = setting("LDS R4, [R2]", warps=4, grid=70, shared=47 * 1024)
    assert seen("occupancy-shared-memory", few, stalls=WAITS).what_if.name == "7 blocks per SM"
    assert look("occupancy-shared-memory", setting("LDS R4, [R2]", warps=4, grid=400, shared=1024)) is None


def test_small_blocks_and_warps_that_are_not_full() -> None:
    # 32 blocks of a warp are half of 64.
    made = setting(ADD, warps=1, grid=1000, registers=16)
    assert (made.fits.blocks_per_sm, made.fits.limiting) == (32, ("blocks",))
    found = seen("occupancy-block-size", made, stalls=WAITS)
    assert found.evidence == (
        "blocks of 32 threads: the limit of 32 blocks per SM leaves 50% of the warp slots empty"
    )  # fmt: skip
    assert (found.what_if.name, found.weight) == ("64 blocks per SM", 0.25)
    # 100 threads in 4 warps leave 28 of 128 lanes empty.
    found = seen("occupancy-block-size", setting(ADD, warps=4, threads=100))
    assert found.evidence == "blocks of 100 threads leave 22% of their warps' lanes empty"
    assert (found.weight, found.what_if.name) == (pytest.approx(28 / 128), "all warps full")
    # 993 of 1024 lanes are 3 % too few, 994 are not.
    assert look("occupancy-block-size", setting(ADD, warps=32, threads=993)) is not None
    assert look("occupancy-block-size", setting(ADD, warps=32, threads=994)) is None
    assert look("occupancy-block-size", setting(ADD, warps=4)) is None


@pytest.mark.parametrize(
    ("blocks", "use", "evidence", "weight"),
    [
        (50, 0.0, "50 blocks are 1.25 waves of 40", 1 - 1.25 / 2),
        (40, 0.0, "", 0),
        (400, 0.0, "", 0),
        (5, 0.0, "5 blocks are 0.12 waves of 40", 1 - 0.125),
        # 391 blocks: an SM has 40 where 39.1 are the mean, 2.3 %; 10 waves where 9.775 are, 2.3 %.
        (391, 0.0, "", 0),
        # 385: 39 for 38.5, 1.3 %, but 10 waves for 9.625, 3.9 %.
        (385, 0.0, "385 blocks are 9.62 waves of 40", 1 - 9.625 / 10),
        # 50 blocks: 5 on each SM, evenly. If DRAM is in use all of the time, that is all there is to gain.
        (50, 1.0, "", 0),
        (50, 0.5, "50 blocks are 1.25 waves of 40", 1 - 1.25 / 2),
    ],
)
def test_the_tail_of_the_grid(blocks: int, use: float, evidence: str, weight: float) -> None:
    made = setting(ADD, grid=blocks, resident=4)
    found = look("tail-effect", made, use={"dram": use} if use else {})
    assert (found is not None) == bool(evidence)
    if found is not None:
        assert (found.evidence, found.weight) == (evidence, pytest.approx(weight))
        assert ("split the work" in found.remedy) == (blocks < 40)


def test_the_busiest_part_says_how_much_the_tail_may_cost() -> None:
    made = setting(ADD, grid=50, resident=4)
    assert look("tail-effect", made, use={"dram": 1.0, "lsu": 0.1}) is None
    assert look("tail-effect", made, use={"dram": 0.5, "lsu": 0.1}) is not None


def test_partitions_with_more_to_do_than_others() -> None:
    made = setting(ADD, ADD, ADD, grid=40, warps=4, resident=2)
    bound = made.costed
    # Four warps of 4 instructions each, one for each partition.
    assert imbalance(bound) == 0
    # 6 warps: two partitions have two, two have one. The mean is 1.5 of 2.
    uneven = setting(ADD, ADD, ADD, grid=20, warps=3, resident=2)
    assert imbalance(uneven.costed) == pytest.approx(0.25)
    found = seen("scheduler-imbalance", uneven)
    assert found.evidence == "the average scheduler has 25% fewer instructions than the busiest, with 6 warps per SM"
    assert found.weight == pytest.approx(0.25)
    assert look("scheduler-imbalance", uneven, use={"fma": 0.98}) is None
    assert look("scheduler-imbalance", made) is None
    # 10 blocks leave one for each SM, whatever fits: 3 warps, one partition idle.
    assert imbalance(setting(ADD, grid=10, warps=3, resident=2).costed) == pytest.approx(0.25)
    assert imbalance(setting(ADD, grid=11, warps=3, resident=2).costed) == pytest.approx(0.25)
    # Two blocks of 5 warps: 3, 3, 2 and 2 warps; one alone: 2, 1, 1 and 1.
    assert imbalance(setting(ADD, grid=20, warps=5, resident=2).costed) == pytest.approx(1 - 2.5 / 3)
    assert imbalance(setting(ADD, grid=10, warps=5, resident=2).costed) == pytest.approx(1 - 1.25 / 2)
    # A kind of blocks whose first warp is short, three quarters of all: 3/4 · (1, 4, 4, 4) + 1/4 · (4, 4, 4, 4).
    (path,) = bound.paths
    short = replace(path, program=path.program[:1])
    kinds = (BlockType((1, 0, 0, 0), 30.0), BlockType((0, 0, 0, 0), 10.0))
    mixed = replace(bound, paths=(path, short), block_types=kinds)
    assert imbalance(mixed) == pytest.approx(1 - (1.75 + 3 * 4) / 4 / 4)


def test_a_rule_that_only_a_compiler_can_answer_says_nothing() -> None:
    assert look("unrolling", setting(ADD)) is None


# Cases ----------------------------------------------------------------------------------------------------------


def test_shares_and_uses_of_a_case() -> None:
    made = setting(ADD, LOAD, warps=2)
    stalls: dict[str, Any] = {"wait": 3.0, "selected": 1.0}
    mine = case(made, stalls=stalls, use={"lsu": 0.5}, nodes={0: {"wait": 3.0, "selected": 1.0}, 1: {"wait": 5.0}})
    assert (mine.stalled, mine.stall_share("wait"), mine.stall_share("wait", "selected")) == (4, 0.75, 1)
    assert (mine.use("lsu"), mine.use("dram"), mine.use_by("global_load"), mine.use_by("nothing")) == (0.5, 0, 0.5, 0)
    assert (mine.waiting(0), mine.waiting(0, "selected"), mine.waiting(7)) == (4, 1, 0)
    assert mine.costliest([0, 1, 2]) == [1, 0, 2]
    assert mine.costliest([0, 1, 2], "selected") == [0, 1, 2]
    assert mine.share_of(lambda instruction: instruction.class_ == "fp32") == pytest.approx(1 / 3)
    assert case(made, stalls={"none": 0.0}).stall_share("none") == 0
