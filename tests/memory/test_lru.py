"""The L1 against a plain-Python cache."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from drywarp.memory.stream import sector_hits
from tests.effort import examples

Step = tuple[int, int, bool]


def model(steps: list[Step], capacity: int) -> list[int]:
    """Sectored lines, least recently used first out; stores refresh a line but bring nothing in."""
    lines: OrderedDict[int, int] = OrderedDict()
    hits = []
    for line, wanted, load in steps:
        hits.append(lines.get(line, 0) & wanted)
        if line not in lines and not load:
            continue
        if line not in lines and len(lines) == capacity:
            lines.popitem(last=False)
        lines[line] = lines.get(line, 0) | (wanted if load else 0)
        lines.move_to_end(line)
    return hits


steps = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from([1, 2, 3, 12, 15]), st.booleans()), min_size=1, max_size=80
)


@settings(deadline=None, max_examples=examples(600, 4))
@example(steps=[(0, 1, True), (1, 1, True), (0, 2, True), (0, 1, True)], capacity=1)  # gone with all its sectors
@given(steps=steps, capacity=st.integers(1, 6))
def test_hits_against_the_model(steps: list[Step], capacity: int) -> None:
    line, mask, load = (np.array(column) for column in zip(*steps, strict=True))
    hits = sector_hits(line.astype(np.int64), mask.astype(np.int64), load.astype(bool), 10, capacity)
    assert hits.tolist() == model(steps, capacity)
