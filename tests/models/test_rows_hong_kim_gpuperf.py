"""The rows of Hong and Kim, of GPUPerf, and of the thesis on both; and what makes a row."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from drywarp.experiments.reproduce import Row, Value, reproduce, row_of, tolerance_of


@cache
def every_row() -> list[Row]:
    return [row for row in reproduce() if row.paper in ("Hong and Kim", "GPUPerf") or row.place.startswith("§7.")]


def line(printed: str = "", **others: Any) -> dict[str, str]:
    """A line of the table of printed numbers."""
    columns = dict.fromkeys(("paper", "place", "quantity", "status", "kind", "tolerance", "note"), "")
    return {**columns, "printed": printed, **others}


def test_none_fails() -> None:
    assert [each for each in every_row() if each.status == "failed"] == []
    assert sum(each.status == "reproduced" for each in every_row()) >= 60


def test_every_row_has_a_place_of_its_own() -> None:
    keys = [(each.paper, each.place, each.quantity) for each in every_row()]
    assert len(set(keys)) == len(keys)
    assert all(each.paper and each.place and each.quantity for each in every_row())


def test_the_inconsistencies_show_their_arithmetic() -> None:
    found = [each for each in every_row() if each.status == "inconsistent_in_source"]
    assert len(found) == 6
    for each in found:
        assert each.note
        assert abs(each.computed - each.published) > each.tolerance


@pytest.mark.parametrize(
    ("printed", "tolerance"),
    [
        *(("12.40", 0.005), ("38450", 0.5), ("2.1E10", 0.5e9)),
        *(("-11", 0.5), ("4", 0.0), ("0.5", 0.0), ("0", 0.0)),
    ],
)
def test_half_a_unit_of_the_last_digit_is_allowed_and_nothing_for_one_digit(printed: str, tolerance: float) -> None:
    assert tolerance_of(printed) == pytest.approx(tolerance)
    assert row_of(line(printed), 1).tolerance == pytest.approx(tolerance)
    with pytest.raises(ValueError, match="finite"):
        tolerance_of("inf")


def test_status_follows_from_the_numbers() -> None:
    assert row_of(line("2.28"), 2.2849).status == "reproduced"
    assert row_of(line("2.28"), 2.286).status == "failed"
    assert row_of(line("100", tolerance="2 %"), 101.9).status == "reproduced"
    assert row_of(line("100", tolerance="2 %"), 102.1).status == "failed"
    assert row_of(line(tolerance="0.1 %"), Value(25.1, 25)).status == "failed"
    assert row_of(line(kind="derived"), Value(25, 25)).status == "reproduced"
    wrong = row_of(line("2", status="differs", note="1 + {two:g} = {computed}"), Value(3, shown={"two": 2}))
    assert (wrong.status, wrong.note) == ("differs", "1 + 2 = 3")


@pytest.mark.parametrize("status", ["inconsistent_in_source", "differs"])
def test_what_differs_has_to_differ_and_to_say_why(status: str) -> None:
    with pytest.raises(ValueError, match="agrees"):
        row_of(line("21", status=status, note="20 + 1"), 21.1)
    with pytest.raises(ValueError, match="reason"):
        row_of(line("2", status=status), 3)


def test_a_tolerance_of_its_own_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        row_of(line("2", tolerance="0.5"), 2.2)
    with pytest.raises(ValueError, match="needs a reason"):
        row_of(line("100", tolerance="5 %"), 104)
    assert row_of(line("2", tolerance="0.5", note="printed without decimals"), 2.2).status == "reproduced"
