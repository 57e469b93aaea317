"""Every counter of small pieces of code, counted by hand.

The grid has 8 blocks of 2 warps: one sampled block stands for 3 of them, another for 5. So an instruction that every
warp runs once is executed 16 times.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from drywarp.analysis.counters import GROUPS
from drywarp.analysis.counters.count import active_lanes, count_metrics
from drywarp.hardware import load_gpu
from drywarp.kernel.profile import SPACE_GLOBAL, SPACE_LOCAL, SPACE_SHARED, Profile, WarpPath
from drywarp.memory.behaviour import AccessBehaviour, MemoryBehaviour, analyse_memory
from tests.memory.profiles import LANES, Access, access, geometry, profile

A = 1 << 20
WARPS = 16
L1 = "l1tex__t_{}_pipe_lsu_mem_{}_op_{}.sum"
GROUP = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
PIPE = "smsp__inst_executed_pipe_{}.sum"
GPU = load_gpu("a100")
PIPES = {name: cost.subsystem for name, cost in GPU.classes.items()}


def hand_made(*lines: str, accesses: tuple[Access, ...] = (), lanes: tuple[int, ...] = ()) -> Profile:
    """`lanes` are those of each instruction whose guard holds, in each block."""
    made = profile(
        lines, (8, 1, 1), lambda block, warp: accesses, samples=(0, 5), weights=(3.0, 5.0), warps=2,
        allocations={"a": (A, A)}, local_bytes=64,
    )  # fmt: skip
    count = len(made.kernel.instructions)
    held = np.array([[*lanes, *([64] * (count - len(lanes)))]] * 2, np.int64)
    return replace(made, thread_instructions=held)


def metrics(made: Profile, behaviour: MemoryBehaviour | None = None, **others: Any) -> dict[str, float]:
    return count_metrics(made, behaviour or analyse_memory(made, geometry()), PIPES, 32, **others)


# Instructions ---------------------------------------------------------------------------------------------------


def test_instructions_and_threads_by_group() -> None:
    lines = (
        "FFMA R4, R4, R5, R6", "MUFU.RCP R4, R5", "DADD R4, R4, R6", "HADD2 R4, R4, R5", "IADD3 R4, R4, R5, RZ",
        "IMAD.MOV.U32 R4, RZ, RZ, R5", "I2F R4, R5", "SHFL.IDX PT, R4, R5, R6, R7", "MOV R4, R5",
        "PLOP3.LUT P0, PT, PT, PT, PT, 0x8, 0x0",
    )  # fmt: skip
    # Of the 64 lanes of a block so many have a guard that holds; all 64 run EXIT.
    found = metrics(hand_made(*lines, lanes=(64, 40, 10, 2, 64, 64, 30, 64, 64, 64)))
    # 8 blocks: 10 instructions and EXIT in 2 warps of 32 lanes.
    assert found["smsp__inst_executed.sum"] == 8 * 2 * 11
    assert found["smsp__thread_inst_executed.sum"] == 8 * 64 * 11
    assert found["smsp__thread_inst_executed_pred_on.sum"] == 8 * (64 + 40 + 10 + 2 + 64 + 64 + 30 + 64 * 4)
    assert found["smsp__thread_inst_executed_per_inst_executed.ratio"] == 32
    assert found["smsp__thread_inst_executed_per_inst_executed.pct"] == 100
    expected = {
        "fp32": 64 + 40, "fp64": 10, "fp16": 2, "integer": 64 + 64, "conversion": 30,
        "inter_thread_communication": 64, "misc": 64, "control": 64, "memory": 0,
    }  # fmt: skip
    assert {group: found[GROUP.format(group)] for group in GROUPS} == {g: 8 * n for g, n in expected.items()}


def test_pipes_by_class_and_by_kind_of_special_register() -> None:
    lines = (
        "FFMA R4, R4, R5, R6", "FADD R4, R4, R5", "MUFU.RCP R4, R5", "DADD R4, R4, R6", "IADD3 R4, R4, R5, RZ",
        "LDG.E R4, [R2.64]", "LDS R4, [R2]", "S2R R5, SR_TID.X", "S2R R5, SR_CTAID.X", "S2UR UR4, SR_CTAID.X",
    )  # fmt: skip
    found = metrics(hand_made(*lines))
    for class_, count in (("fp32", 2), ("sfu", 1), ("fp64", 1), ("int", 1)):
        assert found[PIPE.format(PIPES[class_])] == count * WARPS
    # Two loads, and the read of the thread's own index alone.
    assert found[PIPE.format(PIPES["global_load"])] == 3 * WARPS
    pipes = [value for name, value in found.items() if name.startswith("smsp__inst_executed_pipe_")]
    assert sum(pipes) == (11 - 2) * WARPS  # all but the two reads of the block's index


def test_lanes_of_a_divergent_path_count_by_its_steps() -> None:
    made = hand_made(".L_0:", "FADD R4, R4, R5", "@P0 BRA `(.L_0)", "FADD R4, R4, R6")
    # One warp turns three times with 32, 20 and 8 lanes, the other once with 4 and goes on with 2.
    paths = (
        WarpPath(np.array([0, 0, 0, 1], np.int32), np.array([32, 20, 8, 32], np.float32)),
        WarpPath(np.array([0, 1], np.int32), np.array([4, 2], np.float32)),
    )
    one, other = made.blocks
    made = replace(made, paths=paths, blocks=(replace(one, paths=(0, 1)), replace(other, paths=(1, 1))))
    # 3 blocks of the first kind, 5 of the second. Blocks of code of two instructions each (and EXIT).
    first, second = 3 * (60 + 4) + 5 * 2 * 4, 3 * (32 + 2) + 5 * 2 * 2
    assert active_lanes(made).tolist() == [first, first, second, second]
    found = metrics(made)
    executed = 3 * (4 + 2) * 2 + 5 * 2 * 2 * 2
    assert found["smsp__inst_executed.sum"] == executed
    assert found["smsp__thread_inst_executed.sum"] == 2 * (first + second)
    ratio = 2 * (first + second) / executed
    assert found["smsp__thread_inst_executed_per_inst_executed.ratio"] == pytest.approx(ratio)
    assert found["smsp__thread_inst_executed_per_inst_executed.pct"] == pytest.approx(ratio / 32 * 100)


def test_occupancy_in_percent_only_where_it_is_known() -> None:
    name = "sm__warps_active.avg.pct_of_peak_sustained_active"
    made = hand_made("FADD R4, R4, R5")
    assert metrics(made, achieved_occupancy=0.375)[name] == 37.5
    assert name not in metrics(made)


# Memory ---------------------------------------------------------------------------------------------------------


def test_requests_sectors_and_wavefronts_by_space_and_kind() -> None:
    lines = (
        "LDG.E R4, [R2.64]", "LDG.E.64 R4, [R2.64]", "STG.E [R2.64], R4", "STS [R6], R4", "LDS R5, [R6]",
        "LDL R4, [R1]", "STL.64 [R1], R4", "ATOMG.E.ADD.STRONG.GPU R6, [R2.64], R5",
        "RED.E.ADD.STRONG.GPU [R2.64], R5", "LDGSTS.E [R3], [R4.64]", "ATOMS.ADD R4, [R6], R5",
    )  # fmt: skip
    accesses = (
        access(0, A + LANES * 8),  # every second float: 256 B, 8 sectors
        access(1, A + LANES * 8),  # 8 bytes a lane: 256 B, 8 sectors
        access(2, A + 4 + LANES * 4),  # 128 B from 4 on: 5 sectors
        access(3, LANES * 8, space=SPACE_SHARED),  # every second word: 2 passes
        access(4, LANES * 128, space=SPACE_SHARED),  # one bank: 32 passes
        access(5, LANES * 0 + 16, space=SPACE_LOCAL),  # a word of each lane: 128 B, 4 sectors
        access(6, LANES * 0 + 16, space=SPACE_LOCAL),  # two: 8 sectors
        access(7, A + LANES * 0),  # one address: 1 sector
        access(8, A + LANES * 4, 0xFFFF),  # half of the lanes: 64 B, 2 sectors
        access(9, A + LANES * 4),  # reads 4 sectors of global memory …
        access(9, LANES * 4, space=SPACE_SHARED),  # … and writes a pass of the banks
        access(10, LANES // 2 * 4, space=SPACE_SHARED),  # 16 words: one pass
    )
    found = metrics(hand_made(*lines, accesses=accesses))
    sectors = {("global", "ld"): 16, ("global", "st"): 5, ("global", "atom"): 1, ("global", "red"): 2,
               ("global", "ldgsts"): 4, ("local", "ld"): 4, ("local", "st"): 8}  # fmt: skip
    for (space, kind), count in sectors.items():
        assert found[L1.format("sectors", space, kind)] == count * WARPS, (space, kind)
    for kind, count in (("ld", 2), ("st", 1), ("atom", 1), ("red", 1), ("ldgsts", 1)):
        assert found[L1.format("requests", "global", kind)] == count * WARPS, kind
    shared = "l1tex__data_pipe_lsu_wavefronts_mem_shared{}.sum"
    assert found[shared.format("_op_ld")] == 32 * WARPS
    assert found[shared.format("_op_st")] == 2 * WARPS
    assert found[shared.format("")] == (32 + 2 + 1 + 1) * WARPS
    assert found["lts__t_sectors_op_atom.sum"] == 1 * WARPS
    assert found["lts__t_sectors_op_red.sum"] == 2 * WARPS
    # The L1 writes through, to local memory as well.
    assert found["lts__t_sectors_op_write.sum"] == (5 + 8) * WARPS


def test_a_request_without_an_active_lane_is_none() -> None:
    made = profile(
        ["@P0 LDG.E R4, [R2.64]"], (8, 1, 1), lambda block, warp: [access(0, A + LANES * 4)] if warp == 0 else [],
        warps=2, allocations={"a": (A, A)},
    )  # fmt: skip
    found = metrics(made)
    assert found["smsp__inst_executed.sum"] == 2 * WARPS
    assert found[L1.format("requests", "global", "ld")] == WARPS / 2
    assert found[L1.format("sectors", "global", "ld")] == WARPS / 2 * 4


def behaviour(accesses: dict[int, AccessBehaviour], **others: float) -> MemoryBehaviour:
    totals = {"dram_read_bytes": 0.0, "dram_write_bytes": 0.0, "dirty_bytes": 0.0, **others}
    return MemoryBehaviour(accesses, 0, 0, 0, None, None, None, method="affine", **totals)


def one(space: int, sectors: float, l1: float = 0.0, l2: float = 0.0, requests: float = 1.0) -> AccessBehaviour:
    return AccessBehaviour(WARPS, space, sectors, 1, l1_hit=l1, l2_hit=l2, requests=requests)


def test_what_the_l2_is_asked_for_and_what_it_holds() -> None:
    lines = (
        "LDG.E R4, [R2.64]", "LDL R4, [R1]", "LDGSTS.E [R3], [R4.64]", "STG.E [R2.64], R4", "STL [R1], R4",
        "ATOMG.E.ADD.STRONG.GPU R6, [R2.64], R5", "RED.E.ADD.STRONG.GPU [R2.64], R5", "LDS R5, [R6]",
        "TEX.SCR.LL R4, R5, R6, 0x0, 0x54, 2D", "SULD.D.BA.2D.STRONG.SM R4, [R2], UR4",
        "SUST.D.BA.2D.STRONG.SM [R2], R4, UR4",
    )  # fmt: skip
    # An L1 hit of a store or an atomic means nothing: they go to the L2.
    found = metrics(
        hand_made(*lines),
        behaviour(
            {
                0: one(SPACE_GLOBAL, 8, l1=0.75, l2=0.5),  # 2 of 8 sectors miss the L1, 1 the L2
                1: one(SPACE_LOCAL, 4, l1=0.5, l2=1.0),  # 2, 0
                2: one(SPACE_GLOBAL, 4, l1=0.25, l2=1 / 3),  # 3, 2
                3: one(SPACE_GLOBAL, 5, l1=0.5, l2=0.2),  # 5, 4
                4: one(SPACE_LOCAL, 8, l2=1.0),  # 8, 0
                5: one(SPACE_GLOBAL, 1, l1=0.5, l2=1.0),  # 1, 0
                6: one(SPACE_GLOBAL, 2, l2=0.5),  # 2, 1
                7: one(SPACE_SHARED, 32),  # no sectors
                8: one(SPACE_GLOBAL, 16, l1=0.5, l2=0.5, requests=3.0),  # 8, 4
                9: one(SPACE_GLOBAL, 4, l2=0.0),  # 4, 4
                10: one(SPACE_GLOBAL, 6, l2=1.0),  # 6, 0
            },
            dram_read_bytes=3200.0, dram_write_bytes=6400.0, dirty_bytes=1600.0,
        ),
        code_sectors=100.0,
    )  # fmt: skip
    assert found["lts__t_sectors_op_read.sum"] == (2 + 2 + 3 + 8 + 4) * WARPS + 100
    assert found["lts__t_sectors_op_write.sum"] == (5 + 8 + 6) * WARPS
    assert found["lts__t_sectors_op_atom.sum"] == 1 * WARPS
    assert found["lts__t_sectors_op_red.sum"] == 2 * WARPS
    # Loads, copies and fetches ask the L1 for 8 + 4 + 4 + 16 + 4 = 36 sectors, of which 2 + 2 + 3 + 8 + 4 = 19 miss.
    assert found["l1tex__t_sector_hit_rate.pct"] == pytest.approx(100 * (36 - 19) / 36)
    # 41 sectors reach the L2 in a warp, of which 1 + 2 + 4 + 1 + 4 + 4 = 16 miss; and code is found there.
    assert found["lts__t_sector_hit_rate.pct"] == pytest.approx(100 * (25 * WARPS + 100) / (41 * WARPS + 100))
    # A fetch of several texels is one request.
    assert found["l1tex__t_requests_pipe_tex_mem_texture.sum"] == WARPS
    assert found["l1tex__t_sectors_pipe_tex_mem_texture.sum"] == 16 * WARPS
    assert found["l1tex__t_requests_pipe_tex_mem_surface_op_ld.sum"] == WARPS
    assert found["l1tex__t_sectors_pipe_tex_mem_surface_op_ld.sum"] == 4 * WARPS
    assert found["l1tex__t_sectors_pipe_tex_mem_surface_op_st.sum"] == 6 * WARPS
    # What the kernel wrote and the L2 still holds has not gone to DRAM.
    assert found["dram__sectors_read.sum"] == 100
    assert found["dram__sectors_write.sum"] == 150


def test_no_rates_of_what_nobody_asked() -> None:
    found = metrics(hand_made("LDS R5, [R6]"), behaviour({0: one(SPACE_SHARED, 4)}))
    assert "l1tex__t_sector_hit_rate.pct" not in found
    assert "lts__t_sector_hit_rate.pct" not in found
    only_stores = metrics(hand_made("STG.E [R2.64], R4"), behaviour({0: one(SPACE_GLOBAL, 4, l2=0.25)}))
    assert "l1tex__t_sector_hit_rate.pct" not in only_stores
    assert only_stores["lts__t_sector_hit_rate.pct"] == 25


def test_whole_numbers_are_integers_whatever_weights_they_come_from() -> None:
    made = hand_made("FADD R4, R4, R5")
    one_block, other = made.blocks
    made = replace(made, blocks=(replace(one_block, weight=8 / 3), replace(other, weight=16 / 3)))
    found = metrics(made)
    assert found["smsp__inst_executed.sum"] == 2 * WARPS
    assert isinstance(found["smsp__thread_inst_executed_pred_on.sum"], int)
    # Half of an instruction stays one.
    made = replace(made, blocks=(replace(one_block, weight=0.25), replace(other, weight=7.5)))
    assert metrics(made)["smsp__inst_executed.sum"] == 7.75 * 2 * 2
    assert metrics(made)["smsp__thread_inst_executed_pred_on.sum"] == 7.75 * 64 * 2
