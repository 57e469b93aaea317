"""Control flow as programs have it: virtual calls, state machines, locks and flags in shared memory, partitions.

Each kernel runs with the compiled loop and in NumPy, and must do the same.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.effort import first

from .support import run

pytestmark = [
    pytest.mark.parametrize("arch", first(["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"])),
    pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "numpy"]),
]


def zeros(count: int) -> np.ndarray:
    return np.zeros(count, np.int32)


def test_virtual_functions_of_objects_made_on_the_device(arch, compiled):
    source = """
struct Shape { int id; __device__ Shape(int i) : id(i) {} __device__ virtual int area(int x) const = 0; };
struct Square : Shape { __device__ Square(int i) : Shape(i) {} __device__ int area(int x) const { return x * x; } };
struct Strip : Shape {
  int width;
  __device__ Strip(int i) : Shape(i), width(i % 5) {}
  __device__ int area(int x) const {
    int sum = 0;
    for (int j = 0; j < width; ++j) sum += x;
    return sum;
  }
};
struct Mirror : Shape {
  const Shape* of;
  __device__ Mirror(int i, const Shape* s) : Shape(i), of(s) {}
  __device__ int area(int x) const { return -of->area(x + 1); }
};
extern "C" __global__ void k(const int* kind, int* o) {
  int t = threadIdx.x;
  Shape* shape;
  if (kind[t] == 0) shape = new Square(t);
  else shape = new Strip(t);
  if (kind[t] == 2) shape = new Mirror(t, shape);
  o[t] = shape->area(t) + shape->id;
}"""
    kind = np.random.default_rng(1).integers(0, 3, 64).astype(np.int32)
    o = run(source, 1, 64, kind, zeros(64), arch=arch, compiled=compiled).buffer("o")

    def area(kind: int, t: int, x: int) -> int:
        return (x * x, (t % 5) * x, -(t % 5) * (x + 1))[kind]

    np.testing.assert_array_equal(o, [area(int(kind[t]), t, t) + t for t in range(64)])


def test_breaks_and_continues_of_nested_loops(arch, compiled):
    source = """
extern "C" __global__ void k(const int* a, int* o, int n) {
  int t = threadIdx.x, sum = 0, i = 0;
  do {
    if (a[(t + i) & 63] == 0) continue;
    for (int j = 0; j < n; ++j) {
      int v = a[(t * 3 + j) & 63];
      if (v == i) break;
      if (v & 1) continue;
      int w = v;
      while (true) {
        if (w > 40) { sum += w; break; }
        w = w * 2 + t % 3 + 1;
        if (w == 33) goto out;
      }
    }
    if (sum > 2000) break;
    sum += i;
  } while (++i < n);
  sum = ~sum;
out:
  o[t] = sum;
}"""
    a, n = np.random.default_rng(2).integers(0, 12, 64).astype(np.int32), 9

    def model(t: int) -> int:
        total, i = 0, 0
        while True:
            if a[(t + i) & 63] != 0:
                for j in range(n):
                    w = int(a[(t * 3 + j) & 63])
                    if w == i:
                        break
                    if w & 1:
                        continue
                    while True:
                        if w > 40:
                            total += w
                            break
                        w = w * 2 + t % 3 + 1
                        if w == 33:
                            return total
                if total > 2000:
                    break
                total += i
            i += 1
            if i >= n:
                break
        return ~total

    o = run(source, 1, 96, a, zeros(96), n, arch=arch, compiled=compiled).buffer("o")
    np.testing.assert_array_equal(o, [model(t) for t in range(96)])


def test_a_state_machine_whose_lanes_are_in_different_states(arch, compiled):
    source = """
extern "C" __global__ void k(const int* program, int* o, int length) {
  int t = threadIdx.x, a = t, at = t % length;
  for (int step = 0; step < 40; ++step) {
    int c = program[at];
    at = at + 1 == length ? 0 : at + 1;
    switch (c) {
      case 0: a = a * 3 + 1 & 0xfffff; continue;
      case 1: a ^= 0x55; break;
      case 2: at = a & 7; break;
      case 3: if (a & 4) { o[t] = -a; return; } break;
      case 4: for (int i = 0; i < (a & 3); ++i) a += i * a; break;
      case 5: a = a / 3; o[64 + t] += 1; break;
      case 6: a = __popc(a) + 9; break;
      case 7: if (a > 100000) goto done; a += 11; break;
      default: a -= c;
    }
    a &= 0xfffff;
  }
done:
  o[t] = a;
}"""
    length = 23
    program = np.random.default_rng(3).integers(0, 10, length).astype(np.int32)

    def model(t: int) -> tuple[int, int]:
        a, at, count = t, t % length, 0
        for _ in range(40):
            c = int(program[at])
            at = 0 if at + 1 == length else at + 1
            if c == 0:
                a = (a * 3 + 1) & 0xFFFFF
                continue
            if c == 1:
                a ^= 0x55
            elif c == 2:
                at = a & 7
            elif c == 3:
                if a & 4:
                    return -a, count
            elif c == 4:
                i = 0
                while i < a & 3:
                    a, i = a + i * a, i + 1
            elif c == 5:
                a, count = a // 3, count + 1
            elif c == 6:
                a = a.bit_count() + 9
            elif c == 7:
                if a > 100000:
                    return a, count
                a += 11
            else:
                a -= c
            a &= 0xFFFFF
        return a, count

    o = run(source, 1, 64, program, zeros(128), length, arch=arch, compiled=compiled).buffer("o")
    np.testing.assert_array_equal(o.reshape(2, 64).T, [model(t) for t in range(64)])


def test_recursion_of_functions_that_call_each_other(arch, compiled):
    source = """
__device__ __noinline__ int odd(int n, int* path);
__device__ __noinline__ int even(int n, int* path) {
  int local[4] = {n, n * 2, n ^ 5, 1};
  path[n & 3] += 1;
  if (n <= 0) return 1;
  int below = odd(n - 1 - (n & 1), path);
  return below + local[below & 3];
}
__device__ __noinline__ int odd(int n, int* path) {
  if (n <= 0) return 2;
  for (int i = 0; i < n; ++i)
    if ((path[i & 3] & 3) == 3) return even(n - 2, path) * 3;
  return even(n - 1, path) - n;
}
extern "C" __global__ void k(int* o) {
  int path[4] = {0, threadIdx.x & 1, 0, 2};
  o[threadIdx.x] = threadIdx.x % 4 == 3 ? odd(threadIdx.x % 17, path) : even(threadIdx.x % 13, path);
}"""

    def even(n: int, path: list[int]) -> int:
        local = [n, n * 2, n ^ 5, 1]
        path[n & 3] += 1
        if n <= 0:
            return 1
        below = odd(n - 1 - (n & 1), path)
        return below + local[below & 3]

    def odd(n: int, path: list[int]) -> int:
        if n <= 0:
            return 2
        if any(path[i & 3] & 3 == 3 for i in range(n)):
            return even(n - 2, path) * 3
        return even(n - 1, path) - n

    expected = [(odd if t % 4 == 3 else even)(t % (17 if t % 4 == 3 else 13), [0, t & 1, 0, 2]) for t in range(64)]
    o = run(source, 1, 64, zeros(64), arch=arch, compiled=compiled).buffer("o")
    np.testing.assert_array_equal(o, expected)


def test_returns_of_whole_warps_and_of_lanes_before_barriers(arch, compiled):
    source = """
extern "C" __global__ void k(const int* leaves, int* o) {
  __shared__ int turns[32];
  int t = threadIdx.x;
  if (t < 32) turns[t] = 0;
  __syncthreads();
  for (int i = 0; i < 32; ++i) {
    if (leaves[t] == i) return;
    atomicAdd(&turns[i], 1);
    __syncthreads();
    o[t] += turns[i];
  }
}"""
    # Warp 1 leaves as a whole, warp 2 a lane at a time, warp 3 in halves, of warp 0 nobody.
    lane = np.arange(32)
    leaves = np.concatenate([lane * 0 + 99, lane * 0 + 4, lane, 3 + lane // 16 * 7]).astype(np.int32)
    o = run(source, 1, 128, leaves, zeros(128), arch=arch, compiled=compiled).buffer("o")
    there = np.array([np.count_nonzero(leaves > i) for i in range(32)])
    np.testing.assert_array_equal(o, [there[: min(int(n), 32)].sum() for n in leaves])


def test_lanes_that_gave_way_before_a_branch_meet_after_it(arch, compiled):
    """A warp that arrived in two parts at the barrier of a stated count would be counted twice."""
    source = """
extern "C" __global__ void k(const int* in, int* o) {
  __shared__ int sum;
  for (int i = 0; i < 3; ++i) {
    __nanosleep(20);
    if (threadIdx.x == 5) {
      int s = 0;
      for (int j = 0; j < in[i]; ++j) s += in[j] ^ j;
      sum = s;
    }
    asm volatile("bar.sync 1, 64;" ::: "memory");
    o[i * 64 + threadIdx.x] = sum;
    asm volatile("bar.sync 1, 64;" ::: "memory");
  }
}"""
    data = np.array([3, 9, 5, 40, 2, 7, 8, 1, 6], np.int32)
    o = run(source, 1, 64, data, zeros(192), arch=arch, compiled=compiled).buffer("o")
    np.testing.assert_array_equal(o, np.repeat([(data[:n] ^ np.arange(n)).sum() for n in data[:3]], 64))


def test_locks_in_shared_memory_and_two_at_once(arch, compiled):
    source = """
__device__ void lock(int* m) {
  unsigned wait = 8;
  while (atomicCAS(m, 0, 1) != 0) { __nanosleep(wait); if (wait < 256) wait *= 2; }
}
extern "C" __global__ void k(int* o) {
  __shared__ int mutex[4];
  __shared__ volatile int account[4];
  int t = threadIdx.x;
  if (t < 4) { mutex[t] = 0; account[t] = 1000; }
  __syncthreads();
  int from = t & 3, to = (t / 4 + 1 + from) & 3;
  if (from != to) {
    int first = min(from, to), second = max(from, to);
    lock(&mutex[first]);
    lock(&mutex[second]);
    __threadfence_block();
    account[from] = account[from] - t;
    account[to] = account[to] + t;
    __threadfence_block();
    atomicExch(&mutex[second], 0);
    atomicExch(&mutex[first], 0);
  }
  __syncthreads();
  if (t < 4) o[t] = account[t];
}"""
    o = run(source, 1, 64, zeros(4), arch=arch, compiled=compiled).buffer("o")
    expected = np.full(4, 1000)
    for t in range(64):
        expected[t & 3] -= t
        expected[(t // 4 + 1 + (t & 3)) & 3] += t
    np.testing.assert_array_equal(o, expected)


def test_a_flag_in_shared_memory_between_warps(arch, compiled):
    source = """
extern "C" __global__ void k(const int* x, int* o, int n) {
  __shared__ volatile int flag, data[32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  // Warps take turns: each adds to what the one before it left.
  for (int turn = 0; turn < n; ++turn) {
    while (flag != turn * 4 + warp) {}
    int before = turn + warp ? data[(lane + 1) & 31] : 0;
    __syncwarp();
    data[lane] = before + x[turn * 128 + threadIdx.x];
    __threadfence_block();
    __syncwarp();
    if (lane == 0) flag = turn * 4 + warp + 1;
  }
  __syncthreads();
  if (warp == 0) o[lane] = data[lane];
}"""
    x = np.random.default_rng(5).integers(0, 50, (3, 4, 32)).astype(np.int32)
    o = run(source, 1, 128, x, zeros(32), 3, arch=arch, compiled=compiled).buffer("o")
    data = x.reshape(-1, 32)[0]
    for row in x.reshape(-1, 32)[1:]:
        data = np.roll(data, -1) + row
    np.testing.assert_array_equal(o, data)


def test_halves_of_a_warp_reduce_in_shared_memory_on_their_own(arch, compiled):
    source = """
extern "C" __global__ void k(const int* x, int* o) {
  __shared__ volatile int s[32];
  int t = threadIdx.x;
  s[t] = x[t];
  __syncwarp();
  if (t < 16) {
    for (int d = 8; d; d >>= 1) {
      int v = t < d ? s[t + d] : 0;
      __syncwarp(0xffff);
      s[t] = s[t] + v;
      __syncwarp(0xffff);
    }
  } else {
    for (int d = 8; d; d >>= 1) {
      int v = s[16 + ((t + d) & 15)];
      __syncwarp(0xffff0000);
      if (v > s[t]) s[t] = v;
      __syncwarp(0xffff0000);
    }
  }
  __syncwarp();
  o[t] = s[t & 16] + __shfl_down_sync(~0u, t, 1, 16);
}"""
    x = np.random.default_rng(6).integers(-99, 99, 32).astype(np.int32)
    o = run(source, 1, 32, x, zeros(32), arch=arch, compiled=compiled).buffer("o")
    down = np.where(np.arange(32) % 16 == 15, np.arange(32), np.arange(32) + 1)
    np.testing.assert_array_equal(o, np.repeat([x[:16].sum(), x[16:].max()], 16) + down)


def test_partitions_by_label_and_by_predicate(arch, compiled):
    source = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(const int* x, int* o) {
  int t = threadIdx.x, v = x[t];
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  auto same = cg::labeled_partition(warp, v % 3);
  o[t] = cg::reduce(same, v, cg::greater<int>()) * 100 + same.thread_rank();
  auto side = cg::binary_partition(warp, v > 20);
  o[64 + t] = side.size() * 1000 + side.shfl(v, 0);
  if (t % 5) {
    auto here = cg::coalesced_threads();
    o[128 + t] = cg::exclusive_scan(here, v) + here.any(v == 7);
    here.sync();
  }
}"""
    x = np.random.default_rng(7).integers(0, 50, 64).astype(np.int32)
    o = run(source, 1, 64, x, zeros(192), arch=arch, compiled=compiled).buffer("o").reshape(3, 2, 32)
    for warp, v in enumerate(x.reshape(2, 32)):
        t = np.arange(32)
        label, side, here = v % 3, v > 20, (t + 32 * warp) % 5 != 0
        largest = [v[label == label[i]].max() * 100 + (label[:i] == label[i]).sum() for i in t]
        np.testing.assert_array_equal(o[0, warp], largest)
        parts = [(side == side[i]).sum() * 1000 + v[np.argmax(side == side[i])] for i in t]
        np.testing.assert_array_equal(o[1, warp], parts)
        seen = bool((v[here] == 7).any())
        scan = [v[:i][here[:i]].sum() + seen if here[i] else 0 for i in t]
        np.testing.assert_array_equal(o[2, warp], scan)
