"""An answer in a notebook."""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

import drywarp
from drywarp.analysis.series import analyze_launches
from drywarp.errors import UsageError
from drywarp.report.notebook import summary_html

ROOT = Path(__file__).parents[1]


@cache
def answer() -> drywarp.Analysis:
    return drywarp.analyze(ROOT / "examples" / "saxpy.cu", gpu="a100")


def tags(text: str) -> list[str]:
    found: list[str] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append(tag)

    Tags().feed(text)
    return found


def test_the_view_says_what_the_answer_says() -> None:
    text = answer()._repr_html_()
    assert "saxpy" in text
    assert answer().verdict in text
    assert "long_scoreboard" in text
    assert not {"script", "img", "link", "style"} & set(tags(text))


def test_markup_in_names_stays_text() -> None:
    object_ = {**answer().to_dict(), "kernel": "<img src=x onerror=alert(1)>", "gpu_title": "</div><script>x</script>"}
    assert not {"script", "img"} & set(tags(summary_html(object_, "<b onclick=x>")))


def test_tables_are_those_of_the_json_object() -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    result = answer()
    lines = result.to_pandas()
    assert lines["cycles"].tolist() == [line.cycles for line in result.lines]
    curve = result.to_pandas("curve")
    assert len(curve) == sum(len(p.curve) for p in result.predictions.values())
    assert set(curve["model"]) == set(result.predictions)
    assert result.to_pandas("stalls")["share"].sum() == pytest.approx(1.0)
    assert dict(result.to_pandas("utilization")[["part", "share"]].to_numpy()) == result.prediction.utilization
    assert result.to_pandas("models")["time_s"].tolist()[0] == result.time_s


def test_an_unknown_table_and_a_missing_pandas_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="expected lines, curve, stalls"):
        answer().to_pandas("everything")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match=r"pip install 'drywarp\[pandas\]'"):
        answer().to_pandas()


def test_comparisons_rankings_and_series_show_themselves(tmp_path: Path) -> None:
    saxpy = ROOT / "examples" / "saxpy.cu"
    compared = drywarp.compare(saxpy, gpu="a100,h100", old_launch={"grid": 2000}, new_launch={"grid": 4000})
    assert {"table", "td"} <= set(tags(compared._repr_html_()))
    assert f"{compared.gpus[0].change:+.1%}" in compared._repr_html_()
    ranked = drywarp.rank(saxpy, gpus="a100,h100")
    assert "h100" in ranked._repr_html_()
    launches = tmp_path / "l.toml"
    keys = ("name = '<b>first</b>'", "kernel = 'saxpy'", "grid = 2000", "block = 256", "times = 3")
    launches.write_text("\n".join(("[[launch]]", *keys)), encoding="utf-8")
    series = analyze_launches(saxpy, launches)
    assert "&lt;b&gt;first" in series._repr_html_()
    pytest.importorskip("pandas", reason="pandas is not installed")
    assert compared.to_pandas()["gpu"].tolist() == ["a100", "h100"]
    assert compared.to_pandas()["change"].tolist() == [found.change for found in compared.gpus]
    assert compared.to_pandas("lines")["gpu"].tolist() == [g.gpu for g in compared.gpus for _ in g.lines]
    assert len(compared.to_pandas("counts")) == sum(len(found.counts) for found in compared.gpus)
    with pytest.raises(UsageError, match="expected gpus, lines or counts"):
        compared.to_pandas("rows")
    assert ranked.to_pandas()["time_s"].tolist() == [found.time_s for found in ranked.gpus]
    assert series.to_pandas()["times"].tolist() == [3]
