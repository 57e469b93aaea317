"""What is dirty at the end of a kernel, and what local stores reach DRAM, against caches walked sector by sector."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.memory.dram import dirty_at_the_end, local_shares
from drywarp.memory.waves import WaveTotals
from tests.memory.profiles import geometry


def walk(read: int, written: int, waves: int, capacity: int) -> int:
    """Dirty sectors after so many waves that first read and then write sectors of their own."""
    cache: OrderedDict[tuple[int, str, int], bool] = OrderedDict()
    for wave in range(waves):
        for kind, many in (("r", read), ("w", written)):
            for number in range(many):
                cache[wave, kind, number] = kind == "w"
                if len(cache) > capacity:
                    cache.popitem(last=False)
    return sum(cache.values())


@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 20), st.integers(1, 200))
def test_it_is_what_an_lru_cache_holds(read: int, written: int, waves: int, capacity: int) -> None:
    sizes = geometry(l2=32 * capacity)
    assert dirty_at_the_end(read, written, waves, sizes) == walk(read, written, waves, capacity)
    half = replace(sizes, dirty_share=0.5)
    assert dirty_at_the_end(read, written, waves, half) == min(walk(read, written, waves, capacity), capacity / 2)


@pytest.mark.parametrize(("written", "dirty"), [(0, 0), (4, 4)])
def test_a_kernel_that_fits_leaves_all_that_it_wrote(written: int, dirty: int) -> None:
    assert dirty_at_the_end(10, written, 1, geometry()) == dirty


def evicted(footprint: int, entering: int, room: int, rounds: int) -> float:
    """The share of stores to local memory whose sector has left, of `footprint` sectors stored one after the other.

    Of global memory `entering` sectors come in each round. Whatever is not there takes a random place of `room`.
    """
    rng = np.random.default_rng(0)
    place, where = [-1] * room, dict[int, int]()
    gone = stores = 0
    order = np.argsort(np.r_[np.arange(footprint) / max(footprint, 1), np.arange(entering) / max(entering, 1)])
    for number in range(rounds):
        for sector in order.tolist():
            local = sector < footprint
            stores += local and number >= rounds // 2
            if local and sector in where:
                continue
            gone += local and number >= rounds // 2
            chosen = int(rng.integers(room))
            where.pop(place[chosen], None)
            place[chosen] = sector if local else -1
            if local:
                where[sector] = chosen
    return gone / stores


@pytest.mark.parametrize(("footprint", "entering"), [(100, 0), (100, 200), (300, 50), (390, 100), (900, 0), (600, 600)])
def test_local_stores_that_reach_dram_are_those_of_random_places(footprint: int, entering: int) -> None:
    room, rounds, blocks = 400, 60, 8
    sizes = replace(geometry(l2=32 * 2 * room), dirty_share=0.5)
    totals = WaveTotals(fetched={0: entering * rounds / 2}, written={1: entering * rounds / 2})
    shares = local_shares(blocks, footprint / blocks, footprint * rounds, sizes, totals)
    assert shares.written == pytest.approx(evicted(footprint, entering, room, rounds), abs=0.03)
    assert shares.missed == max(0, 1 - 2 * room / footprint)


@given(st.floats(0, 1e6), st.floats(1, 1e6), st.floats(0, 1e9))
def test_more_traffic_evicts_no_less(sectors: float, stored: float, fetched: float) -> None:
    def written(fetched: float) -> float:
        return local_shares(8, sectors, stored, geometry(), WaveTotals(fetched={0: fetched})).written

    assert 0 <= written(fetched) <= written(2 * fetched + 1) <= 1


def test_an_l2_that_holds_nothing_dirty_writes_every_store() -> None:
    sizes = replace(geometry(l2=32 * 400), dirty_share=0.0)
    shares = local_shares(8, 100, 800, sizes, WaveTotals())
    assert (shares.missed, shares.written) == (0.5, 1)
