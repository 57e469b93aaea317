"""Divergence, loops, calls and computed jumps, against Python models."""

from __future__ import annotations

import numpy as np
import pytest

from tests.effort import first

from .support import ARCHES, run

pytestmark = pytest.mark.parametrize("arch", first(ARCHES))
RNG = np.random.default_rng(7)


def test_nested_divergent_loops(arch):
    source = """
extern "C" __global__ void k(const int* n, int* o) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, s = 0, x = n[i];
  while (x != 1) {
    x = x & 1 ? 3 * x + 1 : x / 2;
    ++s;
    for (int j = 0; j < (x & 3); ++j) {
      s += j;
      if (s % 7 == 3) break;
    }
    if (s > 300) return;
  }
  o[i] = s;
}"""
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
    source = """
extern "C" __global__ void k(const int* m, int* o, int n) {
  int i = threadIdx.x, r, c = -1, seen = 0;
  for (r = 0; r < n; ++r) {
    for (c = 0; c < n; ++c) {
      int v = m[(r * n + c + i) % (n * n)];
      seen += v;
      if (v == 0) continue;
      if (v > 90) goto found;
      if (v == i) seen ^= 5;
    }
    if (seen > 1000) break;
  }
  r = -1;
found:
  o[i] = r * 10000 + c * 100 + seen % 100;
}"""
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
    source = """
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__device__ __noinline__ int twist(int x, int n) {
  for (int j = 0; j < n; ++j) {
    if (x & 1)
      x = x * 3 + 1;
    else
      x ^= j;
  }
  return x;
}
extern "C" __global__ void k(int* o) {
  int t = threadIdx.x;
  o[t] = fib(t % 11);
  o[t + 64] = t % 3 ? twist(t, t & 7) : twist(t + 5, 3);
}"""
    o = run(source, 1, 64, np.zeros(128, np.int32), arch=arch).buffer("o")

    def twist(x: int, n: int) -> int:
        for j in range(n):
            x = x * 3 + 1 if x & 1 else x ^ j
        return x

    fib = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55]
    np.testing.assert_array_equal(o[:64], [fib[t % 11] for t in range(64)])
    np.testing.assert_array_equal(o[64:], [twist(t, t & 7) if t % 3 else twist(t + 5, 3) for t in range(64)])


def test_switch_with_jump_table(arch):
    source = """
extern "C" __global__ void k(const int* a, int* o) {
  int i = threadIdx.x, x = a[i];
  switch (x) {
    case 0:
      x = x * 7 + i;
      break;
    case 1:
      x = o[i] + 3;
      break;
    case 2:
      x = i * i;
      o[i + 64] = 1;
      break;
    case 3:
      x = ~i;
      break;
    case 4:
      x = i ^ 0x55;
      o[i + 64] = 2;
    case 5:
      x = x - 4;
      break;
    case 6:
      x = i << 3;
      break;
    case 7:
      x = i / 3;
      break;
    case 8:
      x = 1000 - i;
      break;
    default:
      x = -1;
  }
  o[i] = x;
}"""
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
    source = """
typedef int (*F)(int);
__device__ int f0(int x) { return x + 1; }
__device__ int f1(int x) { return x * x; }
__device__ int f2(int x) { return -x; }
__device__ F table[3] = {f0, f1, f2};
extern "C" __global__ void k(int* o) {
  int t = threadIdx.x;
  o[t] = table[t % 3](t);
}"""
    o = run(source, 1, 48, np.zeros(48, np.int32), arch=arch).buffer("o")
    np.testing.assert_array_equal(o, [(t + 1, t * t, -t)[t % 3] for t in range(48)])


def test_spin_lock_within_and_across_warps(arch):
    source = """
extern "C" __global__ void k(int* lock, volatile int* count) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      *count = *count + 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}"""
    e = run(source, 2, 48, np.zeros(1, np.int32), np.zeros(1, np.int32), arch=arch)
    assert e.buffer("count")[0] == 96


def test_plain_spin_lock(arch):
    source = """
extern "C" __global__ void k(int* lock, volatile int* count) {
  while (atomicCAS(lock, 0, 1) != 0) {}
  *count = *count + 1;
  __threadfence();
  atomicExch(lock, 0);
}"""
    e = run(source, 1, 64, np.zeros(1, np.int32), np.zeros(1, np.int32), arch=arch)
    assert e.buffer("count")[0] == 64


def test_flag_between_blocks(arch):
    source = """
extern "C" __global__ void k(volatile int* flag, int* o) {
  if (blockIdx.x == 0) {
    while (*flag == 0) {}
    o[threadIdx.x] = *flag;
  } else if (threadIdx.x == 0) {
    for (int i = 0; i < 50; ++i) o[40] += i;
    __threadfence();
    *flag = 42;
  }
}"""
    o = run(source, 2, 32, np.zeros(1, np.int32), np.zeros(64, np.int32), arch=arch).buffer("o")
    assert set(o[:32].tolist()) == {42}


def test_switch_on_a_value_that_all_threads_share(arch):
    source = """
extern "C" __global__ void k(int* o, int n, int m) {
  int i = threadIdx.x, x = o[i];
#pragma unroll 1
  for (int j = 0; j < m; ++j) {
    switch ((n + j) & 15) {
      case 0: x = x * 3 + 1; break;
      case 1: x ^= 77; break;
      case 2: x = x / 3; break;
      case 3: x = __popc(x); o[i + 32] = x; break;
      case 4: x = x * x; break;
      case 5: x -= 9; o[i + 64] = x; break;
      case 6: x = ~x; break;
      case 7: x = x << 3; break;
      case 8: x = x % 7; break;
      case 9: x += o[i + 1]; break;
      case 12: o[i + 96] = x; break;
      case 13: x ^= i;
    }
  }
  o[i] = x;
}"""
    start = RNG.integers(0, 1000, 128).astype(np.int32)
    counted = np.array([bin(v).count("1") for v in ((start[:32].astype(np.int64) * 3 + 1) ^ 77) // 3])
    squared = counted * counted - 9
    # The last thread's neighbour has been overwritten by then.
    added = np.fmod(~squared << 3, 7) + np.append(start[1:32], counted[0])
    # On sm_120 the jump is a uniform one.
    for machine in (arch, "sm_75" if arch == "sm_80" else "sm_120"):
        o = run(source, 1, 32, start, 0, 14, arch=machine).buffer("o").reshape(4, 32)
        np.testing.assert_array_equal(o, [added ^ np.arange(32), counted, squared, added])
