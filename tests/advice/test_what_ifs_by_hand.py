"""What each what-if makes of a small kernel, worked out by hand on the GPU of round numbers."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from drywarp.analysis.advice.builds import compiled_in
from drywarp.analysis.advice.case import Setting
from drywarp.analysis.advice.findings import ideals
from drywarp.analysis.advice.resimulate import (
    ALL_TOGETHER,
    AT_LEAST,
    affordable,
    baseline,
    budget_for,
    register_steps,
    resimulate,
)
from drywarp.analysis.advice.rules.asynchronous import shared_by_pairs
from drywarp.analysis.advice.rules.collisions import conflict_free, private_atomics
from drywarp.analysis.advice.rules.divergence import kept_steps, no_divergence
from drywarp.analysis.advice.rules.idle_threads import coarser
from drywarp.analysis.advice.rules.occupancy import full_warps
from drywarp.analysis.advice.rules.redundant_loads import loaded_once
from drywarp.analysis.advice.rules.uncoalesced_access import Ideal, coalesced, fewer_sectors, ideal_units
from drywarp.analysis.advice.rules.uneven_work import balanced_partitions, even_grid
from drywarp.analysis.advice.whatif import (
    as_class,
    dropped,
    ideal_latency,
    ideal_level,
    ideal_rate,
    lighter,
    more_independent_instructions,
    more_loads_in_flight,
    no_barriers,
    no_fixed_latency,
    resident_blocks,
    splits,
    used,
)
from drywarp.analysis.prepared import Prepared
from drywarp.hardware import load_gpu
from drywarp.kernel.profile import SPACE_GLOBAL, SPACE_SHARED, Profile, WarpPath
from drywarp.memory.behaviour import AccessBehaviour, MemoryBehaviour
from drywarp.workload.cost import CostedNode, Repeat
from tests.advice.cases import A, case, setting
from tests.listing import control
from tests.memory.profiles import LANES, access, geometry
from tests.round_gpu import round_gpu, ticks

LOAD, STORE, ADD, BAR = "LDG.E R4, [R2.64]", "STG.E [R2.64], R4", "FADD R4, R4, R5", "BAR.SYNC 0x0"


def changed(made: Setting | None) -> Setting:
    assert made is not None
    return made


def nodes(made: Setting | None) -> tuple[CostedNode, ...]:
    return changed(made).costed.paths[0].nodes


def behaviour(*accesses: AccessBehaviour, read: float = 4096.0) -> MemoryBehaviour:
    return MemoryBehaviour(dict(enumerate(accesses)), 0, 0, 0, None, None, None, read, 0.0, "affine")


# Memory ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("intake", "left"), [(64.0, 0.5), (10.0, 0.75), (5.0, 1.0)])
def test_what_pairs_of_blocks_share_leaves_l2_once_and_reaches_both(intake: float, left: float) -> None:
    """Half of the bytes leave L2, but an SM takes in whole tiles, at no more than its own rate."""
    changed_to = msgspec.structs.replace
    h100 = load_gpu("h100")
    l2 = changed_to(h100.memory.l2, bytes_per_cycle=7.5 * h100.device.sm_count, bytes_per_cycle_per_sm=intake)
    machine = replace(h100, sections={**h100.sections, "memory": changed_to(h100.memory, l2=l2)})
    tile = AccessBehaviour(40, SPACE_GLOBAL, 512, 128, l2_hit=0.75)
    behaviour = replace(setting(ADD).behaviour, accesses={0: tile, 1: tile})
    made = setting("UTMALDG.2D [UR8], [UR12]", "UTMALDG.2D [UR8], [UR16]", ADD, gpu=machine, behaviour=behaviour)
    names = [subsystem.name for subsystem in made.costed.subsystems]

    def l2_ticks(of: Setting) -> dict[int, list[int]]:
        return {n.instruction: [v.lambda_ticks for v in n.levels if names[v.subsystem] == "l2"] for n in nodes(of)}

    def others(of: Setting) -> list[list[int]]:
        return [[v.lambda_ticks for v in n.levels if names[v.subsystem] != "l2"] for n in nodes(of)]

    before, after = made, changed(shared_by_pairs({0}, "tiles").apply(made))
    assert others(after) == others(before)
    assert l2_ticks(after)[1] == l2_ticks(before)[1] != []
    assert l2_ticks(after)[0][0] / l2_ticks(before)[0][0] == pytest.approx(left, abs=0.001)


@pytest.mark.parametrize(
    ("times", "l1_hit", "l2_hit", "read"),
    [
        # 8 sectors, of which half hit the L1; of the 4 others half the L2. 2 are missed, 1.5 come from DRAM.
        (2.0, 0.5, 0.5, 1.5),  # each twice: 4 of 8 are the first time, no fewer than get through now
        (4.0, 0.75, 0.0, 1.5),  # 2 of 8: what misses both is that much
        (8.0, 0.875, 0.0, 1.0),  # 1 of 8
        (1.0, 0.5, 0.5, 1.5),
    ],
)
def test_what_is_loaded_once_goes_beyond_the_l1_once(times: float, l1_hit: float, l2_hit: float, read: float) -> None:
    load = AccessBehaviour(10, SPACE_GLOBAL, 8, 2, 0.5, 0.5, dram_read=1.5)
    made = setting(LOAD, LOAD, behaviour=behaviour(load, load))
    found = loaded_once({0: times}).apply(made)
    if times <= 2:
        assert found is None
        return
    once = changed(found).behaviour.accesses
    assert (once[0].l1_hit, once[0].l2_hit, once[0].dram_read) == (l1_hit, l2_hit, read)
    assert once[1] == load


def test_the_fewest_sectors_for_the_same_bytes() -> None:
    # 32 sectors in 32 lines and passes, of which a quarter hit the L1 and half of the rest the L2; 4 would do.
    column = AccessBehaviour(10, SPACE_GLOBAL, 32, 32, 0.25, 0.5, dram_read=6, dram_write=3, passes=32)
    found = fewer_sectors(column, Ideal(32, 4), geometry())
    # 128 B: a line, a row of banks. 24 sectors go beyond the L1 now, so all 4 do; 12 miss the L2, so all 4 do.
    assert (found.units, found.lines, found.passes) == (4, 1, 1)
    assert (found.l1_hit, found.l2_hit, found.dram_read, found.dram_write) == (0, 0, 4, 3)
    # 256 B are 2 lines and 2 rows of banks. 3 sectors get beyond the L1, 0.75 beyond the L2: less than 8.
    near = replace(column, units=24, l1_hit=0.875, l2_hit=0.75)
    found = fewer_sectors(near, Ideal(24, 8), geometry())
    assert (found.units, found.lines, found.passes) == (8, 2, 2)
    assert (found.l1_hit, found.l2_hit) == (1 - 3 / 8, 0.75)
    # Never more than it was; no less than one for each request.
    small = replace(column, lines=1.5, passes=1.5, requests=0.5)
    found = fewer_sectors(small, Ideal(32, 1), geometry())
    assert (found.lines, found.passes) == (0.5, 0.5)
    found = fewer_sectors(small, Ideal(32, 16), geometry())
    assert (found.lines, found.passes) == (1.5, 1.5)


def test_coalesced_accesses_read_less_from_dram() -> None:
    made = setting(LOAD, LOAD, accesses=[access(0, A + LANES * 128), access(1, A + LANES * 4)], grid=40)
    column = replace(made.behaviour.accesses[0], dram_read=20, l1_hit=0.0, l2_hit=0.0)
    made = replace(made, behaviour=behaviour(column, made.behaviour.accesses[1], read=40 * 20 * 32.0))
    found = changed(coalesced().apply(made)).behaviour
    # 16 sectors less in each of 40 executions.
    assert (found.accesses[0].units, found.accesses[0].dram_read) == (4, 4)
    assert found.dram_read_bytes == 40 * 4 * 32
    assert found.accesses[1] == made.behaviour.accesses[1]
    assert coalesced([1]).apply(made) is None
    assert coalesced([0]).apply(made) is not None
    less = replace(made, behaviour=replace(made.behaviour, dram_read_bytes=100.0))
    assert changed(coalesced().apply(less)).behaviour.dram_read_bytes == 0
    assert Ideal(3, 0).ratio == 1
    assert Ideal(9, 6).ratio == 1.5


def test_the_least_units_are_weighted_by_the_blocks_that_a_sample_stands_for() -> None:
    # Block 0 stands for 30 blocks with 4 sectors, block 1 for 10 with 32; 4 would do.
    made = setting(
        LOAD, accesses=lambda block, warp: [access(0, A + LANES * (128 if block[0] else 4))],
        samples=(0, 1), weights=(30.0, 10.0),
    )  # fmt: skip
    (ideal,) = ideal_units(made, SPACE_GLOBAL).values()
    assert (ideal.units, ideal.least) == (11, pytest.approx(4))
    assert ideal_units(made, SPACE_SHARED) == {}
    assert ideal_units(setting(LOAD), SPACE_GLOBAL) == {}


def test_no_conflicts_are_the_fewest_wavefronts() -> None:
    made = setting(
        "LDS R4, [R2]", "LDS.64 R4, [R2]",
        accesses=[access(0, LANES * 128, space=SPACE_SHARED), access(1, LANES * 8, space=SPACE_SHARED)],
    )  # fmt: skip
    found = changed(conflict_free().apply(made)).behaviour.accesses
    assert (found[0].units, found[0].passes) == (1, 1)
    assert found[1] == made.behaviour.accesses[1]
    assert conflict_free().apply(setting("LDS R4, [R2]", accesses=[access(0, LANES * 4, space=SPACE_SHARED)])) is None


def test_atomics_in_shared_memory_first() -> None:
    red = "RED.E.ADD.STRONG.GPU [R2.64], R4"
    made = setting(red, LOAD, accesses=[access(0, A + LANES * 4), access(1, A + LANES * 4)])
    found = changed(private_atomics({0}).apply(made))
    own, other = (found.behaviour.accesses[n] for n in (0, 1))
    assert (own.space, own.units, own.dram_read, own.dram_write) == (SPACE_SHARED, 1, 0, 0)
    assert other == made.behaviour.accesses[1]
    assert [found.instructions[n].class_ for n in (0, 1)] == ["shared_atomic", "global_load"]
    memory = found.instructions[0].memory
    assert memory is not None
    assert memory.space == "shared"
    assert private_atomics(set()).apply(made) is None


def test_other_splits_of_the_memory_of_an_sm() -> None:
    made = setting("LDS R4, [R2]", warps=4, shared=47 * 1024, grid=400)
    limits = made.gpu.occupancy
    assert limits.unified_bytes_per_sm
    # Blocks of 48 KiB: none, one, two or three of them fit; the present split is left out.
    names = {what_if.name for what_if in splits(made)}
    expected = set()
    for carveout in limits.carveout_bytes:
        blocks = min(made.fits.blocks_per_sm, carveout // (48 * 1024))
        l1 = (limits.unified_bytes_per_sm - carveout) // 1024
        if blocks and carveout != made.fits.carveout_bytes:
            expected.add(f"{carveout // 1024} KiB shared, {l1} KiB L1: {blocks} blocks per SM")
    assert names == expected
    assert any("2 blocks" in name for name in names)
    (two,) = (what_if.apply(made) for what_if in splits(made) if what_if.name.startswith("100 KiB"))
    fits = changed(two).fits
    assert (fits.blocks_per_sm, fits.warps_per_sm, fits.carveout_bytes) == (2, 8, 100 * 1024)
    assert fits.l1_bytes == limits.unified_bytes_per_sm - 100 * 1024
    assert changed(two).conditions.blocks_per_sm == 2


# Nodes ----------------------------------------------------------------------------------------------------------


def test_instructions_that_take_a_share_of_their_time() -> None:
    made = setting(LOAD, ADD, accesses=[access(0, A + LANES * 128)])
    before = nodes(made)
    after = nodes(lighter({0}, 0.25, "").apply(made))
    assert after[0].lambda_ticks == round(before[0].lambda_ticks / 4)
    assert [(at.lambda_ticks, at.tail_ticks) for at in after[0].levels] == [
        (round(at.lambda_ticks / 4), round(at.tail_ticks / 4)) for at in before[0].levels
    ]
    assert before[0].levels
    assert after[0].latency_ticks == before[0].latency_ticks
    assert after[1:] == before[1:]
    assert lighter({17}, 0.25, "").apply(made) is None


def test_dropped_instructions_leave_their_place_in_loops() -> None:
    made = setting(LOAD, ADD, ADD, STORE)
    (path,) = made.workload.paths
    looped = replace(path, program=(0, Repeat(5, (1, 2)), Repeat(3, (1,)), 3))
    made = replace(made, workload=replace(made.workload, paths=(looped,)))
    assert changed(dropped({1, 3}, "").apply(made)).workload.paths[0].program == (0, Repeat(5, (2,)))
    assert dropped({9}, "").apply(made) is None
    # What takes part in barriers among some warps stays.
    meeting = replace(looped, nodes=tuple(replace(node, sync=1) for node in looped.nodes))
    met = replace(made, workload=replace(made.workload, paths=(meeting,)))
    assert dropped({1}, "").apply(met) is None


def test_another_class_has_its_costs() -> None:
    made = setting("DADD R4, R4, R6", ADD)
    after = changed(as_class({0}, "fp32", "").apply(made)).costed.paths[0].nodes
    assert (after[0].class_, after[0].subsystem) == ("fp32", after[1].subsystem)
    assert as_class(set(), "fp32", "").apply(made) is None
    assert as_class({0}, "no such class", "").apply(made) is None


def test_one_scheduler_as_fast_as_all() -> None:
    made = setting(LOAD, ADD)
    before, found = made.costed, changed(balanced_partitions().apply(made)).costed
    # 4 partitions: an addition takes 3 / 4 cycle, one slot in each of 4 a quarter. The load-store unit is the SM's.
    assert (found.partitions, found.issue_ticks) == (1, before.issue_ticks // 4)
    assert [n.lambda_ticks for n in found.paths[0].nodes[:2]] == [ticks(3), ticks(0.75)]
    one = replace(made.gpu, scheduler=type(made.gpu.scheduler)(1, "oldest_first", True))
    assert balanced_partitions().apply(replace(made, gpu=one)) is None


def test_twice_as_much_in_flight_halves_the_waits() -> None:
    code = (
        (LOAD, control(write=0)), ("LDS R5, [R6]", control(write=1)), (ADD, control(stall=5)), (ADD, control(stall=1)),
        (STORE, control()), (BAR, control(stall=6)),
    )  # fmt: skip
    made = setting(*code)
    before = nodes(made)
    memory = nodes(more_loads_in_flight().apply(made))
    assert memory[0].latency_ticks == before[0].latency_ticks // 2
    assert memory[1:] == before[1:]  # shared memory, arithmetic, and a store that nobody waits for
    other = nodes(more_independent_instructions().apply(made))
    assert other[0].latency_ticks == before[0].latency_ticks
    assert [other[n].latency_ticks for n in (1, 2)] == [before[n].latency_ticks // 2 for n in (1, 2)]
    # 5 cycles become 2.5, 6 become 3, one stays one slot.
    assert [other[n].stall_ticks for n in (2, 3, 5)] == [ticks(2.5), ticks(1), ticks(3)]
    assert other[5].latency_ticks == before[5].latency_ticks


def test_what_takes_no_time_or_is_there_at_once() -> None:
    made = setting((LOAD, control(write=0)), (ADD, control(stall=5)), BAR, accesses=[access(0, A + LANES * 128)])
    pipe = made.gpu.classes["fp32"].subsystem
    before = nodes(made)
    assert [used(made.costed, name) for name in (pipe, "lsu", "l2", "dram", "issue", "xu")] == [True] * 5 + [False]
    after = nodes(ideal_rate(pipe).apply(made))
    assert (after[1].lambda_ticks, after[1].read_ticks, after[1].latency_ticks) == (0, 0, before[1].latency_ticks)
    assert after[0] == before[0]
    after = nodes(ideal_rate("dram").apply(made))
    names = [subsystem.name for subsystem in made.costed.subsystems]
    assert [at.lambda_ticks == at.tail_ticks == 0 for at in after[0].levels] == [
        names[at.subsystem] == "dram" for at in before[0].levels
    ]
    assert after[0].lambda_ticks == before[0].lambda_ticks
    assert changed(ideal_rate("issue").apply(made)).costed.issue_ticks == 0
    assert ideal_rate("xu").apply(made) is None
    assert nodes(no_fixed_latency().apply(made))[1].stall_ticks == ticks(1)
    assert no_fixed_latency().apply(setting(ADD)) is None
    after = nodes(no_barriers().apply(made))
    assert (after[2].barrier, after[2].lambda_ticks, after[2].latency_ticks) == (False, 0, 0)
    assert after[:2] == before[:2]
    assert no_barriers().apply(setting(ADD)) is None


def test_each_part_of_the_machine_that_is_used_is_asked_for_once() -> None:
    """The load goes through the LSU, the L2 and DRAM: its latency is asked for by level, others by the pipe."""
    made = setting((LOAD, control(write=0)), ADD, accesses=[access(0, A + LANES * 128)])
    pipes = {made.gpu.classes[i.class_].subsystem for i in made.profile.kernel.instructions} - {"lsu"}
    names = [what.name for what in ideals(made)]
    assert len(set(names)) == len(names)
    rates = {name for name in names if name.startswith("λ")}
    assert rates == {f"λ of {name} = 0" for name in (*pipes, "lsu", "l2", "dram", "issue")}
    asked = {f"Λ of {name} = 0" for name in (*pipes, "shared", "l1")}
    asked |= {f"Λ of {name} = that of the level before" for name in ("l2", "dram")}
    assert asked <= set(names)
    assert not {f"Λ of {name} = 0" for name in ("lsu", "l2", "dram")} & set(names)


def test_levels_of_memory_that_answer_like_the_one_before() -> None:
    # All sectors come from DRAM: 400 cycles. Like the L2: 150. An L2 like the L1: 30, and DRAM stays.
    far = AccessBehaviour(40, SPACE_GLOBAL, 4, 1, 0.0, 0.0, dram_read=4, passes=1)
    near = replace(far, l2_hit=1.0, dram_read=0)
    made = setting((LOAD, control(write=0)), LOAD, "LDS R4, [R2]", behaviour=behaviour(far, near))
    assert [n.latency_ticks for n in nodes(made)[:3]] == [ticks(400), ticks(150), ticks(20)]
    assert [n.latency_ticks for n in nodes(ideal_level("dram").apply(made))[:3]] == [ticks(150), ticks(150), ticks(20)]
    assert [n.latency_ticks for n in nodes(ideal_level("l2").apply(made))[:3]] == [ticks(400), ticks(30), ticks(20)]
    assert nodes(ideal_level("shared").apply(made))[2].latency_ticks == 0
    assert ideal_level("l1").apply(made) is None  # nothing hits it
    hits = setting((LOAD, control(write=0)), behaviour=behaviour(replace(near, l1_hit=1.0)))
    assert nodes(ideal_level("l1").apply(hits))[0].latency_ticks == 0
    assert ideal_level("l1").name == "Λ of l1 = 0"
    assert ideal_level("l2").name == "Λ of l2 = that of the level before"
    assert ideal_latency("xu").apply(made) is None
    assert ideal_latency(made.gpu.classes["fp32"].subsystem).apply(setting(ADD)) is None  # nobody waits for it
    fma = setting((ADD, control(write=1)), LOAD)
    pipe = fma.gpu.classes["fp32"].subsystem
    assert [n.latency_ticks for n in nodes(ideal_latency(pipe).apply(fma))[:2]] == [0, nodes(fma)[1].latency_ticks]


# Launches -------------------------------------------------------------------------------------------------------


def test_several_elements_for_each_thread() -> None:
    made = setting(LOAD, ADD, STORE, grid=41)
    found = changed(coarser({0}, 4).apply(made)).costed
    assert found.blocks == 11
    assert found.paths[0].counts() == [4, 1, 1, 1]
    assert found.paths[0].program[:5] == (0, 0, 0, 0, 1)
    assert coarser(set(), 4).apply(made) is None


@pytest.mark.parametrize(
    ("blocks", "runs", "part"),
    [
        (50, 2, 50 / 80),  # 2 waves of 40 hold 80 blocks
        (5, 1, 5 / 40),
        (41, 2, 41 / 80),
        (40, 0, 0),
        (400, 0, 0),
        (20, 1, 20 / 40),  # even, but half a wave
    ],
)
def test_a_grid_without_a_tail(blocks: int, runs: int, part: float) -> None:
    made = setting(ADD, grid=blocks, resident=4)
    found = even_grid().apply(made)
    assert (found is not None) == bool(runs)
    if found is not None:
        assert (found.costed.runs, found.part) == (runs, part)
        # Its time is that part of what is simulated.
        whole = resimulate(replace(found, part=1.0))
        mine = resimulate(found)
        assert (mine.cycles, mine.time_s) == (whole.cycles * part, pytest.approx(whole.cycles * part / 1e9))


def test_other_numbers_of_blocks() -> None:
    made = setting(ADD, grid=1000, warps=4, resident=4)
    assert changed(resident_blocks(7).apply(made)).costed.blocks_per_sm == 7
    assert resident_blocks(4).apply(made) is None
    assert changed(full_warps(0.75).apply(made)).costed.blocks == 750
    assert changed(full_warps(0.0001).apply(made)).costed.blocks == 1


def test_caps_on_registers_at_which_a_block_more_fits() -> None:
    # 8 warps a block. 128 registers: 4096 a warp, 4 in a partition, 16 warps, 2 blocks. 24 warps take 6 in a partition:
    # 16384 / 6 = 2730, rounded down to 2560 a warp: 80 registers. 32: 8, 2048: 64. 40: 10, 1536: 48.
    made = setting(ADD, warps=8, registers=128)
    kernel, launch = made.workload.kernel, made.workload.launch
    assert register_steps(made.gpu.occupancy, kernel, launch, 5) == {3: 80, 4: 64, 5: 48}
    assert register_steps(made.gpu.occupancy, kernel, launch, 3) == {3: 80}
    assert register_steps(made.gpu.occupancy, kernel, launch, 2) == {}
    # 39 KiB, partly at launch, and the reserve are 40 KiB: shared memory has room for 4 blocks.
    kernel = replace(kernel, resources=replace(kernel.resources, shared_bytes=29 * 1024))
    launch = replace(launch, dynamic_shared=10 * 1024)
    assert register_steps(made.gpu.occupancy, kernel, launch, 5) == {3: 80, 4: 64}


def test_what_an_answer_may_simulate() -> None:
    small = setting(ADD, grid=40)
    # 4 blocks of 2 instructions: far fewer than would fill the allowance.
    assert affordable(small) == ALL_TOGETHER // 8
    prediction = case(small).prediction
    assert baseline(small, prediction).time_s == prediction.time_s
    huge = replace(small, changes=(lambda bound: replace(bound, blocks=10 * 10**8),))
    assert budget_for(huge) < budget_for(small)
    assert affordable(huge) == max(AT_LEAST, ALL_TOGETHER // budget_for(huge))


# Divergence -----------------------------------------------------------------------------------------------------


def steps(lanes: list[float], blocks: list[int], *code: str) -> tuple[Profile, WarpPath]:
    path = WarpPath(np.array(blocks, np.int32), np.array(lanes, np.float32))
    made = setting(*code, change=lambda profile: replace(profile, paths=(path,)))
    return made.profile, path


def test_steps_with_a_part_of_the_lanes_stay_that_often() -> None:
    # 12 iterations with a quarter of the lanes: 3 stay, each when its share has come together.
    code = (".L_0:", ADD, "@P0 BRA `(.L_0)")
    profile, path = steps([32, *[8] * 12, 32], [0, *[0] * 12, 1], *code)
    assert kept_steps(profile, path).tolist() == [True] + [False, False, False, True] * 3 + [True]
    # Two sides of two instructions with half of the lanes each: the first stays.
    sides = ("@P0 BRA `(.L_1)", ADD, "BRA `(.L_2)", ".L_1:", ADD, "BRA `(.L_2)", ".L_2:", ADD)
    profile, path = steps([32, 16, 16, 32], [0, 1, 2, 3], *sides)
    assert kept_steps(profile, path).tolist() == [True, True, False, True]
    # 31.4 of 32 lanes are full, and so is a step with a barrier, whatever its lanes.
    with_barrier = ("@P0 BRA `(.L_1)", ADD, "BRA `(.L_2)", ".L_1:", BAR, "BRA `(.L_2)", ".L_2:", ADD)
    profile, path = steps([32, 31.4, 1, 32], [0, 1, 2, 3], *with_barrier)
    assert kept_steps(profile, path).all()


def test_fewer_steps_move_as_much() -> None:
    code = (".L_0:", LOAD, "@P0 BRA `(.L_0)")
    path = WarpPath(np.array([0] * 16 + [1], np.int32), np.array([32] + [8] * 15 + [32], np.float32))
    load = AccessBehaviour(16 * 40, SPACE_GLOBAL, 2, 1, dram_read=1, dram_write=0.5)
    shared = AccessBehaviour(16 * 40, SPACE_SHARED, 2, 0)
    made = setting(*code, behaviour=behaviour(load, shared), change=lambda profile: replace(profile, paths=(path,)))
    found = changed(no_divergence().apply(made))
    # The first iteration and a quarter of the 15 others, rounded down by the running sum: 1 + 3.
    access_ = found.behaviour.accesses[0]
    assert access_.executions == 4 * 40
    assert (access_.units, access_.lines, access_.dram_read, access_.dram_write) == (8, 4, 4, 2)
    # Conflicts of shared memory are those of the lanes that are there.
    assert found.behaviour.accesses[1] == replace(shared, executions=4 * 40)
    full = setting(ADD, ADD)
    assert no_divergence().apply(full) is None


def test_what_tells_that_a_block_size_is_compiled_in() -> None:
    def ready(*code: str, **launch: object) -> Prepared:
        made = setting(*code)
        kernel = made.workload.kernel
        values = {"gpu": round_gpu(), "kernel": kernel, "launch": replace(made.workload.launch, **launch)}
        one = object.__new__(Prepared)
        for name, value in values.items():
            object.__setattr__(one, name, value)
        return one

    reads = "IMAD R4, R4, c[0x0][0x0], R5"
    assert compiled_in(ready(reads)) == ""
    assert "compiled in" in compiled_in(ready("IMAD R4, R4, c[0x0][0x4], R5"))
    assert "compiled in" in compiled_in(ready("IMAD R4, R4, c[0x3][0x0], R5"))
    assert "synchronize" in compiled_in(ready(reads, BAR))
    assert "dimension" in compiled_in(ready(reads, grid=(2, 2, 1)))
    assert "dimension" in compiled_in(ready(reads, block=(32, 1, 2)))
    assert "shared memory" in compiled_in(ready(reads, dynamic_shared=64))
