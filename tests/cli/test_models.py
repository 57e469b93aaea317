"""`drywarp models` and `drywarp workloads`: their JSON, their text, and bad usage."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from drywarp.cli.main import run
from drywarp.models import model_names
from drywarp.workload.abstract import workload_names

SCHEMA = json.loads((files("drywarp") / "report" / "schema" / "models.schema.json").read_text(encoding="utf-8"))
KERNEL = str(Path(__file__).parents[2] / "examples" / "saxpy.cu")


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run([*arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_example_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "models", "papers/example", "--gpu", "papers/example", "--occupancy", "1-12")
    jsonschema.validate(found, SCHEMA)
    assert set(found["models"]) == set(model_names())
    for name, points in found["models"].items():
        assert (points == []) == (name in found["not_applicable"]), name
    points = found["models"]["pipeline"]
    assert [point["occupancy_warps"] for point in points] == list(range(1, 13))
    assert points[0] == {"occupancy_warps": 1, "warps_per_cycle": 1 / 25, "cycles_per_run": 25, "bound": "latency"}
    assert found["models"]["pipeline_papers"] == points
    assert found["inputs"]["computation"] == {"count": 4, "lambda_": 1, "latency": 4}
    assert (found["inputs"]["intensity"], found["inputs"]["latency_app"]) == (2, 25)


def test_a_kernel_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "models", KERNEL, "--gpu", "a100", "--occupancy", "8,16")
    jsonschema.validate(found, SCHEMA)
    assert found["runs"] == 0
    assert found["models"]["pipeline"]
    assert found["inputs"]["memory"]["count"] > 0
    assert found["inputs"]["parameters"]["sm_count"] == 108


def test_settings_and_runs(capsys: pytest.CaptureFixture[str]) -> None:
    short = answer(
        capsys, "models", "papers/alpha-mix", "--set", "alpha=2", "--set", "iterations=4", "--occupancy", "2"
    )
    assert short["settings"] == {"alpha": 2, "iterations": 4}
    assert short["inputs"]["computation"]["count"] == 8
    again = answer(
        capsys,
        "models",
        "papers/alpha-mix",
        "--set",
        "alpha=2",
        "--set=iterations=4",
        "--occupancy",
        "2",
        "--runs",
        "3",
    )
    assert again["runs"] == 3
    assert again["inputs"]["total_warps"] == 3 * short["inputs"]["total_warps"]


def test_text_chart_inputs_and_figure(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures are drawn with Matplotlib, the extra `plot`")
    figure = tmp_path / "curves.svg"
    assert run(["models", "papers/example", "--inputs", "--occupancy", "1-4", "--plot", str(figure)]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in model_names())
    assert "compute intensity CI" in text
    root = ET.fromstring(figure.read_text(encoding="utf-8"))
    texts = {"".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"pipeline", "volkov", "mwp_cwp", "warps per cycle"} <= texts


def test_figures_and_text_of_terms(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures are drawn with Matplotlib, the extra `plot`")
    parallelism, arcs = tmp_path / "mwp.svg", tmp_path / "arcs.svg"
    drawn = ["--figure", f"mwp_cwp={parallelism}", "--figure", f"wfg={arcs}", "--figure-theme", "dark"]
    assert run(["models", "papers/alpha-mix", "--occupancy", "1-32", "--inputs", *drawn]) == 0
    text = capsys.readouterr().out
    assert "Terms of the models" in text
    assert "few warps" in text
    assert "exposed" in text
    words = {
        path: {"".join(t.itertext()) for t in ET.parse(path).iter("{http://www.w3.org/2000/svg}text")}
        for path in (parallelism, arcs)
    }
    assert {"MWP", "CWP", "N", "few warps"} <= words[parallelism]
    assert {"0: memory, exposed", "cycles on the arc"} <= words[arcs]
    assert run(["models", "papers/itilp", "--figure", f"mwp_cwp={parallelism}"]) == 2
    assert "without memory instructions" in capsys.readouterr().err


def test_terms_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    terms = answer(capsys, "models", "papers/alpha-mix", "--occupancy", "1-8")["terms"]
    assert [p["n"] for p in terms["parallelism"]] == terms["occupancies"] == list(range(1, 9))
    assert {arc["arc"] for arc in terms["arcs"]} == {"transition", "exposed"}
    assert terms["accesses"] == []  # no addresses in an abstract kernel


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert [row["name"] for row in answer(capsys, "workloads")["workloads"]] == workload_names()
    assert run(["workloads"]) == 0
    assert "alpha=32" in capsys.readouterr().out
    assert run(["workloads", "papers/mmul8"]) == 0
    assert "bank conflicts" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["papers/exampel"], "papers/exampel"),
        (["papers/example", "--set", "x=1"], "no such setting"),
        (["papers/example", "--occupancy", "65"], "expected multiples of 1 warps"),
        (["papers/barrier", "--occupancy", "1-3"], "expected multiples of 4 warps"),
        (["papers/example", "--runs", "0"], "--runs"),
        (["papers/example", "--grid", "4"], "it takes no grid"),
        (["papers/example", "--plot", "curves.pdf"], "ends in .svg or .png"),
        (["papers/example", "--plot", "/nowhere/curves.svg"], "cannot be written"),
        (["papers/example", "--figure", "curves=a.svg"], "expected NAME=FILE with one of mwp_cwp, wfg"),
        (["papers/example", "--figure", "wfg=a.pdf"], "ends in .svg or .png"),
        (["papers/example", "--gpu", "papers/volkov-fermii"], "unknown GPU"),
        (["papers/example", "--scheduler", "fair"], "fair"),
        (["papers/example", "--clock", "-1"], "positive number"),
        ([KERNEL, "--set", "alpha=1"], "neither --set nor --runs"),
        ([KERNEL, "--gpu", "papers/example"], "only takes abstract workloads"),
    ],
)
def test_bad_usage_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str) -> None:
    assert run(["models", *arguments]) == 2
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err.count("\n") == 1
    assert expected in seen.err
