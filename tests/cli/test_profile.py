"""`drywarp profile`: the figures of the analysis paper as text, figure, page and JSON, and bad usage."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drywarp.analysis.every_model import compare_models, profile_abstract
from drywarp.errors import UsageError
from drywarp.hardware import load_gpu
from drywarp.pipeline import POLICIES
from drywarp.report.execution_profile import profile_dict, profile_page, render_profile

from .command import complaint, run

EXAMPLE = "papers/example"
TWO = """\
papers/example on papers/example: 2 warps, scheduler loose_round_robin, issue as operands become ready
28 cycles, 0.07143 warps per cycle, 12 warp instructions

subsystem  busy
comp       28.6%
mem        28.6%

cycle  0         10        20
comp   0---  0---      0---
        1---  1---       1---
         0---
          1---
mem              00----    00----
                   11----    11----

A digit or letter: that warp's instruction occupies the subsystem (λ); -: in flight until Λ.
One column is 1 cycle.
"""
BY_WARP = """\
cycle   0         10
warp 0  ab   c   d     e   f

Issues of a c1, b c2, c c3, d m1, e c4, f m2.
One column is 1 cycle.
"""


def test_figure_8_as_text(tmp_path: Path) -> None:
    """Two warps of the example kernel: the boxes of Fig. 8, below."""
    line = ("profile", EXAMPLE, "--warps", "2", "--policy", "loose_round_robin")
    assert run(*line, cwd=tmp_path).stdout == TWO
    assert run("profile", EXAMPLE, "--warps", "1", "--by", "warp", cwd=tmp_path).stdout.endswith(BY_WARP)


def test_figure_9_with_ten_warps(tmp_path: Path) -> None:
    """10 warps need 40 cycles of either subsystem; oldest first is the nearest to that of the policies."""
    cycles = {name: profile_abstract(EXAMPLE, warps=10, policy=name).cycles for name in POLICIES}
    assert 40 < cycles["oldest_first"] == min(cycles.values())
    text = run("profile", EXAMPLE, "--warps", "10", "--policy", "oldest_first", cwd=tmp_path).stdout
    found = cycles["oldest_first"]
    assert f"{found:g} cycles, {10 / found:.4g} warps per cycle, 60 warp instructions" in text
    assert f"comp       {40 / found:.1%}" in text


@settings(max_examples=30)
@given(st.integers(1, 64), st.sampled_from([*POLICIES]), st.integers(1, 3), st.integers(20, 140))
def test_a_profile_agrees_with_the_model_and_with_its_text(warps: int, policy: str, runs: int, width: int) -> None:
    found = profile_abstract(EXAMPLE, warps=warps, policy=policy, runs=runs)
    told = profile_dict(found, 10_000)
    assert (told["total"], len(told["issues"]), found.warps) == (6 * warps * runs, 6 * warps * runs, warps * runs)
    assert max(row["completion_cycle"] for row in told["issues"]) == found.cycles
    issues = [row["issue_cycle"] for row in told["issues"]]
    assert issues == sorted(issues)
    for name, share in found.busy.items():
        mine = [row for row in told["issues"] if row["subsystem"] == name]
        assert sum(row["busy_cycles"] for row in mine) / found.cycles == pytest.approx(share)
        assert all(b["issue_cycle"] >= a["issue_cycle"] + a["busy_cycles"] for a, b in pairwise(mine))
    for row in told["issues"]:
        if row["awaited"] is not None:
            producer = told["issues"][row["awaited"]]
            assert producer["warp"] == row["warp"]
            assert producer["completion_cycle"] <= row["issue_cycle"]
    for by in ("subsystem", "warp"):
        lines = render_profile(found, by=by, first=5000, width=width).splitlines()  # type: ignore[arg-type]
        drawn = lines[[line.startswith("cycle") for line in lines].index(True) : lines.index("", 7)]
        assert all(len(line) <= max(width, 30) for line in drawn)


def test_the_models_take_the_policy_too(tmp_path: Path) -> None:
    line = ("models", EXAMPLE, "--policy", "oldest_first", "--occupancy", "10", "--json")
    told = json.loads(run(*line, cwd=tmp_path).stdout)
    found = profile_abstract(EXAMPLE, warps=10, policy="oldest_first")
    assert told["models"]["pipeline"][0]["cycles_per_run"] == found.cycles
    assert told["assumptions"]["scheduler"] == "oldest_first"
    assert compare_models(EXAMPLE, occupancies=[10]).scheduler == load_gpu(EXAMPLE).scheduler.policy


def test_the_figure_and_the_page(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures are drawn with Matplotlib, the extra `plot`")
    files = ("--plot", "p.svg", "--html", "p.html", "--policy", "loose_round_robin")
    assert run("profile", EXAMPLE, "--warps", "4", *files, cwd=tmp_path).returncode == 0
    root = ET.fromstring((tmp_path / "p.svg").read_text(encoding="utf-8"))
    texts = ["".join(text.itertext()).strip() for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert [texts.count(name) for name in ("c1", "c2", "c3", "m1", "c4", "m2")] == [4] * 6
    assert {"comp", "mem", "cycles (24 of 24 instructions)"} <= {*texts}
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "34 cycles for 4 warps of one SM" in page
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert (data["events"]["count"], data["code"]["text"]) == (24, ["c1", "c2", "c3", "m1", "c4", "m2"])
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")


def test_names_of_the_users_stay_text(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'format = 1\ntitle = "<b>&"\n[classes.c]\nfrom = "comp"\n'
        '[[program]]\nid = "</script><script>alert(1)"\nclass = "c"\n'
    )
    page = profile_page(profile_abstract(str(path), "papers/example", warps=1))
    assert "<script>alert" not in page
    assert "<b>&" not in page


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("papers/example --warps 0", "--warps 0: expected a multiple of 1 (the warps of one block) up to 64"),
        ("papers/barrier --warps 3", "--warps 3: expected a multiple of 4 (the warps of one block) up to 64"),
        ("papers/example --policy fifo", "unknown scheduler policy 'fifo'; known: loose_round_robin"),
        ("papers/example --by lane", "--by 'lane': expected subsystem or warp"),
        ("papers/example --first 0", "--first"),
        (
            "papers/example --html none/p.html",
            "--html none/p.html: expected a file in an existing folder",
        ),
        ("papers/example --plot p.gif", "--plot p.gif: expected a file name that ends in .svg or .png"),
        ("papers/nothing", "unknown workload 'papers/nothing'"),
        ("none.toml", "none.toml: no such file"),
        ("kernel.cu", "kernel.cu: expected an abstract kernel (.toml, or a name of drywarp workloads); for the file"),
        ("papers/itilp --set ilp=x", "--set ilp=x: expected a number"),
    ],
)
def test_bad_usage(tmp_path: Path, line: str, expected: str) -> None:
    assert expected in complaint(run("profile", *line.split(), cwd=tmp_path))


def test_a_kernel_that_runs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'format = 1\ntitle = "t"\n[classes.c]\nfrom = "comp"\n'
        '[[program]]\nloop = 0\nbody = [{ id = "a", class = "c" }]\n'
    )
    with pytest.raises(UsageError, match="no instruction issues; expected at least one"):
        profile_abstract(str(path), "papers/example", warps=1)
