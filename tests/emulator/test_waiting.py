"""Threads that wait for each other: locks, flags, barriers over the grid, and waits that nobody ends."""

from __future__ import annotations

import numpy as np
import pytest

from drywarp.errors import EmulationError, StarvationError, UsageError
from tests.effort import first

from .support import ARCHES, run

pytestmark = pytest.mark.parametrize("arch", first(["sm_75", *ARCHES, "sm_120"]))


def zeros(count: int) -> np.ndarray:
    return np.zeros(count, np.int32)


def test_a_lock_is_contended_within_a_warp_across_warps_and_across_blocks(arch):
    source = """
__device__ void enter(int* lock) { while (atomicCAS(lock, 0, 1) != 0) __nanosleep(20); __threadfence(); }
__device__ void leave(int* lock) { __threadfence(); atomicExch(lock, 0); }
extern "C" __global__ void k(int* locks, volatile int* counts, volatile int* order, int n) {
  int mine = threadIdx.x % n;
  enter(locks + mine);
  order[blockIdx.x * blockDim.x + threadIdx.x] = counts[mine];
  counts[mine] = counts[mine] + 1;
  leave(locks + mine);
}"""
    for locks in (1, 3):
        e = run(source, 3, 64, zeros(locks), zeros(locks), zeros(192), locks, arch=arch)
        owner = np.arange(192) % 64 % locks
        for lock, threads in enumerate(np.bincount(owner)):
            assert e.buffer("counts")[lock] == threads
            # Each thread saw another count: nobody was inside with somebody else.
            assert sorted(e.buffer("order")[owner == lock]) == list(range(threads))


def test_a_ticket_lock_serves_in_the_order_of_the_tickets(arch):
    source = """
extern "C" __global__ void k(int* tickets, volatile int* serving, volatile int* o) {
  if (threadIdx.x % 32 == 0) {
    int mine = atomicAdd(tickets, 1);
    while (*serving != mine) {}
    o[mine] = blockIdx.x * 4 + threadIdx.x / 32;
    __threadfence();
    *serving = mine + 1;
  }
}"""
    o = run(source, 4, 128, zeros(1), zeros(1), zeros(16), arch=arch).buffer("o")
    assert sorted(o.tolist()) == list(range(16))


def test_a_ring_of_flags_between_producers_and_consumers(arch):
    source = """
extern "C" __global__ void k(volatile int* full, volatile int* slot, int* o, int n) {
  // Warp 0 of each block produces for warp 1; a slot is filled again when it is empty.
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  volatile int* flag = full + blockIdx.x;
  volatile int* data = slot + 32 * blockIdx.x;
  for (int turn = 1; turn <= n; ++turn) {
    if (warp == 0) {
      while (*flag != 0) {}
      data[lane] = turn * 100 + lane;
      __threadfence();
      __syncwarp();
      if (lane == 0) *flag = turn;
    } else {
      while (*flag != turn) {}
      o[blockIdx.x * 32 + lane] += data[lane];
      __threadfence();
      __syncwarp();
      if (lane == 0) *flag = 0;
    }
  }
}"""
    o = run(source, 2, 64, zeros(2), zeros(64), zeros(64), 6, arch=arch).buffer("o")
    np.testing.assert_array_equal(o, np.tile(2100 + 6 * np.arange(32), 2))


def test_early_exits_and_breaks_before_a_barrier(arch):
    source = """
extern "C" __global__ void k(const int* n, int* o) {
  int t = threadIdx.x, sum = 0;
  if (t % 7 == 6) return;
  for (int i = 0; i < 40; ++i) {
    if (i == n[t]) break;
    if (n[t] < 0) return;
    sum += i;
    __syncwarp(__activemask());
  }
  __syncthreads();
  o[t] = sum + __syncthreads_count(t % 2);
}"""
    n = np.random.default_rng(3).integers(-2, 45, 96).astype(np.int32)
    o = run(source, 1, 96, n, np.full(96, -1, np.int32), arch=arch).buffer("o")
    t = np.arange(96)
    stays = (t % 7 != 6) & (n >= 0)
    iterations = np.minimum(n, 40)
    expected = iterations * (iterations - 1) // 2 + np.count_nonzero(stays & (t % 2 == 1))
    np.testing.assert_array_equal(o, np.where(stays, expected, -1))


def test_masks_that_differ_between_lanes(arch):
    if arch == "sm_75":
        pytest.skip("reductions over a warp came with sm_80")
    source = """
extern "C" __global__ void k(const unsigned* masks, int* o) {
  int t = threadIdx.x;
  unsigned mask = masks[t];
  o[t] = __reduce_add_sync(mask, t);
  __syncwarp(mask);
  o[t + 32] = __shfl_sync(mask, t * 3, t ^ 1);
  if (mask & 1) __syncwarp(mask);
  o[t + 64] = __ballot_sync(mask, t % 3 == 0);
  o[t + 96] = __match_any_sync(mask, t % 5);
}"""
    lanes = np.arange(32)
    group = np.array([0, 0, 1, 1, 2, 2, 0, 0] * 4)
    masks = np.array([sum(1 << i for i in range(32) if group[i] == g) for g in group], np.uint32)
    o = run(source, 1, 32, masks, zeros(128), arch=arch).buffer("o").reshape(4, 32).view(np.uint32)
    np.testing.assert_array_equal(o[0], [lanes[group == g].sum() for g in group])
    np.testing.assert_array_equal(o[1], (lanes ^ 1) * 3)
    bits = np.uint32(1) << lanes.astype(np.uint32)
    np.testing.assert_array_equal(o[2], [bits[(group == g) & (lanes % 3 == 0)].sum() for g in group])
    same = [bits[(group == group[t]) & (lanes % 5 == t % 5)].sum() for t in lanes]
    np.testing.assert_array_equal(o[3], same)


LOOK_BACK = """
extern "C" __global__ void k(const int* x, volatile int* state, volatile int* total, int* o) {
  __shared__ int before;
  int b = blockIdx.x, t = threadIdx.x, value = x[b * 32 + t];
  int sum = value; for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (t == 0) {
    while (b && state[b - 1] == 0) {}
    before = b ? total[b - 1] : 0;
    total[b] = before + sum;
    __threadfence();
    state[b] = 1;
  }
  __syncthreads();
  for (int d = 1; d < 32; d *= 2) {
    int left = __shfl_up_sync(~0u, value, d);
    if (t >= d) value += left;
  }
  o[b * 32 + t] = before + value;
}"""


def test_a_chained_scan_runs_where_the_whole_grid_does(arch):
    x = np.random.default_rng(4).integers(0, 9, 640).astype(np.int32)
    o = run(LOOK_BACK, 20, 32, x, zeros(20), zeros(20), zeros(640), arch=arch).buffer("o")
    np.testing.assert_array_equal(o, np.cumsum(x))


def test_a_sample_that_waits_for_other_blocks_is_replaced_by_the_whole_grid(arch):
    x = np.random.default_rng(4).integers(0, 9, 2048).astype(np.int32)
    e = run(LOOK_BACK, 64, 32, x, zeros(64), zeros(64), zeros(2048), arch=arch, blocks=None)
    np.testing.assert_array_equal(e.buffer("o"), np.cumsum(x))
    assert len(e.profile.blocks) == 64
    assert "blocks wait for each other: the whole grid was emulated at once" in e.profile.notes


def test_a_grid_that_is_too_large_to_run_at_once_is_named(arch):
    blocks = 20_000
    buffers = [zeros(n) for n in (blocks * 32, blocks, blocks, blocks * 32)]
    with pytest.raises(StarvationError) as error:
        run(LOOK_BACK, blocks, 32, *buffers, arch=arch, blocks=None)
    text = str(error.value)
    assert "warps spin in the loop that starts at 0x" in text
    assert "lines 7-7 of <source>) on a condition that no emulated thread will satisfy" in text
    assert f"blocks (of {blocks}) that were not run with these: emulate" in text


def test_a_wait_that_nobody_ends_is_told_from_a_long_loop(arch):
    source = """
extern "C" __global__ void k(volatile int* flag, int* o, int n) {
  for (int i = 0; i < n; ++i) if (atomicCAS(o + threadIdx.x, i, i + 1) != i) return;
  if (n == 1) while (*flag == 0) {}
}"""
    o = run(source, 1, 32, zeros(1), zeros(32), 6000, arch=arch).buffer("o")
    assert (o == 6000).all()
    with pytest.raises(EmulationError, match="deadlock, also on a GPU"):
        run(source, 1, 32, zeros(1), zeros(32), 1, arch=arch)


GRID_SYNC = """
#include <cooperative_groups.h>
extern "C" __global__ void k(int* a, int* b, int n) {
  auto grid = cooperative_groups::this_grid();
  int i = grid.thread_rank(), all = grid.size();
  for (int turn = 0; turn < n; ++turn) {
    b[i] = a[(i + 33) % all] + 1;
    grid.sync();
    a[i] = b[(i + 65) % all];
    grid.sync();
  }
}"""


def test_barriers_over_the_grid(arch):
    a = np.random.default_rng(5).integers(0, 100, 5 * 96).astype(np.int32)
    e = run(GRID_SYNC, 5, 96, a, zeros(480), 3, arch=arch, blocks=None)
    np.testing.assert_array_equal(e.buffer("a"), np.roll(a, -3 * 98) + 3)
    assert len(e.profile.blocks) == 5


def test_a_barrier_over_a_grid_that_no_gpu_holds_is_refused(arch):
    with pytest.raises(UsageError) as error:
        run(GRID_SYNC, 20_000, 96, zeros(96), zeros(96), 1, arch=arch)
    assert "20000 blocks of 3 warps cannot run at once" in str(error.value)
