"""Warps and blocks that work together: shuffles, barriers, tiles and tensor cores."""

from __future__ import annotations

import numpy as np
import pytest

from drywarp.frontends.binary.sass import parse_listing
from drywarp.kernel.kernel import Kernel, Parameter, Resources
from drywarp.kernel.profile import SYNC_INSTRUCTION, SYNC_KIND, SYNC_SIGNAL, SYNC_WAIT, SYNC_WARP
from drywarp.workload.build import build_workload
from tests.effort import first
from tests.listing import listing

from .support import ARCHES, run

pytestmark = pytest.mark.parametrize("arch", first(ARCHES))
RNG = np.random.default_rng(7)


def test_tiled_matrix_multiplication(arch):
    source = """
extern "C" __global__ void k(const float* A, const float* B, float* C, int n) {
  __shared__ float a[16][16], b[16][16];
  int x = threadIdx.x, y = threadIdx.y;
  int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
  float sum = 0;
  for (int t = 0; t < n; t += 16) {
    a[y][x] = A[row * n + t + x];
    b[y][x] = B[(t + y) * n + col];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += a[y][k] * b[k][x];
    __syncthreads();
  }
  C[row * n + col] = sum;
}"""
    a, b = RNG.random((2, 64, 64)).astype(np.float32)
    c = run(source, (4, 4), (16, 16), a, b, np.zeros((64, 64), np.float32), 64, arch=arch).buffer("C")
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-5)


def test_block_reduction_with_shuffles(arch):
    source = """
extern "C" __global__ void k(const float* x, float* o, int n) {
  __shared__ float part[32];
  float v = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += x[i];
  for (int d = 16; d; d >>= 1) v += __shfl_down_sync(~0u, v, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
    for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
    if (threadIdx.x == 0) atomicAdd(o, v);
  }
}"""
    x = RNG.integers(0, 100, 10000).astype(np.float32)
    assert run(source, 6, 192, x, np.zeros(1, np.float32), len(x), arch=arch).buffer("o")[0] == x.sum()


def test_shuffles_and_votes_under_divergence(arch):
    source = """
extern "C" __global__ void k(int* o) {
  int t = threadIdx.x, v = t * 3;
  if (t & 1) {
    v += __shfl_sync(0xaaaaaaaa, v, (t + 2) & 31);
    o[t] = v;
    o[t + 32] = __ballot_sync(0xaaaaaaaa, t > 9);
  } else {
    v += __shfl_xor_sync(0x55555555, v, 4) * 2;
    o[t] = v;
    o[t + 32] = __any_sync(0x55555555, t == 6) ? __activemask() : 7;
  }
  o[t + 64] = __reduce_add_sync(~0u, t) + __match_any_sync(~0u, t / 5);
}"""
    o = run(source, 1, 32, np.zeros(96, np.int32), arch=arch).buffer("o")
    t = np.arange(32)
    want = np.where(t & 1, t * 3 + ((t + 2) & 31) * 3, t * 3 + (t ^ 4) * 6)
    np.testing.assert_array_equal(o[:32], want)
    ballot = sum(1 << i for i in range(32) if i & 1 and i > 9)
    np.testing.assert_array_equal(o[32:64].view(np.uint32), np.where(t & 1, ballot, 0x55555555))
    match = [sum(1 << j for j in range(32) if j // 5 == i // 5) for i in range(32)]
    np.testing.assert_array_equal(o[64:].view(np.uint32), (496 + np.array(match)) & 0xFFFFFFFF)


def test_barrier_reductions_and_early_exit(arch):
    source = """
extern "C" __global__ void k(const int* a, int* o) {
  int t = threadIdx.x, v = a[t];
  if (t >= 90) return;
  int c = __syncthreads_count(v > 3), all = __syncthreads_and(v >= 0), any = __syncthreads_or(v == 7);
  o[t] = c * 4 + (all != 0) * 2 + (any != 0);
}"""
    a = RNG.integers(0, 7, 96).astype(np.int32)
    o = run(source, 1, 96, a, np.full(96, -1, np.int32), arch=arch).buffer("o")
    assert set(o[:90].tolist()) == {int((a[:90] > 3).sum()) * 4 + 2}
    assert set(o[90:].tolist()) == {-1}


def test_named_barriers_between_producer_and_consumer_warps(arch):
    source = """
extern "C" __global__ void k(int* o) {
  __shared__ int s[32];
  int t = threadIdx.x;
  for (int r = 0; r < 3; ++r) {
    if (t < 32) {
      asm volatile("bar.sync 1, 64;");
      s[t] = t * 10 + r;
      asm volatile("bar.arrive 2, 64;");
    } else {
      asm volatile("bar.arrive 1, 64;");
      asm volatile("bar.sync 2, 64;");
      o[r * 32 + t - 32] = s[63 - t];
      asm volatile("bar.sync 3, 32;");
    }
  }
}"""
    o = run(source, 1, 64, np.zeros(96, np.int32), arch=arch).buffer("o").reshape(3, 32)
    np.testing.assert_array_equal(o[0], (31 - np.arange(32)) * 10)
    np.testing.assert_array_equal(o[2] % 10, 2)


@pytest.mark.parametrize("numbers", ["stated", "computed"])
def test_a_warp_that_arrives_and_then_waits_counts_twice(arch, numbers):
    """Warps take turns: the first signals itself before its first turn, as the warp groups of FlashAttention 3 do."""
    turn = {
        "stated": """
      if (mine == 0) asm volatile("bar.sync 1, 64;" ::: "memory");
      else asm volatile("bar.sync 2, 64;" ::: "memory");
      if (t % 32 == 0) o[2 * r + mine] = s[0]++;
      __syncwarp();
      if (mine == 0) asm volatile("bar.arrive 2, 64;" ::: "memory");
      else asm volatile("bar.arrive 1, 64;" ::: "memory");
""",
        "computed": """
      asm volatile("bar.sync %0, 64;" ::"r"(1 + mine) : "memory");
      if (t % 32 == 0) o[2 * r + mine] = s[0]++;
      __syncwarp();
      asm volatile("bar.arrive %0, 64;" ::"r"(2 - mine) : "memory");
""",
    }[numbers]
    source = """
extern "C" __global__ void k(int* o) {
  __shared__ volatile int s[1];
  int t = threadIdx.x, mine = t / 32;
  if (t == 0) s[0] = 0;
  __syncthreads();
  if (mine == 0) { asm volatile("bar.arrive 1, 64;" ::: "memory"); }
  for (int r = 0; r < 4; ++r) {TURN}
}""".replace("TURN", turn)
    o = run(source, 1, 64, np.full(8, -1, np.int32), arch=arch).buffer("o")
    np.testing.assert_array_equal(o, np.arange(8))


def test_warps_that_skip_a_named_barrier_do_not_count(arch):
    """Guards choose between two barriers: each warp is recorded at its own alone, and arrives there once."""
    code = parse_listing(
        listing(
            "S2R R0, SR_TID.X",
            "ISETP.GE.AND P0, PT, R0, 0x40, PT",
            "@P0 BAR.ARV 0x1, 0x60",
            "@P0 BAR.SYNC 0x2, 0x60",
            "@!P0 BAR.SYNC 0x1, 0x60",
            "@!P0 BAR.ARV 0x2, 0x60",
            "EXIT",
        )
    )["k"].instructions
    kernel = Kernel("k", "k", arch, code, (), 0x160, Resources(8, 0))
    profile = run(kernel, 1, 96).profile
    rows = profile.syncs
    signals = rows[rows[:, SYNC_KIND] == SYNC_SIGNAL]
    assert sorted(zip(signals[:, SYNC_WARP].tolist(), signals[:, SYNC_INSTRUCTION].tolist(), strict=True)) == [
        (0, 4), (0, 5), (1, 4), (1, 5), (2, 2), (2, 3),
    ]  # fmt: skip
    waits = rows[rows[:, SYNC_KIND] == SYNC_WAIT]
    assert sorted(waits[:, SYNC_WARP].tolist()) == [0, 1, 2]


@pytest.mark.parametrize("threads", [64, 32])
def test_a_barrier_that_a_warp_skips_is_none_for_it(arch, threads):
    """Triton's idle warps pass some barriers of the block; where all warps pass one, it stays as it was."""
    code = parse_listing(
        listing(
            "S2R R0, SR_TID.X",
            "ISETP.GE.AND P0, PT, R0, 0x20, PT",
            "BAR.SYNC 0x1",
            "@P0 BAR.SYNC 0x1",
            "@!P0 BAR.SYNC 0x1",
            "EXIT",
        )
    )["k"].instructions
    profile = run(Kernel("k", "k", arch, code, (), 0x160, Resources(8, 0)), 1, threads).profile
    workload = build_workload(profile)
    skipped = [{n.instruction for n in path.nodes if n.skipped} for path in workload.paths]
    assert [skipped[number] for number in workload.block_types[0].paths] == ([{3}, {4}] if threads == 64 else [set()])


def test_a_barrier_for_two_of_three_warps_waits_for_both(arch):
    """Warp 0 waits when warp 2 ends, which does not count; only then warp 1 writes what warp 0 is to read."""
    code = parse_listing(
        listing(
            "S2R R0, SR_TID.X",
            "ISETP.GE.AND P0, PT, R0, 0x20, PT",
            "@P0 BRA `(.L_x_0)",
            "BAR.SYNC 0x1, 0x40",
            "LDS R4, [R0.X4]",
            "MOV R2, c[0x0][0x160]",
            "MOV R3, c[0x0][0x164]",
            "IMAD.WIDE R2, R0, 0x4, R2",
            "STG.E [R2.64], R4",
            "EXIT",
            ".L_x_0:",
            "ISETP.GE.AND P0, PT, R0, 0x40, PT",
            "@P0 EXIT",
            "STS [R0.X4+-0x80], R0",
            "BAR.SYNC 0x1, 0x40",
            "EXIT",
        )
    )["k"].instructions
    kernel = Kernel("k", "k", arch, code, (Parameter(0, 0, 8, "o"),), 0x160, Resources(8, 128))
    o = run(kernel, 1, 96, np.zeros(32, np.int32)).buffer("o")
    np.testing.assert_array_equal(o, np.arange(32, 64))


@pytest.mark.parametrize("kind", ["f16", "s8"])
def test_tensor_cores(arch, kind):
    a_type, c_type = {"f16": ("half", "float"), "s8": ("signed char", "int")}[kind]
    source = f"""
#include <mma.h>
using namespace nvcuda::wmma;
extern "C" __global__ void k(const {a_type}* a, const {a_type}* b, {c_type}* c) {{
  fragment<matrix_a, 16, 16, 16, {a_type}, row_major> fa;
  fragment<matrix_b, 16, 16, 16, {a_type}, col_major> fb;
  fragment<accumulator, 16, 16, 16, {c_type}> fc;
  load_matrix_sync(fc, c, 16, mem_row_major);
  load_matrix_sync(fa, a, 16);
  load_matrix_sync(fb, b, 16);
  mma_sync(fc, fa, fb, fc);
  store_matrix_sync(c, fc, 16, mem_row_major);
}}"""
    if kind == "f16":
        a, b = RNG.standard_normal((2, 16, 16)).astype(np.float16)
        c = RNG.standard_normal((16, 16)).astype(np.float32)
    else:
        a, b = RNG.integers(-128, 128, (2, 16, 16)).astype(np.int8)
        c = RNG.integers(-1000, 1000, (16, 16)).astype(np.int32)
    got = run(source, 1, 32, a, b, c, arch=arch).buffer("c")
    want = c + a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)


def test_double_tensor_cores(arch):
    source = """
#include <mma.h>
using namespace nvcuda::wmma;
extern "C" __global__ void k(const double* a, const double* b, double* c) {
  fragment<matrix_a, 8, 8, 4, double, row_major> fa;
  fragment<matrix_b, 8, 8, 4, double, row_major> fb;
  fragment<accumulator, 8, 8, 4, double> fc;
  fill_fragment(fc, 1.0);
  load_matrix_sync(fa, a, 4);
  load_matrix_sync(fb, b, 8);
  mma_sync(fc, fa, fb, fc);
  store_matrix_sync(c, fc, 8, mem_row_major);
}"""
    a, b = RNG.standard_normal((8, 4)), RNG.standard_normal((4, 8))
    got = run(source, 1, 32, a, b, np.zeros((8, 8)), arch=arch).buffer("c")
    np.testing.assert_allclose(got, 1 + a @ b, rtol=1e-12)


def test_matrix_loads_and_single_tensor_instructions(arch):
    source = """
#include <cuda_fp16.h>
extern "C" __global__ void k(const half* a, const half* b, float* c) {
  __shared__ half sa[16 * 16], sb[16 * 8];
  int t = threadIdx.x;
  for (int i = t; i < 256; i += 32) sa[i] = a[i];
  for (int i = t; i < 128; i += 32) sb[i] = b[i];
  __syncthreads();
  unsigned ra[4], rb[2];
  float d[4] = {0, 0, 0, 0};
  unsigned pa = (unsigned)__cvta_generic_to_shared(&sa[(t % 16) * 16 + t / 16 * 8]),
           pb = (unsigned)__cvta_generic_to_shared(&sb[(t % 16) * 8]);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3])
               : "r"(pa));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(rb[0]), "=r"(rb[1])
               : "r"(pb));
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
  int g = t / 4, q = t % 4;
  c[g * 8 + 2 * q] = d[0];
  c[g * 8 + 2 * q + 1] = d[1];
  c[(g + 8) * 8 + 2 * q] = d[2];
  c[(g + 8) * 8 + 2 * q + 1] = d[3];
}"""
    a, b = RNG.standard_normal((16, 16)).astype(np.float16), RNG.standard_normal((16, 8)).astype(np.float16)
    got = run(source, 1, 32, a, b, np.zeros((16, 8), np.float32), arch=arch).buffer("c")
    np.testing.assert_allclose(got, a.astype(np.float64) @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.exhaustive
def test_block_sort_and_scan_of_cub(arch):
    source = """
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>
typedef cub::BlockRadixSort<unsigned, 128, 4> Sort;
typedef cub::BlockScan<int, 128> Scan;
extern "C" __global__ void k(const unsigned* a, unsigned* o, int* p) {
  __shared__ typename Sort::TempStorage sort;
  __shared__ typename Scan::TempStorage scan;
  unsigned v[4];
  for (int j = 0; j < 4; ++j) v[j] = a[blockIdx.x * 512 + threadIdx.x * 4 + j];
  int before;
  Scan(scan).ExclusiveSum((int)(v[0] & 15), before);
  p[blockIdx.x * 128 + threadIdx.x] = before;
  Sort(sort).Sort(v);
  for (int j = 0; j < 4; ++j) o[blockIdx.x * 512 + threadIdx.x * 4 + j] = v[j];
}"""
    a = RNG.integers(0, 2**32, (3, 512)).astype(np.uint32)
    e = run(source, 3, 128, a, np.zeros_like(a), np.zeros((3, 128), np.int32), arch=arch)
    np.testing.assert_array_equal(e.buffer("o"), np.sort(a, axis=1))
    first = (a.reshape(3, 128, 4)[:, :, 0] & 15).astype(int)
    np.testing.assert_array_equal(e.buffer("p"), np.cumsum(first, axis=1) - first)


@pytest.mark.exhaustive
def test_tiles_and_coalesced_groups(arch):
    source = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(const int* a, int* o, int* odd) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  int i = blockIdx.x * 128 + threadIdx.x, v = a[i];
  o[i] = cg::reduce(tile, v, cg::plus<int>()) + tile.shfl(v, 3) * 1000;
  if (v & 1) {
    auto group = cg::coalesced_threads();
    if (group.thread_rank() == 0) atomicAdd(odd, group.size());
  }
  block.sync();
}"""
    a = RNG.integers(0, 100, 512).astype(np.int32)
    e = run(source, 4, 128, a, np.zeros(512, np.int32), np.zeros(1, np.int32), arch=arch)
    tiles = a.reshape(-1, 8)
    np.testing.assert_array_equal(e.buffer("o"), np.repeat(tiles.sum(axis=1) + tiles[:, 3] * 1000, 8))
    assert e.buffer("odd")[0] == (a & 1).sum()


def test_some_lanes_return_and_others_go_on(arch):
    code = parse_listing(
        listing(
            "S2R R0, SR_TID.X",
            "MOV R2, c[0x0][0x160]",
            "MOV R3, c[0x0][0x164]",
            "IMAD.WIDE R2, R0, 0x4, R2",
            "MOV R5, 0x7",
            "ISETP.LT.AND P0, PT, R0, 0x5, PT",
            "MOV R20, 0x90",
            "@P0 RET.REL.NODEC R20 `(k)",
            "MOV R5, 0x9",
            "STG.E [R2.64], R5",  # 0x90
            "EXIT",
        )
    )["k"].instructions
    kernel = Kernel("k", "k", arch, code, (Parameter(0, 0, 8, "o"),), 0x160, Resources(24, 0))
    o = run(kernel, 1, 32, np.zeros(32, np.int32)).buffer("o")
    np.testing.assert_array_equal(o, np.where(np.arange(32) < 5, 7, 9))
