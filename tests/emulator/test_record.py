"""What a run leaves behind: paths, accesses, counts of lanes, and the buffers' content."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from drywarp.errors import UsageError
from drywarp.execution.emulator import buffer_content
from drywarp.execution.emulator.operands import Touched
from drywarp.execution.emulator.sampling import sample_blocks
from drywarp.kernel.launch.launch import Buffer
from drywarp.kernel.profile import (
    ASKED_WARP,
    ASKED_WORD,
    CONSTANT_WARPS,
    CONSTANTS,
    SPACE_GLOBAL,
    SPACE_LOCAL,
    SPACE_SHARED,
)
from tests.effort import first

from .support import ARCHES, run

SAXPY = """
extern "C" __global__ void k(const float* x, float* y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}"""


@pytest.mark.parametrize("arch", first(ARCHES))
def test_saxpy_leaves_two_paths_and_coalesced_accesses(arch):
    n = 1000
    e = run(SAXPY, 8, 128, np.ones(n, np.float32), np.ones(n, np.float32), 2.0, n, arch=arch)
    profile = e.profile
    assert len(profile.paths) in (1, 2)
    assert sum(len(b.paths) for b in profile.blocks) == 32
    log = profile.accesses
    assert (log.space == SPACE_GLOBAL).all()
    # 31 full warps and one of 8 lanes, each with two loads and a store.
    assert len(log) == 32 * 3
    assert len(log.offsets) == 2
    full = int(np.flatnonzero(log.masks == 0xFFFFFFFF)[0])
    np.testing.assert_array_equal(log.offsets[full], np.arange(32) * 4)
    assert log.masks[1 - full] == 0xFF
    start, size = profile.allocations["x"]
    assert size == 4 * n
    loads = log.base[(log.base >= start) & (log.base < start + size)]
    np.testing.assert_array_equal(np.sort(loads), start + np.arange(32) * 128)
    for warp in range(32):
        np.testing.assert_array_equal(log.order[log.warp == warp], np.arange(3))
    stores = [i.pc // 16 for i in profile.kernel.instructions if i.opcode == "STG"]
    assert profile.thread_instructions[:, stores].sum() == n
    first = profile.thread_instructions[:, 0]
    np.testing.assert_array_equal(first, [128] * 8)
    assert profile.steps == profile.executions().sum()


LOOK_UP = """
__constant__ int table[1024];
extern "C" __global__ void k(const int* i, int* o, int off) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  int s = table[blockIdx.x + off];
  if (i[t] >= 0) s += table[i[t] & 1023];
  o[t] = s;
}"""


@pytest.mark.parametrize("arch", first(ARCHES))
@given(numbers=hnp.arrays(np.int32, 256, elements=st.integers(-3, 9) | st.integers(-100, 1023)))
@settings(max_examples=20, deadline=None)
def test_addresses_that_loads_of_constants_ask_for(arch, numbers):
    """As many as active lanes have different ones; a warp without such a lane asks for none."""
    e = run(LOOK_UP, 4, 64, numbers, np.zeros(256, np.int32), 0, arch=arch)
    by_warp = [{int(n) for n in warp if n >= 0} for warp in numbers.reshape(-1, 32)]
    asked = [len(addresses) for addresses in by_warp]
    counts = list(e.profile.constant_addresses.values())
    # The load may be run under a guard, by every warp, or behind a branch, by those with a lane that needs it.
    means = [sum(max(1, n) for n in asked) / 8, sum(asked) / max(1, sum(map(bool, asked)))]
    assert counts == ([] if max(asked) <= 1 else [pytest.approx(counts[0])])
    assert not counts or any(counts[0] == pytest.approx(mean) for mean in means)


@pytest.mark.parametrize("arch", first(ARCHES))
def test_bytes_of_one_word_are_one_address(arch):
    """32 neighbouring bytes lie in 8 words."""
    source = """
__constant__ unsigned char table[256];
extern "C" __global__ void k(const int* i, int* o) { o[threadIdx.x] = table[i[threadIdx.x]]; }"""
    e = run(source, 1, 32, np.arange(32, dtype=np.int32), np.zeros(32, np.int32), arch=arch)
    assert list(e.profile.constant_addresses.values()) == [8.0]


@pytest.mark.parametrize("arch", first(ARCHES))
def test_words_that_registers_ask_constants_for(arch):
    """In the order of each warp's requests: a word for all lanes, or each that active ones ask for."""
    source = """
__constant__ int table[4096];
extern "C" __global__ void k(const int* i, int* o, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x, s = 0;
  for (int j = 0; j < n; ++j) {
    s += table[3 * j];
    if (i[t] & 1) s += table[1024 + i[t] + j];
  }
  o[t] = s;
}"""
    numbers = np.random.default_rng(1).integers(0, 500, 3 * 96).astype(np.int32)
    e = run(source, 3, 96, numbers, np.zeros(len(numbers), np.int32), 6, arch=arch)
    words: list[list[int]] = [[] for _ in range(9)]
    requests: list[set[int]] = [set() for _ in range(9)]
    for warp, request, _, word in e.profile.constants.tolist():
        words[warp].append(word)
        requests[warp].add(request)
    for warp, lanes in enumerate(numbers.reshape(-1, 32)):
        odd = lanes[lanes & 1 == 1]
        expected = [w for j in range(6) for w in (3 * j, *np.unique(1024 + odd + j).tolist())]
        # The compiler may order the loads of an unrolled loop otherwise.
        assert sorted(words[warp]) == sorted(expected)
        assert len(requests[warp]) == 12


def test_only_the_first_words_of_the_first_warps_are_kept():
    source = """
__constant__ int table[1024];
extern "C" __global__ void k(int* o, int n) {
  int s = 0;
#pragma unroll 1
  for (int j = 0; j < n; ++j) s ^= table[j & 1023];
  o[blockIdx.x * blockDim.x + threadIdx.x] = s;
}"""
    count = CONSTANTS + 100
    e = run(source, 2, 32 * 40, np.zeros(2560, np.int32), count)
    rows = e.profile.constants
    np.testing.assert_array_equal(np.unique(rows[:, ASKED_WARP]), np.arange(CONSTANT_WARPS))
    for warp in range(CONSTANT_WARPS):
        np.testing.assert_array_equal(rows[rows[:, ASKED_WARP] == warp, ASKED_WORD], np.arange(CONSTANTS) % 1024)


@pytest.mark.parametrize("arch", first(ARCHES))
def test_active_lanes_follow_divergence(arch):
    source = """
extern "C" __global__ void k(int* o) {
  int t = threadIdx.x, s = 0;
  for (int i = 0; i < t; ++i) {
    s += i * t;
    asm volatile("");
  }
  o[t] = s;
}"""
    e = run(source, 1, 32, np.zeros(32, np.int32), arch=arch)
    t = np.arange(32)
    np.testing.assert_array_equal(e.buffer("o"), t * t * (t - 1) // 2)
    path = e.profile.paths[0]
    assert path.lanes[0] == 32
    assert path.lanes.min() < 32
    assert path.lanes.max() <= 32
    # Lanes summed over the path are the executed thread instructions where nothing is guarded.
    unguarded = [n for n, i in enumerate(e.profile.kernel.instructions) if i.guard is None]
    lengths = {b.index: [n for n in range(b.start, b.end) if n in unguarded] for b in e.profile.cfg.blocks}
    total = sum(lanes * len(lengths[b]) for b, lanes in zip(path.blocks.tolist(), path.lanes.tolist(), strict=True))
    assert total == e.profile.thread_instructions[0, unguarded].sum()


@pytest.mark.parametrize("arch", first(ARCHES))
def test_shared_and_local_accesses_count_from_their_windows(arch):
    source = """
extern "C" __global__ void k(const int* idx, int* o) {
  __shared__ int s[64];
  volatile int a[20];
  int t = threadIdx.x;
  for (int i = 0; i < 20; ++i) a[i] = i * t;
  s[t * 2 % 64] = t;
  __syncthreads();
  o[t] = a[idx[t]] + s[t];
}"""
    e = run(source, 2, 32, np.arange(32, dtype=np.int32) % 20, np.zeros(32, np.int32), arch=arch)
    log, kernel = e.profile.accesses, e.profile.kernel
    stores = [n for n, i in enumerate(kernel.instructions) if i.opcode == "STS"]
    rows = np.isin(log.instruction, stores)
    assert (log.space[rows] == SPACE_SHARED).all()
    assert set(log.base[rows].tolist()) == {kernel.resources.shared_reserved}
    pattern = log.offsets[log.pattern[rows][0]]
    np.testing.assert_array_equal(pattern, np.arange(32) * 8 % 256)
    local = log.space == SPACE_LOCAL
    assert local.sum() > 0
    assert log.base[local].max() < 1 << 20


@pytest.mark.parametrize("arch", first(ARCHES))
def test_few_scattered_warps_compute_what_all_would(arch, monkeypatch):
    """One warp in 32 goes on alone: NumPy runs it on gathered registers, and must give the same result."""
    source = """
extern "C" __global__ void k(const float* x, float* o, int n) {
  __shared__ float s[1024];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 1024 + t];
  __syncthreads();
  if (t / 32 == blockIdx.x % 32) {
    float v = 0;
    for (int i = t % 32; i < n; i += 32) {
      v += s[i];
      if (i & 64) v *= 0.5f;
    }
    for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
    if (t % 32 == 0) o[blockIdx.x] = v;
  }
}"""
    gathered = []
    gather = Touched.gather
    monkeypatch.setattr(Touched, "gather", lambda block, frame: (gathered.append(frame.rows), gather(block, frame)))
    x = np.random.default_rng(3).random((6, 1024)).astype(np.float32)
    o = run(source, 6, 1024, x, np.zeros(6, np.float32), 1024, arch=arch, compiled=False).buffer("o")
    assert set(gathered) == {6}
    v = np.zeros((6, 32), np.float32)
    for i in range(0, 1024, 32):
        v += x[:, i : i + 32]
        if i & 64:
            v *= np.float32(0.5)
    for d in (16, 8, 4, 2, 1):
        v = v + v[:, np.arange(32) ^ d]
    np.testing.assert_array_equal(o, v[:, 0])


@pytest.mark.parametrize("arch", first(ARCHES))
def test_waves_of_many_blocks_share_memory_and_keep_their_record(arch):
    source = """
extern "C" __global__ void k(int* count, int* o) {
  int t = threadIdx.x;
  if (t == 0) atomicAdd(count, 1);
  if (blockIdx.x & 1)
    o[blockIdx.x * 256 + t] = t;
  else
    o[blockIdx.x * 256 + t] = -t;
}"""
    blocks = 200
    e = run(source, blocks, 256, np.zeros(1, np.int32), np.zeros(blocks * 256, np.int32), arch=arch)
    assert e.buffer("count")[0] == blocks
    t = np.tile(np.arange(256), (blocks, 1))
    np.testing.assert_array_equal(e.buffer("o").reshape(blocks, 256), np.where(np.arange(blocks)[:, None] & 1, t, -t))
    stores = [n for n, i in enumerate(e.profile.kernel.instructions) if i.opcode == "STG"]
    np.testing.assert_array_equal(e.profile.thread_instructions[:, stores].sum(axis=1), [256] * blocks)
    start, _ = e.profile.allocations["o"]
    log = e.profile.accesses
    for warp in (0, 8 * 64, 8 * 199 + 7):
        rows = (log.warp == warp) & np.isin(log.instruction, stores)
        assert log.base[rows].tolist() == [start + 128 * warp]


def test_large_buffers_cost_only_what_is_touched():
    n = 1 << 32
    source = """
extern "C" __global__ void k(const float* x, float* y, long long stride) {
  long long i = (blockIdx.x * (long long)blockDim.x + threadIdx.x) * stride;
  y[i] = x[i] + 1;
}"""
    x = Buffer("f32", (n,), "random")
    e = run(source, 4, 64, x, Buffer("f32", (n,)), np.int64(1 << 20), seed=5)
    region = next(r for r in e.memory.regions if r.name == "y")
    y = e.memory.bytes_of(region).view(np.float32)
    small = buffer_content(Buffer("f32", (1 << 20,), "random"), 0, 5)
    assert y[0] == small[0] + np.float32(1)
    assert 1 <= y[255 << 20] < 2
    assert len({float(y[i << 20]) for i in range(256)}) > 250


@given(
    dtype=st.sampled_from(["f16", "bf16", "f32", "f64", "i8", "i32", "u64"]),
    fill=st.sampled_from(["random", "iota", "ones", "zeros"]),
    count=st.integers(0, 70000),
)
def test_lazily_filled_content_is_that_of_the_whole(dtype, fill, count):
    from drywarp.execution.emulator.memory import DeviceMemory

    buffer = Buffer(dtype, (count,), fill)
    memory = DeviceMemory([("b", 3, buffer)], b"", seed=9)
    region = memory.regions[0]
    if count:
        memory.prepare(region, np.array([region.size - 1], np.uint64))
    got, whole = memory.content(region), buffer_content(buffer, 3, 9)
    np.testing.assert_array_equal(got, whole)
    if fill == "random" and count:
        values = (whole.astype(np.uint32) << 16).view(np.float32) if dtype == "bf16" else whole
        assert values.min() >= 0
        assert values.max() < (1 if dtype[0] in "fb" else 100)


def test_random_content_depends_on_seed_and_place():
    buffer = Buffer("f32", (1000,), "random")
    base = buffer_content(buffer, 0, 0)
    assert (base == buffer_content(buffer, 0, 0)).all()
    assert (base != buffer_content(buffer, 1, 0)).any()
    assert (base != buffer_content(buffer, 0, 1)).any()


extents = st.integers(1, 9)


@given(grid=st.tuples(extents, extents, extents))
def test_default_sample_covers_every_stratum_with_exact_weights(grid):
    sample = dict(sample_blocks(grid, None))
    total = grid[0] * grid[1] * grid[2]
    assert sum(sample.values()) == pytest.approx(total)
    assert {0, total - 1} <= set(sample)

    def stratum(linear: int) -> tuple[int, ...]:
        place = (linear % grid[0], linear // grid[0] % grid[1], linear // grid[0] // grid[1])
        return tuple(0 if p == 0 else 2 if p == n - 1 else 1 for p, n in zip(place, grid, strict=True))

    sizes: dict[tuple[int, ...], int] = {}
    for linear in range(total):
        sizes[stratum(linear)] = sizes.get(stratum(linear), 0) + 1
    weights: dict[tuple[int, ...], float] = {}
    for linear, weight in sample.items():
        weights[stratum(linear)] = weights.get(stratum(linear), 0) + weight
    assert weights == pytest.approx(sizes)


def test_default_sample_of_a_large_grid_has_neighbours_in_the_interior():
    sample = [linear for linear, _ in sample_blocks((64, 64, 1), None)]
    interior = {(x, y) for x, y in ((n % 64, n // 64) for n in sample) if 0 < x < 63 and 0 < y < 63}
    assert any((x + 1, y) in interior and (x, y + 1) in interior for x, y in interior)
    assert len(sample) < 20
    assert sample == sorted(sample)


@given(grid=st.tuples(extents, extents, extents), wanted=st.integers(1, 50))
def test_counted_samples_are_spread_from_first_to_last(grid, wanted):
    total = grid[0] * grid[1] * grid[2]
    sample = sample_blocks(grid, wanted)
    assert len(sample) == min(wanted, total)
    assert sum(weight for _, weight in sample) == pytest.approx(total)
    assert sample[0][0] == 0
    if wanted > 1:
        assert sample[-1][0] == total - 1
    assert [n for n, _ in sample_blocks(grid, "all")] == list(range(total))


@pytest.mark.parametrize("blocks", [0, [], [8], [-1], "some"])
def test_samples_that_make_no_sense(blocks):
    with pytest.raises(UsageError, match="blocks"):
        sample_blocks((2, 2, 2), blocks)
