"""Integers packed into words and packed halves in memory, against NumPy, on every architecture's own code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.effort import first

from .support import run

ARCHES = ["sm_75", "sm_80", "sm_90", "sm_120"]
RNG = np.random.default_rng(17)
Words = Any


def halves(function: Callable[..., Words], kind: type) -> Callable[..., Words]:
    """A function of parts as one of words."""
    return lambda *words: np.asarray(function(*(w.view(kind) for w in words)), kind).view(np.uint32)


def relu(function: Callable[..., Words]) -> Callable[..., Words]:
    return lambda *parts: np.maximum(function(*parts), 0)


def highest(*parts: Words) -> Words:
    return np.maximum.reduce(parts)


def lowest(*parts: Words) -> Words:
    return np.minimum.reduce(parts)


def add_then(function: Callable[..., Words]) -> Callable[..., Words]:
    return lambda x, y, z: function(x + y, z)


def apart(kind: type) -> Callable[..., Words]:
    return lambda x, y: np.abs(x.astype(np.int64) - y).astype(kind)


def summed(kind: type) -> Callable[..., Words]:
    def total(x: Words, y: Words) -> Words:
        parts = np.abs(x.view(kind).astype(np.int64) - y.view(kind)).reshape(len(x), -1)
        return parts.sum(axis=1).astype(np.uint32)

    return total


def larger(x: Words, y: Words) -> Words:
    """__vibmax_s16x2 with its two answers, the high half's first."""
    x, y = x.view(np.int16), y.view(np.int16)
    taken = (x >= y).reshape(-1, 2).astype(np.uint32)
    return np.maximum(x, y).view(np.uint32) + taken[:, 1] + 2 * taken[:, 0]


U8, S8, U16, S16 = np.uint8, np.int8, np.uint16, np.int16
CALLS: dict[str, Callable[..., Words]] = {
    "__vadd2(x, y)": halves(lambda x, y: x + y, U16),
    "__vadd4(x, y)": halves(lambda x, y: x + y, U8),
    "__vsub2(x, y)": halves(lambda x, y: x - y, U16),
    "__vneg2(x)": halves(np.negative, S16),
    "__vmaxs2(x, y)": halves(highest, S16),
    "__vminu2(x, y)": halves(lowest, U16),
    "__vmaxu4(x, y)": halves(highest, U8),
    "__vmins4(x, y)": halves(lowest, S8),
    "__vabsdiffu4(x, y)": halves(apart(U8), U8),
    "__vabsdiffs4(x, y)": halves(apart(U8), S8),
    "__vabsdiffu2(x, y)": halves(apart(U16), U16),
    "__vsadu4(x, y)": summed(U8),
    "__vsads2(x, y)": summed(S16),
    "__viaddmax_s16x2(x, y, z)": halves(add_then(highest), S16),
    "__viaddmin_u16x2(x, y, z)": halves(add_then(lowest), U16),
    "__viaddmax_s16x2_relu(x, y, z)": halves(relu(add_then(highest)), S16),
    "__vimax3_u16x2(x, y, z)": halves(highest, U16),
    "__vimin3_s16x2(x, y, z)": halves(lowest, S16),
    "__vimin3_s16x2_relu(x, y, z)": halves(relu(lowest), S16),
    "__vimax_s16x2_relu(x, y)": halves(relu(highest), S16),
    "__viaddmax_s32_relu(x, y, z)": halves(relu(add_then(highest)), np.int32),
    "__vimax3_s32_relu(x, y, z)": halves(relu(highest), np.int32),
    "__vimin3_u32(x, y, z)": halves(lowest, np.uint32),
    "pair(x, y)": larger,
}


@pytest.mark.parametrize("arch", first(ARCHES))
def test_video_functions(arch: str) -> None:
    lines = "".join(f"  o[i + n * {k}] = {call};\n" for k, call in enumerate(CALLS))
    source = f"""
__device__ unsigned pair(unsigned x, unsigned y) {{
  bool high, low;
  unsigned most = __vibmax_s16x2(x, y, &high, &low);
  return most + high + 2 * low;
}}
extern "C" __global__ void k(const unsigned* a, unsigned* o, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned x = a[i], y = a[i + n], z = a[i + 2 * n];
{lines}}}"""
    words = RNG.integers(0, 2**32, (3, 128), np.uint32)
    words[:, :5] = np.array([0, 0xFFFFFFFF, 0x80008000, 0x7FFF7FFF, 0x80808080], np.uint32)
    words[1, 5:20] = words[0, 5:20]
    o = run(source, 2, 64, words, np.zeros((len(CALLS), 128), np.uint32), 128, arch=arch).buffer("o")
    with np.errstate(over="ignore"):
        for row, (call, model) in zip(o, CALLS.items(), strict=True):
            count = call.count(",") + 1
            np.testing.assert_array_equal(row, model(*words[:count]), err_msg=call)


@pytest.mark.parametrize("arch", first(["sm_75", "sm_80", "sm_90"]))
def test_atomics_on_packed_halves_in_global_and_shared_memory(arch: str) -> None:
    source = """
#include <cuda_fp16.h>
__device__ void add(__half2* where, __half2 what) { atomicAdd(where, what); }
extern "C" __global__ void k(__half2* sums, __half2* old, __half2* copy) {
  __shared__ __half2 near[4];
  int t = threadIdx.x;
  if (t < 4) near[t] = __half2half2(__float2half(1.0f));
  __syncthreads();
  __half2 what = __floats2half2_rn(t, 0.5f);
  old[t] = atomicAdd(sums + t % 4, what);
  add(t % 3 ? near + t % 4 : sums + 4 + t % 4, what);
  __syncthreads();
  if (t < 4) copy[t] = near[t];
}"""
    e = run(source, 1, 64, *(np.zeros((n, 2), np.float16) for n in (8, 64, 4)), arch=arch)
    t = np.arange(64)
    what = np.stack([t, np.full(64, 0.5)], axis=1)
    places = [t % 4 == p for p in range(4)]
    sums = np.array([what[p].sum(axis=0) for p in places])
    apart = np.array([what[p & (t % 3 == 0)].sum(axis=0) for p in places])
    near = np.array([what[p & (t % 3 != 0)].sum(axis=0) + 1 for p in places])
    np.testing.assert_array_equal(e.buffer("sums"), np.concatenate([sums, apart]).astype(np.float16))
    np.testing.assert_array_equal(e.buffer("copy"), near.astype(np.float16))
    # Each thread found what those before it had added, in whatever order they came.
    assert all(len(set(map(tuple, e.buffer("old")[p].tolist()))) == 16 for p in places)


@pytest.mark.parametrize("arch", first(ARCHES))
def test_spaces_of_generic_addresses(arch: str) -> None:
    source = """
extern "C" __global__ void k(int* o, int n) {
  __shared__ int near[32];
  int own[32];
  int t = threadIdx.x;
  near[t] = own[t % n] = t;
  int* where = t % 3 == 0 ? o : t % 3 == 1 ? near : own;
  o[t] = (__isGlobal(where) ? 1 : 0) + (__isShared(where) ? 2 : 0) + (__isLocal(where) ? 4 : 0) + where[t] * 0;
}"""
    o = run(source, 1, 32, np.zeros(32, np.int32), 32, arch=arch).buffer("o")
    np.testing.assert_array_equal(o, [(1, 2, 4)[t % 3] for t in range(32)])
