"""Bands of whole analyses: what has a part and what has none."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import drywarp
from drywarp.analysis.prepare import prepare_kernel
from drywarp.analysis.result import Analysis, Band, BandPart
from drywarp.analysis.uncertainty.constants import NOTHING, Change, Probe, few_kinds
from drywarp.cli.main import run
from drywarp.hardware import load_gpu
from drywarp.models import get_model
from drywarp.report.terminal import band_text

from .test_constants import of_kind

ROOT = Path(__file__).parents[2]
SAXPY, MATMUL = ROOT / "examples" / "saxpy.cu", ROOT / "examples" / "tiled_matmul.cu"
UNEVEN = """
__global__ void uneven(const int* turns, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = out[i];
  for (int k = 0; k < turns[blockIdx.x]; k++) v = v * 1.5f + 0.25f;
  out[i] = v;
}
"""


@cache
def saxpy(**settings: object) -> Analysis:
    return drywarp.analyze(SAXPY, gpu="a100", **settings)


def band_of(analysis: Analysis) -> Band:
    assert analysis.band is not None
    return analysis.band


def names(analysis: Analysis) -> set[str]:
    return {p.name for p in band_of(analysis).parts}


def test_the_band_holds_the_time_and_the_same_input_gives_the_same_band() -> None:
    band = band_of(saxpy())
    assert band.low_s < band.low_at_clock_s * (1 + 1e-9) < saxpy().time_s < band.high_at_clock_s <= band.high_s
    assert band == drywarp.analyze(SAXPY, gpu="a100").band
    device = load_gpu("a100").device
    assert band.clock_hz == (device.base_clock_mhz * 1e6, device.boost_clock_mhz * 1e6)


def test_what_the_caller_fixes_has_no_part() -> None:
    assert {"clock", "scheduler", "L2 state", "model"} <= names(saxpy())
    fixed = saxpy(clock_mhz=load_gpu("a100").device.boost_clock_mhz, scheduler="loose_round_robin", warm_l2=True)
    assert not {"clock", "scheduler", "L2 state"} & names(fixed)
    assert band_of(fixed).clock_hz is None
    assert (band_of(fixed).low_s, band_of(fixed).high_s) == (
        band_of(fixed).low_at_clock_s,
        band_of(fixed).high_at_clock_s,
    )
    assert band_of(fixed).high_s / band_of(fixed).low_s < band_of(saxpy()).high_s / band_of(saxpy()).low_s


def test_a_gpu_whose_constants_are_measured_leaves_what_no_file_can_say() -> None:
    measured = drywarp.analyze(SAXPY, gpu=of_kind(load_gpu("a100"), "measured"))
    assert names(measured) == {"clock", "L2 state", "kernel start", "model"}


def test_weaker_constants_widen_the_band_of_a_kernel_that_they_limit() -> None:
    gpu, widths = load_gpu("a100"), []
    for kind in ("measured", "proxy", "assumed"):
        keys = ("memory.dram.read_gbs", "memory.dram.write_gbs", "memory.dram.copy_gbs")
        other = replace(
            gpu, known={k: replace(f, kind=kind) if k in keys else f for k, f in gpu.facts()}  # type: ignore[arg-type]
        )  # fmt: skip
        band = band_of(drywarp.analyze(SAXPY, gpu=other, warm_l2=True))
        assert ("DRAM bandwidth" in {p.name for p in band.parts}) == (kind != "measured")
        widths.append(band.high_at_clock_s / band.low_at_clock_s)
    assert widths == sorted(widths)
    assert widths[2] > 1.2 * widths[1] > 1.2 * widths[0]


def test_a_streaming_kernel_gains_nothing_from_the_clock_and_a_computing_one_all() -> None:
    def clock(analysis: Analysis) -> float:
        return next(p.high for p in band_of(analysis).parts if p.name == "clock")

    assert clock(saxpy()) < 1.05
    device = load_gpu("a100").device
    slowest = device.boost_clock_mhz / device.base_clock_mhz
    assert clock(drywarp.analyze(MATMUL, gpu="a100")) == pytest.approx(slowest, rel=0.05)


def test_the_interval_of_the_sample_is_a_part() -> None:
    rng = np.random.default_rng(3)
    blocks = 2048
    args = {"turns": rng.integers(1, 200, blocks).astype(np.int32), "out": np.ones(blocks * 64, np.float32)}
    result = drywarp.analyze(UNEVEN, gpu="a100", grid=blocks, block=64, args=args, warm_l2=True)
    sampling = result.sampling
    assert sampling is not None
    assert sampling.basis == "estimated"
    assert sampling.low is not None
    assert sampling.high is not None
    found = next(p for p in band_of(result).parts if p.name == "sampled blocks")
    assert found.low == pytest.approx(sampling.low / sampling.estimate)
    assert found.high == pytest.approx(sampling.high / sampling.estimate)


def test_no_band_where_nothing_is_known_of_the_error() -> None:
    assert saxpy(models=("volkov",)).band is None
    assert drywarp.analyze(SAXPY, gpu="a100", static=True).band is None
    assert "band" not in saxpy(models=("volkov",)).to_dict()


@pytest.mark.parametrize("change", [{"clock_mhz": 765.0}, {"policy": "oldest_first"}])
@pytest.mark.parametrize("source", [MATMUL, ROOT / "examples" / "reduction.cu"])
def test_the_stand_in_answers_a_change_as_the_whole_launch_does(source: Path, change: dict[str, object]) -> None:
    settings = {"scheduler" if name == "policy" else name: value for name, value in change.items()}
    probe = Probe(prepare_kernel(source, gpu="a100"))
    small = probe.seconds(Change(**change)) / probe.seconds(NOTHING)  # type: ignore[arg-type]
    pipeline = get_model("pipeline")
    usual, other = (
        pipeline.predict(prepare_kernel(source, gpu="a100", options=options).costed, ()).time_s
        for options in (drywarp.Options(), drywarp.Options(**settings))  # type: ignore[arg-type]
    )
    assert small == pytest.approx(other / usual, rel=0.06)


def test_a_stand_in_keeps_the_frequent_kinds_of_blocks() -> None:
    workload = prepare_kernel(ROOT / "examples" / "double_precision.cu", gpu="a100").workload
    few = few_kinds(workload)
    assert 0 < len(few.block_types) < len(workload.block_types)
    assert max(k.weight for k in few.block_types) == max(k.weight for k in workload.block_types)
    assert {path for kind in few.block_types for path in kind.paths} == set(range(len(few.paths)))


def test_a_gpu_that_runs_beyond_its_boost_clock_may_be_faster() -> None:
    clock = next(p for p in band_of(drywarp.analyze(MATMUL, gpu="rtx2080ti")).parts if p.name == "clock")
    device = load_gpu("rtx2080ti").device
    assert device.max_clock_mhz is not None
    assert device.max_clock_mhz > device.boost_clock_mhz
    assert clock.low == pytest.approx(device.boost_clock_mhz / device.max_clock_mhz, rel=0.05)
    assert clock.high == pytest.approx(device.boost_clock_mhz / device.base_clock_mhz, rel=0.05)


def test_the_line_names_both_bands_where_they_differ() -> None:
    widest = (BandPart("clock", 1.0, 2.0, ""),)
    both = Band(0.9, 1e-3, 4e-3, 1e-3, 2e-3, (700e6, 1400e6), widest)
    assert band_text(both, 1400e6) == (
        "90% interval 1.00–2.00 ms at 1400 MHz, 1.00–4.00 ms at 700–1400 MHz; largest contributor: clock"
    )
    same = replace(both, high_s=2e-3)
    assert band_text(same, 1400e6) == ("90% interval 1.00–2.00 ms at 700–1400 MHz; largest contributor: clock")
    assert band_text(same, 1400e6, short=True) == "90% interval 1.00–2.00 ms at 700–1400 MHz"
    fixed = replace(same, clock_hz=None)
    assert band_text(fixed, 1400e6) == "90% interval 1.00–2.00 ms; largest contributor: clock"


def test_report_and_json_say_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", str(SAXPY), "--gpu", "a100", "--json"]) == 0
    band = json.loads(capsys.readouterr().out)["band"]
    assert band["low_s"] <= band["at_clock"]["low_s"] < band["at_clock"]["high_s"] <= band["high_s"]
    assert run(["analyze", str(SAXPY), "--gpu", "a100", "--clock", "1000", "--full"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert re.search(r"90% interval \S.*?s; largest contributor: ", text)
