"""The tile pipeline of compute capability 10.0: copy engine, barriers in shared memory, products in tensor memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import drywarp
from drywarp.analysis.result import Analysis
from drywarp.execution.emulator import emulate
from drywarp.execution.emulator.skim import without_results
from drywarp.frontends.cuda import CudaOptions
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.hardware import load_gpu
from drywarp.kernel.cfg import build_cfg
from drywarp.kernel.launch.arguments import make_launch
from tests.emulator.test_refine import same_profile

FOLDER = Path(__file__).parents[2] / "examples" / "blackwell"
PATH, PAIR, SCALED = (FOLDER / f"tcgen05_{name}.cu" for name in ("tile", "pair", "fp4"))
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


FLOATS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def scaled_matrix(rng: np.random.Generator, rows: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers, their codes, two of 4 bits a byte, and their scale factors in tiles for 128 rows and 64 elements."""
    codes, scales = rng.integers(0, 16, (rows, k)), rng.integers(0x30, 0x40, (rows, k // 16))
    factors = 2.0 ** ((scales >> 3) - 7) * (1 + (scales & 7) / 8)
    numbers = np.where(codes & 8, -1, 1) * FLOATS[codes & 7] * np.repeat(factors, 16, axis=1)
    # Row r of 128 is quarter and lane; the tile has lane, quarter, group.
    tiles = scales.reshape(rows // 128, 4, 32, k // 64, 4).transpose(0, 3, 2, 1, 4)
    return numbers, (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8), tiles.astype(np.uint8).reshape(-1)


@pytest.mark.parametrize(("columns", "stages", "sets", "grid", "k"), [(128, 6, 2, 3, 768), (256, 4, 1, 2, 1280)])
def test_block_scaled_products_of_4_bit_floats(columns: int, stages: int, sets: int, grid: int, k: int) -> None:
    rng, m, n = np.random.default_rng(3), 256, 512
    (a, codes_a, scales_a), (b, codes_b, scales_b) = (scaled_matrix(rng, rows, k) for rows in (m, n))
    given = {
        "A": drywarp.tensor_map(codes_a, box=(128, 128), swizzle=128),
        "B": drywarp.tensor_map(codes_b, box=(128, 128), swizzle=128),
        "scales_a": scales_a,
        "scales_b": scales_b,
        "C": np.zeros((m, n), np.float16),
        "alpha": 0.125,
        "m": m,
        "n": n,
        "k": k,
    }
    defines = {"COLUMNS": str(columns), "STAGES": str(stages), "SETS": str(sets)}
    kernel = compile_cuda(SCALED, arch="sm_100a", options=CudaOptions(defines))
    run = emulate(kernel, make_launch(kernel, (grid, 1, 1), (192, 1, 1), given, dynamic_shared=221320), blocks="all")
    # Multiples of 2^-10 below 2^14: every partial sum is exact in single precision.
    np.testing.assert_array_equal(run.buffer("C"), (0.125 * (a @ b.T)).astype(np.float16))
    assert set(run.profile.products.values()) == {(f"128x{columns}x64", "E2M1")}
    assert run.profile.kernel.resources.tensor_columns == 512


@pytest.mark.parametrize(("path", "rows", "grid"), [(PATH, 256, 6), (PAIR, 128, 8)], ids=["one", "pair"])
def test_a_sample_that_leaves_results_out_behaves_alike(path: Path, rows: int, grid: int) -> None:
    given = arguments(1024, 1024, 320, rows)
    kernel = compile_cuda(path, arch="sm_100a")
    launch = make_launch(kernel, (grid, 1, 1), (192, 1, 1), given, dynamic_shared=SHARED)
    shorter = without_results(kernel, build_cfg(kernel.instructions, kernel.code_entries))
    assert shorter is not None
    assert shorter.watched  # where the columns are is read from shared memory
    assert not {i.opcode for i in shorter.code} & {"UTCHMMA", "LDTM"}
    whole, brief = (emulate(kernel, launch, results=results) for results in (True, False))
    same_profile(whole.profile, brief.profile)
    assert not np.array_equal(whole.buffer("C"), brief.buffer("C"))


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
