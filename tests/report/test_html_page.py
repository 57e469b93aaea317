"""The HTML report as a text: self-contained, safe with any name, small enough, and it holds what was answered."""

from __future__ import annotations

import json
import re
import sys
from base64 import b64decode, b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import drywarp
from drywarp.analysis.result import Band, BandPart
from drywarp.analysis.result.detail import Advice, Finding, Place, SourceText, WhatIfAnswer
from drywarp.cli.main import run
from drywarp.errors import UsageError
from drywarp.models.gpuperf_terms import BenefitChart
from drywarp.report.html import json_for_script
from drywarp.report.html.page import html_page
from drywarp.report.html.payload import packed
from drywarp.support.text import time_text

from .html_answers import NASTY, ROOT, answer, large, nasty

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Page(HTMLParser):
    """Elements with attributes, and the content of script and style."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, str]] = []
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        (self.raw if self.cdata_elem else self.text).append((self.cdata_elem, data) if self.cdata_elem else data)  # type: ignore[arg-type]

    def content(self, tag: str) -> list[str]:
        """What stands in the elements with this tag, each in one piece."""
        return [data for own, data in self.raw if own == tag]

    @property
    def data(self) -> dict[str, object]:
        return dict(json.loads(self.content("script")[0]))


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(html_page(answer()))


def test_nothing_is_fetched_from_anywhere(page: Page) -> None:
    for tag, attributes in page.elements:
        assert tag not in {"img", "iframe", "object", "embed", "audio", "video", "base", "form"}
        assert "src" not in attributes
        assert "style" not in attributes, "the policy forbids it"
        assert not any(name.startswith("on") for name in attributes)
        assert (attributes.get("href") or "#").startswith(("#", "data:,"))
    for text in page.content("script") + page.content("style"):
        assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|WebSocket|sendBeacon|import\(|innerHTML", text)


def test_the_policy_allows_this_script_and_style_alone(page: Page) -> None:
    policy = next(a["content"] for t, a in page.elements if a.get("http-equiv") == "Content-Security-Policy") or ""
    assert policy.startswith("default-src 'none'")
    for tag, name in (("script", "script-src"), ("style", "style-src")):
        digest = b64encode(sha256(page.content(tag)[-1].encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in policy


def test_figures_and_tables_hold_the_answer(page: Page) -> None:
    text = " ".join(" ".join(page.text).split())
    given_ = answer()
    assert given_.verdict in text
    assert time_text(given_.time_s) in text
    stalls = given_.prediction.stalls
    for reason, cycles in stalls.items():
        assert reason in text or cycles < 0.001 * sum(stalls.values())
    for curve in given_.detail.curves if given_.detail else ():
        assert curve.model in text


def test_markup_in_names_and_source_stays_text() -> None:
    page = Page(html_page(nasty()))
    assert [tag for tag, _ in page.elements if tag in {"img", "script"}] == ["script", "script"]
    data = page.data
    assert data["kernel"] == f"f{NASTY}"
    assert NASTY in data["sources"][0]["texts"][0]  # type: ignore[index]
    assert NASTY in "".join(page.text)
    assert "\u2028" not in page.content("script")[0]


@UNHURRIED
@given(st.text())
def test_any_text_comes_back_from_the_script_element(text: str) -> None:
    written = json_for_script({text: [text]})
    assert not re.search("[<>&\u2028\u2029]", written)
    assert json.loads(written) == {text: [text]}


@UNHURRIED
@given(st.lists(st.one_of(st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**53))))
def test_columns_are_unpacked_as_they_were(values: list[int]) -> None:
    column = packed(np.array(values, dtype=np.int64))
    kind = {"u8": "<u1", "u16": "<u2", "u32": "<u4", "i32": "<i4", "f64": "<f8"}[column["type"]]
    assert np.frombuffer(b64decode(column["data"]), dtype=kind).astype(np.int64).tolist() == values


def test_events_are_those_of_the_answer(page: Page) -> None:
    detail = answer().detail
    assert detail is not None
    assert detail.events is not None
    events = page.data["events"]
    columns = events["columns"]  # type: ignore[index]
    kind = {"u8": "<u1", "u16": "<u2", "u32": "<u4", "i32": "<i4", "f64": "<f8"}
    found = {n: np.frombuffer(b64decode(c["data"]), dtype=kind[c["type"]]).astype(np.int64) for n, c in columns.items()}
    assert (np.cumsum(found["step"]) + detail.events.issue[0] == detail.events.issue).all()
    assert (found["duration"] == detail.events.completion - detail.events.issue).all()
    for name in ("warp", "block", "node", "reason", "awaited"):
        assert (found[name] == getattr(detail.events, name)).all()


def test_a_very_large_kernel_stays_below_ten_megabytes() -> None:
    assert len(html_page(large()).encode()) < 10_000_000


def test_parts_that_are_not_there_are_left_out() -> None:
    whole = answer()
    assert whole.detail is not None
    for detail in (
        None,
        replace(
            whole.detail,
            code=(),
            sources=(),
            events=None,
            overlap=None,
            roofline=None,
            instruction_roofline=None,
            benefits={},
        ),
        replace(whole.detail, events=None, missing={"events": "too <large>", "benefits": "no memory"}),
        replace(whole.detail, sources=()),
    ):
        page = Page(html_page(replace(whole, detail=detail)))
        assert page.data["kernel"] == "tiled_matmul"
    bare = replace(whole.prediction, curve=(), stalls={}, node_stalls={}, achieved_occupancy_warps=None)
    html_page(replace(whole, predictions={"pipeline": bare}, lines=(), detail=None))


def test_a_source_has_the_name_of_its_file_and_is_there_if_it_has_a_line() -> None:
    given_ = answer()
    assert given_.detail is not None
    sources = (SourceText("/some/place/k.cu", ((1, "x();"),), 1), SourceText("gone.cuh", (), 0), SourceText("/", (), 0))
    page = Page(html_page(replace(given_, detail=replace(given_.detail, sources=sources))))
    told = [(source["name"], source["path"], source["found"]) for source in page.data["sources"]]  # type: ignore[attr-defined]
    assert told == [("k.cu", "/some/place/k.cu", True), ("gone.cuh", "gone.cuh", False), ("/", "/", False)]


def test_findings_what_ifs_and_a_band_are_shown_where_the_answer_has_them() -> None:
    given_ = answer()
    place = Place(given_.source_file, 21)
    finding = Finding("bank_conflicts", 1.25, (place,), "seen <here>", "pad it", "no conflicts", "dram")
    chart = BenefitChart(t_comp=12345.0, t_mem=10.0, t_overlap=5.0)
    advice = Advice(
        (WhatIfAnswer("more cache", "ideal", 1e-6, 1.5, "l2"), WhatIfAnswer("x", "gpu", None, None, None)), chart
    )
    band = Band(0.9, 400e-6, 900e-6, 410e-6, 450e-6, (765e6, 1410e6), (BandPart("clock", 0.9, 2.0, "it changes"),))
    page = Page(html_page(replace(given_, findings=(finding,), advice=advice, band=band)))
    text = " ".join(" ".join(page.text).split())
    assert "90% interval 410–450 µs at 1410 MHz, 400–900 µs at any clock from 765 to 1410 MHz" in text
    for part in ("1.25×", "bank conflicts", "Seen <here>.", "Pad it.", "no conflicts", "DRAM bandwidth", "line 21"):
        assert part in text
    for part in ("more cache", "1.50×", "not possible", "clock", "it changes", "12,345"):
        assert part in text
    assert page.data["benefits"]["t_comp_cycles"] == 12345.0  # type: ignore[index]


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "report.html"
    saxpy = str(ROOT / "examples" / "saxpy.cu")
    assert run(["analyze", saxpy, "--html", str(path), "--events", "100", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kernel"] == "saxpy"
    assert len(b64decode(Page(path.read_text()).data["events"]["columns"]["warp"]["data"])) == 100  # type: ignore[index]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--html", "/nowhere/at/all/report.html", "--events", "0"], "in an existing folder"),
        (["--html", "a.html", "--launches", "x.toml"], "--launches"),
        (["--html", "a.html", "--events", "-1"], "--events"),
    ],
)
def test_bad_options_are_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", str(ROOT / "examples" / "saxpy.cu"), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_an_empty_kernel_and_a_single_thread() -> None:
    for body in ("", "if (p) p[0] = 1;"):
        source = (
            f"// drywarp: --grid 1 --block 1\n// drywarp: --arg p=f32[1]\n__global__ void f(float* p) {{ {body} }}\n"
        )
        result = drywarp.analyze(source, gpu="a100", detail=1000)
        page = Page(html_page(result))
        assert page.data["kernel"] == "f"
        assert page.data["events"]["count"] == page.data["events"]["total"]  # type: ignore[index]


def test_without_jinja_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(UsageError, match="pip install jinja2"):
        html_page(answer())
