"""The tile pipeline of Hopper's asynchronous units: copy engine, barriers in shared memory, warp-group products."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import drywarp
from drywarp.analysis.result import Analysis
from drywarp.errors import DrywarpError
from drywarp.execution.emulator import emulate
from drywarp.execution.emulator.skim import without_results
from drywarp.frontends.cuda import CudaOptions
from drywarp.frontends.cuda.compile import compile_cuda, machine_code_of
from drywarp.kernel.cfg import build_cfg
from drywarp.kernel.launch.arguments import make_launch
from tests.emulator.test_refine import same_profile

PATH = Path(__file__).parents[2] / "examples" / "hopper" / "wgmma_tile.cu"
ATTENTION = PATH.with_name("attention.cu")
ROWS, COLUMNS, DEPTH = 256, 256, 64  # of two blocks, and of a tile


def arguments(tiles: int) -> dict[str, object]:
    rng = np.random.default_rng(9)
    k = tiles * DEPTH
    a, b = (rng.integers(-8, 9, (n, k)).astype(np.float16) / 8 for n in (ROWS, COLUMNS))
    return {
        "A": drywarp.tensor_map(a, box=(128, 64), swizzle=128),
        "B": drywarp.tensor_map(b, box=(256, 64), swizzle=128),
        "C": np.zeros((ROWS, COLUMNS), np.float16),
        "n": COLUMNS,
        "k": k,
    }


@pytest.mark.parametrize(("stages", "tiles"), [(2, 5), (4, 1), (4, 6)])
def test_the_pipeline_multiplies(stages: int, tiles: int) -> None:
    given = arguments(tiles)
    a, b = (given[name].buffer.array.astype(np.float64) for name in "AB")  # type: ignore[attr-defined]
    kernel = compile_cuda(PATH, arch="sm_90a", options=CudaOptions({"STAGES": str(stages)}))
    run = emulate(kernel, make_launch(kernel, (1, 2, 1), (384, 1, 1), given, dynamic_shared=197632), blocks="all")
    # Sixty-fourths below 2^14: every partial sum is exact in single precision.
    np.testing.assert_array_equal(run.buffer("C"), (a @ b.T).astype(np.float16))
    assert not [note for note in run.profile.notes if "not exact" in note]


def attended(heads: int, tokens: int) -> dict[str, object]:
    rng = np.random.default_rng(4)
    shape = heads * tokens, 128
    given: dict[str, object] = {
        name: drywarp.tensor_map(rng.normal(0, 1.5, shape).astype(np.float16), box=(128, 64), swizzle=128)
        for name in "QKV"
    }
    return {**given, "O": np.zeros(shape, np.float16), "tokens": tokens}


@pytest.mark.parametrize(("stages", "heads", "tokens"), [(2, 2, 384), (1, 1, 256)])
def test_attention_attends(stages: int, heads: int, tokens: int) -> None:
    given = attended(heads, tokens)
    kernel = compile_cuda(ATTENTION, arch="sm_90a", options=CudaOptions({"STAGES": str(stages)}))
    launch = make_launch(kernel, (tokens // 128, heads, 1), (384, 1, 1), given, dynamic_shared=164864)
    run = emulate(kernel, launch, blocks="all")
    q, k, v = (
        given[name].buffer.array.astype(np.float64).reshape(heads, tokens, 128)  # type: ignore[attr-defined]
        for name in "QKV"
    )
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(128)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    expected = weights / weights.sum(axis=2, keepdims=True) @ v
    # Weights are rounded to half precision before they multiply the values.
    np.testing.assert_allclose(run.buffer("O").reshape(expected.shape), expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("name", ["wgmma_tile", "attention"])
def test_a_sample_that_leaves_results_out_behaves_alike(name: str) -> None:
    if name == "attention":
        path, grid, shared, given = ATTENTION, (3, 40, 1), 164864, attended(40, 384)
    else:
        path, grid, shared, given = PATH, (1, 2, 1), 197632, arguments(6)
    kernel = compile_cuda(path, arch="sm_90a")
    launch = make_launch(kernel, grid, (384, 1, 1), given, dynamic_shared=shared)
    brief_code = without_results(kernel, build_cfg(kernel.instructions, kernel.code_entries))
    assert brief_code is not None
    assert not {i.opcode for i in brief_code.code} & {"HGMMA", "MUFU"}
    whole, brief = (emulate(kernel, launch, results=results).profile for results in (True, False))
    assert len(whole.blocks) > 1
    same_profile(whole, brief)


def answer(static: bool) -> Analysis:
    given = arguments(tiles=8)
    return drywarp.analyze(PATH, gpu="h100", grid=(1, 2), block=384, args=given, shared=197632, static=static)


def test_the_simulation_has_its_subsystems() -> None:
    found = answer(static=False)
    used = found.prediction.utilization
    assert used is not None
    assert min(used[name] for name in ("tma", "tensor", "async_shared", "l2", "dram")) > 0.01
    # Two blocks copy 8 tiles of 128 x 64 and 256 x 64 halves each, in sectors of 32 bytes.
    assert found.memory.global_load_sectors == 2 * 8 * (128 + 256) * 64 * 2 / 32
    # 8 tiles of four steps, two products each, on 8 warps of each block.
    assert found.by_class["wgmma"] == 2 * 8 * 4 * 2 * 8


def test_without_data_it_counts_the_same() -> None:
    emulated, followed = answer(static=False), answer(static=True)
    assert followed.by_class == emulated.by_class
    assert {"copy engine", "shared memory"} <= {
        words for note in followed.notes for words in ("copy engine", "shared memory") if words in note
    }
    assert followed.time_s < emulated.time_s


def test_machine_code_alone_gives_the_same_answer(tmp_path: Path) -> None:
    made = machine_code_of(ATTENTION, "sm_90a", None, CudaOptions())
    (tmp_path / "attention.cubin").write_bytes(made.compiled.cubin)
    said = dict.fromkeys("QKV", "tensormap(box=128x64,swizzle=128):f16[512,128]:random")
    said |= {"O": "f16[512,128]", "tokens": "256"}
    launch = {"gpu": "h100", "grid": (2, 2), "block": 384, "shared": 164864}
    source = drywarp.analyze(ATTENTION, args=said, **launch)
    by_number = {f"arg{number}": value for number, value in enumerate(said.values())}
    alone = drywarp.analyze(tmp_path / "attention.cubin", args=by_number, **launch)
    assert alone.time_s == source.time_s
    assert alone.by_class == source.by_class


STATE = """
#include <cuda/barrier>
using barrier = cuda::barrier<cuda::thread_scope_block>;
extern "C" __global__ void k(float* out, const float* in, int n) {
  __shared__ barrier met;
  __shared__ float held[128];
  if (threadIdx.x == 0) init(&met, blockDim.x);
  __syncthreads();
  for (int i = 0; i < n; ++i) {
    held[threadIdx.x] = in[i * 128 + threadIdx.x];
    met.wait(met.arrive());
    out[i * 128 + threadIdx.x] = held[127 - threadIdx.x];
  }
}
"""


def test_arrivals_that_return_a_state_are_followed_without_data() -> None:
    def ask(static: bool) -> Analysis:
        args = {"out": "f32[1024]", "in": "f32[1024]", "n": 8}
        return drywarp.analyze(source=STATE, gpu="h100", grid=2, block=128, args=args, static=static)

    followed, emulated = ask(True), ask(False)
    assert followed.by_class["global_store"] == emulated.by_class["global_store"] == 2 * 8 * 4


def test_it_needs_hopper() -> None:
    with pytest.raises(DrywarpError, match="sm_90"):
        drywarp.analyze(PATH, gpu="a100")


def test_the_histogram_of_a_cluster_counts() -> None:
    kernel = compile_cuda(PATH.with_name("cluster_histogram.cu"), arch="sm_90a")
    values = np.random.default_rng(3).integers(0, 16384, 5000).astype(np.int32)
    given = {"values": values, "bins": np.zeros(16384, np.int32), "n": len(values)}
    launch = make_launch(kernel, (4, 1, 1), (256, 1, 1), given)
    assert launch.cluster == (2, 1, 1)
    run = emulate(kernel, launch, blocks="all")
    np.testing.assert_array_equal(run.buffer("bins"), np.bincount(values, minlength=16384))
