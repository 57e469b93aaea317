"""The thesis's numbers: none fails, and those that the analysis of the thesis turns on are there."""

from __future__ import annotations

import pytest

from drywarp.experiments.reproduce import rows_volkov_3, rows_volkov_4, rows_volkov_6, rows_volkov_7
from drywarp.experiments.reproduce.row import Row
from drywarp.experiments.reproduce.volkov_kernels import issue_cycles, vector_add, without_limits
from drywarp.models.volkov import latency_bound

CHAPTERS = (rows_volkov_3, rows_volkov_4, rows_volkov_6, rows_volkov_7)


@pytest.fixture(scope="module")
def thesis() -> list[Row]:
    return [row for chapter in CHAPTERS for row in chapter.rows()]


def test_the_rows(thesis: list[Row]) -> None:
    assert [row for row in thesis if row.status == "failed"] == []
    assert sum(row.status == "reproduced" for row in thesis) >= 180
    odd = {row.place for row in thesis if row.status == "inconsistent_in_source"}
    assert odd == {"§3.2", "Listing 3.3", "Table 6.1", "§7.5"}


@pytest.mark.parametrize(
    ("place", "published"),
    [
        *(("Table 3.4", number) for number in (184.5, 36.25)),
        *(("Listing 3.1", number) for number in (301, 325, 334, 343)),
        *(("Listing 3.3", number) for number in (28, 32, 546, 580)),
        *(("§3.8", number) for number in (544, 0.0445, 6.35)),
        *(("Table 4.3", number) for number in (6.9, 6.8, 16, 38, 23)),
        *(("§4.5", number) for number in (49, 54)),
        *(("Table 6.7", number) for number in (6.7, 7.6, 34, 33, 5.9)),
        *(("§7.1", number) for number in (12.4, 4.3)),
        *(("§7.5", number) for number in (252, 341)),
        *(("§7.7", number) for number in (-11, -0.7)),
        ("§7.7, Figure 7.10", 28.1),
        *(("§7.8", number) for number in (-120, -89)),
    ],
)
def test_what_must_be_there(thesis: list[Row], place: str, published: float) -> None:
    assert any(row.place == place and row.published == published and row.status == "reproduced" for row in thesis)


def test_the_vector_addition_pairs_its_instructions() -> None:
    assert latency_bound(without_limits(vector_add())) == 544
    assert issue_cycles(vector_add())[0] == [0, 0, 3, 12, 21, 21, 30, 33, 33, 334, 343, 343]
