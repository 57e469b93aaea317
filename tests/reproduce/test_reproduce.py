"""`drywarp reproduce`: no number fails, and what the table, the JSON and the page say."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from drywarp.cli.main import run
from drywarp.experiments.reproduce import (
    KINDS,
    Row,
    left_out,
    reproduce,
    rows_analysis,
    rows_analysis_tables,
    totals,
)
from drywarp.hardware import limits_of
from drywarp.report.models import headline, reproduction_markdown

ROOT = Path(__file__).parents[2]
every_row = cache(reproduce)


def test_no_number_fails() -> None:
    rows = every_row()
    failed = [f"{row.paper} {row.place} {row.quantity}: {row.computed}" for row in rows if row.status == "failed"]
    assert failed == []
    assert len({(row.paper, row.place, row.quantity) for row in rows}) == len(rows)
    assert totals(rows)["reproduced"] >= 540
    assert totals(rows, "model")["reproduced"] >= 219
    assert {kind: sum(totals(rows, kind).values()) for kind in KINDS} == dict(Counter(row.kind for row in rows))


def test_whatever_does_not_agree_says_why_and_a_wide_tolerance_does_too() -> None:
    for each in every_row():
        agrees = abs(each.computed - each.published) <= each.tolerance + 1e-9 * max(1, abs(each.published))
        assert agrees == (each.status == "reproduced"), each
        assert each.note or agrees, each
        assert each.note or each.tolerance <= 0.06 * abs(each.published), each


def test_what_our_own_equations_computed_is_not_called_published() -> None:
    """Cornelis' Eq. 1 and Fig. 1; the analysis paper's Eqs. 40, 43 to 45 and Theorem 1: printed as formulas only."""
    ours = {row.place for row in every_row() if row.kind == "derived"}
    assert {"§III.A, Eq. 1, Table II", "Fig. 1", "§4.2, Eq. 43", "§2.2.1, Theorem 1", "§2.4.2, Eq. 40, Fig. 6"} <= ours


def test_the_occupancies_that_cornelis_and_lemeire_explored() -> None:
    """§IV.A, by hand: of 8 groups on Fermi all counts; of 384 units of 256 bytes on Pascal, at most 192 each."""
    fermi = {(size, count) for size in (1, 2, 4, 8, 16, 32) for count in range(1, 9) if size * count <= 48}
    assert rows_analysis.occupancies(limits_of("2.0")) == fermi
    shared = {384 // units for units in range(1, 193)}
    pascal = {(2**power, min(count, 32, 64 >> power)) for power in range(6) for count in (*shared, 32)}
    assert rows_analysis.occupancies(limits_of("6.1")) == pascal
    places = [(row.published, row.status) for row in every_row() if row.place == "§IV.A"]
    assert places == [(number, "reproduced") for number in (34, 18, 78, 43)]


def test_the_tables_of_errors() -> None:
    """48 averages follow from 14 cells each; two columns of Table 12 carry each other's numbers."""
    found = [row for row in every_row() if row.paper == rows_analysis_tables.PAPER]
    averages = [row for row in found if row.place.endswith("from its cells")]
    assert len(averages) == 48
    assert [row.status for row in averages].count("differs") == 2
    swapped = {row.published: round(row.computed, 1) for row in found if row.place == "Table 12, columns"}
    assert swapped == {69.7: 83.3, 83.3: 69.7, 12: 9.7, 10: 11.9}
    for table in rows_analysis_tables.DEVICES:
        columns = {column.model: column for column in rows_analysis_tables.columns(table)}
        assert len(columns) == 8
        assert all(len(column.cells) == 14 for column in columns.values())
        constant = columns["mwp_cwp_corrected" if table == 12 else "wfg"].cells
        assert sum(error >= 65 for error, _ in constant) >= 13  # what betrays WFG's column


def test_the_headline_counts_models_alone() -> None:
    rows = [Row("p", "t", f"q{at}", 25, 25.2, 0.5, "reproduced") for at in range(3)]
    rows.append(Row("p", "t", "d", 25, 27, 0.5, "differs", "measured"))
    rows.append(Row("p", "t", "i", 25, 25, 0.5, "reproduced", kind="input"))
    rows.append(Row("p", "Eq. 1", "e", 25, 25, 0.0, "reproduced", kind="derived"))
    said = headline(rows)
    assert said == (
        "Of 4 printed numbers that a model computes: 3 reproduced, 1 differs, 0 inconsistent in the source, 0 failed."
    )
    page = reproduction_markdown(rows, left_out())
    assert said in page
    assert "17 % of the rows are of kind `input`" in page
    assert "| (25) | 25 | derived |" in page


@pytest.mark.parametrize(("paper", "least"), [("analysis", 50), ("Cornelis", 20)])
def test_each_paper_has_its_rows(paper: str, least: int) -> None:
    rows = [row for row in every_row() if row.paper == paper]
    assert sum(row.status == "reproduced" for row in rows) >= least
    assert all(row.note for row in rows if row.status == "inconsistent_in_source")


def test_what_is_printed_is_computed_and_nothing_else_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_analysis, "computed", lambda: {"Cornelis": {}})
    with pytest.raises(ValueError, match="Cornelis, Table II, from Table I: λ of fadd, Fermi: nothing computes it"):
        reproduce()
    monkeypatch.undo()
    values = rows_analysis.computed()
    more = {**values, "Cornelis": {**values["Cornelis"], "one more": 1.0}}
    monkeypatch.setattr(rows_analysis, "computed", lambda: more)
    with pytest.raises(ValueError, match=r"printed\.csv lacks .*one more"):
        reproduce()


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert set(answer) == {"schema_version", "versions", "totals", "totals_by_kind", "rows", "left_out"}
    assert sum(answer["totals"].values()) == len(answer["rows"])
    assert set(answer["totals_by_kind"]) == set(KINDS)
    for status, number in answer["totals"].items():
        assert sum(kind[status] for kind in answer["totals_by_kind"].values()) == number
    keys = {"paper", "place", "quantity", "published", "expected", "computed", "tolerance", "status", "note", "kind"}
    assert all(set(row) == keys for row in answer["rows"])
    assert all((row["published"] is None) == (row["kind"] == "derived") for row in answer["rows"])
    assert all(set(each) == {"paper", "what", "why"} and all(each.values()) for each in answer["left_out"])


def test_a_failed_number_is_exit_status_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = Row("paper", "§1", "x", 1.0, 2.0, 0.5, "failed", "why | how")
    monkeypatch.setattr("drywarp.experiments.reproduce.reproduce", lambda: [wrong])
    assert run(["reproduce"]) == 1
    text = capsys.readouterr().out
    assert "1 failed" in text
    assert "why | how" in text
    assert run(["reproduce", "--markdown"]) == 1
    assert "why \\| how" in capsys.readouterr().out
    assert run(["reproduce", "--markdown", "--json"]) == 2


def test_the_page_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    run(["reproduce", "--markdown"])
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert page == capsys.readouterr().out, "write it anew: drywarp reproduce --markdown > docs/reproduction.md"


def test_the_page_on_the_papers_lists_every_inconsistency() -> None:
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    listed = page[page.index("| paper | place | quantity | printed | computed | arithmetic |") :]
    assert (
        sum(line.startswith("| ") for line in listed.splitlines()) == 1 + totals(every_row())["inconsistent_in_source"]
    )
    for each in every_row():
        if each.status == "inconsistent_in_source":
            assert f"| {each.paper} | {each.place} | {each.quantity} | " in listed
            assert each.note in listed
