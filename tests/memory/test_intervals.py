"""Sets as runs behave like Python's sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from drywarp.memory.footprint import (
    EMPTY,
    Moved,
    Runs,
    count,
    difference,
    from_points,
    intersection,
    last,
    merged,
    new_in_turn,
    shifted,
    union,
)

points = st.lists(st.integers(-20, 40), max_size=30)


def runs_of(members: list[int] | set[int]) -> Runs:
    return from_points(np.array(sorted(members), np.int64))


def members(runs: Runs) -> set[int]:
    """The members; also checks that the runs are sorted, not empty, and do not touch."""
    assert runs.shape == (len(runs), 2)
    assert (runs[:, 0] < runs[:, 1]).all()
    assert (runs[1:, 0] > runs[:-1, 1]).all()
    return {n for start, end in runs.tolist() for n in range(start, end)}


@given(points)
def test_points_in_any_order(values: list[int]) -> None:
    runs = from_points(np.array(values, np.int64))
    assert members(runs) == set(values)
    assert count(runs) == len(set(values))


@given(points, points)
def test_operations(left: list[int], right: list[int]) -> None:
    a, b = runs_of(left), runs_of(right)
    assert members(union(a, b)) == set(left) | set(right)
    assert members(difference(a, b)) == set(left) - set(right)
    assert members(intersection(a, b)) == set(left) & set(right)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 8)), max_size=12))
def test_overlapping_runs_merge(pairs: list[tuple[int, int]]) -> None:
    runs = np.array([(start, start + length) for start, length in pairs], np.int64).reshape(-1, 2)
    assert members(merged(runs)) == {n for start, length in pairs for n in range(start, start + length)}


@given(points, st.integers(0, 40))
def test_the_largest_members(values: list[int], wanted: int) -> None:
    kept = members(last(runs_of(values), wanted))
    assert kept == set(sorted(set(values))[len(set(values)) - min(wanted, len(set(values))) :])


@given(points, st.lists(st.integers(-30, 30), max_size=12, unique=True))
def test_shifted_sets(values: list[int], shifts: list[int]) -> None:
    found = shifted(runs_of(values), np.array(sorted(shifts), np.int64), 10_000)
    assert found is not None
    assert members(found) == {value + shift for value in values for shift in shifts}


@given(points.filter(bool), st.integers(1, 50), st.integers(1, 60))
def test_equal_shifts_and_their_limit(values: list[int], step: int, number: int) -> None:
    shifts = np.arange(number, dtype=np.int64) * step
    found = shifted(runs_of(values), shifts, 10_000)
    assert found is not None
    assert members(found) == {value + shift for value in values for shift in shifts.tolist()}
    assert shifted(runs_of(values), shifts, len(found) - 1) is None


@given(st.lists(st.tuples(points, st.integers(-9, 9), st.booleans()), max_size=6), points)
def test_new_members_set_by_set(sets: list[tuple[list[int], int, bool]], known: list[int]) -> None:
    seen, expected, given_sets = set(known), [], []
    shared = runs_of(sets[0][0]) if sets else EMPTY
    for values, by, own in sets:
        moved = Moved(runs_of(values) if own else shared, by)
        given_sets.append(moved)
        new = members(moved.whole())
        expected.append(len(new - seen))
        seen |= new
    counts, every = new_in_turn(given_sets, runs_of(known))
    assert counts == expected
    assert members(every) == seen


def test_large_sets_against_numpy() -> None:
    random = np.random.default_rng(3)
    for size, other in ((5, 50_000), (50_000, 5), (20_000, 30_000), (1, 1)):
        a, b = (np.unique(random.integers(0, 200_000, n)) for n in (size, other))
        left, right = from_points(a), from_points(b)
        for found, wanted in (
            (union(left, right), np.union1d(a, b)),
            (difference(left, right), np.setdiff1d(a, b)),
            (intersection(left, right), np.intersect1d(a, b)),
        ):
            assert np.array_equal(found, from_points(wanted))
            assert found.flags.c_contiguous
        frozen = left.copy()
        frozen.flags.writeable = False
        assert np.array_equal(union(frozen, right[::1]), from_points(np.union1d(a, b)))
