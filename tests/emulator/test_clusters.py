"""Clusters of several blocks against NumPy: barriers, distributed shared memory, multicast, asynchronous stores."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from drywarp.errors import EmulationError, UsageError
from drywarp.execution.emulator import emulate
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.kernel.launch.arguments import make_launch
from drywarp.kernel.launch.launch import Launch
from drywarp.kernel.launch.textures import tensor_map
from drywarp.kernel.profile import SPACE_REMOTE, SPACE_SHARED
from tests.effort import first

from .support import run

ARCHES = ("sm_90", "sm_100")
MODES = pytest.mark.parametrize("compiled", [True, False])
RNG = np.random.default_rng(25)
PREFACE = """#include <cooperative_groups.h>
#include <cstdint>
namespace cg = cooperative_groups;
__device__ uint32_t at(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ uint32_t map(uint32_t a, uint32_t rank) {
  uint32_t r; asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(rank)); return r; }
__device__ void begin(uint64_t* b, uint32_t arrivals, uint32_t bytes) { if (threadIdx.x == 0) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(b)), "r"(arrivals));
  asm volatile("fence.mbarrier_init.release.cluster;");
  if (bytes)
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at(b)), "r"(bytes) : "memory"); } }
__device__ void wait(uint64_t* b, int phase) { int p;
  do asm volatile("{.reg .pred P; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 P, [%1], %2;"
    "selp.s32 %0, 1, 0, P;}" : "=r"(p) : "r"(at(b)), "r"(phase) : "memory"); while (!p); }
"""


@MODES
@pytest.mark.parametrize("arch", first(ARCHES))
def test_identity_of_a_block_in_its_cluster(arch, compiled):
    names = (
        "cluster_ctaid.x cluster_ctaid.y cluster_ctaid.z cluster_nctaid.x cluster_nctaid.y cluster_nctaid.z clusterid.x"
        " clusterid.y clusterid.z nclusterid.x nclusterid.y nclusterid.z cluster_ctarank cluster_nctarank"
    ).split()
    reads = "".join(f'asm volatile("mov.u32 %0, %%{name};" : "=r"(r)); out[{n}] = r;' for n, name in enumerate(names))
    explicit = 'asm volatile("{.reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p;}" : "=r"(r));'
    source = f"""extern "C" __global__ void k(unsigned* all) {{
      unsigned r, *out = all + 15 * (blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
      {reads} {explicit} out[14] = r; }}"""
    grid, size = (6, 4, 2), (3, 2, 1)
    got = run(source, grid, 1, np.zeros(48 * 15, np.uint32), arch=arch, cluster=size, compiled=compiled)
    want = [
        [
            *(x % 3, y % 2, z % 1, *size, x // 3, y // 2, z, 2, 2, 2, x % 3 + 3 * (y % 2), 6, 1)
        ]
        for z, y, x in itertools.product(range(2), range(4), range(6))
    ]  # fmt: skip
    np.testing.assert_array_equal(got.buffer("all").reshape(-1, 15), want)


@MODES
@pytest.mark.parametrize("arch", first(ARCHES))
def test_neighbours_read_each_others_shared_memory(arch, compiled):
    source = (
        PREFACE
        + """extern "C" __global__ void __cluster_dims__(4, 1, 1) k(const float* x, float* y) {
      __shared__ float s[96]; auto c = cg::this_cluster(); int i = blockIdx.x * 96 + threadIdx.x;
      s[threadIdx.x] = x[i]; c.sync();
      float* next = c.map_shared_rank(s, (c.block_rank() + 1) % c.num_blocks());
      y[i] = s[threadIdx.x] - next[95 - threadIdx.x]; c.sync(); }"""
    )
    data = RNG.random(8 * 96).astype(np.float32)
    got = run(source, 8, 96, data, np.zeros_like(data), arch=arch, compiled=compiled)
    blocks = data.reshape(2, 4, 96)
    want = blocks - np.roll(blocks, -1, axis=1)[..., ::-1]
    np.testing.assert_array_equal(got.buffer("y"), want.ravel())


def test_record_of_remote_accesses():
    source = (
        PREFACE
        + """extern "C" __global__ void __cluster_dims__(2, 1, 1) k(int* y) {
      __shared__ int s[32]; auto c = cg::this_cluster(); s[threadIdx.x] = threadIdx.x; c.sync();
      // One lane in four reads its own block's.
      int* p = c.map_shared_rank(s, c.block_rank() ^ (threadIdx.x % 4 != 0));
      y[threadIdx.x + 32 * blockIdx.x] = p[threadIdx.x]; c.sync(); }"""
    )
    profile = run(source, 2, 32, np.zeros(64, np.int32), arch="sm_90").profile
    index = next(n for n, i in enumerate(profile.kernel.instructions) if i.opcode == "LD")
    log = profile.accesses
    rows = np.flatnonzero(log.instruction == index)
    found = {(int(log.warp[r]), int(log.space[r])): int(log.masks[log.pattern[r]]) for r in rows}
    own = 0x11111111
    assert found == {(w, s): m for w in (0, 1) for s, m in ((SPACE_SHARED, own), (SPACE_REMOTE, own ^ 0xFFFFFFFF))}


@MODES
@pytest.mark.parametrize("size", [1, 2, 4])
def test_histogram_spread_over_a_cluster(size, compiled):
    source = (
        PREFACE
        + """extern "C" __global__ void k(const int* x, int* bins, int n) {
      extern __shared__ int h[]; auto c = cg::this_cluster();
      for (int i = threadIdx.x; i < 32; i += blockDim.x) h[i] = 0;
      c.sync(); int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) { int b = x[i]; atomicAdd(c.map_shared_rank(h, b / 32 % c.num_blocks()) + b % 32, 1 + b); }
      c.sync();
      for (int i = threadIdx.x; i < 32; i += blockDim.x) atomicAdd(bins + c.block_rank() * 32 + i, h[i]); }"""
    )
    data = RNG.integers(0, 128, 1000).astype(np.int32)
    shape = (size, 1, 1)
    got = run(
        source, 4, 256, data, np.zeros(128, np.int32), 1000, arch="sm_90", cluster=shape, dynamic_shared=128,
        compiled=compiled,
    )  # fmt: skip
    want = np.bincount(data % (32 * size), data + 1, minlength=128).astype(np.int32)
    np.testing.assert_array_equal(got.buffer("bins"), want)


@MODES
@pytest.mark.parametrize("arch", first(ARCHES))
def test_remote_stores_atomics_and_arrivals(arch, compiled):
    source = (
        PREFACE
        + """extern "C" __global__ void __cluster_dims__(2, 1, 1) k(unsigned* y) {
      __shared__ unsigned s[64]; __shared__ uint64_t b;
      unsigned t = threadIdx.x, rank = cg::this_cluster().block_rank(); begin(&b, 64, 0); cg::this_cluster().sync();
      uint32_t there = map(at(s + t), rank ^ 1), q, w, g;
      for (int phase = 0; phase < 3; ++phase) {
        asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(there), "r"(rank * 1000 + t + phase) : "memory");
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
          :: "r"(map(at(&b), rank ^ 1)) : "memory");
        wait(&b, phase & 1); y[(phase * 2 + blockIdx.x) * 64 + t] = s[t]; cg::this_cluster().sync(); }
      asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(q) : "r"(there));
      asm volatile("atom.shared::cluster.add.u32 %0, [%1], 5;" : "=r"(w) : "r"(there));
      asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(g) : "r"(there));
      cg::this_cluster().sync();
      y += 384; y[blockIdx.x * 256 + t] = q; y[blockIdx.x * 256 + 64 + t] = w; y[blockIdx.x * 256 + 128 + t] = g;
      y[blockIdx.x * 256 + 192 + t] = s[t]; }"""
    )
    got = run(source, 2, 64, np.zeros(384 + 512, np.uint32), arch=arch, compiled=compiled).buffer("y")
    t = np.arange(64)
    phases = got[:384].reshape(3, 2, 64)
    for phase, rank in itertools.product(range(3), range(2)):
        np.testing.assert_array_equal(phases[phase, rank], (1 - rank) * 1000 + t + phase)
    for rank in range(2):
        q, w, g, s = got[384:].reshape(2, 4, 64)[rank]
        np.testing.assert_array_equal(q, rank * 1000 + t + 2)
        np.testing.assert_array_equal(w, q)
        np.testing.assert_array_equal(g, np.full(64, 1 - rank))
        np.testing.assert_array_equal(s, (1 - rank) * 1000 + t + 2 + 5)


@MODES
def test_asynchronous_stores(compiled):
    source = (
        PREFACE
        + """#define STORE(what, ...) \\
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes" what :: __VA_ARGS__)
      extern "C" __global__ void k(unsigned* y) {
      __shared__ alignas(16) unsigned s[3][64][4]; __shared__ uint64_t b; unsigned t = threadIdx.x;
      auto c = cg::this_cluster(); unsigned rank = c.block_rank(), to = (rank + 1) % c.num_blocks();
      begin(&b, 1, 64 * 28); for (int i = t; i < 768; i += 64) (&s[0][0][0])[i] = 9; c.sync();
      uint32_t rb = map(at(&b), to); unsigned v = rank * 1000 + t;
      STORE(".u32 [%0], %1, [%2];", "r"(map(at(s[0][t]), to)), "r"(v), "r"(rb) : "memory");
      STORE(".v2.u32 [%0], {%1, %2}, [%3];", "r"(map(at(s[1][t]), to)), "r"(v), "r"(v + 1), "r"(rb) : "memory");
      STORE(".v4.u32 [%0], {%1, %2, %1, %3}, [%4];",
        "r"(map(at(s[2][t]), to)), "r"(v), "r"(v + 1), "r"(7), "r"(rb) : "memory");
      wait(&b, 0);
      for (int i = t; i < 768; i += 64) y[blockIdx.x * 768 + i] = (&s[0][0][0])[i]; c.sync(); }"""
    )
    cluster = (3, 1, 1)
    got = run(source, 6, 64, np.zeros(6 * 768, np.uint32), arch="sm_90", cluster=cluster, compiled=compiled)
    for block, (one, two, four) in enumerate(got.buffer("y").reshape(6, 3, 64, 4)):
        v = (block % 3 + 2) % 3 * 1000 + np.arange(64)
        nine = np.full(64, 9)
        np.testing.assert_array_equal(one, np.stack([v, nine, nine, nine], axis=1))
        np.testing.assert_array_equal(two, np.stack([v, v + 1, nine, nine], axis=1))
        np.testing.assert_array_equal(four, np.stack([v, v + 1, v, nine - 2], axis=1))


_REDUCTIONS = {
    ("add", "u32"): lambda old, a: np.append(a, old).sum(dtype=np.uint32),
    ("add", "u64"): lambda old, a: np.append(a, old).sum(dtype=np.uint64),
    ("min", "s32"): lambda old, a: np.minimum(old, a.min()),
    ("max", "u32"): lambda old, a: np.maximum(old, a.max()),
    ("and", "b32"): lambda old, a: old & np.bitwise_and.reduce(a),
    ("or", "b32"): lambda old, a: old | np.bitwise_or.reduce(a),
    ("xor", "b32"): lambda old, a: old ^ np.bitwise_xor.reduce(a),
}


@pytest.mark.parametrize(("operation", "kind"), list(_REDUCTIONS))
def test_asynchronous_reductions(operation, kind):
    dtype = np.dtype({"u": "u", "s": "i", "b": "u"}[kind[0]] + str(int(kind[1:]) // 8))
    number = {"u32": "unsigned", "b32": "unsigned", "s32": "int", "u64": "unsigned long long"}[kind]
    letter = "l" if dtype.itemsize == 8 else "r"
    source = (
        PREFACE
        + f"""extern "C" __global__ void __cluster_dims__(2, 1, 1) k(const {number}* x, {number}* y) {{
      __shared__ {number} s; __shared__ uint64_t b; unsigned rank = cg::this_cluster().block_rank();
      begin(&b, 1, 64 * sizeof s); s = x[128 + rank]; cg::this_cluster().sync();
      asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes"
        ".{operation}.{kind} [%0], %1, [%2];"
        :: "r"(map(at(&s), rank ^ 1)), "{letter}"(x[64 * rank + threadIdx.x]), "r"(map(at(&b), rank ^ 1)) : "memory");
      wait(&b, 0); y[rank] = s; cg::this_cluster().sync(); }}"""
    )
    info = np.iinfo(dtype)
    data = RNG.integers(info.min, info.max, 130, dtype=dtype)
    got = run(source, 2, 64, data, np.zeros(2, dtype), arch="sm_90").buffer("y")
    want = [_REDUCTIONS[operation, kind](data[128 + r], data[64 * (1 - r) :][:64]) for r in range(2)]
    np.testing.assert_array_equal(got, np.array(want, dtype))


@MODES
def test_bulk_copies_to_several_blocks_and_to_another(compiled):
    source = (
        PREFACE
        + """extern "C" __global__ void k(const unsigned* x, unsigned* y) {
      __shared__ alignas(128) unsigned s[512], own[128]; __shared__ uint64_t b;
      auto c = cg::this_cluster(); unsigned rank = c.block_rank(), n = c.num_blocks(), next = (rank + 1) % n;
      const unsigned* from = x + blockIdx.x / n * 512;
      begin(&b, 1, 2048); c.sync();
      if (threadIdx.x == 0 && rank == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
          " [%0], [%1], %2, [%3], %4;"
          :: "r"(at(s)), "l"(from), "r"(1024), "r"(at(&b)), "h"((short)((1 << n) - 1)) : "memory");
      if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
          :: "r"(map(at(s + 256), next)), "l"(from + 256 + 128 * (rank & 1)), "r"(512), "r"(map(at(&b), next))
          : "memory");
        for (int i = 0; i < 128; ++i) own[i] = 1000 * rank + i;
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
          :: "r"(map(at(s + 384), next)), "r"(at(own)), "r"(512), "r"(map(at(&b), next)) : "memory"); }
      wait(&b, 0);
      for (int i = threadIdx.x; i < 512; i += 128) y[blockIdx.x * 512 + i] = s[i]; c.sync(); }"""
    )
    blocks, size = 8, 4
    data = RNG.integers(0, 2**32, blocks // size * 512, dtype=np.uint32)
    got = run(
        source, blocks, 128, data, np.zeros(blocks * 512, np.uint32), arch="sm_90", cluster=(size, 1, 1),
        compiled=compiled,
    )  # fmt: skip
    for block, found in enumerate(got.buffer("y").reshape(blocks, 512)):
        given, before = data[block // size * 512 :][:512], (block + size - 1) % size
        np.testing.assert_array_equal(found[:256], given[:256])
        np.testing.assert_array_equal(found[256:384], given[256 + 128 * (before & 1) :][:128])
        np.testing.assert_array_equal(found[384:], 1000 * before + np.arange(128))


@MODES
@pytest.mark.parametrize("swizzle", [0, 128])
def test_tensor_copies_to_several_blocks(swizzle, compiled):
    source = (
        PREFACE
        + """struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };
      extern "C" __global__ void k(const __grid_constant__ CUtensorMap m, unsigned* y) {
      __shared__ alignas(1024) unsigned s[2][256]; __shared__ uint64_t b;
      auto c = cg::this_cluster(); unsigned rank = c.block_rank();
      begin(&b, 1, 2048); c.sync();
      if (threadIdx.x == 0) // each block copies one of the two boxes for both
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
          ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" :: "r"(at(s[rank])), "l"(&m),
          "r"(32 * (int)(blockIdx.x / 2)), "r"(8 * (int)rank), "r"(at(&b)), "h"((short)3) : "memory");
      wait(&b, 0);
      for (int i = threadIdx.x; i < 512; i += 64) y[blockIdx.x * 512 + i] = (&s[0][0])[i]; c.sync(); }"""
    )
    kernel = compile_cuda(source, arch="sm_90")
    data = RNG.integers(0, 2**32, (16, 64), dtype=np.uint32)
    m = tensor_map(data, box=(8, 32), swizzle=swizzle)
    launch = make_launch(kernel, (4, 1, 1), (64, 1, 1), {"m": m, "y": np.zeros(2048, np.uint32)}, cluster=(2, 1, 1))
    got = emulate(kernel, launch, blocks="all", compiled=compiled).buffer("y").reshape(2, 2, 16, 8, 4)
    row = np.arange(16)[:, None]
    chunk = np.arange(8)[None] ^ (row % 8 if swizzle else 0)
    for cluster in range(2):
        pieces = data[:, 32 * cluster :][:, :32].reshape(16, 8, 4)
        for rank in range(2):
            np.testing.assert_array_equal(got[cluster, rank], pieces[row, chunk])


@MODES
@pytest.mark.parametrize("mask", [0, 0b0110, 0b1111])
def test_tensor_copies_report_to_the_barrier_of_either_block_of_a_pair(mask, compiled):
    """Alone, each block reports to the even block of its pair; block 1 of four copies to all in a mask, to odd ones."""
    several, last = (".multicast::cluster", ', "h"((short)mask)') if mask else ("", "")
    source = (
        PREFACE
        + f"""struct alignas(64) CUtensorMap {{ unsigned long long opaque[16]; }};
      extern "C" __global__ void k(const __grid_constant__ CUtensorMap m, unsigned mask, unsigned* y, int* done) {{
      __shared__ alignas(1024) unsigned s[256]; __shared__ uint64_t b;
      auto c = cg::this_cluster(); unsigned rank = c.block_rank();
      bool receives = mask >> rank & 1, other = mask >> (rank ^ 1) & 1;
      unsigned bytes = 1024 * (mask ? rank & 1 ? receives + other : 0 : rank & 1 ? 0 : 2);
      for (int i = threadIdx.x; i < 256; i += 64) s[i] = 0;
      begin(&b, 1, bytes); c.sync();
      unsigned pair = mask ? at(&b) | 1 << 24 : at(&b) & ~(1u << 24);
      if (threadIdx.x == 0 && (mask == 0 || rank == 1))
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes{several}"
          ".cta_group::2 [%0], [%1, {{%2, %3}}], [%4]{", %5" if mask else ""};" :: "r"(at(s)), "l"(&m),
          "r"(0), "r"(8 * (int)rank), "r"(pair){last} : "memory");
      if (bytes) wait(&b, 0); done[blockIdx.x] = 1 + (bytes > 0); c.sync();
      for (int i = threadIdx.x; i < 256; i += 64) y[blockIdx.x * 256 + i] = s[i]; }}"""
    )
    kernel = compile_cuda(source, arch="sm_100a")
    data = RNG.integers(0, 2**32, (32, 32), dtype=np.uint32)
    out = {"y": np.zeros(1024, np.uint32), "done": np.zeros(4, np.int32)}
    args = {"m": tensor_map(data, box=(8, 32)), "mask": mask, **out}
    launch = make_launch(kernel, (4, 1, 1), (64, 1, 1), args, cluster=(4, 1, 1))
    got = emulate(kernel, launch, blocks="all", compiled=compiled)
    assert any("2CTA" in i.modifiers for i in kernel.instructions)
    assert got.buffer("done").tolist() == {0: [2, 1, 2, 1], 6: [1, 2, 1, 2], 15: [1, 2, 1, 2]}[mask]
    for rank, found in enumerate(got.buffer("y").reshape(4, 8, 32)):
        row = rank if not mask else 1
        expected = data[8 * row :][:8] if not mask or mask >> rank & 1 else np.zeros((8, 32), np.uint32)
        np.testing.assert_array_equal(found, expected)


@MODES
def test_a_barrier_of_the_cluster_counts_blocks_that_have_left(compiled):
    source = (
        PREFACE
        + """extern "C" __global__ void __cluster_dims__(2, 2, 1) k(int* y) {
      auto c = cg::this_cluster(); unsigned rank = c.block_rank();
      if (rank == 3 && threadIdx.x >= 32) return;
      auto token = c.barrier_arrive(); y[rank * 64 + threadIdx.x] = 1;
      c.barrier_wait(std::move(token));
      if (rank == 2) return;
      for (int i = 0; i < 2 + (rank == 1) * 0; ++i) c.sync();
      y[rank * 64 + threadIdx.x] += y[(rank ^ 1) % 2 * 64 + threadIdx.x % 32]; }"""
    )
    got = run(source, (2, 2), 64, np.zeros(256, np.int32), arch="sm_90", compiled=compiled).buffer("y").reshape(4, 64)
    assert got[2].tolist() == [1] * 64
    assert got[3, 32:].tolist() == [0] * 32
    assert (got[:2] >= 2).all()
    assert (got[3, :32] >= 2).all()


def test_a_cluster_of_which_one_block_never_arrives():
    source = (
        PREFACE
        + """extern "C" __global__ void __cluster_dims__(2, 1, 1) k(int* y) {
      if (cg::this_cluster().block_rank() == 0)
        asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;");
      else asm volatile("barrier.sync 1, 64;"); *y = 1; }"""
    )
    with pytest.raises(EmulationError, match=r"deadlock, no warp can run: .*at a barrier; .*the one of their cluster"):
        run(source, 2, 32, np.zeros(1, np.int32), arch="sm_90")


@pytest.mark.parametrize(("grid", "block"), [((16, 1, 1), 64), ((4, 6, 2), 32)])
def test_a_sample_runs_whole_clusters(grid, block):
    source = (
        PREFACE
        + """extern "C" __global__ void __cluster_dims__(2, 1, 1) k(const int* x, int* y) {
      __shared__ int s; auto c = cg::this_cluster(); if (threadIdx.x == 0) s = x[0] + c.block_rank(); c.sync();
      int v = *c.map_shared_rank(&s, c.block_rank() ^ 1); if (c.block_rank()) v += x[threadIdx.x];
      y[threadIdx.x] = v; c.sync(); }"""
    )
    profile = run(
        source, grid, block, np.zeros(64, np.int32), np.zeros(64, np.int32), arch="sm_90", blocks=None
    ).profile
    ranks = [sample.linear % 2 for sample in profile.blocks]
    assert ranks.count(0) == ranks.count(1)
    assert sum(sample.weight for sample in profile.blocks) == pytest.approx(np.prod(grid))
    both = [sum(s.weight for s in profile.blocks if s.linear % 2 == rank) for rank in (0, 1)]
    assert both == pytest.approx([np.prod(grid) / 2] * 2)


@pytest.mark.parametrize(
    ("access", "message"),
    [
        ("s[threadIdx.x + 64] = 1;", r"shared store of 4 bytes out of bounds at address 0x1000500, block \(1, 0, 0\)"),
        ('asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(map(at(s), 0)));', "another block's is reached as"),
        ('asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(map(at(s), 5)));', "cluster has 2 blocks"),
        ('asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(map(at(s), 2)));',
         "within the block's 1280 bytes of one of the cluster's 2 blocks"),
    ],
)  # fmt: skip
def test_faults(access, message):
    source = (
        PREFACE
        + f"""extern "C" __global__ void __cluster_dims__(2, 1, 1) k(int* y) {{
      __shared__ int s[64]; int v = 0; s[threadIdx.x] = 0; if (cg::this_cluster().block_rank() == 1) {{ {access} }}
      y[threadIdx.x] = s[threadIdx.x ^ 1] + v; }}"""
    )
    with pytest.raises(EmulationError, match=message):
        run(source, 2, 64, np.zeros(64, np.int32), arch="sm_90")


def test_a_mask_with_more_blocks_than_the_cluster_has():
    source = (
        PREFACE
        + """extern "C" __global__ void k(const unsigned* x) {
      __shared__ alignas(128) unsigned s[64]; __shared__ uint64_t b; begin(&b, 1, 256); __syncthreads();
      if (threadIdx.x == 0) asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1], %2, [%3], %4;"
        :: "r"(at(s)), "l"(x), "r"(256), "r"(at(&b)), "h"((short)3) : "memory"); wait(&b, 0); }"""
    )
    with pytest.raises(EmulationError, match=r"mask 0x3, .*: expected some of the cluster's 1 blocks"):
        run(source, 2, 32, np.zeros(64, np.uint32), arch="sm_90")


def test_what_a_launch_may_state():
    stated = compile_cuda('extern "C" __global__ void __cluster_dims__(2, 1, 1) k(int* y) { *y = 1; }', arch="sm_90")
    free = compile_cuda('extern "C" __global__ void k(int* y) { *y = 1; }', arch="sm_90")
    older = compile_cuda('extern "C" __global__ void k(int* y) { *y = 1; }', arch="sm_80")

    def launch(kernel, grid, cluster) -> Launch:
        return make_launch(kernel, grid, (32, 1, 1), {"y": "i32[1]"}, cluster=cluster)

    assert launch(stated, (4, 1, 1), None).cluster == (2, 1, 1)
    assert launch(free, (4, 1, 1), None).cluster == (1, 1, 1)
    assert launch(free, (4, 4, 1), (2, 4, 1)).cluster == (2, 4, 1)
    with pytest.raises(UsageError, match=r"k: a grid of 5 blocks in x with clusters of 2: expected a multiple"):
        launch(stated, (5, 1, 1), None)
    with pytest.raises(UsageError, match=r"k: --cluster 4,1,1: its __cluster_dims__ are 2,1,1"):
        launch(stated, (4, 1, 1), (4, 1, 1))
    with pytest.raises(UsageError, match=r"--cluster 2,1,1: sm_80 has no clusters"):
        launch(older, (4, 1, 1), (2, 1, 1))


def test_members_of_a_cluster_by_rank():
    launch = Launch((6, 4, 2), (32, 1, 1), cluster=(3, 2, 2))
    assert launch.clusters == (2, 2, 1)
    members = [launch.members(cluster) for cluster in range(4)]
    assert sorted(itertools.chain(*members)) == list(range(48))
    for cluster, blocks in enumerate(members):
        assert {launch.cluster_of(block) for block in blocks} == {cluster}
        inside = [tuple(at % size for at, size in zip(launch.coordinates(b), (3, 2, 2), strict=True)) for b in blocks]
        assert inside == [(x, y, z) for z in range(2) for y in range(2) for x in range(3)]
