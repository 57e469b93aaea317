"""Sectors, lines and wavefronts of one request, against plain-Python models and known cases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.kernel.profile import AccessLog
from drywarp.memory.requests import distinct_per_row, interleave_local, lane_masks, sectors_of, shared_wavefronts
from drywarp.memory.stream import lines_touched, split_lines
from drywarp.memory.table import active_lanes as logged_lanes
from drywarp.memory.table import distinct, distinct_rows
from tests.memory.profiles import LANES, geometry

BANKS, BANK_BYTES = 32, 4

masks = st.one_of(st.just(0xFFFFFFFF), st.integers(0, 0xFFFFFFFF))


@st.composite
def requests(draw: st.DrawFn, width: int = 4, near: bool = True) -> tuple[np.ndarray, int]:
    """Aligned addresses of 32 lanes, some below the first, and a mask."""
    reach = draw(st.sampled_from([4, 64, 1024] if near else [1 << 20]))
    base = draw(st.integers(0, 40))
    shape = draw(st.sampled_from(["random", "stride", "pairs"]))
    if shape == "stride":
        steps = LANES * draw(st.integers(-33, 33))
    elif shape == "pairs":
        steps = np.repeat(draw(st.lists(st.integers(0, reach), min_size=16, max_size=16)), 2)
        if draw(st.booleans()):
            steps = steps.reshape(8, 2, 2).transpose(0, 2, 1).reshape(32)  # lane i as lane i ^ 2
    else:
        steps = np.array(draw(st.lists(st.integers(-reach, reach), min_size=32, max_size=32)))
    return (base + steps.astype(np.int64)) * width, draw(masks)


def one(addresses: np.ndarray, mask: int) -> tuple[np.ndarray, np.ndarray]:
    return addresses[None, :], lane_masks(np.array([mask], np.uint32))


def active_lanes(addresses: np.ndarray, mask: int) -> dict[int, int]:
    return {n: int(a) for n, a in enumerate(addresses) if mask >> n & 1}


# Global memory --------------------------------------------------------------------------------------------------


@given(requests())
def test_sectors_and_lines_against_sets(request: tuple[np.ndarray, int]) -> None:
    for size in (32, 128):
        expected = len({a // size for a in active_lanes(*request).values()})
        assert sectors_of(*one(*request), size).tolist() == [expected]


@given(st.lists(masks, min_size=1, max_size=5))
def test_masks_as_booleans(values: list[int]) -> None:
    expected = [[bool(mask >> lane & 1) for lane in range(32)] for mask in values]
    assert lane_masks(np.array(values, np.uint32)).tolist() == expected


def test_no_rows() -> None:
    nothing = np.zeros((0, 32), np.int64)
    assert distinct_per_row(nothing, nothing.astype(bool)).shape == (0,)


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        (LANES * 4, 4),  # consecutive floats
        (LANES * 4 + 4, 5),  # the same, misaligned by one
        (LANES * 8, 8),  # every second
        (LANES * 128, 32),  # a column
        (LANES * 0, 1),  # all the same
        (LANES * 16, 16),  # consecutive float4
        (-LANES * 4 + 1024, 5),  # backwards: 900 to 1024
    ],
)
def test_known_global_accesses(addresses: np.ndarray, expected: int) -> None:
    assert sectors_of(*one(addresses, 0xFFFFFFFF), 32).tolist() == [expected]


# Local memory ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "expected"), [(1, 4), (4, 4), (8, 8), (16, 16)])
def test_local_memory_lies_interleaved_by_words(width: int, expected: int) -> None:
    # Every lane at the same place of its own frame: whole lines, whatever the width.
    addresses, active = one(np.full(32, 64, np.int64), 0xFFFFFFFF)
    placed, on = interleave_local(addresses, active, width)
    assert sectors_of(placed, on, 32).tolist() == [expected]
    assert sectors_of(placed, on, 128).tolist() == [max(1, width // 4)]


@given(offsets=st.lists(st.integers(0, 100), min_size=32, max_size=32), mask=masks, words=st.sampled_from([1, 2, 4]))
def test_local_sectors_against_a_model(offsets: list[int], mask: int, words: int) -> None:
    addresses = np.array(offsets) * 4 * words
    lanes = active_lanes(addresses, mask)
    expected = {((a // 4 + w) * 128 + lane * 4) // 32 for lane, a in lanes.items() for w in range(words)}
    placed, on = interleave_local(*one(addresses, mask), 4 * words)
    assert sectors_of(placed, on, 32).tolist() == [len(expected)]


# Shared memory --------------------------------------------------------------------------------------------------


def group_passes(lanes: dict[int, int], width: int) -> int:
    """Distinct words that the busiest bank delivers."""
    words = {a // BANK_BYTES + w for a in lanes.values() for w in range(max(1, width // BANK_BYTES))}
    by_bank: dict[int, int] = {}
    for word in words:
        by_bank[word % BANKS] = by_bank.get(word % BANKS, 0) + 1
    return max(by_bank.values(), default=0)


def model(addresses: np.ndarray, mask: int, width: int) -> tuple[int, int]:
    """The documented rule, lane by lane: wavefronts, and those without conflicts."""
    lanes = active_lanes(addresses, mask)
    if width <= 4:
        return group_passes(lanes, width), int(bool(lanes))
    size = 16 if width == 8 else 8
    total = ideal = 0
    for start in range(0, 32, 2 * size):
        parts = [{n: a for n, a in lanes.items() if 0 <= n - start - h * size < size} for h in (0, 1)]
        both = parts[0] | parts[1]
        together = any(all(both.get(n ^ distance, a) == a for n, a in both.items()) for distance in (1, 2))
        if together:
            total += group_passes(both, width)
            ideal += bool(both)
        else:
            total += sum(group_passes(part, width) for part in parts)
            ideal += sum(bool(part) for part in parts)
    return total, ideal


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@given(data=st.data())
def test_wavefronts_against_the_model(width: int, data: st.DataObject) -> None:
    addresses, mask = data.draw(requests(width))
    total, ideal = shared_wavefronts(*one(addresses, mask), width, BANKS, BANK_BYTES)
    assert (int(total[0]), int(ideal[0])) == model(addresses, mask, width)


@pytest.mark.parametrize("width", [4, 8, 16])
@given(data=st.data())
def test_wavefronts_do_not_depend_on_where_the_offsets_start(width: int, data: st.DataObject) -> None:
    addresses, mask = data.draw(requests(width))
    moved = addresses - 128 * data.draw(st.integers(0, 50))
    before, after = (shared_wavefronts(*one(a, mask), width, BANKS, BANK_BYTES)[0].tolist() for a in (addresses, moved))
    assert before == after


TILE = LANES  # row of a 32 x 32 tile of floats


@pytest.mark.parametrize(
    ("name", "addresses", "width", "expected"),
    [
        ("consecutive floats", LANES * 4, 4, 1),
        ("broadcast", LANES * 0, 4, 1),
        ("two words of one bank", (LANES % 2) * 128, 4, 2),
        ("column of a tile", LANES * 128, 4, 32),
        ("column of a tile backwards", -LANES * 128, 4, 32),
        ("column of a padded tile", LANES * 132, 4, 1),
        ("stride 2", LANES * 8, 4, 2),
        ("bytes of a word", LANES, 1, 1),
        ("consecutive float2", LANES * 8, 8, 2),
        ("consecutive float4", LANES * 16, 16, 4),
        ("broadcast float2", LANES * 0, 8, 1),
        # Quarters go together in pairs only: published reverse engineering, not documentation.
        ("broadcast float4", LANES * 0, 16, 2),
        ("float2 in pairs", LANES // 2 * 8, 8, 1),
    ],
)
def test_known_shared_accesses(name: str, addresses: np.ndarray, width: int, expected: int) -> None:
    total, _ = shared_wavefronts(*one(addresses, 0xFFFFFFFF), width, BANKS, BANK_BYTES)
    assert total.tolist() == [expected]


def test_many_rows_at_once_are_each_on_their_own() -> None:
    rows = np.stack([LANES * 4, LANES * 128, LANES * 0])
    active = lane_masks(np.array([0xFFFFFFFF, 0xFFFF, 0], np.uint32))
    total, ideal = shared_wavefronts(rows, active, 4, BANKS, BANK_BYTES)
    assert (total.tolist(), ideal.tolist()) == ([1, 16, 0], [1, 1, 0])
    assert sectors_of(rows, active, 32).tolist() == [4, 16, 0]


@given(st.lists(st.tuples(requests(), st.integers(0, 5), st.integers(-8, 8)), max_size=12), st.data())
def test_lines_once_per_pattern_are_those_of_every_request(
    drawn: list[tuple[tuple[np.ndarray, int], int, int]], data: st.DataObject
) -> None:
    machine = geometry()
    offsets = [addresses - addresses[0] for (addresses, _), _, _ in drawn] or [np.zeros(32, np.int64)]
    pattern = np.array([data.draw(st.integers(0, len(offsets) - 1)) for _ in drawn], np.int32)
    some, count = np.zeros(len(drawn), np.int32), len(drawn)
    # High enough that no lane lies below 0.
    base = np.array([(1 << 24) + 32 * line for _, line, _ in drawn], np.int64)
    lit = np.array([mask for (_, mask), _, _ in drawn] or [0], np.uint32)
    log = AccessLog(some, some, base, pattern, some.astype(np.int8), np.stack(offsets), lit)
    shift = np.array([4 * move for _, _, move in drawn], np.int64)
    addresses, active = logged_lanes(log, np.arange(count))
    expected = split_lines(addresses + shift[:, None], active, machine)
    for found, wanted in zip(lines_touched(log, np.arange(count), shift, machine), expected, strict=True):
        assert found.tolist() == wanted.tolist()


@given(st.lists(st.tuples(*[st.integers(-3, 3)] * 3), min_size=1, max_size=40))
def test_distinct_rows_are_in_order(rows: list[tuple[int, int, int]]) -> None:
    matrix = np.array(rows, np.int64)
    unique, number = distinct_rows(matrix)
    assert list(map(tuple, unique.tolist())) == sorted(set(rows))
    assert unique[number].tolist() == matrix.tolist()


@pytest.mark.parametrize(("words", "count"), [(1, 1), (3, 10), (1024, 5000), (5000, 5000), (70_000, 200_000)])
def test_distinct_words_in_the_order_of_their_appearance(words: int, count: int) -> None:
    """The table grows from 1,024 places on."""
    draw = np.random.default_rng(words)
    drawn = draw.integers(-(1 << 62), 1 << 62, words)[draw.integers(0, words, count)]
    first, number = distinct(drawn)
    _, earliest = np.unique(drawn, return_index=True)
    assert first.tolist() == sorted(earliest.tolist())
    assert (drawn[first][number] == drawn).all()
