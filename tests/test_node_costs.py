"""What each instruction costs on a GPU: hand-written code bound to a GPU of round numbers (`tests/round_gpu.py`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from drywarp.hardware import Gpu, load_gpu
from drywarp.kernel.profile import SPACE_GLOBAL, SPACE_LOCAL, SPACE_SHARED, Profile, WarpPath
from drywarp.memory.behaviour import AccessBehaviour, MemoryBehaviour, analyse_memory
from drywarp.workload.build import build_workload
from drywarp.workload.cost import CostedNode, CostedWorkload
from drywarp.workload.cost_model import Conditions, assign_costs, class_totals, on_gpu
from drywarp.workload.table_costs import bind_to_table
from tests.listing import control
from tests.memory.profiles import LANES, Access, access, geometry, profile
from tests.round_gpu import round_gpu, ticks

A = 1 << 20
BUFFERS = {"a": (A, A)}
Line = str | tuple[str, int]


def hand_made(*lines: Line, accesses: tuple[Access, ...] = (), grid: int = 23, warps: int = 2) -> Profile:
    return profile(
        lines,  # type: ignore[arg-type]
        (grid, 1, 1),
        lambda block, warp: accesses,
        samples=(0,),
        warps=warps,
        allocations=BUFFERS,
        local_bytes=64,
    )


def bound(made: Profile, gpu: Gpu, memory: MemoryBehaviour | None = None, clock: float = 1000.0) -> CostedWorkload:
    behaviour = memory or analyse_memory(made, geometry())
    return assign_costs(build_workload(made), behaviour, gpu, Conditions(clock, "oldest_first", 4))


def nodes(made: Profile, gpu: Gpu, memory: MemoryBehaviour | None = None) -> list[CostedNode]:
    return list(bound(made, gpu, memory).paths[0].nodes)


def with_scheduler(gpu: Gpu, **values: Any) -> Gpu:
    return replace(gpu, scheduler=msgspec.structs.replace(gpu.scheduler, **values))


def with_class(gpu: Gpu, name: str, **values: Any) -> Gpu:
    return replace(gpu, classes={**gpu.classes, name: msgspec.structs.replace(gpu.classes[name], **values)})


# Classes and stall counts ---------------------------------------------------------------------------------------


def test_arithmetic_costs_what_its_class_does() -> None:
    gpu = with_class(round_gpu(), "int", lambda_=1.5, latency=5.0, read_latency=4.0)
    made = hand_made(("FFMA R4, R4, R5, R6", control(stall=5)), ("IADD3 R7, R4, R5, RZ", control(stall=0)))
    fma, add, _ = nodes(made, gpu)
    names = list(gpu.subsystems)
    assert (fma.class_, names[fma.subsystem]) == ("fp32", gpu.classes["fp32"].subsystem)
    # λ 3 and Λ 12 cycles of 240 ticks; operands are read while λ lasts where the file names no other time.
    assert (fma.lambda_ticks, fma.latency_ticks, fma.read_ticks, fma.stall_ticks) == (720, 2880, 720, 1200)
    assert (add.lambda_ticks, add.latency_ticks, add.read_ticks, add.stall_ticks) == (360, 1200, 960, 240)
    assert (fma.levels, fma.transactions, fma.conflict_ticks, fma.barrier, fma.async_result) == ((), 0, 0, False, False)


def test_stalls_are_in_slots_of_a_warp_and_a_taken_branch_holds_it() -> None:
    lines = (".L_0:", "FFMA R4, R4, R5, R6", ("@P0 BRA `(.L_0)", control(stall=5)), ("EXIT", control(stall=5)))
    made = hand_made(*lines, warps=1)
    iterations = WarpPath(np.array([0, 0, 0, 1, 2], np.int32), np.full(5, 32, np.float32))
    looping = replace(made, paths=(iterations,))
    for slot, taken, expected in ((1.0, 13.0, 13), (1.0, 4.0, 5), (4.0, 13.0, 20), (1.0, None, 12)):
        fma, branch, leave, _ = nodes(looping, with_scheduler(round_gpu(), slot_cycles=slot, taken_cycles=taken))
        # 5 slots, or what the scheduler says of a taken branch (Λ of the class where it is silent) if that is more.
        assert (branch.stall_ticks, fma.stall_ticks, leave.stall_ticks) == tuple(
            240 * cycles for cycles in (expected, slot, 5 * slot)
        )


def test_what_issues_stays_with_its_warp_where_the_code_says_so() -> None:
    stays, goes = ("FADD R4, R4, R5", control() | 1 << 109), ("FADD R4, R4, R5", control())
    first, second, _ = nodes(hand_made(stays, goes), round_gpu())
    assert {first.stays, second.stays} == {True, False}


def test_operands_take_the_two_banks_of_the_register_file() -> None:
    lines = ("FFMA R4, R4, R5, R6", "FADD R9, R8, RZ", ("FADD R9, R7, R3", control(write=0)), "MUFU.RCP R4, R5")
    banked = with_scheduler(round_gpu(), read_cycles=2.0)
    made = bound(hand_made(*lines), banked)
    # R4 and R6 are even, R5 odd; RZ lies in no bank. Instructions of variable latency give way to the others.
    assert [node.register_ticks for node in made.paths[0].nodes[:4]] == [(480, 240), (240, 0), (0, 0), (0, 0)]
    assert made.read_window_ticks == 480
    free = bound(hand_made(*lines), with_scheduler(round_gpu(), read_cycles=None))
    assert {node.register_ticks for node in free.paths[0].nodes} == {(0, 0)}
    assert free.read_window_ticks == 0


def test_loads_of_constants_take_a_pass_for_each_address() -> None:
    """λ 3 and Λ 12: with 5 addresses 15 cycles, of which the last 12 follow the first pass."""
    gpu = with_class(round_gpu(), "constant_load", lambda_=3.0, latency=12.0)
    made = replace(hand_made("LDC R4, c[0x3][R2]", "LDC R5, c[0x3][R3]"), constant_addresses={1: 5.0})
    one, several, _ = nodes(made, gpu)
    assert (one.lambda_ticks, one.latency_ticks) == (ticks(3), ticks(12))
    assert (several.lambda_ticks, several.latency_ticks) == (ticks(15), ticks(24))
    assert several.levels == ()


def test_constants_that_miss_come_later() -> None:
    """A load's result, or an operand before the issue, by the mean share of executions that miss."""
    gpu = round_gpu()
    memory = gpu.memory
    assert memory.constants is not None
    missing = msgspec.structs.replace(memory.constants, load_miss=80.0, operand_miss=60.0, operand_hold=4.0)
    gpu = replace(gpu, sections={**gpu.sections, "memory": msgspec.structs.replace(memory, constants=missing)})
    made = hand_made(
        ("LDC R4, c[0x3][R2]", control(write=0)), "FADD R5, R5, c[0x3][0x8]", "ULDC UR4, c[0x3][UR5]", "FADD R5, R5, R6"
    )
    seen = replace(analyse_memory(made, geometry()), constant_misses={0: 0.25, 1: 0.5, 2: 1.0})
    load, operand, uniform, other, _ = nodes(made, gpu, seen)
    found = [(one.latency_ticks, one.miss_ticks, one.held_ticks) for one in (load, operand, uniform, other)]
    assert found == [
        (ticks(12 + 20), 0, 0), (ticks(12), ticks(30), ticks(2)), (ticks(12), ticks(60), ticks(4)), (ticks(12), 0, 0),
    ]  # fmt: skip
    without = replace(gpu, sections={**gpu.sections, "memory": msgspec.structs.replace(memory, constants=None)})
    assert {node.miss_ticks for node in nodes(made, without, seen)} == {0}


# Memory ---------------------------------------------------------------------------------------------------------


def test_each_kind_of_access_has_its_costs() -> None:
    lines = (
        "LDG.E R4, [R2.64]", "STG.E [R2.64], R4", "LDS R5, [R6]", "STS [R6], R5", "RED.E.ADD.STRONG.GPU [R2.64], R5",
        "ATOMG.E.ADD.STRONG.GPU R6, [R2.64], R5", "BAR.SYNC 0x0", "LDL R4, [R1]", "STL [R1], R4",
    )  # fmt: skip
    four = A + LANES * 4
    made = hand_made(
        *lines,
        accesses=(
            access(0, A + LANES * 8), access(1, A + LANES * 128),
            access(2, LANES * 8, space=SPACE_SHARED), access(3, LANES * 132, space=SPACE_SHARED),
            access(4, four), access(5, A + LANES * 0),
            access(7, LANES * 0 + 16, space=SPACE_LOCAL), access(8, LANES * 0 + 16, space=SPACE_LOCAL),
        ),
    )  # fmt: skip
    gpu = round_gpu()
    found = nodes(made, gpu)
    # Every second float: 2 lines, 2 wavefronts of 2 cycles. A column of 4-byte stores: 32 passes of the banks.
    # Shared: every second word is a conflict of two, a padded column none, and the slot of 3 covers both.
    # Local words of a warp lie side by side: one line.
    assert [n.lambda_ticks for n in found[:9]] == [ticks(c) for c in (4, 32, 3, 3, 3, 3, 3, 3, 3)]
    assert [n.transactions for n in found[:9]] == [2, 32, 0, 0, 1, 1, 0, 1, 1]
    # One wavefront beyond the first, of λ 3 cycles.
    assert [n.conflict_ticks for n in found[:9]] == [0, 0, 720, 0, 0, 0, 0, 0, 0]
    assert [n.async_result for n in found[:9]] == [False, True, False, True, True, False, False, False, True]
    assert [n.barrier for n in found[:9]] == [False] * 6 + [True] + [False] * 2
    assert found[2].latency_ticks == ticks(20 + 1)
    assert found[3].latency_ticks == ticks(20)
    names = list(gpu.subsystems)
    levels = {n: [names[level.subsystem] for level in node.levels] for n, node in enumerate(found)}
    assert {n for n, visited in levels.items() if "l2" in visited} >= {1, 4, 5, 8}
    assert not levels[2]
    assert not levels[3]


def test_textures_take_their_slot_or_their_wavefronts_and_the_latency_of_where_they_are_found() -> None:
    made = hand_made(
        "TEX.SCR.LL R4, R5, R6, 0x0, 0x54, 2D",
        "TLD4.SCR.R R4, R5, R6, 0x0, 0x54, 2D",
        "SUST.D.BA.2D.STRONG.SM [R2], R4, UR4",
    )

    def found(sectors: float, lines: float, l1: float, l2: float) -> AccessBehaviour:
        return AccessBehaviour(100.0, SPACE_GLOBAL, sectors, lines=lines, l1_hit=l1, l2_hit=l2, passes=1.0)

    # A 2D fetch of 9 sectors in 6 lines; a gather of 32 sectors in 8 lines; a stored row.
    accesses = {0: found(9, 6, 1, 1), 1: found(32, 8, 0.5, 1), 2: found(4, 1, 0, 1)}
    gpu = with_class(round_gpu(), "texture", lambda_=7.0)
    behaviour = replace(analyse_memory(made, geometry()), accesses=accesses)
    fetch, gather, store = nodes(made, gpu, behaviour)[:3]
    names = list(gpu.subsystems)
    assert {node.class_ for node in (fetch, gather, store)} == {"texture"}
    assert names[fetch.subsystem] == gpu.classes["texture"].subsystem
    # 6 lines take 3 look-ups of 2 cycles, which the slot of 7 covers; 32 sectors are 8 wavefronts of 2 cycles.
    assert [node.lambda_ticks for node in (fetch, gather, store)] == [ticks(7), ticks(16), ticks(7)]
    # All from the L1: 30 cycles and 3 - 1 wavefronts more; half from the L2: (30 + 150) / 2, and 8 - 1 wavefronts.
    assert [node.latency_ticks for node in (fetch, gather)] == [ticks(30 + 4), ticks(90 + 14)]
    # What misses the L1 goes to the L2: 32 / 2 sectors of 32 bytes and 10 SMs at 100 bytes a cycle.
    assert fetch.levels == ()
    assert [(names[v.subsystem], v.lambda_ticks) for v in gather.levels] == [("l2", ticks(16 * 32 * 10 / 100))]
    assert [(names[v.subsystem], v.lambda_ticks) for v in store.levels] == [("l2", ticks(4 * 32 * 10 / 100))]
    assert store.async_result


def test_a_pass_and_a_conflict_of_wide_accesses() -> None:
    lines = ("LDS.64 R4, [R2]", "LDS.128 R4, [R2]", "LDG.E.64 R4, [R2.64]", "LDG.E.128 R4, [R2.64]")
    made = hand_made(
        *lines,
        accesses=(
            access(0, LANES * 8, space=SPACE_SHARED), access(1, LANES * 16, space=SPACE_SHARED),
            access(2, A + LANES * 8), access(3, A + LANES * 16),
        ),
    )  # fmt: skip
    found = nodes(made, round_gpu())
    # 8 bytes a lane: 2 passes of a cycle, less than the slot; 16 bytes: 4. In global memory 2 and 4 wavefronts of 2.
    assert [n.lambda_ticks for n in found[:4]] == [ticks(c) for c in (3, 4, 4, 8)]
    assert [n.latency_ticks for n in found[:2]] == [ticks(21), ticks(23)]
    assert [n.conflict_ticks for n in found[:2]] == [ticks(3), ticks(9)]


def test_an_access_that_never_ran_costs_its_slot() -> None:
    (load, *_) = nodes(hand_made("LDG.E R4, [R2.64]"), round_gpu())
    assert (load.lambda_ticks, load.latency_ticks, load.levels, load.transactions) == (720, ticks(30), (), 0)


# Matrix products ------------------------------------------------------------------------------------------------

TENSOR = {"fp16": 128.0, "tf32": 64.0, "fp64": 16.0, "int8": 512.0, "bf16": 32.0, "fp8": 256.0}


@pytest.mark.parametrize(
    ("opcode", "cycles"),
    [
        ("HMMA.16816.F32", 16 * 8 * 16 / 128),
        ("HMMA.1688.F32", 16 * 8 * 8 / 128),
        ("HMMA.1688.F32.TF32", 16 * 8 * 8 / 64),
        ("DMMA.8x8x4", 8 * 8 * 4 / 16),
        ("IMMA.16832.S8.S8", 16 * 8 * 32 / 512),
        ("IMMA.8816.S8.S8", 8 * 8 * 16 / 512),
        ("HMMA.1684.F32.TF32", 16 * 8 * 4 / 64),
        ("HMMA.884.F32", 8 * 8 * 4 / 128),
        ("IMMA.8832.S8.S8", 8 * 8 * 32 / 512),
        ("IMMA.16864.S8.S8", 16 * 8 * 64 / 512),
        ("HMMA.SP.16832.F32", 16 * 8 * 16 / 128),  # half of the products are of zeros that are not stored
        ("DMMA.16x8x16", 16 * 8 * 16 / 16),
        ("HMMA.123.F32", 3),  # an unknown shape: λ of the class
        ("BMMA.168256.XOR.POPC", 3),
    ],
)
def test_matrix_instructions_take_their_multiplications_over_the_rate(opcode: str, cycles: float) -> None:
    gpu = replace(round_gpu(), tensor=TENSOR)
    (product, *_) = nodes(hand_made(f"{opcode} R8, R4, R6, R8"), gpu)
    assert (product.class_, product.lambda_ticks, product.latency_ticks) == ("tensor", ticks(cycles), ticks(12))


@pytest.mark.parametrize(
    ("opcode", "cycles"),
    [
        ("v_mfma_f32_32x32x8_f16", 32 * 32 * 8 / 128),
        ("v_mfma_f64_16x16x4_f64", 16 * 16 * 4 / 16),
        ("v_mfma_f32_32x32x2_bf16", 3),  # several blocks, of which the file has no rate: λ of the class
        ("v_mfma_of_another_kind", 3),
    ],
)
def test_amds_matrix_instructions_too(opcode: str, cycles: float) -> None:
    gpu = replace(round_gpu(), tensor=TENSOR)
    made = hand_made("HMMA.16816.F32 R8, R4, R6, R8")
    product, *others = made.kernel.instructions
    kernel = replace(made.kernel, instructions=(replace(product, opcode=opcode), *others))
    (node, *_) = nodes(replace(made, kernel=kernel), gpu)
    assert (node.class_, node.lambda_ticks) == ("tensor", ticks(cycles))


def test_a_matrix_instruction_without_a_rate_takes_its_class() -> None:
    gpu = replace(round_gpu(), tensor={"int8": 512.0})
    (product, *_) = nodes(hand_made("HMMA.16816.F32 R8, R4, R6, R8"), gpu)
    assert product.lambda_ticks == 720


@pytest.mark.parametrize(
    ("code", "product", "fetch"),
    [
        # A warp's 16 rows of 64 columns and a depth of 16, at 128 FMA a cycle: 128 cycles.
        # Both operands in shared memory: 16 rows, and a quarter of 64 columns, of 32 bytes: 1024 B, 8 cycles.
        ("HGMMA.64x64x16.F32 R24, gdesc[UR8], R24", 128, 8),
        # The first one in registers: 512 B.
        ("HGMMA.64x64x16.F32 R24, R4, gdesc[UR8], R24", 128, 4),
        ("HGMMA.64x128x16.F32 R24, gdesc[UR8], R24", 256, (16 + 32) * 32 / 128),
        ("HGMMA.64x64x16.F32.BF16 R24, gdesc[UR8], R24", 16 * 64 * 16 / 32, 8),
        ("HGMMA.64x64x8.F32.TF32 R24, gdesc[UR8], R24", 16 * 64 * 8 / 64, 8),
        ("QGMMA.64x64x32.F32.E4M3.E4M3 R24, gdesc[UR8], R24", 16 * 64 * 32 / 256, 8),
        ("IGMMA.64x64x32.S8.S8 R24, gdesc[UR8], R24", 16 * 64 * 32 / 512, 8),
    ],
)
def test_products_of_a_warp_group_visit_the_banks_and_the_tensor_core(code: str, product: float, fetch: float) -> None:
    gpu = replace(round_gpu(base="h100"), tensor=TENSOR)
    (node, *_) = nodes(hand_made(code), gpu)
    names = list(gpu.subsystems)
    assert (node.lambda_ticks, node.latency_ticks) == (720, ticks(12 + product))
    assert [(names[at.subsystem], at.lambda_ticks, at.tail_ticks) for at in node.levels] == [
        ("async_shared", ticks(fetch), ticks(fetch)),
        (gpu.classes["tensor"].subsystem, ticks(product), ticks(product)),
    ]


def test_products_queue_and_take_a_part_of_the_register_file() -> None:
    product, other = "HGMMA.64x64x16.F32 R24, gdesc[UR8], R24", "FADD R4, R4, R5"
    gpu = with_scheduler(round_gpu(base="h100"), product_registers=1.0, product_queue=3)
    made = bound(hand_made(product, other), gpu)
    names = [one.name for one in made.subsystems]
    assert names[made.bank_rival] == "tensor"
    assert made.beside_rival == 1  # one of the two registers a cycle is left: reads take twice as long
    assert bound(hand_made(product), with_scheduler(gpu, product_registers=0.5)).beside_rival == pytest.approx(1 / 3)
    assert {one.name: one.outstanding for one in made.subsystems if one.outstanding} == {"gmma": 3}
    assert names[made.paths[0].nodes[0].subsystem] == "gmma"
    without = bound(hand_made(other), gpu)
    assert (without.bank_rival, bound(hand_made(product), with_scheduler(gpu, product_registers=None)).bank_rival) == (
        -1,
        -1,
    )
    assert bound(hand_made(other), round_gpu()).bank_rival == -1


def test_fences_of_a_block_have_a_latency_of_their_own() -> None:
    gpu = round_gpu(base="h100")
    fence = msgspec.structs.replace(gpu.classes["fence"], latency=12.0, block_latency=5.0)
    gpu = replace(gpu, classes={**gpu.classes, "fence": fence})
    lines = ("MEMBAR.ALL.CTA", "FENCE.VIEW.ASYNC.S", "MEMBAR.SC.GPU", "FENCE.VIEW.ASYNC.G", "ERRBAR")
    assert [node.latency_ticks for node in nodes(hand_made(*lines), gpu)[:5]] == [ticks(c) for c in (5, 5, 12, 12, 12)]
    alike = replace(gpu, classes={**gpu.classes, "fence": msgspec.structs.replace(fence, block_latency=None)})
    assert {node.latency_ticks for node in nodes(hand_made(*lines), alike)[:5]} == {ticks(12)}


def test_shared_memory_has_one_data_path() -> None:
    """Where products read it too, loads and stores take their part of it, without waiting for those."""
    lines, product = ("LDS R5, [R6]", "STS [R6], R5"), "HGMMA.64x64x16.F32 R24, gdesc[UR8], R24"
    seen = (access(0, LANES * 4, space=SPACE_SHARED), access(1, LANES * 128, space=SPACE_SHARED))
    gpu = round_gpu(base="h100")
    load, store, *_ = nodes(hand_made(*lines, product, accesses=seen), gpu)
    names = list(gpu.subsystems)
    # One wavefront, and 32 of a column, each of a cycle.
    for node, cycles in ((load, 1), (store, 32)):
        assert [(names[at.subsystem], at.lambda_ticks, at.queues) for at in node.levels] == [
            ("async_shared", ticks(cycles), False)
        ]
        assert not node.goes_on
    assert all(not node.levels for node in nodes(hand_made(*lines, accesses=seen), gpu)[:2])


def test_a_product_of_96_elements_reads_rows_of_48_bytes() -> None:
    gpu = replace(round_gpu(base="b200"), tensor={"fp4": 1024.0})
    text = "UTCOMMA.BLOCK16.128x64x96.E2M1 gdesc[UR8], gdesc[UR12], tmem[UR6], tmem[UR4], idesc[UR5], tmem[UR10], UP0"
    (node, *_) = nodes(hand_made(text), gpu)
    names = list(gpu.subsystems)
    found = {names[at.subsystem]: at.lambda_ticks for at in node.levels}
    assert found == {"async_shared": ticks(192 * 48 / 128), "async_tensor": ticks(128 * 64 * 96 / 1024 / 4)}


@pytest.mark.parametrize(
    ("form", "product", "fetch"),
    [
        # 128 rows of 64 columns and a depth of 16, by four partitions: 256 cycles. 128 + 64 rows of 32 bytes: 48.
        ("128x64x16.F16", 256, 48),
        # Of a sparse one the stored half is multiplied, with twice as many bytes of the second operand.
        ("128x64x32.F16.SP", 256, 64),
        ("2CTA.256x64x32.F16.SP", 256, 48),
    ],
)
def test_products_in_tensor_memory_visit_the_banks_and_all_tensor_cores(form: str, product: int, fetch: int) -> None:
    gpu = replace(round_gpu(base="b200"), tensor=TENSOR)
    (node, *_) = nodes(hand_made(f"UTCHMMA.{form} gdesc[UR8], gdesc[UR12], tmem[UR6], tmem[UR4], idesc[UR5], UP0"), gpu)
    names = list(gpu.subsystems)
    found = {names[at.subsystem]: at.lambda_ticks for at in node.levels}
    assert found == {"async_shared": ticks(fetch), "async_tensor": ticks(product)}


# The machine around the nodes -----------------------------------------------------------------------------------


def test_what_the_file_says_of_the_machine() -> None:
    made = hand_made("LDG.E R4, [R2.64]", accesses=(access(0, A + LANES * 4),), grid=23, warps=2)
    gpu = with_scheduler(round_gpu(), issue_per_cycle=0.5)
    memory = analyse_memory(made, geometry())
    found = bound(made, gpu, memory, clock=800.0)
    assert (found.partitions, found.policy, found.in_order) == (4, "oldest_first", gpu.scheduler.in_order)
    # One warp instruction every two cycles; Λ_launch is 7 cycles.
    assert (found.issue_ticks, found.launch_ticks) == (480, 7 * 240)
    assert (found.blocks, found.warps_per_block, found.blocks_per_sm, found.sm_count) == (23, 2, 4, 10)
    assert (found.clock_hz, found.warps_per_sm) == (800e6, 8)
    assert found.data_bytes == memory.dram_read_bytes + memory.dram_write_bytes > 0
    assert found.parameters["clock_mhz"] == 800
    assert found.parameters["dram_latency"] == 320  # 400 ns
    assert bound(made, with_scheduler(gpu, issue_per_cycle=None)).issue_ticks == 0


def test_the_most_blocks_are_those_of_warp_slots_or_of_the_block_limit() -> None:
    def most(warps: int, resident: int = 1, **limits: Any) -> int:
        gpu = round_gpu()
        occupancy = msgspec.structs.replace(gpu.occupancy, max_warps_per_sm=48, max_blocks_per_sm=16, **limits)
        gpu = replace(gpu, sections={**gpu.sections, "occupancy": occupancy})
        made = hand_made("FADD R4, R4, R5", warps=warps)
        workload, conditions = build_workload(made), Conditions(1000.0, "oldest_first", resident)
        return on_gpu(workload, gpu, conditions, (), analyse_memory(made, geometry())).max_blocks_per_sm

    assert [most(warps) for warps in (1, 2, 3, 4, 5, 32)] == [16, 16, 16, 12, 9, 1]
    assert most(5, resident=11) == 11  # what is resident is possible
    assert [most(warps, max_multiwarp_blocks_per_sm=10) for warps in (1, 2, 8)] == [16, 10, 6]


def test_totals_by_class_leave_out_what_never_ran() -> None:
    workload = build_workload(hand_made("FADD R4, R4, R5", "FMUL R4, R4, R5", "LDG.E R4, [R2.64]", "MUFU.RCP R4, R5"))
    totals = class_totals(workload, [10.0, 20.0, 40.0, 0.0, 10.0])
    assert totals == {"global_load": 40, "fp32": 30, "branch": 10}
    assert list(totals) == ["global_load", "fp32", "branch"]


# A table of λ and Λ alone ---------------------------------------------------------------------------------------


def table_gpu() -> Gpu:
    """The GPU of the analysis paper with round figures: accesses λ 8 and Λ 100, shared ones λ 2 and Λ 60."""
    gpu = load_gpu("papers/analysis-tonga")
    code = gpu.machine_code
    assert code is not None
    gpu = with_class(gpu, code.classes["global_load"], lambda_=8.0, latency=100.0)
    gpu = with_class(gpu, code.classes["shared_load"], lambda_=2.0, latency=60.0)
    sections = {**gpu.sections, "machine_code": msgspec.structs.replace(code, transaction_bytes=64, shared_banks=32)}
    return replace(gpu, sections=sections)


def table_nodes(gpu: Gpu, *lines: Line, **behaviours: AccessBehaviour) -> list[CostedNode]:
    made = hand_made(*lines)
    nothing = analyse_memory(made, geometry())
    memory = replace(nothing, accesses={int(n[1:]): one for n, one in behaviours.items()})
    found = bind_to_table(build_workload(made), made.cfg, memory, gpu, Conditions(1000.0, "loose_round_robin", 1))
    return list(found.paths[0].nodes)


@pytest.mark.parametrize(
    ("load", "behaviour", "lambda_", "latency"),
    [
        # A warp of 64 lanes asks for 256 B. What it moves to and from DRAM over that is R; a cached one is R = 1.
        ("LDG.E", AccessBehaviour(1, SPACE_GLOBAL, 4, 4, dram_read=4), 8, 100),
        ("LDG.E", AccessBehaviour(1, SPACE_GLOBAL, 4, 4), 8, 100),
        # 12 transactions of 64 B are 768 B: R = 3. λ is 3 · 8; the last comes 2 · 8 cycles later.
        ("LDG.E", AccessBehaviour(1, SPACE_GLOBAL, 12, 12, dram_read=10, dram_write=2), 24, 116),
        # 8 bytes a lane: 512 B asked for, R = 1.5; λ · 1.5 · 2, as the table is for 4 bytes.
        ("LDG.E.64", AccessBehaviour(1, SPACE_GLOBAL, 12, 12, dram_read=12), 24, 104),
        # 64 lanes of 4 bytes go over 32 banks in 2 wavefronts; 6 are D = 2 too many for each.
        ("LDS", AccessBehaviour(1, SPACE_SHARED, 2, 0), 2, 60),
        ("LDS", AccessBehaviour(1, SPACE_SHARED, 6, 0), 6, 64),
        # 16 bytes a lane: 8 wavefronts; 12 are D = 0.5. λ · 1.5 · 4.
        ("LDS.128", AccessBehaviour(1, SPACE_SHARED, 12, 0), 12, 61),
        ("LDS", AccessBehaviour(1, SPACE_SHARED, 1, 0), 2, 60),
    ],
)
def test_accesses_by_bytes_moved_and_by_conflicts(
    load: str, behaviour: AccessBehaviour, lambda_: float, latency: float
) -> None:
    address = "[R2]" if load.startswith("LDS") else "[R2.64]"
    (node,) = table_nodes(table_gpu(), f"{load} R4, {address}", a0=behaviour)
    assert (node.lambda_ticks, node.latency_ticks) == (ticks(lambda_), ticks(latency))
    assert node.transactions == behaviour.lines
    assert (node.sets, node.async_result) == (0, False)


def test_a_class_whose_latency_nobody_knows_holds_up_nothing() -> None:
    gpu = table_gpu()
    code = gpu.machine_code
    assert code is not None
    unknown = with_class(gpu, code.classes["fp32"], lambda_=4.0, latency=None)
    (node,) = table_nodes(unknown, "FADD R4, R5, R6")
    assert (node.lambda_ticks, node.latency_ticks) == (ticks(4), 0)


def test_dependences_reach_through_what_the_table_leaves_out() -> None:
    lines = (
        "LDG.E R4, [R2.64]",
        "S2R R5, SR_TID.X",  # not counted
        "FADD R6, R4, R4",
        "FADD R7, R6, R4",
        "STG.E [R2.64], R7",
        "BAR.SYNC 0x0",
    )
    found = table_nodes(table_gpu(), *lines)
    kinds = [n.class_ for n in found]
    assert kinds == ["global_load", "fp32", "fp32", "global_store", "barrier"]
    assert [n.waits for n in found[:4]] == [(), (0,), (0, 1), (2,)]
    assert [n.sets for n in found[:4]] == [0, 1, 2, -1]
    assert [n.async_result for n in found] == [False, False, False, True, False]
    assert [n.barrier for n in found] == [False] * 4 + [True]
