"""The L1 against a plain-Python cache, and against what theory says of random replacement."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from drywarp.memory.stream import sector_hits
from tests.effort import examples

Step = tuple[int, int, bool]
WORD = (1 << 64) - 1


def model(steps: list[Step], capacity: int) -> list[int]:
    """Sectored lines in places; a new line takes the next free place, or a random one. Stores bring nothing in."""
    places: list[int] = []
    valid: dict[int, int] = {}
    random, hits = 0x9E3779B97F4A7C15, []
    for line, wanted, load in steps:
        hits.append(valid.get(line, 0) & wanted)
        if not load:
            continue
        if line not in valid and len(places) < capacity:
            places.append(line)
        elif line not in valid:
            for shift in (13, -7, 17):
                random ^= (random << shift if shift > 0 else random >> -shift) & WORD
            place = (random >> 32) * capacity >> 32
            del valid[places[place]]
            places[place] = line
        valid[line] = valid.get(line, 0) | wanted
    return hits


def hits_of(steps: list[Step], capacity: int) -> list[int]:
    line, mask, load = (np.array(column) for column in zip(*steps, strict=True))
    found = sector_hits(line.astype(np.int64), mask.astype(np.int64), load.astype(bool), 10, capacity)
    return found.tolist()


steps = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from([1, 2, 3, 12, 15]), st.booleans()), min_size=1, max_size=80
)


@settings(deadline=None, max_examples=examples(600, 4))
@example(steps=[(0, 1, True), (1, 1, True), (0, 2, True), (0, 1, True)], capacity=1)  # gone with all its sectors
@given(steps=steps, capacity=st.integers(1, 12))
def test_hits_against_the_model(steps: list[Step], capacity: int) -> None:
    assert hits_of(steps, capacity) == model(steps, capacity)


@settings(deadline=None, max_examples=examples(100, 4))
@given(steps=steps)
def test_what_fits_stays(steps: list[Step]) -> None:
    assert hits_of(steps, 10) == hits_of(steps, 1 << 40)


@pytest.mark.parametrize("capacity", [300, 600, 900])
def test_a_loop_over_more_than_fits(capacity: int) -> None:
    # Between two passes each of F lines is missed with probability m, and each miss evicts one of C. So a line
    # survives with probability (1 - 1/C)^(mF), and 1 - m = exp(-mF/C).
    lines, passes = 1000, 200
    line = np.tile(np.arange(lines), passes)
    hits = sector_hits(line, np.ones_like(line), np.ones(len(line), bool), lines, capacity)
    missed = 1.0
    for _ in range(1000):
        missed = 1 - math.exp(-missed * lines / capacity)
    assert hits[lines * passes // 2 :].mean() == pytest.approx(1 - missed, abs=0.02)
