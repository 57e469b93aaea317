"""Which reads wait for DRAM as another block has just asked for the same, worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from drywarp.kernel.launch.launch import Dim3
from drywarp.memory.behaviour import AccessBehaviour, analyse_memory
from tests.listing import control
from tests.memory.profiles import LANES, Access, access, geometry, profile

LOAD = "LDG.E R2, [R4.64]"
A, KIB = 1 << 20, 1 << 10
STEPS = 16


def loop(of: Callable[[Dim3, int], int], l2: int = 1 << 22, warm: bool = False) -> AccessBehaviour:
    """A load in a loop of `STEPS` turns, each of which waits for it: `of` gives the address at a block's turn."""
    lines = [(LOAD, control(write=0)), ("FADD R6, R2, R2", control(waits=[0]))]

    def accesses(block: Dim3, warp: int) -> Sequence[Access]:
        return [access(0, of(block, turn) + LANES * 4) for turn in range(STEPS)]

    found = profile(lines, (64, 1, 1), accesses, allocations={"a": (A, 1 << 24)})
    return analyse_memory(found, geometry(l2=l2, sms=8, blocks_per_sm=1), warm_l2=warm).accesses[0]


def test_blocks_that_walk_through_the_same_data_all_wait_for_dram() -> None:
    found = loop(lambda block, turn: A + turn * 128)
    # Of 64 blocks one fetches each sector. Only the first of eight waves finds the L2 without them.
    assert found.l2_hit == pytest.approx(1 - 1 / 64)
    assert found.l2_hit - found.l2_late == pytest.approx(7 / 8)


def test_blocks_that_meet_at_different_turns_do_not() -> None:
    # Each block begins a line further: what it reads, its neighbour has read a turn before or will read later.
    found = loop(lambda block, turn: A + (block[0] + turn) * 128)
    assert found.l2_hit > 0.5
    assert found.l2_late == 0


def test_blocks_that_share_nothing_wait_for_what_they_miss() -> None:
    found = loop(lambda block, turn: A + (block[0] * STEPS + turn) * 128)
    assert (found.l2_hit, found.l2_late) == (0, 0)


def test_what_the_l2_holds_keeps_nobody_waiting() -> None:
    found = loop(lambda block, turn: A + turn * 128, warm=True)
    assert (found.l2_hit, found.l2_late) == (1, 0)


def test_what_a_block_reads_again_is_there() -> None:
    # Every second turn goes back to the line of the turn before, which the L1 holds: half of the reads come from there.
    found = loop(lambda block, turn: A + turn // 2 * 128)
    assert found.l1_hit == pytest.approx(0.5, abs=0.26)
    assert found.l2_hit - found.l2_late == pytest.approx(7 / 8)


def test_a_part_of_the_data_may_be_shared() -> None:
    # A line of all blocks and one of each block by turns: those of each block are fetched by it alone.
    def of(block: Dim3, turn: int) -> int:
        return A + (turn if turn % 2 else (1 + block[0]) * 64 + turn) * 128

    found = loop(of)
    own, shared = 64 * STEPS / 2, STEPS / 2
    assert found.l2_hit == pytest.approx(1 - (own + shared) / (64 * STEPS))
    # Too many wait: of what the instruction reads, shared lines are taken to be away as often as others.
    assert 1 / 16 < found.l2_late < found.l2_hit
