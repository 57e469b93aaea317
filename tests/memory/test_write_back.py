"""What is dirty at the end of a kernel, against an LRU cache walked sector by sector."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.memory.dram import dirty_at_the_end
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
