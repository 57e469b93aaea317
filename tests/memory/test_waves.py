"""What whole waves fetch, against a walk over sets of sectors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.memory.footprint import Footprint, from_points
from drywarp.memory.waves import WAVES_FOLLOWED, WaveTotals, follow_waves
from tests.memory.profiles import geometry

READS, WRITES = frozenset({0, 1, 2}), frozenset({2, 3})  # 0, 1 load; 2 an atomic; 3 stores


def footprint(by_index: dict[int, set[int]]) -> Footprint:
    return Footprint({i: from_points(np.array(sorted(s), np.int64)) for i, s in sorted(by_index.items()) if s})


def follow(waves: list[dict[int, set[int]]], l2_sectors: int = 10_000, warm: bool = False) -> WaveTotals:
    """Each wave is one block; a sector is a line."""

    def of(part: range) -> Footprint:
        return footprint({i: set().union(*(waves[n].get(i, set()) for n in part)) for i in range(4)})

    sizes = replace(geometry(l2=l2_sectors * 32, sms=1, blocks_per_sm=1), line_bytes=32)
    totals = follow_waves(of, len(waves), sizes, READS, WRITES, warm)
    assert totals is not None
    return totals


sets = st.sets(st.integers(0, 30))
wave = st.fixed_dictionaries(dict.fromkeys(range(4), sets))


@given(st.lists(wave, min_size=1, max_size=WAVES_FOLLOWED))
def test_with_a_large_l2_each_sector_is_fetched_once(waves: list[dict[int, set[int]]]) -> None:
    totals = follow(waves)
    present: set[int] = set()
    fetched = dict.fromkeys(range(4), 0)
    written = dict.fromkeys(range(4), 0)
    for by_index in waves:
        dirty: set[int] = set()
        for index, wanted in sorted(by_index.items()):
            if index in READS:
                fetched[index] += len(wanted - present)
            if index in WRITES:
                written[index] += len(wanted - dirty)
                dirty |= wanted
            present |= wanted
    assert {i: n for i, n in totals.fetched.items() if n} == {i: n for i, n in fetched.items() if n}
    assert {i: n for i, n in totals.written.items() if n} == {i: n for i, n in written.items() if n}


@given(waves=st.lists(wave, min_size=1, max_size=10), capacity=st.integers(1, 40), warm=st.booleans())
def test_no_more_is_fetched_than_asked_for(waves: list[dict[int, set[int]]], capacity: int, warm: bool) -> None:
    followed = waves[:WAVES_FOLLOWED]
    totals = follow(followed, capacity, warm)
    for index in READS:
        assert 0 <= totals.fetched.get(index, 0) <= sum(len(w[index]) for w in followed)
    cold = follow(followed, capacity)
    assert sum(totals.fetched.values()) <= sum(cold.fetched.values())
    stored_only: set[int] = set()
    for w in followed:
        stored_only |= w[3]
    read = set().union(*(w[i] for w in followed for i in READS))
    assert sum(cold.fetched.values()) >= len(read - stored_only)


def test_a_sector_that_two_instructions_write_goes_to_dram_once_a_wave() -> None:
    totals = follow([{2: set(range(8)), 3: set(range(12))}] * 3)
    assert sum(totals.written.values()) == 12 * 3


def test_an_l2_too_small_for_a_wave_keeps_only_what_fits() -> None:
    same = {0: set(range(100))}
    assert sum(follow([same] * 4, l2_sectors=100).fetched.values()) == 100
    assert sum(follow([same] * 4, l2_sectors=60).fetched.values()) == 100 + 3 * 40
    assert sum(follow([same] * 4, l2_sectors=1).fetched.values()) == 100 + 3 * 99


def test_the_most_recent_waves_stay() -> None:
    a, b, c = ({0: set(range(n, n + 50))} for n in (0, 100, 200))
    assert sum(follow([a, b, a], l2_sectors=100).fetched.values()) == 100
    assert sum(follow([a, b, c, a], l2_sectors=100).fetched.values()) == 200


def test_a_warm_l2_holds_what_an_earlier_run_left() -> None:
    waves = [{0: set(range(50 * n, 50 * n + 50))} for n in range(4)]
    assert sum(follow(waves, l2_sectors=1000, warm=True).fetched.values()) == 0
    # With room for two waves the last two are left, which are gone before they are wanted.
    assert sum(follow(waves, l2_sectors=100, warm=True).fetched.values()) == 200


@pytest.mark.parametrize("waves", [5, 7, 40, 100])
def test_a_warm_l2_holds_all_of_a_grid_that_fits_however_many_waves(waves: int) -> None:
    own = [{0: {n}} for n in range(waves)]
    assert sum(follow(own, l2_sectors=waves, warm=True).fetched.values()) == 0
    assert sum(follow(own, l2_sectors=10_000).fetched.values()) == waves


@pytest.mark.parametrize("blocks", [1, 8, 9, 20, 80, 83])
def test_partial_and_later_waves_count_by_their_blocks(blocks: int) -> None:
    # Every block reads 10 sectors of its own.
    sizes = geometry(l2=32 * 10_000, sms=4, blocks_per_sm=2)
    totals = follow_waves(
        lambda part: footprint({0: set(range(part.start * 10, part.stop * 10))}), blocks, sizes, READS, WRITES, False
    )
    assert totals is not None
    assert totals.fetched == {0: pytest.approx(blocks * 10)}


def test_the_walk_ends_where_a_footprint_is_missing() -> None:
    sizes = geometry(sms=1, blocks_per_sm=1)

    def first_two(part: range) -> Footprint | None:
        return footprint({0: {part.start}}) if part.start < 2 else None

    totals = follow_waves(first_two, 5, sizes, READS, WRITES, False)
    assert totals is not None
    assert totals.fetched == {0: 5.0}  # the second stands for the three that are left
    assert follow_waves(lambda part: None, 5, sizes, READS, WRITES, False) is None
