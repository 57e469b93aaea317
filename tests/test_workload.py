"""Paths become dependence graphs with their loops folded, and unfold to what was run."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.kernel.cfg import ControlFlowGraph, build_cfg
from drywarp.kernel.kernel import Kernel, Resources
from drywarp.kernel.launch.launch import Launch
from drywarp.kernel.profile import AccessLog, Profile, SampledBlock, WarpPath
from drywarp.workload import build
from drywarp.workload.build import ASYNC_SLOT, BULK_SLOT, SLOTS, WGMMA_GROUPS, WGMMA_SLOT, build_workload, fold, node_of
from drywarp.workload.cost import BlockType, Item, Repeat
from tests.counting import lines_of
from tests.listing import code, control

NESTED = (
    "MOV R0, RZ",  # block 0
    ".L_outer:",
    "MOV R1, RZ",  # block 1
    ".L_inner:",
    "IADD3 R1, R1, 0x1, RZ",  # block 2
    "@P0 BRA `(.L_inner)",
    "@P1 BRA `(.L_outer)",  # block 3
    "EXIT",  # block 4
)


def unfold(items: Sequence[Item]) -> Iterator[int]:
    for item in items:
        if isinstance(item, Repeat):
            for _ in range(item.count):
                yield from unfold(item.body)
        else:
            yield item


def size(items: Sequence[Item]) -> int:
    return sum(1 + size(item.body) if isinstance(item, Repeat) else 1 for item in items)


@st.composite
def walks(draw: st.DrawFn) -> tuple[ControlFlowGraph, list[int]]:
    """Random code, and a random walk over its blocks that likes to repeat itself."""
    count = draw(st.integers(1, 7))
    lines: list[str] = []
    for block in range(count):
        lines.append(f".L_{block}:")
        target = draw(st.integers(0, count - 1))
        lines.append(
            draw(st.sampled_from([f"@P0 BRA `(.L_{target})", f"BRA `(.L_{target})", "BAR.SYNC 0x0", "@P0 EXIT"]))
        )
    graph = build_cfg(code(*lines, "EXIT"))
    rng = random.Random(draw(st.integers(0, 1 << 30)))
    walk, block = [0], 0
    while graph.blocks[block].successors and len(walk) < 120:
        successors = graph.blocks[block].successors
        block = successors[0] if rng.random() < 0.8 else rng.choice(successors)
        walk.append(block)
    return graph, walk


@given(walks())
def test_unfolding_gives_back_the_walk(walk: tuple[ControlFlowGraph, list[int]]) -> None:
    graph, blocks = walk
    assert list(unfold(fold(blocks, graph))) == blocks


@given(walks(), st.lists(st.integers(0, 40), max_size=30))
def test_also_where_divergence_jumps_about(walk: tuple[ControlFlowGraph, list[int]], wild: list[int]) -> None:
    graph, blocks = walk
    sequence = blocks + [n % len(graph.blocks) for n in wild] + blocks
    assert list(unfold(fold(sequence, graph))) == sequence


@given(inner=st.integers(1, 50), outer=st.integers(1, 50))
def test_nested_loops_keep_their_counts(inner: int, outer: int) -> None:
    graph = build_cfg(code(*NESTED))
    blocks = [0, *([1, *([2] * inner), 3] * outer), 4]
    items = fold(blocks, graph)
    body: list[Item] = [1, Repeat(inner, (2,)) if inner > 1 else 2, 3]
    expected: list[Item] = [0, *([Repeat(outer, tuple(body))] if outer > 1 else body), 4]
    assert list(items) == expected


@given(length=st.integers(1, 6), iterations=st.integers(2, 9))
def test_loops_of_any_number_of_blocks(length: int, iterations: int) -> None:
    graph = build_cfg(code(".L_0:", *["BAR.SYNC 0x0"] * (length - 1), "@P0 BRA `(.L_0)", "EXIT"))
    body = tuple(range(length))
    assert fold([*body * iterations, length], graph) == (Repeat(iterations, body), length)


def test_a_long_loop_has_a_tiny_program() -> None:
    graph = build_cfg(code(*NESTED))
    blocks = [0, *([1, *([2] * 100), 3] * 10_000), 4]
    items = fold(blocks, graph)
    assert items == (0, Repeat(10_000, (1, Repeat(100, (2,)), 3)), 4)


def test_iterations_that_differ_are_told_apart() -> None:
    graph = build_cfg(code(*NESTED))
    # A triangle: one iteration more each time. Then all the same again.
    triangle = [b for n in (1, 2, 3, 3, 3) for b in (1, *([2] * n), 3)]
    assert fold([0, *triangle, 4], graph) == (
        0,
        *(1, 2, 3),
        *(1, Repeat(2, (2,)), 3),
        Repeat(3, (1, Repeat(3, (2,)), 3)),
        4,
    )


def test_the_cost_is_about_linear() -> None:
    graph = build_cfg(code(*NESTED))

    def cost(outer: int) -> tuple[int, int]:
        """Lines that are run, and how often numbers of blocks are compared or hashed within them."""
        rng, asked = random.Random(7), [0]

        class Counted(int):
            def __eq__(self, other: object) -> bool:
                asked[0] += 1
                return int.__eq__(self, other)  # type: ignore[arg-type]

            def __hash__(self) -> int:
                asked[0] += 1
                return int.__hash__(self)

        body = [b for _ in range(outer) for b in (1, *([2] * rng.randint(1, 9)), 3)]
        blocks = [Counted(b) for b in (0, *body, 4)]
        return lines_of(lambda: fold(blocks, graph)), asked[0]

    small, large = cost(250), cost(2_000)
    assert min(small) > 250
    for few, many in zip(small, large, strict=True):
        assert many < 8 * few * 1.5  # a quadratic cost would be 64 times


# Nodes ----------------------------------------------------------------------------------------------------------


def test_scoreboards_become_slots() -> None:
    instructions = code(
        ("LDG.E R4, [R2.64]", control(stall=4, write=2, read=1)),
        ("FFMA R4, R4, R4, R4", control(stall=5, waits=[0, 2])),
        ("STG.E [R2.64], R4", control(stall=0, read=5, waits=[2])),
    )
    load, use, store = (node_of(instructions, n) for n in range(3))
    assert (load.waits, load.sets, load.sets_read, load.stall) == ((), 2, 1, 4)
    assert (use.waits, use.sets, use.sets_read, use.stall) == ((0, 2), -1, -1, 5)
    assert (store.waits, store.sets, store.sets_read) == ((2,), -1, 5)
    assert store.stall == 1  # 0 is a leftover of dual issue


def test_asynchronous_copies_have_a_slot_of_their_own() -> None:
    instructions = code(
        ("LDGSTS.E.BYPASS.128 [R3], [R4.64]", control(read=1)),
        "LDGDEPBAR",
        "DEPBAR.LE SB0, 0x0",
        "DEPBAR.LE SB0, 0x1",
        "DEPBAR.LE SB0, 0x1, {4,3}",
        "DEPBAR.LE SB2, 0x0, {5}",
        "EXIT",
    )
    assert node_of(instructions, 0).sets == ASYNC_SLOT < SLOTS
    assert node_of(instructions, 0).sets_read == 1
    waits = [set(node_of(instructions, n).waits) for n in range(2, 6)]
    # A count above 0 lets the newest stay outstanding; a set in braces is waited for whole.
    all_of_them = {ASYNC_SLOT, BULK_SLOT}
    assert waits == [{0, *all_of_them}, set(), {3, 4}, {2, 5, *all_of_them}]


def test_products_of_a_warp_group_and_bulk_stores_are_waited_for_by_groups() -> None:
    instructions = code(
        "HGMMA.64x64x16.F32 R24, gdesc[UR8], R24",
        "HGMMA.64x64x16.F32 R24, gdesc[UR12], R24, gsb0",
        "WARPGROUP.DEPBAR.LE gsb0, 0x1",
        "WARPGROUP.DEPBAR.LE gsb0, 0x0",
        "WARPGROUP.ARRIVE",
        "UBLKCP.G.S [UR16], [UR6], UR7",
        ("UTMACMDFLUSH", control(read=0)),
        "EXIT",
    )
    nodes = [node_of(instructions, n) for n in range(len(instructions))]
    assert [node.sets for node in nodes[:2]] == [WGMMA_SLOT, WGMMA_GROUPS]
    assert [set(node.waits) for node in nodes[2:5]] == [set(), {WGMMA_SLOT, WGMMA_GROUPS}, set()]
    assert (nodes[5].sets, nodes[6].sets_read) == (BULK_SLOT, 0)


# The whole ------------------------------------------------------------------------------------------------------


def nested_profile() -> Profile:
    instructions = code(*NESTED)
    kernel = Kernel("k", "k", "sm_80", instructions, (), 0, Resources(32, 0))
    paths = (
        WarpPath(np.array([0, 1, 2, 2, 3, 4], np.int32), np.array([32, 32, 32, 16, 32, 32], np.float32)),
        WarpPath(np.array([0, 1, 2, 3, 4], np.int32), np.full(5, 8, np.float32)),
    )
    empty = AccessLog(*[np.zeros(0, t) for t in (np.int32, np.int32, np.int64, np.int32, np.int8)],
                      np.zeros((0, 32), np.int64), np.zeros(0, np.uint32))  # fmt: skip
    blocks = (
        SampledBlock(0, (0, 0, 0), 10.0, (0, 0)),
        SampledBlock(5, (5, 0, 0), 4.0, (0, 1)),
        SampledBlock(7, (7, 0, 0), 2.0, (0, 0)),
    )
    return Profile(
        kernel, Launch((16, 1, 1), (64, 1, 1)), build_cfg(instructions), blocks, paths, empty,
        np.zeros((3, len(instructions)), np.int64),
    )  # fmt: skip


def test_a_profile_becomes_weighted_paths() -> None:
    workload = build_workload(nested_profile())
    assert workload.block_types == (BlockType((0, 0), 12.0), BlockType((0, 1), 4.0))
    long, short = workload.paths
    assert [node.instruction for node in long.nodes] == list(range(6))
    assert long.program == (0, 1, Repeat(2, (2, 3)), 4, 5)
    assert long.lanes == (32, 32, 24, 24, 32, 32)  # the mean over both iterations of the loop
    assert short.program == (0, 1, 2, 3, 4, 5)
    assert short.lanes == (8,) * 6


def test_blocks_with_very_long_paths_are_represented_by_the_nearest_in_length(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = nested_profile()
    lengths = (40, 10, 12, 38, 25)  # the longest first, then the shortest
    # Iterations that never repeat the one before do not fold.
    walks = [[0, *[1, 2, 3, 1, 2, 2, 3] * length, 4] for length in lengths]
    paths = tuple(WarpPath(np.array(walk, np.int32), np.full(len(walk), 32, np.float32)) for walk in walks)
    blocks = tuple(SampledBlock(n, (n, 0, 0), float(n + 1), (n, n)) for n in range(len(lengths)))
    profile = replace(profile, paths=paths, blocks=blocks)
    whole = build_workload(profile)
    assert (len(whole.paths), whole.stood_in, whole.off) == (5, 0, (1.0, 1.0))
    steps = [sum(1 for _ in unfold(path.program)) for path in whole.paths]
    for most, kept in ((1, [0]), (len(walks[0]), [0]), (size(whole.paths[0].program), [0, 1])):
        monkeypatch.setattr(build, "MOST_ITEMS", most)
        found = build_workload(profile)
        assert len(found.paths) == len(kept)
        assert sum(kind.weight for kind in found.block_types) == sum(range(1, 6))
        off = [one / min((steps[k] for k in kept), key=lambda its: abs(its - one)) for one in steps]
        assert found.stood_in == 5 - len(kept)
        assert found.off == (min(1.0, *off), max(1.0, *off))


def test_executions_of_a_profile_are_weighted() -> None:
    # 16 blocks of 2 warps; 28 warps took the long path, 4 the short one.
    assert nested_profile().executions().tolist() == [32, 32, 60, 60, 32, 32]
