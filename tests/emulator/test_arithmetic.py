"""Arithmetic that compilers build from many instructions, against NumPy and exact integers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.effort import first, some

from .support import ARCHES, run

pytestmark = pytest.mark.parametrize("arch", first(ARCHES))
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


@pytest.mark.parametrize(
    ("dtype", "ctype"),
    some([("int32", "int"), ("uint32", "unsigned"), ("int64", "long long"), ("uint64", "unsigned long long")], 3),
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


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_division_and_roots_are_correctly_rounded(arch, dtype):
    c = {"float32": "float", "float64": "double"}[dtype]
    source = f"""
extern "C" __global__ void k(const {c}* a, const {c}* b, {c}* q, {c}* r, {c}* s) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  q[i] = a[i] / b[i];
  r[i] = ({c})1 / b[i];
  s[i] = sqrt(a[i]);
}}"""
    a, b = special_floats(dtype, 1024), RNG.permutation(special_floats(dtype, 1024))
    out = np.zeros(1024, dtype)
    e = run(source, 8, 128, a, b, out, out, out, arch=arch)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(e.buffer("q"), a / b)
        np.testing.assert_array_equal(e.buffer("r"), np.dtype(dtype).type(1) / b)
        np.testing.assert_array_equal(e.buffer("s"), np.sqrt(a))


def test_double_mathematics(arch):
    source = """
extern "C" __global__ void k(const double* a, const double* b, double* o) {
  int i = threadIdx.x;
  o[i] = exp(a[i]);
  o[i + 128] = log(b[i]);
  o[i + 256] = sin(a[i]);
  o[i + 384] = fmin(a[i], b[i]);
  o[i + 512] = fmax(a[i], b[i]);
  o[i + 640] = fma(a[i], b[i], -a[i] * b[i]);
  o[i + 768] = pow(b[i], 1.5);
  o[i + 896] = floor(a[i]);
}"""
    a, b = RNG.standard_normal(128) * 10, RNG.uniform(0.01, 100, 128)
    o = run(source, 1, 128, a, b, np.zeros(1024), arch=arch).buffer("o").reshape(8, 128)
    for got, want in zip(o, (np.exp(a), np.log(b), np.sin(a)), strict=False):
        np.testing.assert_array_max_ulp(got, want, 2)
    np.testing.assert_array_equal(o[3], np.minimum(a, b))
    np.testing.assert_array_equal(o[4], np.maximum(a, b))
    # The residue of a product is what a fused multiply-add is for: exact with rationals.
    exact = [float(Fraction(x) * Fraction(y) - Fraction(x * y)) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    np.testing.assert_array_equal(o[5], exact)
    np.testing.assert_array_max_ulp(o[6], b**1.5, 2)
    np.testing.assert_array_equal(o[7], np.floor(a))


def test_double_minimum_ignores_one_nan(arch):
    source = """
extern "C" __global__ void k(const double* a, const double* b, double* o) {
  int i = threadIdx.x;
  o[i] = fmin(a[i], b[i]);
  o[i + 4] = fmax(a[i], b[i]);
}"""
    a, b = np.array([np.nan, 1.0, np.nan, -np.inf]), np.array([2.0, np.nan, np.nan, np.inf])
    o = run(source, 1, 4, a, b, np.zeros(8), arch=arch).buffer("o")
    np.testing.assert_array_equal(o, np.concatenate([np.fmin(a, b), np.fmax(a, b)]))


def test_single_precision_library_functions(arch):
    source = """
extern "C" __global__ void k(const float* a, float* o) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float x = a[i];
  o[i] = expf(x);
  o[i + 256] = logf(fabsf(x) + 1e-3f);
  o[i + 512] = sinf(x * 1e4f);
  o[i + 768] = tanhf(x);
  o[i + 1024] = rsqrtf(fabsf(x) + 0.1f);
  o[i + 1280] = powf(fabsf(x) + 0.1f, 2.5f);
  o[i + 1536] = fmodf(x * 100, 0.7f);
  o[i + 1792] = cbrtf(x);
}"""
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
    source = """
extern "C" __global__ void k(const float* a, float* o) { o[threadIdx.x] = sinf(a[threadIdx.x]); }"""
    x = np.array([1e6, -3e7, 1e15, 3e38, 0.5, 105000.0, 2e5, np.inf], np.float32)
    o = run(source, 1, 8, x, np.zeros(8, np.float32), arch=arch).buffer("o")
    # NumPy reduces huge arguments exactly too.
    np.testing.assert_allclose(o[:7], np.sin(x[:7].astype(np.float64)), atol=2e-7)
    assert np.isnan(o[7])


def test_packed_halves(arch):
    source = """
#include <cuda_fp16.h>
extern "C" __global__ void k(const __half2* a, const __half2* b, __half2* o, int* flags) {
  int i = threadIdx.x;
  o[i] = __hfma2(a[i], b[i], a[i]);
  o[i + 64] = __hadd2(a[i], b[i]);
  o[i + 128] = __hmul2(a[i], b[i]);
  o[i + 192] = __hmin2(a[i], b[i]);
  o[i + 256] = __hmax2(a[i], b[i]);
  flags[i] = __hbgt2(a[i], b[i]) * 4 + __hlt(a[i].x, b[i].y) * 2 + __hge(a[i].y, b[i].y);
}"""
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
    source = """
#include <cuda_bf16.h>
extern "C" __global__ void k(const float* a, const float* b, __nv_bfloat162* o, float* back) {
  int i = threadIdx.x;
  __nv_bfloat162 x = __floats2bfloat162_rn(a[2 * i], a[2 * i + 1]),
                 y = __floats2bfloat162_rn(b[2 * i], b[2 * i + 1]);
  o[i] = x;
  o[i + 32] = __hfma2(x, y, x);
  o[i + 64] = __hmul2(x, y);
  back[i] = __bfloat162float(y.y);
}"""
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


def test_vector_accesses_and_64_bit_integers(arch):
    source = """
extern "C" __global__ void k(const int4* a, const longlong2* b, int4* o, long long* p) {
  int i = threadIdx.x;
  int4 v = a[i];
  longlong2 w = b[i];
  o[i] = make_int4(v.w, v.z + 1, v.y * v.x, v.x);
  long long m = w.x * w.y;
  p[i * 4] = m;
  p[i * 4 + 1] = __mul64hi(w.x, w.y);
  p[i * 4 + 2] = (w.x << (i & 63)) ^ (w.y >> (i % 61));
  p[i * 4 + 3] = w.x < w.y ? w.x - w.y : __clzll(w.x) + __popcll(w.y) + __ffsll(w.x);
}"""
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
    source = """
extern "C" __global__ void k(const int* a, const int* b, int* o) {
  int i = threadIdx.x;
  o[i] = __dp4a(a[i], b[i], i);
  o[i + 64] = __dp4a((unsigned)a[i], (unsigned)b[i], 7u);
  o[i + 128] = __dp2a_lo(a[i], b[i], i);
  o[i + 192] = __dp2a_hi(a[i], b[i], i);
  o[i + 256] = __sad(a[i], b[i], 3u);
  o[i + 320] = __vabsdiffu4(a[i], b[i]);
}"""
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
