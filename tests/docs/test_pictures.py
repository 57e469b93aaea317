"""The pictures of the pages are what the simulation says now."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from docs.site.pictures.all import FOLDER, drawn
from docs.site.pictures.lanes import by_warp, simulated
from docs.site.pictures.svg import Drawing


@pytest.fixture(scope="module")
def pictures() -> dict[str, str]:
    return drawn()


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_a_picture_is_up_to_date(path: Path, pictures: dict[str, str]) -> None:
    assert path.read_text(encoding="utf-8") == pictures[path.name], "run python -m docs.site.pictures"
    root = ElementTree.fromstring(pictures[path.name])
    width, height = (float(size) for size in root.attrib["viewBox"].split()[2:])
    for box in root.iter("{http://www.w3.org/2000/svg}rect"):
        x, y = float(box.attrib["x"]), float(box.attrib["y"])
        assert 0 <= x <= x + float(box.attrib["width"]) <= width
        assert 0 <= y <= y + float(box.attrib["height"]) <= height


def test_no_other_file_lies_there(pictures: dict[str, str]) -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(pictures)


def test_one_warp_is_the_papers_example() -> None:
    """Analysis paper, Fig. 1: 25 cycles; c3 waits for c1 and c2, each other one for the one before."""
    events, _, total = simulated(1)
    assert total == 25
    assert [(e.name, e.issue, e.busy, e.end) for e in events] == [
        ("c1", 0, 1, 4), ("c2", 1, 1, 5), ("c3", 5, 1, 9), ("m1", 9, 2, 15), ("c4", 15, 1, 19), ("m2", 19, 2, 25),
    ]  # fmt: skip
    assert [e.waits for e in events] == [(), (), (0, 1), (2,), (3,), (4,)]


def test_no_subsystem_takes_two_at_once() -> None:
    events, _, _ = simulated(10)
    for lane in {e.lane for e in events}:
        ordered = sorted((e for e in events if e.lane == lane), key=lambda e: e.issue)
        assert all(a.issue + a.busy <= b.issue for a, b in pairwise(ordered))


def test_text_of_a_picture_is_text() -> None:
    drawing = Drawing(10, 10, "<script>")
    drawing.text(0, 0, "a < b & <b>")
    assert ElementTree.fromstring(str(drawing))[-1].text == "a < b & <b>"
    assert "<script>" not in by_warp(2) + str(drawing)
