"""The page of a whole program as a text: self-contained, safe with any name, small for any number of launches."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
import pytest

from drywarp.report.html.page import MOST_BOXES, MOST_TRACKS, program_page
from drywarp.support.text import time_text

from .html_answers import NASTY, nasty
from .program_runs import run_of, small
from .test_html_page import Page


def columns(page: Page) -> dict[str, Any]:
    types = {"u8": "u1", "u16": "<u2", "u32": "<u4", "i32": "<i4", "f64": "<f8"}
    held: Any = page.data["columns"]
    return {name: np.frombuffer(b64decode(one["data"]), types[one["type"]]) for name, one in held.items()}


def test_the_page_holds_what_the_run_did() -> None:
    run = small()
    page = Page(program_page(run))
    words = " ".join(" ".join(page.text).split())
    for expected in (
        "./program --size 4",
        time_text(run.time_s),
        "scale",
        "add_up",
        "3 launches",
        "drywarp analyze 0000",
    ):
        assert expected in words
    found, data = columns(page), page.data
    assert data["tracks"] == ["default stream", "stream 0x1008"]
    assert sorted(found["track"].tolist()) == [0, 0, 0, 0, 1, 1]
    names: Any = data["names"]
    spans = [span for spans in run.streams().values() for span in spans]
    for number, span in enumerate(spans):
        assert names[found["name"][number]]["name"] == span.name
        assert float(found["start"][number]) * float(str(data["unit"])) == pytest.approx(
            span.start_s, abs=1e-9 * run.time_s
        )
        assert float(found["taken"][number]) * float(str(data["unit"])) == pytest.approx(
            span.end_s - span.start_s, abs=1e-9 * run.time_s
        )
    # Each kernel's report has the sections of an answer's own page.
    for expected in ("Occupancy", "Hit rates", "long_scoreboard", "speedup"):
        assert expected in words


def test_nothing_is_fetched_and_only_its_own_script_runs() -> None:
    text = program_page(small())
    page = Page(text)
    (policy,) = [
        given["content"] for tag, given in page.elements if given.get("http-equiv") == "Content-Security-Policy"
    ]
    script = page.content("script")[-1]
    assert policy is not None
    assert f"script-src 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" in policy
    assert "default-src 'none'" in policy
    assert not [given for _, given in page.elements if given.get("src") or (given.get("href") or "#")[0] not in "#d"]
    assert not [given for _, given in page.elements if any(name.startswith("on") or name == "style" for name in given)]


def test_names_are_never_markup() -> None:
    run = replace(run_of([(NASTY, 0)], replace(nasty(), detail=None)), command=(NASTY,), notes=(NASTY,))
    page = Page(program_page(run))
    assert not [tag for tag, given in page.elements if tag == "img" or "onerror" in given]
    assert json.loads(page.content("script")[0])["names"][2]["name"].startswith("</script>")


def test_100_000_launches_are_a_small_page() -> None:
    run = run_of([("ab"[number % 2], number % 3) for number in range(100_000)])
    text = program_page(run)
    assert len(text) < 500_000
    page = Page(text)
    found = columns(page)
    assert len(found["count"]) <= MOST_BOXES
    assert found["count"].sum() == 100_001
    # Boxes of a stream do not overlap, and none is longer than what it stands for.
    for track in range(3):
        mine = found["track"] == track
        start, taken = found["start"][mine].astype(float), found["taken"][mine].astype(float)
        assert (start[1:] + 2 >= start[:-1] + taken[:-1]).all()
    assert "are drawn together" in " ".join(page.text)


def test_equal_launches_in_a_row_are_joined_first() -> None:
    page = Page(program_page(run_of([("a", 0)] * MOST_BOXES + [("b", 0)])))
    found = columns(page)
    assert found["count"].tolist() == [1, MOST_BOXES, 1]


def test_many_streams_and_several_processes() -> None:
    page = Page(program_page(run_of([("a", number) for number in range(MOST_TRACKS + 6)])))
    tracks: Any = page.data["tracks"]
    assert len(tracks) == MOST_TRACKS
    assert "6 more streams are not drawn" in " ".join(" ".join(page.text).split())
    page = Page(program_page(run_of([("a", 0)], processes=2)))
    assert page.data["tracks"] == ["default stream, process 0", "default stream, process 1"]


def test_a_program_without_launches() -> None:
    run = run_of([])
    assert "Kernels" not in Page(program_page(run)).text
    assert "Timeline" in Page(program_page(replace(run, spans=(), processes=(0,), copies=()))).text
