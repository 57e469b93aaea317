"""The rows of Hong and Kim, and of GPUPerf; and what makes a row."""

from __future__ import annotations

import pytest

from drywarp.experiments.reproduce import Row, inconsistent, row, rows_hong_kim, rows_volkov_7, tolerance_of

ALL = [*rows_hong_kim.rows(), *rows_volkov_7.rows()]


def test_none_fails() -> None:
    assert [each for each in ALL if each.status == "failed"] == []
    assert sum(each.status == "reproduced" for each in ALL) >= 60


def test_every_row_has_a_place_of_its_own() -> None:
    keys = [(each.paper, each.place, each.quantity) for each in ALL]
    assert len(set(keys)) == len(keys)
    assert all(each.paper and each.place and each.quantity for each in ALL)


def test_the_inconsistencies_show_their_arithmetic() -> None:
    found = [each for each in ALL if each.status == "inconsistent_in_source"]
    assert len(found) == 6
    for each in found:
        assert each.note
        assert abs(each.computed - each.published) > each.tolerance


@pytest.mark.parametrize(
    ("published", "about", "tolerance"),
    [
        *(("12.40", False, 0.005), ("38450", False, 0.5), ("2.1E10", False, 0.5e9), ("50", True, 1.0)),
        *(("-11", False, 0.5), ("4", False, 0.0), ("0.5", False, 0.0), ("0", False, 0.0)),
    ],
)
def test_half_a_unit_of_the_last_digit_is_allowed_and_nothing_for_one_digit(
    published: str, about: bool, tolerance: float
) -> None:
    assert tolerance_of(published, about) == pytest.approx(tolerance)
    assert tolerance_of("4", rounded=True) == 0.5


def test_status_follows_from_the_numbers() -> None:
    assert row("p", "t", "q", "2.28", 2.2849).status == "reproduced"
    assert row("p", "t", "q", "2.28", 2.286).status == "failed"
    assert row("p", "t", "q", "100", 101.9, about=True).status == "reproduced"
    assert inconsistent("p", "t", "q", "2", 3, "1 + 2").status == "inconsistent_in_source"
    assert isinstance(row("p", "t", "q", "1", 1), Row)
    with pytest.raises(ValueError, match="agrees"):
        inconsistent("p", "t", "q", "21", 21.1, "20 + 1")
    with pytest.raises(ValueError, match="arithmetic"):
        inconsistent("p", "t", "q", "2", 3, "")
    with pytest.raises(ValueError, match="finite"):
        tolerance_of("inf")
