"""Misses of constants: the tree that replaces against a plain one, published cases, and which constants count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.kernel.profile import ASKED_COLUMNS, Profile, WarpPath
from drywarp.memory.constants import constant_misses, misses, waits_at_issue
from tests.listing import NO_BARRIERS, code, control
from tests.memory.profiles import geometry, profile

CACHED = replace(geometry(), constant_sets=8, constant_ways=4, constant_line_bytes=64)
LINES = 8 * 4


class Tree:
    """Half of the ways each, and which half the next line goes to; a single way holds a line."""

    def __init__(self, ways: int) -> None:
        self.halves = [Tree(ways // 2), Tree(ways // 2)] if ways > 1 else []
        self.next, self.line = 0, -1

    def ways(self) -> list[Tree]:
        return [way for half in self.halves for way in half.ways()] if self.halves else [self]

    def touch(self, way: Tree) -> None:
        for side, half in enumerate(self.halves):
            if way in half.ways():
                self.next = 1 - side
                half.touch(way)

    def victim(self) -> Tree:
        return self.halves[self.next].victim() if self.halves else self

    def ask(self, line: int) -> bool:
        """Whether it misses."""
        held = [way for way in self.ways() if way.line == line]
        free = [way for way in self.ways() if way.line < 0]
        way = (held or free or [self.victim()])[0]
        way.line = line
        self.touch(way)
        return not held


@given(
    lines=st.lists(st.integers(0, 40), max_size=120),
    sets=st.sampled_from((1, 2, 3, 8)),
    ways=st.sampled_from((1, 2, 4, 8)),
)
def test_sets_replace_as_their_trees_say(lines: list[int], sets: int, ways: int) -> None:
    trees = [Tree(ways) for _ in range(sets)]
    found = [[trees[line % sets].ask(line) for line in lines] for _ in range(2)]
    assert misses(np.array(lines, np.int64), sets, ways).tolist() == found[1]


@pytest.mark.parametrize(("in_a_set", "missed"), [(1, 0), (4, 0), (5, 4), (6, 6), (8, 8)])
def test_lines_of_a_set_read_in_turn(in_a_set: int, missed: int) -> None:
    """Measured on an A100, an RTX 2080 Ti and a T1000 (MT4G): of five four miss, of six all."""
    assert misses(np.arange(in_a_set) * 8, 8, 4).sum() == missed


def operands(lines: int, bank: int = 3) -> list[str]:
    return [f"IADD3 R4, R4, c[{bank:#x}][{line * 64:#x}], RZ" for line in range(lines)]


def loads(lines: int) -> list[tuple[str, int]]:
    return [(f"LDC R4, c[0x3][{line * 64:#x}]", control(write=0)) for line in range(lines)]


def made(*lines: Any, warps: int = 1) -> Profile:
    return profile(lines, (10, 1, 1), lambda block, warp: [], warps=warps)


def test_what_fits_never_misses() -> None:
    assert constant_misses(made(*operands(LINES)), CACHED) == {}
    # Loads and operands have a cache each.
    assert constant_misses(made(*operands(LINES), *loads(LINES)), CACHED) == {}
    assert constant_misses(made(*operands(2 * LINES)), geometry()) == {}  # a GPU without such a cache


@pytest.mark.parametrize("make", [operands, loads])
def test_of_five_lines_in_each_set_four_miss(make: Any) -> None:
    found = constant_misses(made(*make(LINES + 8)), CACHED)
    assert len(found) == LINES
    assert set(found.values()) == {1.0}


def test_banks_begin_in_the_same_set() -> None:
    """Four lines of one set in each of two banks, none in others."""
    lines = [line for bank in (0, 3) for line in operands(4 * 8, bank)[::8]]
    assert len(constant_misses(made(*lines), CACHED)) == 8
    assert constant_misses(made(*lines[:4], *operands(5)[1:]), CACHED) == {}


def test_words_of_a_line_miss_once() -> None:
    words = [f"FADD R4, R4, c[0x3][{word * 4:#x}]" for word in range(16 * 64)]
    found = constant_misses(made(*words), CACHED)
    assert found == dict.fromkeys(range(0, 16 * 64, 16), 1.0)


def test_a_path_that_is_taken_more_often_counts_more() -> None:
    """64 lines, of which a quarter of the warps read 16 alone: these hit."""
    lines = [*operands(48), "@P0 EXIT", *operands(64)[48:]]
    both = made(*lines, warps=4)
    last = len(both.cfg.blocks) - 1
    short = WarpPath(np.array([last], np.int32), np.full(1, 32, np.float32))
    blocks = tuple(replace(block, paths=(0, 0, 0, 1)) for block in both.blocks)
    found = constant_misses(replace(both, paths=(*both.paths, short), blocks=blocks), CACHED)
    assert {found[n] for n in range(48)} == {1.0}
    assert {found[n] for n in range(49, 65)} == {0.75}


def asked(*rows: Sequence[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(rows, np.int64).reshape(-1, ASKED_COLUMNS)


def test_addresses_in_registers_are_those_that_were_recorded() -> None:
    once = made(("LDC R4, c[0x3][R2]", control(write=0)), ("LDC R5, c[0x2][R3]", control(write=0)))
    # One warp walks through 64 lines, a word each, another reads one word again and again.
    walk = [(0, n, 0, n * 16) for n in range(64)]
    stay = [(1, n, 0, 5) for n in range(64)]
    other = [(1, n, 1, 5) for n in range(64)]
    assert constant_misses(replace(once, constants=asked(*walk, *stay, *other)), CACHED) == {0: 0.5}
    assert constant_misses(replace(once, constants=asked(*stay, *other)), CACHED) == {}


def test_a_request_for_several_lines_misses_once() -> None:
    once = made(("LDC R4, c[0x3][R2]", control(write=0)))
    rows = [(0, n, 0, word * 16) for n in range(4) for word in range(64)]
    assert constant_misses(replace(once, constants=asked(*rows)), CACHED) == {0: 1.0}


def test_uniform_loads_up_to_hopper_wait_at_issue() -> None:
    lines = (
        ("LDC R4, c[0x3][R2]", control(write=0)), ("LDC R1, c[0x0][0x28]", NO_BARRIERS),
        ("LDCU UR4, c[0x3][UR5]", control(write=0)), ("ULDC UR4, c[0x3][UR5]", NO_BARRIERS),
        ("FFMA R4, R4, c[0x3][0x8], R4", NO_BARRIERS),
    )  # fmt: skip
    assert [waits_at_issue(one) for one in code(*lines)] == [False, False, False, True, True]
