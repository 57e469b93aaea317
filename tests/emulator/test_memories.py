"""The memories: global, shared, local, constant and generic, and the atomics on them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.effort import first

from .support import ARCHES, run

pytestmark = pytest.mark.parametrize("arch", first(ARCHES))
RNG = np.random.default_rng(7)


def test_device_and_constant_variables(arch):
    source = """
__constant__ float weights[16] = {0.5f, 1.5f, 2.5f};
__constant__ int filled[4];
__device__ int counter = 5;
__device__ int hits[8];
extern "C" __global__ void k(float* o, int* p) {
  int t = threadIdx.x;
  o[t] = weights[(t * 5) & 15] + filled[t & 3];
  hits[t & 7] = t;
  __syncthreads();
  p[t] = hits[(t + 1) & 7] + (t == 0 ? atomicAdd(&counter, 2) : counter);
}"""
    e = run(
        source,
        1,
        8,
        np.zeros(8, np.float32),
        np.zeros(8, np.int32),
        arch=arch,
        constants={"filled": np.array([10, 20, 30, 40], np.int32)},
    )
    weights = np.zeros(16)
    weights[:3] = 0.5, 1.5, 2.5
    t = np.arange(8)
    np.testing.assert_array_equal(e.buffer("o"), weights[(t * 5) & 15] + np.array([10, 20, 30, 40])[t & 3])
    assert e.buffer("p")[0] == 1 + 5
    assert set((e.buffer("p")[1:] - (t[1:] + 1) % 8).tolist()) <= {5, 7}


def test_generic_pointers_into_three_spaces(arch):
    source = """
extern "C" __global__ void k(int* g, int* o, int which) {
  __shared__ int s[32];
  int l[4] = {which, 2, 3, 4};
  int t = threadIdx.x;
  s[t] = t * 100;
  l[(which + t) & 3] = -t;
  __syncthreads();
  volatile int* p = (t + which) % 3 == 0 ? &s[31 - t] : (t + which) % 3 == 1 ? &l[(t + which) & 3] : &g[t];
  o[t] = *p;
  *p = t + 1;
  __syncthreads();
  o[t + 32] = s[t] + l[(t + which) & 3];
}"""
    g = np.arange(32, dtype=np.int32) + 5000
    e = run(source, 1, 32, g, np.zeros(64, np.int32), 1, arch=arch)
    t = np.arange(32)
    kind = (t + 1) % 3
    np.testing.assert_array_equal(e.buffer("o")[:32], np.where(kind == 0, (31 - t) * 100, np.where(kind == 1, -t, g)))
    np.testing.assert_array_equal(e.buffer("g"), np.where(kind == 2, t + 1, g))
    shared = t * 100
    shared[31 - t[kind == 0]] = t[kind == 0] + 1
    np.testing.assert_array_equal(e.buffer("o")[32:], shared + np.where(kind == 1, t + 1, -t))


def test_shared_histogram_and_global_atomics(arch):
    source = """
extern "C" __global__ void k(const unsigned char* x, unsigned* h, int* extremes, unsigned long long* big,
                             float* fsum, double* dsum, int n) {
  __shared__ unsigned local[64];
  int t = threadIdx.x;
  if (t < 64) local[t] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) {
    int v = x[i];
    atomicAdd(&local[v & 63], 1);
    atomicMin(&extremes[0], v - 100);
    atomicMax(&extremes[1], v);
    atomicOr(&extremes[2], v);
    atomicAnd(&extremes[3], v | 0x100);
    atomicXor(&extremes[4], v);
    atomicAdd(big, (unsigned long long)v << 30);
    atomicAdd(fsum, (float)v);
    atomicAdd(dsum, v * 0.5);
  }
  __syncthreads();
  if (t < 64) atomicAdd(&h[t], local[t]);
}"""
    x = RNG.integers(0, 256, 1500).astype(np.uint8)
    first = np.array([999, -999, 0, -1, 0], np.int32)
    e = run(
        source,
        3,
        96,
        x,
        np.zeros(64, np.uint32),
        first,
        np.zeros(1, np.uint64),
        np.zeros(1, np.float32),
        np.zeros(1),
        len(x),
        arch=arch,
    )
    v = x.astype(int)
    np.testing.assert_array_equal(e.buffer("h"), np.bincount(v & 63, minlength=64))
    assert e.buffer("extremes").tolist() == [
        v.min() - 100,
        v.max(),
        np.bitwise_or.reduce(v),
        np.bitwise_and.reduce(v | 0x100),
        np.bitwise_xor.reduce(v),
    ]
    assert e.buffer("big")[0] == int(v.sum()) << 30
    assert e.buffer("fsum")[0] == v.sum()
    assert e.buffer("dsum")[0] == v.sum() / 2


def test_atomics_return_what_stood_there(arch):
    source = """
extern "C" __global__ void k(int* c, int* o, int* p, int* q, float* f, float* fo) {
  int t = threadIdx.x;
  o[t] = atomicAdd(&c[t & 1], t + 1);
  p[t] = atomicExch(&c[2], t);
  q[t] = (int)atomicInc((unsigned*)&c[3], 5u);
  fo[t] = atomicAdd(f, 1.0f);
  atomicCAS(&c[4], 0, t + 7);
  atomicDec((unsigned*)&c[5], 9u);
}"""
    zeros = np.zeros(64, np.int32)
    c = np.zeros(6, np.int32)
    e = run(source, 1, 64, c, zeros, zeros, zeros, np.zeros(1, np.float32), np.zeros(64, np.float32), arch=arch)
    t = np.arange(64)
    for parity in (0, 1):
        mine = t[t & 1 == parity]
        # Old values are sums of some order of the additions: sorted, their steps are the addends.
        old = np.sort(np.append(e.buffer("o")[mine], e.buffer("c")[parity]))
        assert old[0] == 0
        assert sorted(np.diff(old)) == sorted(mine + 1)
    assert sorted([*e.buffer("p").tolist(), int(e.buffer("c")[2])]) == [0, *range(64)]
    assert sorted(e.buffer("q")) == sorted(i % 6 for i in range(64))
    assert sorted(e.buffer("fo")) == list(range(64))
    assert e.buffer("c")[4] in range(7, 71)
    assert e.buffer("c")[5] == (0 - 64) % 10


def test_shared_float_and_64_bit_atomics(arch):
    source = """
extern "C" __global__ void k(const float* x, float* o, unsigned long long* u, double* d) {
  __shared__ float s[4];
  __shared__ unsigned long long b;
  __shared__ double e;
  int t = threadIdx.x;
  if (t < 4) s[t] = 0;
  if (t == 0) {
    b = 0;
    e = 0;
  }
  __syncthreads();
  atomicAdd(&s[t & 3], x[t]);
  atomicMax(&b, (unsigned long long)t * t << 20);
  atomicAdd(&e, x[t]);
  __syncthreads();
  if (t < 4) o[t] = s[t];
  if (t == 0) {
    *u = b;
    *d = e;
  }
}"""
    x = RNG.integers(0, 50, 96).astype(np.float32)
    e = run(source, 1, 96, x, np.zeros(4, np.float32), np.zeros(1, np.uint64), np.zeros(1), arch=arch)
    np.testing.assert_array_equal(e.buffer("o"), x.reshape(-1, 4).sum(axis=0))
    assert e.buffer("u")[0] == 95 * 95 << 20
    assert e.buffer("d")[0] == x.sum()


def test_local_array_with_dynamic_index(arch):
    source = """
extern "C" __global__ void k(const int* idx, int* o, double* d) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  int a[40];
  double b[10];
  char c[16];
  for (int j = 0; j < 40; ++j) a[j] = t * j;
  for (int j = 0; j < 10; ++j) b[j] = t + j * 0.25;
  for (int j = 0; j < 16; ++j) c[j] = t - j;
  int i = idx[t];
  a[i] += 5;
  c[i & 15] = 99;
  o[t] = a[(i * 7) % 40] + a[i] + c[(i + 1) & 15] + c[i & 15];
  d[t] = b[i % 10];
}"""
    idx = RNG.integers(0, 40, 96).astype(np.int32)
    e = run(source, 2, 48, idx, np.zeros(96, np.int32), np.zeros(96), arch=arch)
    want = []
    for t, i in enumerate(idx.tolist()):
        a = [t * j for j in range(40)]
        c = [(t - j + 128) % 256 - 128 for j in range(16)]
        a[i] += 5
        c[i & 15] = 99
        want.append(a[i * 7 % 40] + a[i] + c[(i + 1) & 15] + c[i & 15])
    np.testing.assert_array_equal(e.buffer("o"), want)
    np.testing.assert_array_equal(e.buffer("d"), np.arange(96) + (idx % 10) * 0.25)


def test_local_array_indexed_by_lane(arch):
    """A warp whose lanes access consecutive words of their own arrays, as no two lanes share one."""
    source = """
extern "C" __global__ void k(const int* by, int* o) {
  int t = threadIdx.x;
  int a[64];
  for (int j = 0; j < 64; ++j) a[j] = 1000 * t + j;
  a[(t & 31) + by[0]] += 7;
  o[t] = a[(t & 31) + by[0]] + a[(t & 31) + by[1]];
}"""
    e = run(source, 1, 64, np.array([0, 5], np.int32), np.zeros(64, np.int32), arch=arch)
    t = np.arange(64)
    np.testing.assert_array_equal(e.buffer("o"), 2000 * t + 2 * (t & 31) + 5 + 7)


def test_bytes_and_shorts(arch):
    source = """
extern "C" __global__ void k(const signed char* a, const unsigned short* b, short* o, unsigned char* p,
                             char4* q) {
  int i = threadIdx.x;
  __shared__ short s[64];
  __shared__ unsigned char c[64];
  s[i] = a[i] * 3;
  c[i] = b[i] >> 4;
  __syncthreads();
  o[i] = s[63 - i] - b[i];
  p[i] = c[i ^ 1];
  q[i] = make_char4(a[i], i, -i, 1);
}"""
    a, b = RNG.integers(-128, 128, 64).astype(np.int8), RNG.integers(0, 65536, 64).astype(np.uint16)
    e = run(source, 1, 64, a, b, np.zeros(64, np.int16), np.zeros(64, np.uint8), np.zeros((64, 4), np.int8), arch=arch)
    i = np.arange(64)
    np.testing.assert_array_equal(e.buffer("o"), (a[63 - i].astype(int) * 3 - b).astype(np.int16))
    np.testing.assert_array_equal(e.buffer("p"), (b[i ^ 1] >> 4).astype(np.uint8))
    np.testing.assert_array_equal(e.buffer("q"), np.stack([a, i, -i, np.ones(64)], axis=1).astype(np.int8))


def test_asynchronous_copies(arch):
    source = """
extern "C" __global__ void k(const float4* g, float4* o, int n) {
  __shared__ float4 s[2][32];
  int t = threadIdx.x;
  for (int r = 0; r < n; ++r) {
    unsigned a = (unsigned)__cvta_generic_to_shared(&s[r & 1][t]);
    int bytes = t < 30 ? 16 : 4;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(a), "l"(g + r * 32 + t), "r"(bytes));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 0;");
    __syncthreads();
    o[r * 32 + t] = s[r & 1][31 - t];
    __syncthreads();
  }
}"""
    g = RNG.random((64, 4)).astype(np.float32)
    o = run(source, 1, 32, g, np.zeros((64, 4), np.float32), 2, arch=arch).buffer("o").reshape(2, 32, 4)
    want = g.reshape(2, 32, 4)[:, ::-1].copy()
    want[:, :2, 1:] = 0
    np.testing.assert_array_equal(o, want)


def test_dynamic_shared_memory_and_three_dimensional_blocks(arch):
    source = """
extern "C" __global__ void k(int* o) {
  extern __shared__ int s[];
  __shared__ int fixed[10];
  int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z),
      n = blockDim.x * blockDim.y * blockDim.z;
  if (t < 10) fixed[t] = t;
  s[t] = threadIdx.x * 100 + threadIdx.y * 10 + threadIdx.z;
  __syncthreads();
  int b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  o[b * n + t] = s[n - 1 - t] + fixed[t % 10] + b * 1000;
}"""
    n = 3 * 5 * 4
    o = (
        run(source, (2, 2, 2), (3, 5, 4), np.zeros(8 * n, np.int32), arch=arch, dynamic_shared=4 * n)
        .buffer("o")
        .reshape(8, n)
    )
    z, y, x = np.unravel_index(np.arange(n), (4, 5, 3))
    want = (x * 100 + y * 10 + z)[::-1] + np.arange(n) % 10
    np.testing.assert_array_equal(o, want + np.arange(8)[:, None] * 1000)


def test_64_bit_compare_and_swap(arch):
    source = """
extern "C" __global__ void k(unsigned long long* best, unsigned long long* swaps, const double* x, double* top) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long seen = *top_bits(top), mine = (unsigned long long)__double_as_longlong(x[i]);
  while (x[i] > __longlong_as_double((long long)seen)) {
    unsigned long long was = atomicCAS(top_bits(top), seen, mine);
    if (was == seen) break;
    seen = was;
  }
  atomicMax(best, mine);
  if (atomicExch(&swaps[i & 3], mine) == 0) atomicAdd(&swaps[4], 1ull);
}"""
    source = "__device__ unsigned long long* top_bits(double* p) { return (unsigned long long*)p; }" + source
    x = RNG.random(128) * 100
    e = run(source, 2, 64, np.zeros(1, np.uint64), np.zeros(5, np.uint64), x, np.zeros(1), arch=arch)
    assert e.buffer("top")[0] == x.max()
    assert e.buffer("best").view(np.float64)[0] == x.max()
    assert e.buffer("swaps")[4] == 4
    assert set(e.buffer("swaps")[:4].view(np.float64)) <= set(x)


def test_kernel_without_arguments(arch):
    source = '__device__ int seen[32]; extern "C" __global__ void k() { seen[threadIdx.x] = threadIdx.x; }'
    e = run(source, 1, 32, arch=arch)
    assert e.memory.bytes_of(e.memory.image).view(np.int32).tolist() == list(range(32))
    bare = 'extern "C" __global__ void k() { __syncthreads(); }'
    assert run(bare, 2, 64, arch=arch).profile.steps > 0


def test_dynamic_shared_memory_is_aligned_after_the_static(arch):
    source = """
extern "C" __global__ void k(double* o) {
  extern __shared__ double2 s[];
  __shared__ int fixed[9];
  int t = threadIdx.x;
  if (t < 9) fixed[t] = t;
  s[t] = make_double2(t, -t);
  __syncthreads();
  o[t] = s[31 - t].x + s[t].y * 100 + fixed[t % 9];
}"""
    o = run(source, 1, 32, np.zeros(32), arch=arch, dynamic_shared=32 * 16).buffer("o")
    t = np.arange(32)
    np.testing.assert_array_equal(o, 31 - t - 100 * t + t % 9)
