"""Samples of grids that are larger than their data, against the whole grid."""

from __future__ import annotations

import numpy as np
import pytest

from drywarp.execution.emulator import Limits, emulate
from drywarp.execution.emulator.sampling import explains, stratified
from drywarp.execution.emulator.session import Session
from drywarp.execution.emulator.skim import Skim, without_results
from drywarp.frontends.cuda.compile import CudaOptions, compile_cuda
from drywarp.kernel.cfg import build_cfg
from drywarp.kernel.kernel import Kernel
from drywarp.kernel.launch.arguments import make_launch
from drywarp.kernel.launch.launch import Dim3, Launch
from drywarp.kernel.profile import SPACE_GLOBAL, Profile

GUARDED = """
__global__ void guarded(float* out, int nx, int ny, int nz) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
  if (x >= nx || y >= ny || z >= nz) return;
  float sum = 0;
  for (int k = 0; k < 5; ++k) sum += k * out[(z * ny + y) * nx + x];
  out[(z * ny + y) * nx + x] = sum;
}
"""
TRIANGLE = """
__global__ void triangle(float* out, int n) {
  if (blockIdx.x > blockIdx.y) return;
  out[blockIdx.y * n + blockIdx.x * blockDim.x + threadIdx.x] = 1.0f;
}
"""


def launch_of(kernel: Kernel, grid: Dim3, block: Dim3, *numbers: int) -> Launch:
    values = {p.name: n for p, n in zip(kernel.parameters[1:], numbers, strict=True)}
    return make_launch(kernel, grid, block, {"out": "f32[262144]", **values})


def totals(kernel: Kernel, launch: Launch, blocks: str | None) -> np.ndarray:
    return emulate(kernel, launch, blocks=blocks).profile.executions()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("grid", "extents"),
    [
        ((64, 1, 1), (1000, 1, 1)),
        ((40, 30, 1), (600, 100, 1)),
        ((9, 40, 3), (256, 37, 2)),
        ((40, 12, 5), (1280, 48, 3)),
        ((30, 30, 1), (32, 4, 1)),
        ((100, 1, 1), (3200, 1, 1)),
    ],
)
def test_grids_beyond_the_data_are_counted_exactly(grid: Dim3, extents: Dim3) -> None:
    kernel = compile_cuda(GUARDED, arch="sm_80")
    launch = launch_of(kernel, grid, (32, 4, 1) if grid[1] > 1 else (32, 1, 1), *extents)
    sampled = emulate(kernel, launch).profile
    np.testing.assert_array_equal(sampled.executions(), totals(kernel, launch, "all"))
    assert sum(block.weight for block in sampled.blocks) == pytest.approx(launch.blocks)


def test_work_that_no_cut_explains_is_sampled_more_densely() -> None:
    kernel = compile_cuda(TRIANGLE, arch="sm_80")
    launch = launch_of(kernel, (48, 48, 1), (32, 1, 1), 2048)
    sampled = emulate(kernel, launch).profile
    assert len(sampled.blocks) > 24
    assert sampled.executions().sum() == pytest.approx(totals(kernel, launch, "all").sum(), rel=0.15)


def test_a_cut_must_make_its_strata_uniform() -> None:
    kernel = compile_cuda(GUARDED, arch="sm_80")
    launch = launch_of(kernel, (40, 30, 1), (32, 4, 1), 600, 100, 1)
    for cuts, uniform in ((((18, 19), (25,), ()), True), (((10,), (), ()), False)):
        listed = [linear for linear, _ in stratified(launch.grid, cuts)]
        known = Session(kernel, launch, Limits()).signatures(listed)
        assert explains(cuts, launch.grid, known) is uniform


FEW_AT_WORK = """
__global__ void few(float* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float x = out[i];
    for (int k = 0; k < 200 + i * 7919 % 61; ++k) x = x * 1.5f + k;
    out[i] = x;
  }
}
"""
RARELY_AT_WORK = """
__global__ void rarely(float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = i;
  for (int k = 0; k < i * 7919 % 61; ++k) x = x * 1.5f + k;
  if (blockIdx.x == n) for (int k = 0; k < 5000; ++k) x = x * 1.5f + k;
  if (i < 262144) out[i] = x;
}
"""


@pytest.mark.parametrize("busy", [3, 40, 300])
def test_a_few_blocks_at_work_are_found_though_data_decides_how_much(busy: int) -> None:
    """Of 4,096 blocks the first do all there is to do, no two of them the same."""
    kernel = compile_cuda(FEW_AT_WORK, arch="sm_80")
    launch = launch_of(kernel, (4096, 1, 1), (32, 1, 1), busy * 32)
    sampled = emulate(kernel, launch).profile
    exact = totals(kernel, launch, "all").sum()
    assert sampled.executions().sum() == pytest.approx(exact, rel=0.05)
    assert sampled.sampling is not None
    assert sampled.sampling.low * 0.99 <= exact <= sampled.sampling.high * 1.01


def test_work_that_was_met_and_not_drawn_again_is_in_the_interval() -> None:
    """The block that does a hundred times as much as others is one of those that are looked at first."""
    kernel = compile_cuda(RARELY_AT_WORK, arch="sm_80")
    grid = (4096, 1, 1)
    heavy = sorted(linear for linear, _ in stratified(grid))[4]
    launch = launch_of(kernel, grid, (32, 1, 1), heavy)
    sampling = emulate(kernel, launch).profile.sampling
    assert sampling is not None
    assert sampling.basis == "estimated"
    assert sampling.high is not None
    assert sampling.high > 1.5 * sampling.estimate
    assert totals(kernel, launch, "all").sum() <= sampling.high


# Samples of which only the first block computes what nobody asks for.

THROUGH_SHARED = """
__global__ void k(float* out, const int* __restrict__ in, int n) {
  __shared__ int held[64];
  held[threadIdx.x] = in[threadIdx.x] * 3 % 64;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < held[blockIdx.x % 64] % 7 + 1; ++i) sum += held[i] * 0.1f + n;
  out[blockIdx.x * 64 + held[threadIdx.x]] = sum * sum;
}
"""
THROUGH_GLOBAL = """
__global__ void k(float* out, int* in, int n) {
  int i = threadIdx.x;
  in[64 * blockIdx.x + i] = (i * 7 + blockIdx.x + n) % 64;
  __syncthreads();
  out[64 * blockIdx.x + in[64 * blockIdx.x + 63 - i]] = n;
}
"""
PLAIN = """
__global__ void k(float* out, const int* __restrict__ in, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float x = in[threadIdx.x];
  for (int step = 0; step < n; ++step) x = fmaf(x, x, 0.5f);
  if (threadIdx.x % 3) x = __shfl_xor_sync(__activemask(), x, 1);
  out[i] = x * x;
}
"""

PRINTS = """
#include <stdio.h>
__global__ void k(float* out, const int* in, int n) {
  out[blockIdx.x * 64 + threadIdx.x] = n * 2.0f;
  if (threadIdx.x == 0) printf("%d\\n", n);
}
"""


def same_profile(one: Profile, other: Profile) -> None:
    """Whether two profiles hold the same paths, accesses and counts."""
    assert [b.paths for b in one.blocks] == [b.paths for b in other.blocks]
    for first, second in zip(one.paths, other.paths, strict=True):
        np.testing.assert_array_equal(first.blocks, second.blocks)
    np.testing.assert_array_equal(one.thread_instructions, other.thread_instructions)
    for name in ("instruction", "warp", "order", "base", "pattern", "space", "offsets", "masks"):
        np.testing.assert_array_equal(getattr(one.accesses, name), getattr(other.accesses, name))


@pytest.mark.parametrize(
    ("source", "omits"),
    [(THROUGH_SHARED, True), (THROUGH_GLOBAL, False), (PLAIN, True), (PRINTS, False)],
    ids=["shared", "global", "plain", "calls"],
)
def test_the_behaviour_needs_no_results(source: str, omits: bool) -> None:
    kernel = compile_cuda(source, arch="sm_80")
    code = without_results(kernel, build_cfg(kernel.instructions, kernel.code_entries))
    assert (code is not None) == omits
    given = {"out": "f32[8192]", "in": "i32[8192]:random", "n": 5}
    launch = make_launch(kernel, (128, 1, 1), (64, 1, 1), given)
    whole, brief = (emulate(kernel, launch, results=results) for results in (True, False))
    assert len(whole.profile.blocks) > 1
    same_profile(whole.profile, brief.profile)
    alike = np.array_equal(whole.buffer("out"), brief.buffer("out"), equal_nan=True)
    assert alike != omits


PRODUCTS = """
#include <cuda_fp16.h>
extern "C" __global__ void k(float* out, int* order, int tiles) {
  __shared__ alignas(128) half a[64 * 16], b[8 * 16];
  __shared__ alignas(16) float c[64 * 8 + 16];
  int* next = (int*)c + NEXT, at = threadIdx.x;
  for (int i = at; i < 64 * 16; i += 128) a[i] = 1;
  if (at < 8 * 16) b[at] = 1;
  unsigned long long da = (unsigned)__cvta_generic_to_shared(a) >> 4 | 8ull << 16 | 16ull << 32;
  unsigned long long db = (unsigned)__cvta_generic_to_shared(b) >> 4 | 8ull << 16 | 16ull << 32;
  for (int tile = 0; tile < tiles; ++tile) {
    if (at == 0) *next = ORDER[blockIdx.x * tiles + tile] & 63;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    int row = *next;
    __syncthreads();
    float d[4] = {}, lg = 0;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(da), "l"(db));
    asm volatile("wgmma.commit_group.sync.aligned;\\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
    asm volatile("{.reg .pred p; setp.gt.f32 p, %1, 0f00000000;\\n@p lg2.approx.f32 %0, %1;}" : "+f"(lg) : "f"(d[0]));
    for (int i = 0; i < 4; ++i) c[at * 4 + i] = d[i] * lg;
    __syncthreads();
    for (int i = 0; i < 4; ++i) out[row * 512 + i * 128 + at] = c[i * 128 + at];
    __syncthreads();
  }
}
"""


@pytest.mark.parametrize(
    ("place", "read", "leaves_out"),
    [
        pytest.param("64 * 8 + 8", "order", True, id="a row that another thread found"),
        pytest.param("0", "order", False, id="where results are stored later"),
        pytest.param("64 * 8 + 8", "((int*)out + 20480)", True, id="a row beside the results"),
        pytest.param("64 * 8 + 8", "((int*)out)", False, id="a row among the results"),
    ],
)
def test_products_are_left_out_unless_something_reads_them(place: str, read: str, leaves_out: bool) -> None:
    options = CudaOptions({"NEXT": place, "ORDER": read})
    kernel = compile_cuda(PRODUCTS, arch="sm_90a", options=options)
    cfg = build_cfg(kernel.instructions, kernel.code_entries)
    brief_code = without_results(kernel, cfg)
    assert brief_code is not None
    assert "HGMMA" not in {i.opcode for i in brief_code.code}
    assert brief_code.uncounted
    order = np.random.default_rng(2).permutation(40).astype(np.int32)
    # Read from among the results, every row is the first one, which holds the numbers of rows.
    out = np.concatenate([np.zeros(20480, np.int32), order]).view(np.float32)
    launch = make_launch(kernel, (20, 1, 1), (128, 1, 1), {"out": out, "order": order, "tiles": 2})
    whole, brief = (emulate(kernel, launch, results=results) for results in (True, False))
    assert len(whole.profile.blocks) > 1
    same_profile(whole.profile, brief.profile)
    alike = np.array_equal(whole.buffer("out"), brief.buffer("out"), equal_nan=True)
    assert alike != leaves_out
    skimmed = Skim(kernel, launch, cfg, Limits())([0, 7])
    known = emulate(kernel, launch, blocks=[0, 7]).profile.accesses
    assert skimmed is not None
    for name in ("instruction", "base"):
        mine, theirs = (getattr(log, name)[log.space == SPACE_GLOBAL] for log in (skimmed.accesses, known))
        np.testing.assert_array_equal(mine, theirs)
