"""Algorithms 1 and 2 of Hong and Kim on address patterns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.models.coalescing import is_coalesced, transactions_before_1_3, transactions_from_1_3


def indices(start: int, step: int) -> list[int]:
    return [start + step * tx for tx in range(32)]


@pytest.mark.parametrize(
    ("start", "step", "size", "coalesced"),
    [(0, 1, 4, True), (16, 1, 8, True), (160, 1, 16, True), (1, 1, 4, False), (0, 2, 4, False), (0, 1, 2, False)],
)
def test_algorithm_1(start: int, step: int, size: int, coalesced: bool) -> None:
    assert is_coalesced(indices(start, step), size) is coalesced
    assert transactions_before_1_3(indices(start, step), size) == (1 if coalesced else 32)


def test_a_permutation_within_the_warp_is_uncoalesced() -> None:
    shuffled = indices(0, 1)
    shuffled[3], shuffled[4] = shuffled[4], shuffled[3]
    assert transactions_before_1_3(shuffled, 4) == 32


@pytest.mark.parametrize(
    ("start", "step", "size", "found"),
    [
        (0, 1, 4, (1, 128)),
        (1, 1, 4, (2, 128)),
        (0, 1, 16, (2, 128)),
        (0, 2, 4, (1, 128)),
        (0, 4, 4, (2, 128)),
        (8, 4, 4, (3, 128)),
        (0, 1, 1, (1, 32)),
        (0, 8, 2, (4, 64)),
        (0, 0, 4, (1, 128)),
        (0, -4, 4, (2, 128)),
    ],
)
def test_algorithm_2(start: int, step: int, size: int, found: tuple[int, int]) -> None:
    assert transactions_from_1_3(indices(start, step), size) == found


def test_a_size_that_no_access_has() -> None:
    with pytest.raises(ValueError, match="3 bytes"):
        transactions_from_1_3(indices(0, 1), 3)


@given(st.integers(0, 1000), st.integers(0, 64), st.sampled_from((1, 2, 4, 8, 16)))
def test_larger_steps_never_take_fewer_transactions(start: int, step: int, size: int) -> None:
    near, _ = transactions_from_1_3(indices(16 * start, step), size)
    far, _ = transactions_from_1_3(indices(16 * start, step + 1), size)
    assert 1 <= near <= far
