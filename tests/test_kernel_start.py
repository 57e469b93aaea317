"""A kernel's duration holds its start, which is stated apart."""

from __future__ import annotations

import re

import pytest

import drywarp
from drywarp.hardware import gpu_names, load_gpu

from .effort import only
from .report.reading import TIME, says
from .round_gpu import round_gpu

STORE = 'extern "C" __global__ void f(float* x) { x[0] = 1.0f; }'
REAL = [name for name in gpu_names() if not name.startswith(("papers/", "mi"))]


@pytest.mark.parametrize("gpu", only(REAL, "v100", "a100", "rtx4090", "h100", "rtx5090"))
def test_no_kernel_takes_less_than_a_microsecond(gpu: str) -> None:
    answer = drywarp.analyze(STORE, gpu=gpu, grid=1, block=1, args={"x": "f32[1]"})
    assert answer.time_s > 1e-6
    assert answer.time_s == pytest.approx(answer.start_s, rel=0.05)
    for prediction in answer.predictions.values():
        assert prediction.time_s == pytest.approx(answer.start_s + prediction.cycles / answer.clock_hz)
        assert all(point.time_s > answer.start_s for point in prediction.curve)
    assert answer.verdict.startswith("Nearly all of the time is the kernel's start")
    assert answer.band is not None
    assert "kernel start" in [part.name for part in answer.band.parts[:3]]
    assert answer.band.low_s < answer.start_s < answer.band.high_s


def test_it_is_stated_apart() -> None:
    answer = drywarp.analyze("examples/saxpy.cu", gpu="a100")
    told = answer.to_dict()["prediction"]
    assert told["start_s"] == answer.start_s == load_gpu("a100").device.kernel_start_ns * 1e-9  # type: ignore[operator]
    assert told["time_s"] == pytest.approx(told["start_s"] + told["cycles"] / answer.clock_hz)
    assert told["time_s"] == pytest.approx(told["start_s"] + told["steady_s"] + told["tail_s"])
    assert min(told["steady_s"], told["tail_s"]) > 0
    assert "start" not in answer.verdict  # too little to speak of


def test_what_a_fix_is_worth_does_not_touch_it() -> None:
    """Of a kernel that is nearly all start nothing is worth much."""
    answer = drywarp.analyze(STORE, gpu="a100", grid=1, block=1, args={"x": "f32[1]"})
    assert all(finding.gain is None or finding.gain < 1.05 for finding in answer.findings)


def test_where_no_source_is_known_there_is_none() -> None:
    answer = drywarp.analyze("examples/saxpy.cu", gpu=round_gpu())
    assert answer.start_s == 0
    assert answer.time_s == pytest.approx(answer.prediction.cycles / answer.clock_hz)
    assert "kernel start" not in {part.name for part in answer.band.parts}  # type: ignore[union-attr]


def test_the_text_says_it(capsys: pytest.CaptureFixture[str]) -> None:
    from drywarp.cli.main import run

    assert run(["analyze", "examples/saxpy.cu"]) == 0
    short = re.search(rf"Cold L2, ({TIME}) of kernel start included", capsys.readouterr().out)
    assert short
    assert says(short[1], load_gpu("a100").device.kernel_start_ns * 1e-9)  # type: ignore[operator]
    assert run(["analyze", "examples/saxpy.cu", "--full"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    match = re.search(rf"Duration as a profiler reports it, including ({TIME}) for the kernel start", text)
    assert match
    assert says(match[1], load_gpu("a100").device.kernel_start_ns * 1e-9)  # type: ignore[operator]
