"""`--figure` and `--plot`: files on request, and one line for what cannot be."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from drywarp.cli.main import run

pytest.importorskip("matplotlib", reason="figures are drawn with Matplotlib, the extra `plot`")

SAXPY = str(Path(__file__).parents[2] / "examples" / "saxpy.cu")
QUICK = ["--occupancy", "64", "--grid", "2000", "--events", "500"]
SVG = "{http://www.w3.org/2000/svg}"


def test_analyze_writes_each_figure_that_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    curve, profile, stalls = (tmp_path / name for name in ("curve.svg", "profile.png", "stalls.svg"))
    wanted = [f"occupancy={curve}", f"profile={profile}", f"stalls={stalls}"]
    flags = [word for each in wanted for word in ("--figure", each)]
    assert run(["analyze", SAXPY, *QUICK, *flags, "--figure-theme", "dark"]) == 0
    said = capsys.readouterr().out
    assert "saxpy" in said
    assert f"occupancy figure in {curve}\nprofile figure in {profile}\nstalls figure in {stalls}" in said
    texts = ["".join(e.itertext()) for e in ElementTree.parse(curve).iter(f"{SVG}text")]
    assert "this launch: 64 warps" in texts
    assert any("other models" in text for text in texts)  # all models, though no report was asked for
    assert "#14171a" in stalls.read_text(encoding="utf-8")
    assert profile.read_bytes().startswith(b"\x89PNG")


def test_compare_and_rank_draw_bars(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bars = tmp_path / "bars.svg"
    slower = ["--new", "--grid 4000"]
    assert run(["compare", SAXPY, "--old", "--grid 2000", *slower, "--plot", str(bars)]) == 0
    texts = ["".join(e.itertext()) for e in ElementTree.parse(bars).iter(f"{SVG}text")]
    assert {"old", "new"} <= set(texts)
    assert run(["rank", SAXPY, "--gpu", "a100,h100", "--grid", "2000", "--plot", str(bars)]) == 0
    texts = ["".join(e.itertext()) for e in ElementTree.parse(bars).iter(f"{SVG}text")]
    assert {"a100", "h100"} <= set(texts)
    capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["analyze", "none.cu", "--figure", "pie=a.svg"],
            "--figure 'pie=a.svg': expected NAME=FILE with one of occupancy",
        ),
        (["analyze", "none.cu", "--figure", "stalls=a.jpg"], "--figure a.jpg: expected a file name that ends in .svg"),
        (["analyze", "none.cu", "--figure", "stalls"], "--figure 'stalls': expected NAME=FILE"),
        (["analyze", "none.cu", "--figure", "stalls=a.svg", "--figure", "overlap=a.svg"], "a.svg is given twice"),
        (["analyze", "none.cu", "--figure", "stalls=/nowhere/a.svg"], "--figure /nowhere/a.svg: cannot be written"),
        (["analyze", "none.cu", "--figure-theme", "dark"], "--figure-theme requires --figure"),
        (["analyze", "none.cu", "--figure", "stalls=a.svg", "--figure-theme", "blue"], "theme 'blue'"),
        (["analyze", "none.cu", "--figure", "stalls=a.svg", "--launches", "l.toml"], "--figure shows one launch"),
        (["analyze", SAXPY, "--figure", "profile=a.svg", "--events", "0"], "no issue events were recorded"),
        (["compare", "none.cu", "none.cu", "--plot", "a.gif"], "--plot a.gif: expected"),
        (["rank", "none.cu", "--plot", "/nowhere/a.png"], "--plot /nowhere/a.png: cannot be written"),
        (["models", "papers/example", "--figure-theme", "dark"], "--figure-theme requires --plot"),
    ],
)
def test_what_cannot_be_is_one_line(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert expected in captured.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", [["analyze", SAXPY, "--figure", "stalls=a.svg"], ["rank", SAXPY, "--plot", "a.png"]])
def test_without_matplotlib_nothing_is_begun(
    option: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run(option) == 2
    assert capsys.readouterr().err == "drywarp: figures need Matplotlib: pip install 'drywarp[plot]'\n"
