"""The tile pipeline of compute capability 10.0: copy engine, barriers in shared memory, products in tensor memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import drywarp
from drywarp.analysis.result import Analysis
from drywarp.execution.emulator import emulate
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.frontends.cuda.options import CudaOptions
from drywarp.hardware import load_gpu
from drywarp.kernel.launch.arguments import make_launch

FOLDER = Path(__file__).parents[2] / "examples" / "blackwell"
PATH, PAIR = FOLDER / "tcgen05_tile.cu", FOLDER / "tcgen05_pair.cu"
SHARED = 197768


def arguments(m: int, n: int, k: int, rows: int = 256) -> dict[str, object]:
    """Of a product; `rows` of B are copied at a time."""
    rng = np.random.default_rng(9)
    a, b = (rng.integers(-8, 9, (length, k)).astype(np.float16) / 8 for length in (m, n))
    return {
        "A": drywarp.tensor_map(a, box=(128, 64), swizzle=128),
        "B": drywarp.tensor_map(b, box=(rows, 64), swizzle=128),
        "C": np.zeros((m, n), np.float16),
        "m": m,
        "n": n,
        "k": k,
    }


@pytest.mark.parametrize(("stages", "sets", "grid", "m", "k"), [(4, 2, 3, 512, 320), (2, 1, 1, 256, 64)])
def test_the_pipeline_multiplies(stages: int, sets: int, grid: int, m: int, k: int) -> None:
    given = arguments(m, 512, k)
    a, b = (given[name].buffer.array.astype(np.float64) for name in "AB")  # type: ignore[attr-defined]
    kernel = compile_cuda(PATH, arch="sm_100a", options=CudaOptions({"STAGES": str(stages), "SETS": str(sets)}))
    run = emulate(kernel, make_launch(kernel, (grid, 1, 1), (192, 1, 1), given, dynamic_shared=SHARED), blocks="all")
    # Sixty-fourths below 2^14: every partial sum is exact in single precision.
    np.testing.assert_array_equal(run.buffer("C"), (a @ b.T).astype(np.float16))
    assert not [note for note in run.profile.notes if "not exact" in note]
    assert set(run.profile.products.values()) == {("128x256x16", "F16")}
    assert run.profile.kernel.resources.tensor_columns == 256 * sets


@pytest.mark.parametrize(("stages", "grid", "m", "k"), [(6, 4, 512, 512), (2, 2, 256, 64), (3, 6, 1024, 320)])
def test_pairs_of_blocks_multiply(stages: int, grid: int, m: int, k: int) -> None:
    given = arguments(m, 512, k, rows=128)
    a, b = (given[name].buffer.array.astype(np.float64) for name in "AB")  # type: ignore[attr-defined]
    kernel = compile_cuda(PAIR, arch="sm_100a", options=CudaOptions({"STAGES": str(stages)}))
    run = emulate(kernel, make_launch(kernel, (grid, 1, 1), (192, 1, 1), given, dynamic_shared=SHARED), blocks="all")
    np.testing.assert_array_equal(run.buffer("C"), (a @ b.T).astype(np.float16))
    assert set(run.profile.products.values()) == {("256x256x16", "F16")}
    assert run.profile.kernel.resources.tensor_columns == 512


def test_a_pair_reads_less_of_shared_memory_than_two_blocks_do() -> None:
    """Half of B each: pairs use that path less for the same product, and are no faster than the tensor cores."""
    found = {}
    for path, rows in ((PATH, 256), (PAIR, 128)):
        given = arguments(1024, 1024, 1024, rows)
        found[path] = drywarp.analyze(path, gpu="b200", grid=32, block=192, args=given, shared=SHARED)
    gpu = load_gpu("b200")
    peak = 4 * gpu.tensor["fp16"] * 32 * gpu.device.boost_clock_mhz * 1e6
    busy = {}
    for path, one in found.items():
        assert one.prediction.utilization is not None
        busy[path] = one.prediction.utilization["async_shared"] * one.time_s
        assert 1024**3 / one.time_s < peak
    assert found[PAIR].time_s < found[PATH].time_s
    # Of each step, products read 48 KB of a block's tiles and the copy engine writes as much; 32 KB with a pair.
    assert busy[PAIR] == pytest.approx(busy[PATH] * 2 / 3, rel=0.1)


def answer(sets: int = 2) -> Analysis:
    given = arguments(1024, 512, 512)
    options = {"defines": {"SETS": str(sets), "STAGES": "2"}}
    return drywarp.analyze(PATH, gpu="b200", grid=16, block=192, args=given, shared=99400, **options)


def test_the_simulation_has_its_subsystems() -> None:
    found = answer()
    used = found.prediction.utilization
    assert used is not None
    names = ("tma", "async_tensor", "tensor_memory", "async_shared", "l2", "dram")
    assert min(used[name] for name in names) > 0.01
    # 16 tiles, 8 steps along k, four products each, by one warp.
    assert found.by_class["tcgen05"] == 16 * 8 * 4
    # 256 columns in loads of 32, by four warps.
    assert found.by_class["tensor_load"] == 16 * 8 * 4
    rate = next(rate for rate in found.throughput if rate.name == "tensor fp16")
    assert rate.achieved * found.time_s == pytest.approx(2 * 1024 * 512 * 512, rel=1e-6)


def test_products_are_not_faster_than_the_tensor_cores() -> None:
    """4,096 multiply-adds a cycle and SM; two rounds of blocks, so that what does not count in the limit is little."""
    found = answer()
    gpu = load_gpu("b200")
    peak = 4 * gpu.tensor["fp16"] * 16 * gpu.device.boost_clock_mhz * 1e6
    assert 1024 * 512 * 512 / found.time_s < peak


@pytest.mark.parametrize(("sets", "blocks", "limit"), [(2, 1, "tensor_memory"), (1, 2, "shared_memory")])
def test_columns_limit_the_blocks_of_an_sm(sets: int, blocks: int, limit: str) -> None:
    occupancy = answer(sets).occupancy
    assert (occupancy.blocks_per_sm, occupancy.limited_by) == (blocks, limit)
