"""Pairs of single-precision numbers, sums of half and single precision, and what else came with sm_90 and sm_100."""

from __future__ import annotations

import numpy as np
import pytest

from tests.effort import first

from .support import run

RNG = np.random.default_rng(11)


def fused(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c rounded once, through extended precision."""
    exact = a.astype(np.longdouble) * b.astype(np.longdouble) + c.astype(np.longdouble)
    return exact.astype(np.float32)


def test_pairs_of_floats():
    source = """
typedef unsigned long long pair;
extern "C" __global__ void k(const pair* a, const pair* b, const pair* c, pair* o) {
  int t = threadIdx.x;
  pair x = a[t], y = b[t], z = c[t], r, swapped = x >> 32 | x << 32;
  asm("add.rn.f32x2 %0, %1, %2;" : "=l"(r) : "l"(x), "l"(y));
  o[t] = r;
  asm("sub.rn.f32x2 %0, %1, %2;" : "=l"(r) : "l"(x), "l"(y));
  o[t + 64] = r;
  asm("mul.rn.f32x2 %0, %1, %2;" : "=l"(r) : "l"(x), "l"(y));
  o[t + 128] = r;
  asm("fma.rn.f32x2 %0, %1, %2, %3;" : "=l"(r) : "l"(x), "l"(y), "l"(z));
  o[t + 192] = r;
  asm("fma.rn.f32x2 %0, %1, %2, %3;" : "=l"(r) : "l"(swapped), "l"(y), "l"(0x3f8000003f800000ull));
  o[t + 256] = r;
  asm("add.rz.ftz.f32x2 %0, %1, %2;" : "=l"(r) : "l"(x), "l"(z));
  o[t + 320] = r;
}"""
    a, b, c = (RNG.standard_normal((64, 2)).astype(np.float32) * 100 for _ in range(3))
    e = run(source, 1, 64, a, b, c, np.zeros((6, 64, 2), np.float32), arch="sm_100")
    added, taken, product, sum_of_product, swapped, down = e.buffer("o")
    assert {"FADD2", "FMUL2", "FFMA2"} <= {i.opcode for i in e.profile.kernel.instructions}
    np.testing.assert_array_equal(added, a + b)
    np.testing.assert_array_equal(taken, a - b)
    np.testing.assert_array_equal(product, a * b)
    np.testing.assert_array_equal(sum_of_product, fused(a, b, c))
    np.testing.assert_array_equal(swapped, fused(a[:, ::-1], b, np.ones_like(b)))
    exact = a.astype(np.float64) + c
    nearest = exact.astype(np.float32)
    away = np.abs(nearest.astype(np.float64)) > np.abs(exact)
    np.testing.assert_array_equal(down, np.where(away, np.nextafter(nearest, np.float32(0)), nearest))


@pytest.mark.parametrize("arch", first(["sm_100", "sm_120"]))
def test_half_precision_operands_of_a_single_precision_sum(arch):
    source = """
extern "C" __global__ void k(const unsigned short* h, const float* x, float* o) {
  int t = threadIdx.x;
  float sum, product;
  asm("{.reg .f16 a; mov.b16 a, %1; add.f32.f16 %0, a, %2;}" : "=f"(sum) : "h"(h[t]), "f"(x[t]));
  asm("{.reg .f16 a, b; mov.b16 a, %1; mov.b16 b, %2; fma.rn.f32.f16 %0, a, b, %3;}"
      : "=f"(product) : "h"(h[t]), "h"(h[t ^ 1]), "f"(x[t]));
  o[t] = sum;
  o[t + 64] = product;
}"""
    h = RNG.standard_normal(64).astype(np.float16)
    x = RNG.standard_normal(64).astype(np.float32)
    e = run(source, 1, 64, h.view(np.uint16), x, np.zeros((2, 64), np.float32), arch=arch)
    assert {"FHADD", "FHFMA"} <= {i.opcode for i in e.profile.kernel.instructions}
    wide = h.astype(np.float64)
    np.testing.assert_array_equal(e.buffer("o")[0], (wide + x).astype(np.float32))
    other = wide.reshape(-1, 2)[:, ::-1].reshape(-1)
    np.testing.assert_array_equal(e.buffer("o")[1], fused(wide, other, x))


def test_reductions_of_floats_over_a_warp():
    source = """
extern "C" __global__ void k(const float* x, float* o) {
  int t = threadIdx.x;
  float v = x[t], least, largest, nearest, wins;
  asm("redux.sync.min.f32 %0, %1, 0xffffffff;" : "=f"(least) : "f"(v));
  asm("redux.sync.max.f32 %0, %1, 0xffffffff;" : "=f"(largest) : "f"(v));
  asm("redux.sync.min.abs.f32 %0, %1, 0xffffffff;" : "=f"(nearest) : "f"(v));
  asm("redux.sync.max.NaN.f32 %0, %1, 0xffffffff;" : "=f"(wins) : "f"(v));
  if (t % 32 == 0) {
    float* row = o + t / 32 * 4;
    row[0] = least; row[1] = largest; row[2] = nearest; row[3] = wins;
  }
}"""
    x = RNG.standard_normal((3, 32)).astype(np.float32)
    x[1, 7] = np.nan
    o = run(source, 1, 96, x, np.zeros((3, 4), np.float32), arch="sm_100a").buffer("o")
    expected = [np.nanmin(x, 1), np.nanmax(x, 1), np.nanmin(np.abs(x), 1), np.max(x, 1)]
    np.testing.assert_array_equal(o, np.array(expected).T)


@pytest.mark.parametrize("arch", first(["sm_90", "sm_120"]))
def test_matrix_stores(arch):
    source = """
extern "C" __global__ void k(const unsigned* a, unsigned* o) {
  __shared__ __align__(16) unsigned s[2][128];
  int t = threadIdx.x;
  unsigned place = (unsigned)__cvta_generic_to_shared(s), row = place + (t ^ 3) * 16;
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(a[t]),
               "r"(a[t + 32]), "r"(a[t + 64]), "r"(a[t + 96]));
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(place + 512 + (t & 15) * 16),
               "r"(a[t]), "r"(a[t + 32]));
  __syncwarp();
  for (int i = 0; i < 4; i++) o[i * 32 + t] = s[0][i * 32 + t];
  for (int i = 0; i < 2; i++) o[128 + i * 32 + t] = s[1][i * 32 + t];
}"""
    a = RNG.integers(0, 1 << 16, (4, 8, 8)).astype(np.uint16)
    o = run(source, 1, 32, a.view(np.uint32), np.zeros(192, np.uint32), arch=arch).buffer("o").view(np.uint16)
    rows = np.empty((32, 8), np.uint16)
    rows[np.arange(32) ^ 3] = a.reshape(32, 8)
    np.testing.assert_array_equal(o[:256].reshape(32, 8), rows)
    np.testing.assert_array_equal(o[256:].reshape(2, 8, 8), a[:2].transpose(0, 2, 1))
