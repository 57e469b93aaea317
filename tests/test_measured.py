"""Profiles in place of emulated figures, and why a measured time differs from the predicted one."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

import pytest

from drywarp import analyze
from drywarp.analysis.counters.count import count
from drywarp.analysis.every_model import compare_models
from drywarp.analysis.measured import with_memory
from drywarp.analysis.prepare import prepare_kernel
from drywarp.cli.main import run

from .frontends.profiler_reports import WIDE

MATMUL = Path(__file__).parents[1] / "examples" / "tiled_matmul.cu"
SAXPY = MATMUL.with_name("saxpy.cu")
METRICS = (
    *("l1tex__t_sectors", "l1tex__data_pipe", "l1tex__t_sector_hit", "lts__t_sector_hit"),
    *("dram__", "smsp__inst_executed.sum"),
)


def profile(path: Path, kernel: str, grid: tuple[int, int, int], block: tuple[int, int, int], **metrics: float) -> Path:
    named = {name.replace("__dot__", "."): value for name, value in metrics.items()}
    one = {"name": kernel, "grid": grid, "block": block, "metrics": named, "device": "", "place": "p.json: line 1"}
    path.write_text(json.dumps({"format": 1, "kernels": [one]}))
    return path


@pytest.mark.parametrize("name", ["tiled_matmul", "transpose_naive", "histogram", "reduction", "stencil"])
def test_averaging_keeps_the_totals(name: str) -> None:
    ready = prepare_kernel(MATMUL.with_name(f"{name}.cu"), gpu="a100")
    mean = with_memory(ready, "averaged", None).behaviour

    def total(which: str) -> tuple[float, float]:
        return tuple(  # type: ignore[return-value]
            sum(getattr(a, which) * a.executions for a in behaviour.accesses.values())
            for behaviour in (ready.behaviour, mean)
        )

    for which in ("units", "lines", "passes"):
        assert total(which)[1] == pytest.approx(total(which)[0], rel=1e-9)
    emulated = [a for a in ready.behaviour.accesses.values() if a.space != 1]
    moved = sum((a.dram_read + a.dram_write) * a.executions for a in emulated)
    assert sum(total(which)[1] for which in ("dram_read", "dram_write")) == pytest.approx(moved, rel=1e-9)


def test_a_profile_that_says_what_we_emulate_changes_little(tmp_path: Path) -> None:
    found = count(MATMUL, gpu="a100")
    metrics = {name: value for name, value in found.counts.items() if name.startswith(METRICS)}
    path = profile(tmp_path / "p.json", "tiled_matmul", (64, 64, 1), (16, 16, 1), **metrics)
    plain = analyze(MATMUL, gpu="a100")
    with_it = analyze(MATMUL, gpu="a100", profile=path)
    assert with_it.time_s == pytest.approx(plain.time_s, rel=0.05)
    assert with_it.memory.l2_method == "averaged"
    assert with_it.measured is None  # it holds no time


def test_a_profile_moves_the_prediction(tmp_path: Path) -> None:
    args = {"dram__sectors_read.sum": 67_108_864.0, "lts__t_sector_hit_rate.pct": 0.0}
    path = profile(tmp_path / "p.json", "tiled_matmul", (64, 64, 1), (16, 16, 1), **args)
    slower, plain = analyze(MATMUL, gpu="a100", profile=path), analyze(MATMUL, gpu="a100")
    assert slower.memory.dram_read_bytes == 67_108_864 * 32
    assert slower.time_s > 1.2 * plain.time_s
    ignored = analyze(MATMUL, gpu="a100", profile=path, memory="emulated")
    assert ignored.time_s == plain.time_s


def test_more_instructions_take_longer_in_all_models(tmp_path: Path) -> None:
    emulated = count(SAXPY, gpu="a100").counts["smsp__inst_executed.sum"]
    doubled = {"smsp__inst_executed.sum": 2.0 * emulated}
    path = profile(tmp_path / "p.json", "saxpy", (65536, 1, 1), (256, 1, 1), **doubled)
    from drywarp.analysis.request import Options

    start = analyze(SAXPY, gpu="a100").start_s  # takes no longer
    plain = compare_models(SAXPY, "a100")
    scaled = compare_models(SAXPY, "a100", options=Options(profile=path, memory="emulated"))
    for name, prediction in plain.predictions.items():
        assert scaled.predictions[name].cycles == pytest.approx(2 * prediction.cycles), name
        run = prediction.time_s - start
        assert scaled.predictions[name].time_s == pytest.approx(start + 2 * run), name
    assert scaled.input_sources["computation"] == "profile+static"
    assert plain.input_sources["computation"] == "emulated+static"
    assert set(plain.input_sources) == set(vars(plain.inputs))


def test_terms_lead_from_the_predicted_to_the_measured_time(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(WIDE)
    found = analyze(SAXPY, gpu="rtx2080ti", profile=path).measured
    assert found is not None
    assert found.time_s == pytest.approx(456.7e-6)
    assert found.predicted_s * prod(term.factor for term in found.terms) == pytest.approx(found.time_s)
    assert found.terms[0].name == "clock"
    assert found.terms[-1].name == "model"


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report, ours = tmp_path / "r.csv", tmp_path / "p.json"
    report.write_text(WIDE)
    assert run(["import-ncu", str(report), "-o", str(ours)]) == 0
    assert "2 launches" in capsys.readouterr().out
    assert run(["import-ncu", str(report), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["kernels"]) == 2
    assert run(["analyze", str(SAXPY), "--gpu", "rtx2080ti", "--profile", str(ours)]) == 0
    text = capsys.readouterr().out
    assert "Measured 457 µs" in text
    assert run(["models", str(SAXPY), "--gpu", "rtx2080ti", "--profile", str(report), "--inputs"]) == 0
    assert "profile+gpu: transactions" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["import-ncu", "nowhere.csv"], "nowhere.csv: cannot be read"),
        (["analyze", str(SAXPY), "--profile", "nowhere.csv"], "nowhere.csv: cannot be read"),
        (["analyze", str(SAXPY), "--memory", "magic"], "'magic': expected one of emulated, averaged"),
    ],
)
def test_bad_usage(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert said in captured.err
