"""Kernels against NumPy, on machine code of both architectures that matter most."""

from __future__ import annotations

import math

import numpy as np
import pytest

from .support import ARCHES, run

pytestmark = pytest.mark.parametrize("arch", ARCHES)
RNG = np.random.default_rng(7)


def edge_integers(count: int, dtype: str) -> np.ndarray:
    """Integers of the full range, with the awkward ones among them; none is zero."""
    info = np.iinfo(dtype)
    values = RNG.integers(info.min, info.max, count, dtype=dtype, endpoint=True)
    shift = RNG.integers(0, info.bits, count).astype(dtype)
    values = values >> shift
    special = np.array([1, 2, 3, 7, 10, info.max, info.max - 1, info.min or 1, info.min + 1], dtype)
    values[: len(special)] = special
    values[values == 0] = 5
    return values


@pytest.mark.parametrize(
    ("dtype", "ctype"),
    [("int32", "int"), ("uint32", "unsigned"), ("int64", "long long"), ("uint64", "unsigned long long")],
)
def test_integer_division_and_remainder_over_the_full_range(arch, dtype, ctype):
    source = f"""extern "C" __global__ void k(const {ctype}* a, const {ctype}* b, {ctype}* q, {ctype}* r) {{
        int i = blockIdx.x * blockDim.x + threadIdx.x; q[i] = a[i] / b[i]; r[i] = a[i] % b[i]; }}"""
    n = 2048
    a, b = edge_integers(n, dtype), RNG.permutation(edge_integers(n, dtype))
    overflow = (a == np.iinfo(dtype).min) & (b == -1) if dtype[0] == "i" else np.zeros(n, bool)
    b[overflow] = 3
    e = run(source, n // 128, 128, a, b, np.zeros(n, dtype), np.zeros(n, dtype), arch=arch)
    quotient = [
        int(x) // int(y) if (x < 0) == (y < 0) else -(abs(int(x)) // abs(int(y))) for x, y in zip(a, b, strict=True)
    ]
    assert e.buffer("q").tolist() == quotient
    assert e.buffer("r").tolist() == [int(x) - int(y) * q for x, y, q in zip(a, b, quotient, strict=True)]


def special_floats(dtype: str, count: int) -> np.ndarray:
    """Floats of all magnitudes, denormals, zeros, infinities and NaN."""
    info = np.finfo(dtype)
    values = RNG.standard_normal(count) * 10.0 ** RNG.uniform(-30, 30, count)
    special = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1.0,
        -1.0,
        info.max,
        info.tiny,
        info.tiny / 8,
        info.smallest_subnormal,
        -info.tiny / 16,
        1e38,
        1e-38,
    ]
    with np.errstate(over="ignore"):
        values = values.astype(dtype)
    values[: len(special)] = special
    return values


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_division_and_roots_are_correctly_rounded(arch, dtype):
    c = {"float32": "float", "float64": "double"}[dtype]
    source = f"""extern "C" __global__ void k(const {c}* a, const {c}* b, {c}* q, {c}* r, {c}* s) {{
        int i = blockIdx.x * blockDim.x + threadIdx.x; q[i] = a[i] / b[i]; r[i] = ({c})1 / b[i]; s[i] = sqrt(a[i]); }}"""
    a, b = special_floats(dtype, 1024), RNG.permutation(special_floats(dtype, 1024))
    out = np.zeros(1024, dtype)
    e = run(source, 8, 128, a, b, out, out, out, arch=arch)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(e.buffer("q"), a / b)
        np.testing.assert_array_equal(e.buffer("r"), dtype_one(dtype) / b)
        np.testing.assert_array_equal(e.buffer("s"), np.sqrt(a))


def dtype_one(dtype: str):
    return np.dtype(dtype).type(1)


def test_double_mathematics(arch):
    source = """extern "C" __global__ void k(const double* a, const double* b, double* o) {
        int i = threadIdx.x; o[i] = exp(a[i]); o[i + 128] = log(b[i]); o[i + 256] = sin(a[i]);
        o[i + 384] = fmin(a[i], b[i]); o[i + 512] = fmax(a[i], b[i]); o[i + 640] = fma(a[i], b[i], -a[i] * b[i]);
        o[i + 768] = pow(b[i], 1.5); o[i + 896] = floor(a[i]); }"""
    a, b = RNG.standard_normal(128) * 10, RNG.uniform(0.01, 100, 128)
    o = run(source, 1, 128, a, b, np.zeros(1024), arch=arch).buffer("o").reshape(8, 128)
    for got, want in zip(o, (np.exp(a), np.log(b), np.sin(a)), strict=False):
        np.testing.assert_array_max_ulp(got, want, 2)
    np.testing.assert_array_equal(o[3], np.minimum(a, b))
    np.testing.assert_array_equal(o[4], np.maximum(a, b))
    # The residue of a product is what a fused multiply-add is for: exact with rationals.
    from fractions import Fraction

    exact = [float(Fraction(x) * Fraction(y) - Fraction(x * y)) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    np.testing.assert_array_equal(o[5], exact)
    np.testing.assert_array_max_ulp(o[6], b**1.5, 2)
    np.testing.assert_array_equal(o[7], np.floor(a))


def test_double_minimum_ignores_one_nan(arch):
    source = """extern "C" __global__ void k(const double* a, const double* b, double* o) {
        int i = threadIdx.x; o[i] = fmin(a[i], b[i]); o[i + 4] = fmax(a[i], b[i]); }"""
    a, b = np.array([np.nan, 1.0, np.nan, -np.inf]), np.array([2.0, np.nan, np.nan, np.inf])
    o = run(source, 1, 4, a, b, np.zeros(8), arch=arch).buffer("o")
    np.testing.assert_array_equal(o, np.concatenate([np.fmin(a, b), np.fmax(a, b)]))


def test_single_precision_library_functions(arch):
    source = """extern "C" __global__ void k(const float* a, float* o) { int i = blockIdx.x * 128 + threadIdx.x;
        float x = a[i]; o[i] = expf(x); o[i + 256] = logf(fabsf(x) + 1e-3f); o[i + 512] = sinf(x * 1e4f);
        o[i + 768] = tanhf(x); o[i + 1024] = rsqrtf(fabsf(x) + 0.1f); o[i + 1280] = powf(fabsf(x) + 0.1f, 2.5f);
        o[i + 1536] = fmodf(x * 100, 0.7f); o[i + 1792] = cbrtf(x); }"""
    x = (RNG.standard_normal(256) * 8).astype(np.float32)
    o = run(source, 2, 128, x, np.zeros(2048, np.float32), arch=arch).buffer("o").reshape(8, 256)
    d = x.astype(np.float64)
    ax = (np.abs(x) + np.float32(0.1)).astype(np.float64)
    want = [
        np.exp(d),
        np.log((np.abs(x) + np.float32(1e-3)).astype(np.float64)),
        np.sin((x * np.float32(1e4)).astype(np.float64)),
        np.tanh(d),
        1 / np.sqrt(ax),
        ax**2.5,
        np.fmod((x * np.float32(100)).astype(np.float64), np.float64(np.float32(0.7))),
        np.cbrt(d),
    ]
    for got, expected, ulps in zip(o, want, (2, 2, 3, 2, 2, 3, 0, 2), strict=True):
        np.testing.assert_array_max_ulp(got, expected.astype(np.float32), ulps)


def test_sine_of_huge_arguments_takes_the_slow_path(arch):
    source = 'extern "C" __global__ void k(const float* a, float* o) { o[threadIdx.x] = sinf(a[threadIdx.x]); }'
    x = np.array([1e6, -3e7, 1e15, 3e38, 0.5, 105000.0, 2e5, np.inf], np.float32)
    o = run(source, 1, 8, x, np.zeros(8, np.float32), arch=arch).buffer("o")
    # References from 200-bit reduction of the argument.
    want = [math.sin(math.fmod(1e6, 2 * math.pi))]
    assert abs(o[0] - np.float32(math.sin(1e6))) < 1e-6
    assert abs(want[0] - math.sin(1e6)) < 1e-6
    np.testing.assert_allclose(o[:7], np.sin(x[:7].astype(np.float64)), atol=2e-7)
    assert np.isnan(o[7])


def test_packed_halves(arch):
    source = """#include <cuda_fp16.h>
    extern "C" __global__ void k(const __half2* a, const __half2* b, __half2* o, int* flags) { int i = threadIdx.x;
        o[i] = __hfma2(a[i], b[i], a[i]); o[i + 64] = __hadd2(a[i], b[i]); o[i + 128] = __hmul2(a[i], b[i]);
        o[i + 192] = __hmin2(a[i], b[i]); o[i + 256] = __hmax2(a[i], b[i]);
        flags[i] = __hbgt2(a[i], b[i]) * 4 + __hlt(a[i].x, b[i].y) * 2 + __hge(a[i].y, b[i].y); }"""
    a, b = RNG.standard_normal((2, 128)).astype(np.float16)
    e = run(source, 1, 64, a, b, np.zeros(640, np.float16), np.zeros(64, np.int32), arch=arch)
    o = e.buffer("o").reshape(5, 128)
    a64, b64 = a.astype(np.float64), b.astype(np.float64)
    for got, want in zip(
        o, (a64 * b64 + a64, a64 + b64, a64 * b64, np.minimum(a64, b64), np.maximum(a64, b64)), strict=True
    ):
        np.testing.assert_array_equal(got, want.astype(np.float16))
    x, y = a64.reshape(64, 2), b64.reshape(64, 2)
    flags = (x > y).all(axis=1) * 4 + (x[:, 0] < y[:, 1]) * 2 + (x[:, 1] >= y[:, 1])
    np.testing.assert_array_equal(e.buffer("flags"), flags)


def test_bfloat16(arch):
    source = """#include <cuda_bf16.h>
    extern "C" __global__ void k(const float* a, const float* b, __nv_bfloat162* o, float* back) { int i = threadIdx.x;
        __nv_bfloat162 x = __floats2bfloat162_rn(a[2*i], a[2*i+1]), y = __floats2bfloat162_rn(b[2*i], b[2*i+1]);
        o[i] = x; o[i + 32] = __hfma2(x, y, x); o[i + 64] = __hmul2(x, y); back[i] = __bfloat162float(y.y); }"""
    a, b = RNG.standard_normal((2, 64)).astype(np.float32)

    def rounded(x):
        bits = np.asarray(x, np.float32).view(np.uint32)
        return (((bits + 0x7FFF + (bits >> 16 & 1)) >> 16) << 16).astype(np.uint32).view(np.float32)

    e = run(source, 1, 32, a, b, np.zeros(192, np.uint16), np.zeros(32, np.float32), arch=arch)
    o = (e.buffer("o").astype(np.uint32) << 16).view(np.float32).reshape(3, 64)
    x, y = rounded(a), rounded(b)
    np.testing.assert_array_equal(o[0], x)
    np.testing.assert_allclose(o[1], x * y + x, rtol=2**-8, atol=1e-6)
    np.testing.assert_array_equal(o[2], rounded(x * y))
    np.testing.assert_array_equal(e.buffer("back"), y[1::2])


def test_tiled_matrix_multiplication(arch):
    source = """extern "C" __global__ void k(const float* A, const float* B, float* C, int n) {
        __shared__ float a[16][16], b[16][16]; int x = threadIdx.x, y = threadIdx.y;
        int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x; float sum = 0;
        for (int t = 0; t < n; t += 16) { a[y][x] = A[row * n + t + x]; b[y][x] = B[(t + y) * n + col]; __syncthreads();
            for (int k = 0; k < 16; ++k) sum += a[y][k] * b[k][x]; __syncthreads(); } C[row * n + col] = sum; }"""
    a, b = RNG.random((2, 64, 64)).astype(np.float32)
    c = run(source, (4, 4), (16, 16), a, b, np.zeros((64, 64), np.float32), 64, arch=arch).buffer("C")
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-5)


def test_block_reduction_with_shuffles(arch):
    source = """extern "C" __global__ void k(const float* x, float* o, int n) { __shared__ float part[32];
        float v = 0; for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += x[i];
        for (int d = 16; d; d >>= 1) v += __shfl_down_sync(~0u, v, d);
        if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v; __syncthreads();
        if (threadIdx.x < 32) { v = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
            for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d); if (threadIdx.x == 0) atomicAdd(o, v); } }"""
    x = RNG.integers(0, 100, 10000).astype(np.float32)
    assert run(source, 6, 192, x, np.zeros(1, np.float32), len(x), arch=arch).buffer("o")[0] == x.sum()


def test_shuffles_and_votes_under_divergence(arch):
    source = """extern "C" __global__ void k(int* o) { int t = threadIdx.x, v = t * 3;
        if (t & 1) { v += __shfl_sync(0xaaaaaaaa, v, (t + 2) & 31); o[t] = v; o[t + 32] = __ballot_sync(0xaaaaaaaa, t > 9); }
        else { v += __shfl_xor_sync(0x55555555, v, 4) * 2; o[t] = v; o[t + 32] = __any_sync(0x55555555, t == 6) ? __activemask() : 7; }
        o[t + 64] = __reduce_add_sync(~0u, t) + __match_any_sync(~0u, t / 5); }"""
    o = run(source, 1, 32, np.zeros(96, np.int32), arch=arch).buffer("o")
    t = np.arange(32)
    want = np.where(t & 1, t * 3 + ((t + 2) & 31) * 3, t * 3 + (t ^ 4) * 6)
    np.testing.assert_array_equal(o[:32], want)
    ballot = sum(1 << i for i in range(32) if i & 1 and i > 9)
    np.testing.assert_array_equal(o[32:64].view(np.uint32), np.where(t & 1, ballot, 0x55555555))
    match = [sum(1 << j for j in range(32) if j // 5 == i // 5) for i in range(32)]
    np.testing.assert_array_equal(o[64:].view(np.uint32), (496 + np.array(match)) & 0xFFFFFFFF)


def test_nested_divergent_loops(arch):
    source = """extern "C" __global__ void k(const int* n, int* o) { int i = blockIdx.x * blockDim.x + threadIdx.x, s = 0, x = n[i];
        while (x != 1) { x = x & 1 ? 3 * x + 1 : x / 2; ++s; for (int j = 0; j < (x & 3); ++j) { s += j; if (s % 7 == 3) break; } if (s > 300) return; }
        o[i] = s; }"""
    n = np.arange(1, 301, dtype=np.int32)

    def model(x: int) -> int:
        s = 0
        while x != 1:
            x = 3 * x + 1 if x & 1 else x // 2
            s += 1
            for j in range(x & 3):
                s += j
                if s % 7 == 3:
                    break
            if s > 300:
                return -5
        return s

    o = run(source, 3, 100, n, np.full(300, -5, np.int32), arch=arch).buffer("o")
    np.testing.assert_array_equal(o, [model(int(x)) for x in n])


def test_goto_out_of_two_loops(arch):
    source = """extern "C" __global__ void k(const int* m, int* o, int n) { int i = threadIdx.x, r, c = -1, seen = 0;
        for (r = 0; r < n; ++r) { for (c = 0; c < n; ++c) { int v = m[(r * n + c + i) % (n * n)]; seen += v;
            if (v == 0) continue; if (v > 90) goto found; if (v == i) seen ^= 5; } if (seen > 1000) break; }
        r = -1;
        found: o[i] = r * 10000 + c * 100 + seen % 100; }"""
    m = RNG.integers(0, 97, 49).astype(np.int32)

    def model(i: int) -> int:
        seen = 0
        r = c = 0
        for r in range(7):
            for c in range(7):
                v = int(m[(r * 7 + c + i) % 49])
                seen += v
                if v == 0:
                    continue
                if v > 90:
                    return r * 10000 + c * 100 + seen % 100
                if v == i:
                    seen ^= 5
            else:
                c = 7
            if seen > 1000:
                break
        return -10000 + c * 100 + seen % 100

    o = run(source, 1, 64, m, np.zeros(64, np.int32), 7, arch=arch).buffer("o")
    np.testing.assert_array_equal(o, [model(i) for i in range(64)])


def test_recursion_and_calls(arch):
    source = """__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
        __device__ __noinline__ int twist(int x, int n) { for (int j = 0; j < n; ++j) { if (x & 1) x = x * 3 + 1; else x ^= j; } return x; }
        extern "C" __global__ void k(int* o) { int t = threadIdx.x; o[t] = fib(t % 11); o[t + 64] = t % 3 ? twist(t, t & 7) : twist(t + 5, 3); }"""
    o = run(source, 1, 64, np.zeros(128, np.int32), arch=arch).buffer("o")

    def twist(x: int, n: int) -> int:
        for j in range(n):
            x = x * 3 + 1 if x & 1 else x ^ j
        return x

    fib = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55]
    np.testing.assert_array_equal(o[:64], [fib[t % 11] for t in range(64)])
    np.testing.assert_array_equal(o[64:], [twist(t, t & 7) if t % 3 else twist(t + 5, 3) for t in range(64)])


def test_switch_with_jump_table(arch):
    source = """extern "C" __global__ void k(const int* a, int* o) { int i = threadIdx.x, x = a[i];
        switch (x) { case 0: x = x * 7 + i; break; case 1: x = o[i] + 3; break; case 2: x = i * i; o[i + 64] = 1; break;
            case 3: x = ~i; break; case 4: x = i ^ 0x55; o[i + 64] = 2; case 5: x = x - 4; break; case 6: x = i << 3; break;
            case 7: x = i / 3; break; case 8: x = 1000 - i; break; default: x = -1; } o[i] = x; }"""
    a = RNG.integers(-1, 11, 64).astype(np.int32)
    o = run(source, 1, 64, a, np.full(128, 9, np.int32), arch=arch).buffer("o")
    table = {
        0: lambda i: i,
        1: lambda i: 12,
        2: lambda i: i * i,
        3: lambda i: ~i,
        4: lambda i: (i ^ 0x55) - 4,
        5: lambda i: 1,
        6: lambda i: i << 3,
        7: lambda i: i // 3,
        8: lambda i: 1000 - i,
    }
    np.testing.assert_array_equal(o[:64], [table.get(int(x), lambda i: -1)(i) for i, x in enumerate(a)])
    np.testing.assert_array_equal(o[64:], [{2: 1, 4: 2}.get(int(x), 9) for x in a])


def test_function_pointers(arch):
    source = """typedef int (*F)(int); __device__ int f0(int x) { return x + 1; } __device__ int f1(int x) { return x * x; } __device__ int f2(int x) { return -x; }
        __device__ F table[3] = {f0, f1, f2};
        extern "C" __global__ void k(int* o) { int t = threadIdx.x; o[t] = table[t % 3](t); }"""
    o = run(source, 1, 48, np.zeros(48, np.int32), arch=arch).buffer("o")
    np.testing.assert_array_equal(o, [(t + 1, t * t, -t)[t % 3] for t in range(48)])


def test_device_and_constant_variables(arch):
    source = """__constant__ float weights[16] = {0.5f, 1.5f, 2.5f}; __constant__ int filled[4]; __device__ int counter = 5; __device__ int hits[8];
        extern "C" __global__ void k(float* o, int* p) { int t = threadIdx.x; o[t] = weights[(t * 5) & 15] + filled[t & 3];
            hits[t & 7] = t; __syncthreads(); p[t] = hits[(t + 1) & 7] + (t == 0 ? atomicAdd(&counter, 2) : counter); }"""
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
    source = """extern "C" __global__ void k(int* g, int* o, int which) { __shared__ int s[32]; int l[4] = {which, 2, 3, 4}; int t = threadIdx.x;
        s[t] = t * 100; l[(which + t) & 3] = -t; __syncthreads();
        volatile int* p = (t + which) % 3 == 0 ? &s[31 - t] : (t + which) % 3 == 1 ? &l[(t + which) & 3] : &g[t]; o[t] = *p; *p = t + 1; __syncthreads(); o[t + 32] = s[t] + l[(t + which) & 3]; }"""
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
    source = """extern "C" __global__ void k(const unsigned char* x, unsigned* h, int* extremes, unsigned long long* big, float* fsum, double* dsum, int n) {
        __shared__ unsigned local[64]; int t = threadIdx.x; if (t < 64) local[t] = 0; __syncthreads();
        for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) { int v = x[i]; atomicAdd(&local[v & 63], 1);
            atomicMin(&extremes[0], v - 100); atomicMax(&extremes[1], v); atomicOr(&extremes[2], v); atomicAnd(&extremes[3], v | 0x100); atomicXor(&extremes[4], v);
            atomicAdd(big, (unsigned long long)v << 30); atomicAdd(fsum, (float)v); atomicAdd(dsum, v * 0.5); }
        __syncthreads(); if (t < 64) atomicAdd(&h[t], local[t]); }"""
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
    source = """extern "C" __global__ void k(int* c, int* o, int* p, int* q, float* f, float* fo) { int t = threadIdx.x;
        o[t] = atomicAdd(&c[t & 1], t + 1); p[t] = atomicExch(&c[2], t); q[t] = (int)atomicInc((unsigned*)&c[3], 5u); fo[t] = atomicAdd(f, 1.0f); atomicCAS(&c[4], 0, t + 7); atomicDec((unsigned*)&c[5], 9u); }"""
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
    source = """extern "C" __global__ void k(const float* x, float* o, unsigned long long* u, double* d) { __shared__ float s[4]; __shared__ unsigned long long b; __shared__ double e; int t = threadIdx.x;
        if (t < 4) s[t] = 0; if (t == 0) { b = 0; e = 0; } __syncthreads(); atomicAdd(&s[t & 3], x[t]); atomicMax(&b, (unsigned long long)t * t << 20); atomicAdd(&e, x[t]); __syncthreads();
        if (t < 4) o[t] = s[t]; if (t == 0) { *u = b; *d = e; } }"""
    x = RNG.integers(0, 50, 96).astype(np.float32)
    e = run(source, 1, 96, x, np.zeros(4, np.float32), np.zeros(1, np.uint64), np.zeros(1), arch=arch)
    np.testing.assert_array_equal(e.buffer("o"), x.reshape(-1, 4).sum(axis=0))
    assert e.buffer("u")[0] == 95 * 95 << 20
    assert e.buffer("d")[0] == x.sum()


def test_barrier_reductions_and_early_exit(arch):
    source = """extern "C" __global__ void k(const int* a, int* o) { int t = threadIdx.x, v = a[t]; if (t >= 90) return;
        int c = __syncthreads_count(v > 3), all = __syncthreads_and(v >= 0), any = __syncthreads_or(v == 7); o[t] = c * 4 + (all != 0) * 2 + (any != 0); }"""
    a = RNG.integers(0, 7, 96).astype(np.int32)
    o = run(source, 1, 96, a, np.full(96, -1, np.int32), arch=arch).buffer("o")
    assert set(o[:90].tolist()) == {int((a[:90] > 3).sum()) * 4 + 2}
    assert set(o[90:].tolist()) == {-1}


def test_named_barriers_between_producer_and_consumer_warps(arch):
    source = """extern "C" __global__ void k(int* o) { __shared__ int s[32]; int t = threadIdx.x;
        for (int r = 0; r < 3; ++r) {
            if (t < 32) { asm volatile("bar.sync 1, 64;"); s[t] = t * 10 + r; asm volatile("bar.arrive 2, 64;"); }
            else { asm volatile("bar.arrive 1, 64;"); asm volatile("bar.sync 2, 64;"); o[r * 32 + t - 32] = s[63 - t]; asm volatile("bar.sync 3, 32;"); }
        } }"""
    o = run(source, 1, 64, np.zeros(96, np.int32), arch=arch).buffer("o").reshape(3, 32)
    np.testing.assert_array_equal(o[0], (31 - np.arange(32)) * 10)
    np.testing.assert_array_equal(o[2] % 10, 2)


def test_local_array_with_dynamic_index(arch):
    source = """extern "C" __global__ void k(const int* idx, int* o, double* d) { int t = blockIdx.x * blockDim.x + threadIdx.x; int a[40]; double b[10]; char c[16];
        for (int j = 0; j < 40; ++j) a[j] = t * j; for (int j = 0; j < 10; ++j) b[j] = t + j * 0.25; for (int j = 0; j < 16; ++j) c[j] = t - j;
        int i = idx[t]; a[i] += 5; c[i & 15] = 99; o[t] = a[(i * 7) % 40] + a[i] + c[(i + 1) & 15] + c[i & 15]; d[t] = b[i % 10]; }"""
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


def test_spin_lock_within_and_across_warps(arch):
    source = """extern "C" __global__ void k(int* lock, volatile int* count) { bool done = false;
        while (!done) { if (atomicCAS(lock, 0, 1) == 0) { *count = *count + 1; __threadfence(); atomicExch(lock, 0); done = true; } } }"""
    e = run(source, 2, 48, np.zeros(1, np.int32), np.zeros(1, np.int32), arch=arch)
    assert e.buffer("count")[0] == 96


def test_plain_spin_lock(arch):
    source = """extern "C" __global__ void k(int* lock, volatile int* count) {
        while (atomicCAS(lock, 0, 1) != 0) {} *count = *count + 1; __threadfence(); atomicExch(lock, 0); }"""
    e = run(source, 1, 64, np.zeros(1, np.int32), np.zeros(1, np.int32), arch=arch)
    assert e.buffer("count")[0] == 64


def test_flag_between_blocks(arch):
    source = """extern "C" __global__ void k(volatile int* flag, int* o) { if (blockIdx.x == 0) { while (*flag == 0) {} o[threadIdx.x] = *flag; }
        else if (threadIdx.x == 0) { for (int i = 0; i < 50; ++i) o[40] += i; __threadfence(); *flag = 42; } }"""
    o = run(source, 2, 32, np.zeros(1, np.int32), np.zeros(64, np.int32), arch=arch).buffer("o")
    assert set(o[:32].tolist()) == {42}


def test_bytes_and_shorts(arch):
    source = """extern "C" __global__ void k(const signed char* a, const unsigned short* b, short* o, unsigned char* p, char4* q) { int i = threadIdx.x; __shared__ short s[64]; __shared__ unsigned char c[64];
        s[i] = a[i] * 3; c[i] = b[i] >> 4; __syncthreads(); o[i] = s[63 - i] - b[i]; p[i] = c[i ^ 1]; q[i] = make_char4(a[i], i, -i, 1); }"""
    a, b = RNG.integers(-128, 128, 64).astype(np.int8), RNG.integers(0, 65536, 64).astype(np.uint16)
    e = run(source, 1, 64, a, b, np.zeros(64, np.int16), np.zeros(64, np.uint8), np.zeros((64, 4), np.int8), arch=arch)
    i = np.arange(64)
    np.testing.assert_array_equal(e.buffer("o"), (a[63 - i].astype(int) * 3 - b).astype(np.int16))
    np.testing.assert_array_equal(e.buffer("p"), (b[i ^ 1] >> 4).astype(np.uint8))
    np.testing.assert_array_equal(e.buffer("q"), np.stack([a, i, -i, np.ones(64)], axis=1).astype(np.int8))


def test_asynchronous_copies(arch):
    source = """extern "C" __global__ void k(const float4* g, float4* o, int n) { __shared__ float4 s[2][32]; int t = threadIdx.x;
        for (int r = 0; r < n; ++r) { unsigned a = (unsigned)__cvta_generic_to_shared(&s[r & 1][t]); int bytes = t < 30 ? 16 : 4;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(a), "l"(g + r * 32 + t), "r"(bytes)); asm volatile("cp.async.commit_group;"); asm volatile("cp.async.wait_group 0;"); __syncthreads();
            o[r * 32 + t] = s[r & 1][31 - t]; __syncthreads(); } }"""
    g = RNG.random((64, 4)).astype(np.float32)
    o = run(source, 1, 32, g, np.zeros((64, 4), np.float32), 2, arch=arch).buffer("o").reshape(2, 32, 4)
    want = g.reshape(2, 32, 4)[:, ::-1].copy()
    want[:, :2, 1:] = 0
    np.testing.assert_array_equal(o, want)


def test_vector_accesses_and_64_bit_integers(arch):
    source = """extern "C" __global__ void k(const int4* a, const longlong2* b, int4* o, long long* p) { int i = threadIdx.x; int4 v = a[i]; longlong2 w = b[i];
        o[i] = make_int4(v.w, v.z + 1, v.y * v.x, v.x); long long m = w.x * w.y; p[i * 4] = m; p[i * 4 + 1] = __mul64hi(w.x, w.y); p[i * 4 + 2] = (w.x << (i & 63)) ^ (w.y >> (i % 61)); p[i * 4 + 3] = w.x < w.y ? w.x - w.y : __clzll(w.x) + __popcll(w.y) + __ffsll(w.x); }"""
    a = RNG.integers(-(2**31), 2**31, (64, 4)).astype(np.int32)
    b = RNG.integers(-(2**63), 2**63 - 1, (64, 2)) >> RNG.integers(0, 60, (64, 2))
    e = run(source, 1, 64, a, b, np.zeros((64, 4), np.int32), np.zeros((64, 4), np.int64), arch=arch)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(
            e.buffer("o"), np.stack([a[:, 3], a[:, 2] + np.int32(1), a[:, 1] * a[:, 0], a[:, 0]], axis=1)
        )

    def s64(x: int) -> int:
        return (x + 2**63) % 2**64 - 2**63

    want = []
    for i, (x, y) in enumerate(b.tolist()):
        m = x * y
        clz = 64 - (x % 2**64).bit_length()
        ffs = (x & -x).bit_length()
        last = s64(x - y) if x < y else clz + (y % 2**64).bit_count() + ffs
        want.append([s64(m), m >> 64, s64(s64(x << i) ^ (y >> (i % 61))), last])
    assert e.buffer("p").tolist() == want


def test_dot_products_of_bytes(arch):
    source = """extern "C" __global__ void k(const int* a, const int* b, int* o) { int i = threadIdx.x;
        o[i] = __dp4a(a[i], b[i], i); o[i + 64] = __dp4a((unsigned)a[i], (unsigned)b[i], 7u); o[i + 128] = __dp2a_lo(a[i], b[i], i); o[i + 192] = __dp2a_hi(a[i], b[i], i); o[i + 256] = __sad(a[i], b[i], 3u); o[i+320] = __vabsdiffu4(a[i], b[i]); }"""
    a, b = RNG.integers(-(2**31), 2**31, (2, 64)).astype(np.int32)
    o = run(source, 1, 64, a, b, np.zeros(384, np.int32), arch=arch).buffer("o").reshape(6, 64)
    i = np.arange(64)
    sa, sb = (x.view(np.int8).reshape(64, 4).astype(np.int64) for x in (a, b))
    ua, ub = (x.view(np.uint8).reshape(64, 4).astype(np.int64) for x in (a, b))
    ha = a.view(np.int16).reshape(64, 2).astype(np.int64)
    np.testing.assert_array_equal(o[0], (sa * sb).sum(axis=1) + i)
    np.testing.assert_array_equal(o[1], (ua * ub).sum(axis=1) + 7)
    np.testing.assert_array_equal(o[2], (ha * sb[:, :2]).sum(axis=1) + i)
    np.testing.assert_array_equal(o[3], (ha * sb[:, 2:]).sum(axis=1) + i)
    np.testing.assert_array_equal(o[4].view(np.uint32), (np.abs(a.astype(np.int64) - b) + 3).astype(np.uint32))
    np.testing.assert_array_equal(o[5].view(np.uint8).reshape(64, 4), np.abs(ua - ub))


def test_dynamic_shared_memory_and_three_dimensional_blocks(arch):
    source = """extern "C" __global__ void k(int* o) { extern __shared__ int s[]; __shared__ int fixed[10]; int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z), n = blockDim.x * blockDim.y * blockDim.z;
        if (t < 10) fixed[t] = t; s[t] = threadIdx.x * 100 + threadIdx.y * 10 + threadIdx.z; __syncthreads();
        int b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); o[b * n + t] = s[n - 1 - t] + fixed[t % 10] + b * 1000; }"""
    n = 3 * 5 * 4
    o = (
        run(source, (2, 2, 2), (3, 5, 4), np.zeros(8 * n, np.int32), arch=arch, dynamic_shared=4 * n)
        .buffer("o")
        .reshape(8, n)
    )
    z, y, x = np.unravel_index(np.arange(n), (4, 5, 3))
    want = (x * 100 + y * 10 + z)[::-1] + np.arange(n) % 10
    np.testing.assert_array_equal(o, want + np.arange(8)[:, None] * 1000)


@pytest.mark.parametrize("kind", ["f16", "s8"])
def test_tensor_cores(arch, kind):
    a_type, c_type = {"f16": ("half", "float"), "s8": ("signed char", "int")}[kind]
    source = f"""#include <mma.h>
    using namespace nvcuda::wmma;
    extern "C" __global__ void k(const {a_type}* a, const {a_type}* b, {c_type}* c) {{
        fragment<matrix_a, 16, 16, 16, {a_type}, row_major> fa; fragment<matrix_b, 16, 16, 16, {a_type}, col_major> fb; fragment<accumulator, 16, 16, 16, {c_type}> fc;
        load_matrix_sync(fc, c, 16, mem_row_major); load_matrix_sync(fa, a, 16); load_matrix_sync(fb, b, 16); mma_sync(fc, fa, fb, fc); store_matrix_sync(c, fc, 16, mem_row_major); }}"""
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
    source = """#include <mma.h>
    using namespace nvcuda::wmma;
    extern "C" __global__ void k(const double* a, const double* b, double* c) {
        fragment<matrix_a, 8, 8, 4, double, row_major> fa; fragment<matrix_b, 8, 8, 4, double, row_major> fb; fragment<accumulator, 8, 8, 4, double> fc;
        fill_fragment(fc, 1.0); load_matrix_sync(fa, a, 4); load_matrix_sync(fb, b, 8); mma_sync(fc, fa, fb, fc); store_matrix_sync(c, fc, 8, mem_row_major); }"""
    a, b = RNG.standard_normal((8, 4)), RNG.standard_normal((4, 8))
    got = run(source, 1, 32, a, b, np.zeros((8, 8)), arch=arch).buffer("c")
    np.testing.assert_allclose(got, 1 + a @ b, rtol=1e-12)


def test_matrix_loads_and_single_tensor_instructions(arch):
    source = """#include <cuda_fp16.h>
    extern "C" __global__ void k(const half* a, const half* b, float* c) { __shared__ half sa[16 * 16], sb[16 * 8]; int t = threadIdx.x;
        for (int i = t; i < 256; i += 32) sa[i] = a[i]; for (int i = t; i < 128; i += 32) sb[i] = b[i]; __syncthreads();
        unsigned ra[4], rb[2]; float d[4] = {0, 0, 0, 0};
        unsigned pa = (unsigned)__cvta_generic_to_shared(&sa[(t % 16) * 16 + t / 16 * 8]), pb = (unsigned)__cvta_generic_to_shared(&sb[(t % 16) * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3]) : "r"(pa));
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(rb[0]), "=r"(rb[1]) : "r"(pb));
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
        int g = t / 4, q = t % 4; c[g * 8 + 2 * q] = d[0]; c[g * 8 + 2 * q + 1] = d[1]; c[(g + 8) * 8 + 2 * q] = d[2]; c[(g + 8) * 8 + 2 * q + 1] = d[3]; }"""
    a, b = RNG.standard_normal((16, 16)).astype(np.float16), RNG.standard_normal((16, 8)).astype(np.float16)
    got = run(source, 1, 32, a, b, np.zeros((16, 8), np.float32), arch=arch).buffer("c")
    np.testing.assert_allclose(got, a.astype(np.float64) @ b, rtol=1e-5, atol=1e-5)


def test_printf_and_assert_are_stubs(arch):
    source = """#include <cstdio>
    extern "C" __global__ void k(int* o) { int t = threadIdx.x; if (t == 3) printf("value %d\\n", o[t]); o[t] = t + 1; }"""
    e = run(source, 1, 32, np.zeros(32, np.int32), arch=arch)
    np.testing.assert_array_equal(e.buffer("o"), np.arange(1, 33))
    assert any("outside the kernel" in note for note in e.profile.notes)
