"""`drywarp reproduce`: no number fails, and what the table, the JSON and the page say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from drywarp.cli.main import run
from drywarp.experiments.reproduce import rows_analysis, rows_cornelis
from drywarp.experiments.reproduce.row import Row, reproduce, totals

ROOT = Path(__file__).parents[2]


def test_no_number_fails() -> None:
    rows = reproduce()
    failed = [f"{row.paper} {row.place} {row.quantity}: {row.computed}" for row in rows if row.status == "failed"]
    assert failed == []
    assert len({(row.paper, row.place, row.quantity) for row in rows}) == len(rows)
    assert totals(rows)["reproduced"] >= 120


@pytest.mark.parametrize(("module", "least"), [(rows_analysis, 50), (rows_cornelis, 20)])
def test_each_paper_has_its_rows(module: object, least: int) -> None:
    rows: list[Row] = module.rows()  # type: ignore[attr-defined]
    assert sum(row.status == "reproduced" for row in rows) >= least
    assert all(row.note for row in rows if row.status == "inconsistent_in_source")


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert set(answer) == {"schema_version", "versions", "totals", "rows"}
    assert sum(answer["totals"].values()) == len(answer["rows"])
    keys = {"paper", "place", "quantity", "published", "computed", "tolerance", "status", "note"}
    assert all(set(row) == keys for row in answer["rows"])


def test_a_failed_number_is_exit_status_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = Row("paper", "§1", "x", 1.0, 2.0, 0.5, "failed", "why | how")
    monkeypatch.setattr("drywarp.experiments.reproduce.row.reproduce", lambda: [wrong])
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
