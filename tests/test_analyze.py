"""The whole way from a source to an answer, through the Python API and the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import drywarp
from drywarp.analysis.request import Options
from drywarp.analysis.stages import answer_code
from drywarp.frontends.cuda.compile import compile_cuda
from tests.effort import exhaustive

ROOT = Path(__file__).parents[1]
SAXPY = ROOT / "examples" / "saxpy.cu"

SCALE = """
__global__ void scale(float* data, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] *= factor;
}
"""


def scale(gpu: str = "a100", n: int = 1 << 16, **settings: object) -> drywarp.Analysis:
    arguments = {"data": np.ones(n, np.float32), "factor": 2.0, "n": n}
    return drywarp.analyze(SCALE, gpu=gpu, grid=-(-n // 256), block=256, args=arguments, **settings)


def test_counts_of_a_streaming_kernel_are_exact() -> None:
    n = (1 << 16) - 100
    result = scale(n=n)
    warps = -(-n // 32)
    # 128 bytes a warp: four sectors read and four written, the last warp holding what is left.
    assert result.memory.global_load_sectors == -(-n * 4 // 32)
    assert result.memory.global_store_sectors == -(-n * 4 // 32)
    assert result.memory.dram_read_bytes == -(-n * 4 // 32) * 32
    assert result.by_class["global_load"] == pytest.approx(warps, abs=8)
    assert result.memory.l2_method == "affine"
    assert result.memory.shared_conflict_degree is None


def test_whole_grid_and_sample_agree() -> None:
    sampled, whole = scale(), scale(blocks="all")
    assert whole.sampled_blocks == 256
    assert sampled.sampled_blocks < 20
    assert sampled.warp_instructions == whole.warp_instructions
    assert sampled.memory == whole.memory
    assert sampled.time_s == whole.time_s


def test_time_follows_the_clock_only_where_the_sm_limits() -> None:
    boost = drywarp.load_gpu("a100").device.boost_clock_mhz
    slow, fast = scale(n=1 << 22, clock_mhz=1000.0), scale(n=1 << 22, clock_mhz=boost)
    assert fast.limiter == "dram"
    assert slow.time_s == pytest.approx(fast.time_s, rel=0.1)
    assert fast.clock_hz == boost * 1e6


def test_a_warm_l2_saves_the_reads_that_fit_it() -> None:
    cold, warm = scale(), scale(warm_l2=True)
    assert warm.memory.dram_read_bytes == 0
    assert cold.memory.dram_read_bytes == 4 << 16
    assert warm.time_s <= cold.time_s


def test_predictions_are_deterministic_and_scale_with_the_grid() -> None:
    assert scale().to_dict()["prediction"] == scale().to_dict()["prediction"]
    small, large = scale(n=1 << 22), scale(n=1 << 24)
    assert large.time_s / small.time_s == pytest.approx(4, rel=0.1)


def test_the_curve_holds_this_launch_and_whole_blocks_only() -> None:
    result = scale()
    for points in result.to_dict()["curve"].values():
        occupancies = [point["occupancy_warps"] for point in points]
        assert occupancies == sorted(occupancies)
        assert all(warps % 8 == 0 for warps in occupancies)
        assert result.occupancy.warps_per_sm in occupancies


def test_code_without_a_source_is_answered_with_the_options_that_are_given() -> None:
    gpu = drywarp.load_gpu("a100")
    kernel = compile_cuda(SCALE, arch=gpu.arch)
    usual, slow = answer_code(kernel), answer_code(kernel, gpu=gpu, options=Options(clock_mhz=1000.0))
    assert usual.clock_hz == gpu.device.boost_clock_mhz * 1e6
    assert slow.clock_hz == 1e9


def test_no_model_is_faster_than_the_roof() -> None:
    for example in sorted((ROOT / "examples").glob("*.cu"))[:: 1 if exhaustive() else 5]:
        result = drywarp.analyze(example, gpu="a100")
        roof = result.predictions["roofline"].time_s
        assert result.time_s >= 0.999 * roof, example.name
        assert result.predictions["volkov"].time_s >= 0.999 * roof, example.name


def test_command_line_and_python_give_the_same() -> None:
    command = [sys.executable, "-m", "drywarp", "analyze", str(SAXPY), "--gpu", "h100", "--json"]
    output = subprocess.run(command, capture_output=True, text=True, check=True)
    assert output.stderr == ""
    said, computed = json.loads(output.stdout), json.loads(json.dumps(drywarp.analyze(SAXPY, gpu="h100").to_dict()))
    for document in (said, computed):
        del document["timing"]
    assert said == computed


def test_source_from_standard_input() -> None:
    command = [sys.executable, "-m", "drywarp", "analyze", "-", "--json"]
    output = subprocess.run(command, input=SAXPY.read_text(), capture_output=True, text=True, check=True)
    assert json.loads(output.stdout)["kernel"] == "saxpy"


def test_a_user_s_own_gpu_file(tmp_path: Path) -> None:
    path = tmp_path / "half.toml"
    path.write_text(
        'format = 1\ntitle = "Half an A100"\ninherits = "a100"\n[sources]\nme = "made up for a test"\n'
        '[device]\nsm_count = { value = 54, source = "me", kind = "assumed", note = "half" }\n'
    )
    whole, half = (
        scale(n=1 << 22),
        drywarp.analyze(
            SCALE, gpu=path, grid=1 << 14, block=256, args={"data": "f32[4194304]", "factor": 2.0, "n": 1 << 22}
        ),
    )
    assert half.waves == 2 * whole.waves
    assert half.gpu_hash != whole.gpu_hash
