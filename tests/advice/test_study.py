"""`analyze --advice`: what is compiled and launched anew, what cannot be, the best two together, the benefit chart."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import jsonschema
import pytest

import drywarp
from drywarp.analysis.advice.builds import Build, block_sizes, register_caps, unrolling
from drywarp.analysis.advice.findings import benefit_chart
from drywarp.analysis.every_model import with_producers
from drywarp.analysis.prepare import prepare, prepare_kernel
from drywarp.analysis.prepared import Prepared
from drywarp.analysis.request import Options
from drywarp.analysis.result.detail import Advice, WhatIfAnswer
from drywarp.cli.main import run
from drywarp.models.base import NotApplicable
from drywarp.models.gpuperf import benefits_of
from drywarp.models.gpuperf_terms import BenefitChart
from drywarp.report import terminal
from drywarp.report.text import json_text
from drywarp.workload.cost import CostedWorkload

EXAMPLES = Path(__file__).parents[2] / "examples"
SCHEMA = Path(terminal.__file__).parent / "schema" / "analyze.schema.json"

_DOT = """__global__ void f(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
#pragma unroll 1
  for (int k = 0; k < 64; ++k) s += x[(i + k * 1024) & (n - 1)];
  y[i] = s;
}
"""
_ARGS = {"x": "f32[262144]:random", "y": "f32[262144]", "n": "262144"}


@cache
def dot() -> drywarp.Analysis:
    return drywarp.analyze(_DOT, grid=1024, block=256, args=_ARGS, advice=True, other_gpus=("h100",))


def advice(answer: drywarp.Analysis) -> Advice:
    assert answer.advice is not None
    return answer.advice


def named(answer: drywarp.Analysis, name: str) -> WhatIfAnswer:
    return next(one for one in advice(answer).what_ifs if one.name == name)


@pytest.mark.exhaustive
def test_an_unroll_factor_is_compiled_and_found() -> None:
    eight = named(dot(), "#pragma unroll 8")
    direct = drywarp.analyze(_DOT.replace("unroll 1", "unroll 8"), grid=1024, block=256, args=_ARGS)
    assert eight.time_s == pytest.approx(direct.time_s)
    found = next(finding for finding in dot().findings if finding.rule == "unrolling")
    best = max(one.gain or 0 for one in advice(dot()).what_ifs if one.kind == "build")
    assert found.gain == best > 1.1


@pytest.mark.exhaustive
def test_a_block_size_is_launched_and_predicted() -> None:
    small = named(dot(), "blocks of 128 threads")
    direct = drywarp.analyze(_DOT, grid=2048, block=128, args=_ARGS)
    assert small.time_s == pytest.approx(direct.time_s)


@pytest.mark.exhaustive
def test_another_gpu_is_predicted() -> None:
    other = named(dot(), "on h100")
    assert other.kind == "gpu"
    assert other.time_s == pytest.approx(drywarp.analyze(_DOT, gpu="h100", grid=1024, block=256, args=_ARGS).time_s)


@pytest.mark.exhaustive
def test_what_ifs_are_sorted_and_gains_are_ratios_of_times() -> None:
    gains = [one.gain for one in advice(dot()).what_ifs if one.gain is not None]
    assert gains == sorted(gains, reverse=True)
    for one in advice(dot()).what_ifs:
        assert (one.gain is None) == (one.time_s is None) == (one.limiter is None)
        if one.time_s is not None:
            assert one.gain == pytest.approx(dot().time_s / one.time_s)
        else:
            assert one.note


@pytest.mark.exhaustive
def test_the_best_two_are_no_slower_than_the_best_alone() -> None:
    both = [one for one in advice(dot()).what_ifs if one.kind == "both"]
    alone = [one.gain or 0 for one in advice(dot()).what_ifs if one.kind in ("code", "build", "launch")]
    assert len(both) == 1
    assert (both[0].gain or 0) > 0.9 * max(alone)


def test_the_chart_is_that_of_the_model() -> None:
    ready = prepare_kernel(_DOT, grid=1024, block=256, args=_ARGS)
    chart = benefit_chart(ready)
    assert chart == benefits_of(with_producers(ready))
    assert chart.t_exec == pytest.approx(chart.t_comp + chart.t_mem - chart.t_overlap)
    assert chart.t_overlap <= min(chart.t_comp, chart.t_mem) * (1 + 1e-9)


def test_the_chart_says_why_it_does_not_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "__global__ void f() { __syncthreads(); }"
    ready = prepare_kernel(source, grid=108, block=128)
    chart = benefit_chart(ready)
    assert chart.t_mem == chart.t_mem_min == chart.b_memlp == 0  # without memory instructions
    assert chart.t_exec == chart.t_comp > 0

    def refuse(_: CostedWorkload) -> BenefitChart:
        raise NotApplicable("no memory instruction has a latency")

    monkeypatch.setattr(sys.modules[benefit_chart.__module__], "benefits_of", refuse)
    chart = benefit_chart(ready)
    assert chart.to_dict() == {"not_applicable": "no memory instruction has a latency"}


@pytest.mark.exhaustive
def test_json_follows_its_schema() -> None:
    jsonschema.validate(json.loads(json_text(dot().to_dict())), json.loads(SCHEMA.read_text()))


def test_plain_answers_have_no_advice_but_findings() -> None:
    plain = drywarp.analyze(_DOT, grid=1024, block=256, args=_ARGS).to_dict()
    assert "advice" not in plain
    assert [finding["rule"] for finding in plain["findings"]]


@pytest.mark.parametrize(
    ("name", "builds", "reason"),
    [
        ("tiled_matmul", block_sizes, "more than one dimension"),
        ("reduction", block_sizes, "blocks use shared memory"),
        ("saxpy", register_caps, "registers do not limit"),
        ("saxpy", unrolling, "no #pragma unroll"),
    ],
)
def test_what_is_not_possible_says_why(name: str, builds: Callable[[Prepared], list[Build]], reason: str) -> None:
    (refused,) = builds(prepare_kernel(EXAMPLES / f"{name}.cu"))
    assert reason in refused.reason


def test_a_block_size_that_is_compiled_in_is_told() -> None:
    source = "__global__ void f(float* y) { y[blockIdx.x * 256 + threadIdx.x] = 1; }"
    (refused,) = block_sizes(prepare_kernel(source, grid=64, block=256, args={"y": "f32[16384]"}))
    assert "compiled in" in refused.reason


def test_register_caps_are_the_steps_of_the_occupancy() -> None:
    sums = " ".join(f"float v{k} = x[i + {k} * n];" for k in range(80))
    total = " + ".join(f"v{k} * v{79 - k}" for k in range(80))
    source = f"__global__ void f(const float* x, float* y, int n) {{ int i = threadIdx.x; {sums} y[i] = {total}; }}"
    ready = prepare_kernel(source, grid=864, block=256, args={"x": "f32[100000]", "y": "f32[256]", "n": "1000"})
    caps = register_caps(ready)
    assert "registers" in ready.fits.limiting
    most = [int(cap.changes["max_registers"]) for cap in caps]
    assert most == sorted(most, reverse=True)
    assert most[0] < ready.kernel.resources.registers
    made = prepare(ready.request.changed(**caps[0].changes), Options()) if ready.request else None
    assert made is not None
    assert made.kernel.resources.registers <= most[0]
    assert made.fits.blocks_per_sm > ready.fits.blocks_per_sm
    assert caps[0].refuse(made) == ""
    assert "still uses" in caps[0].refuse(ready)


def test_the_command_prints_advice_and_explains(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", str(EXAMPLES / "saxpy.cu"), "--advice", "--other-gpu", "h100"]) == 0
    out = capsys.readouterr().out
    assert "What if" in out
    assert "on h100" in out
    assert "not possible" in out
    assert "B_memlp" in out
    assert run(["explain"]) == 0
    listed = capsys.readouterr().out
    assert "bank-conflicts" in listed
    assert run(["explain", "bank-conflicts"]) == 0
    assert "tile[32][33]" in capsys.readouterr().out
    assert run(["explain", "bank-conflicts", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rules"][0]["name"] == "bank-conflicts"


def test_bad_names_end_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "speed"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert run(["analyze", str(EXAMPLES / "saxpy.cu"), "--advice", "--other-gpu", "z80"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "z80" in error


@pytest.mark.parametrize(
    ("bounds", "sizes"), [("", [32, 64, 128, 512, 1024]), ("__launch_bounds__(256)", [32, 64, 128])]
)
def test_block_sizes_divide_the_threads_and_fit_kernel_and_gpu(bounds: str, sizes: list[int]) -> None:
    source = f"__global__ void {bounds} f(float* y) {{ y[blockIdx.x * blockDim.x + threadIdx.x] = 1; }}"
    builds = block_sizes(prepare_kernel(source, grid=64, block=256, args={"y": "f32[16384]"}))
    assert [build.name for build in builds] == [f"blocks of {size} threads" for size in sizes]
