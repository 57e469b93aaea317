"""What came with sm_100 and sm_120: accesses of 256 bits, tiles of narrow elements, blocks that take over others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from drywarp.errors import EmulationError
from drywarp.execution.emulator import Emulation, emulate
from drywarp.kernel.launch.launch import Launch
from tests.effort import first

from .support import argument, kernels, run

RNG = np.random.default_rng(53)
ARCHES = ("sm_120a", "sm_100a")


@pytest.mark.parametrize("arch", first(ARCHES))
def test_256_bits_are_loaded_and_stored(arch: str) -> None:
    """Each thread turns its eight words round; every other thread only, so that the rest must stay."""
    names = [f"r{n}" for n in range(8)]
    loads = ", ".join(f'"=r"({name})' for name in names)
    stores = ", ".join(f'"r"({name} + 1)' for name in reversed(names))
    source = f"""extern "C" __global__ void k(const unsigned* a, unsigned* o, long long* p, const long long* q) {{
  unsigned {", ".join(names)}; int t = threadIdx.x;
  if (t % 2) return;
  asm volatile("ld.global.v8.b32 {{%0, %1, %2, %3, %4, %5, %6, %7}}, [%8];" : {loads} : "l"(a + 8 * t));
  asm volatile("st.global.v8.b32 [%0], {{%1, %2, %3, %4, %5, %6, %7, %8}};" :: "l"(o + 8 * t), {stores} : "memory");
  long long x, y, z, w;
  asm volatile("ld.global.nc.v4.b64 {{%0, %1, %2, %3}}, [%4];" : "=l"(x), "=l"(y), "=l"(z), "=l"(w) : "l"(q + 4 * t));
  asm volatile("st.global.v4.b64 [%0], {{%1, %2, %3, %4}};" :: "l"(p + 4 * t), "l"(y), "l"(z), "l"(w), "l"(x));
}}"""
    a, q = RNG.integers(0, 2**31, (64, 8)).astype(np.uint32), RNG.integers(0, 2**62, (64, 4))
    for compiled in (True, False):
        e = run(source, 1, 64, a, np.zeros_like(a), np.zeros_like(q), q, arch=arch, compiled=compiled)
        used = (np.arange(64) % 2 == 0)[:, None]
        np.testing.assert_array_equal(e.buffer("o").reshape(64, 8), np.where(used, a[:, ::-1] + np.uint32(1), 0))
        np.testing.assert_array_equal(e.buffer("p").reshape(64, 4), np.where(used, np.roll(q, -1, axis=1), 0))
        widths = {i.memory.width for i in e.profile.kernel.instructions if i.memory and ".256" in i.full_opcode}
        assert widths == {32}


def test_256_bits_lie_on_32_bytes() -> None:
    source = """extern "C" __global__ void k(const unsigned* a, unsigned* o) {
  unsigned x, r; asm volatile("{.reg .b32 b<7>; ld.global.v8.b32 {%0, b0, b1, b2, b3, b4, b5, %1}, [%2];}"
    : "=r"(x), "=r"(r) : "l"(a + 4 * threadIdx.x)); o[threadIdx.x] = x + r; }"""
    with pytest.raises(EmulationError, match=r"misaligned global load of 32 bytes .* thread \(1, 0, 0\)"):
        run(source, 1, 2, np.zeros(64, np.uint32), np.zeros(2, np.uint32), arch="sm_120a")


@pytest.mark.parametrize("arch", first(ARCHES))
@pytest.mark.parametrize(("bits", "form"), [(4, "b4x16_p64"), (6, "b6x16_p32")])
def test_tiles_of_narrow_elements_become_bytes(arch: str, bits: int, form: str) -> None:
    """Two tiles of 8 rows, 16 elements packed in the first bytes of each; the rest of a row is anything."""
    source = f"""extern "C" __global__ void k(const uint4* a, unsigned* o) {{
  __shared__ uint4 s[16]; int t = threadIdx.x; if (t < 16) s[t] = a[t]; __syncwarp();
  unsigned x, y, at = (unsigned)__cvta_generic_to_shared(s + t % 16);
  asm volatile("ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.{form} {{%0, %1}}, [%2];" : "=r"(x), "=r"(y) : "r"(at));
  o[t] = x; o[t + 32] = y; }}"""
    elements = RNG.integers(0, 1 << bits, (2, 8, 16)).astype(np.uint8)
    rows = RNG.integers(0, 256, (16, 16)).astype(np.uint8)
    for row, values in enumerate(elements.reshape(16, 16).tolist()):
        whole = sum(value << bits * n for n, value in enumerate(values))
        rows[row, : 2 * bits] = np.frombuffer(whole.to_bytes(2 * bits, "little"), np.uint8)
    e = run(source, 1, 32, rows.view(np.uint32), np.zeros((2, 32), np.uint32), arch=arch)
    np.testing.assert_array_equal(e.buffer("o").reshape(2, 32).view(np.uint8).reshape(2, 8, 16), elements)


CANCEL = """extern "C" __global__ void k(int* work, unsigned* told, int n) {
  __shared__ __align__(16) uint4 answer; __shared__ __align__(8) unsigned long long barrier;
  unsigned a = (unsigned)__cvta_generic_to_shared(&answer), b = (unsigned)__cvta_generic_to_shared(&barrier), phase = 0;
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(b) : "memory");
  __syncthreads();
  for (unsigned block = blockIdx.x;;) {
    if (threadIdx.x == 0) {
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 16;" :: "r"(b) : "memory");
      asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];"
                   :: "r"(a), "r"(b) : "memory");
    }
    for (int i = threadIdx.x; i < n; i += blockDim.x) work[block * n + i] += block + i;
    unsigned done = 0;
    while (!done)
      asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                   : "=r"(done) : "r"(b), "r"(phase) : "memory");
    phase ^= 1;
    unsigned found, x;
    asm volatile("{.reg .b128 r; .reg .pred p; ld.shared.b128 r, [%2];"
                 "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, r; selp.u32 %0, 1, 0, p;"
                 "@p clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %1, r;}"
                 : "=r"(found), "=r"(x) : "r"(a) : "memory");
    if (threadIdx.x == 0) told[blockIdx.x] += 1 + 100 * found;
    if (!found) break;
    __syncthreads();
    block = x;
  }
}"""


@pytest.mark.parametrize("arch", first(ARCHES))
def test_a_program_that_takes_over_blocks_does_all_the_work_once(arch: str) -> None:
    """No block is taken over: each asks once, is told so, and its own work is done."""
    blocks, n = 5, 100
    for compiled in (True, False):
        e = run(
            CANCEL, blocks, 64, np.zeros((blocks, n), np.int32), np.zeros(blocks, np.uint32), n,
            arch=arch, compiled=compiled,
        )  # fmt: skip
        want = np.arange(blocks)[:, None] + np.arange(n)
        np.testing.assert_array_equal(e.buffer("work").reshape(blocks, n), want)
        assert e.buffer("told").tolist() == [1] * blocks
        assert any("each block does its own work" in note for note in e.profile.notes)
        assert any(i.opcode == "UGETNEXTWORKID" for i in e.profile.kernel.instructions)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("starts", [1, 2, 3, 5, 7])
def test_blocks_that_start_take_over_the_others_in_turn(starts: int, compiled: bool) -> None:
    """Block b does b, b + starts, b + 2 · starts and so on; each block's work is done once."""
    blocks, n = 7, 100
    kernel = kernels.kernel(CANCEL, "sm_100a")
    arguments = (np.zeros((blocks, n), np.int32), np.zeros(blocks, np.uint32), n)
    launch = Launch((blocks, 1, 1), (64, 1, 1), tuple(map(argument, arguments)), starts=starts)
    e = emulate(kernel, launch, blocks="all", compiled=compiled)
    want = np.arange(blocks)[:, None] + np.arange(n)
    np.testing.assert_array_equal(e.buffer("work").reshape(blocks, n), want)
    asked = [len(range(block, blocks, starts)) if block < starts else 0 for block in range(blocks)]
    assert e.buffer("told").tolist() == [a + 100 * (a - 1) if a else 0 for a in asked]
    assert [sample.linear for sample in e.profile.blocks] == list(range(starts))
    assert not e.left
    assert any("take over the other" in note for note in e.profile.notes) == (starts < blocks)


TAKEN = """extern "C" __global__ void __cluster_dims__(2, 2, 1) k(uint2* by, int most) {
  __shared__ __align__(16) uint4 answer; __shared__ __align__(8) unsigned long long barrier;
  unsigned a = (unsigned)__cvta_generic_to_shared(&answer), b = (unsigned)__cvta_generic_to_shared(&barrier);
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(b) : "memory");
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
  unsigned x = blockIdx.x, y = blockIdx.y, z = blockIdx.z, phase = 0;
  for (int turn = 0; turn < most; turn++) {
    if (threadIdx.x == 0)
      asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 16;" :: "r"(b) : "memory");
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    if (blockIdx.x % 2 == 0 && blockIdx.y % 2 == 0 && threadIdx.x == 0)
      asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
                   ".multicast::cluster::all.b128 [%0], [%1];" :: "r"(a), "r"(b) : "memory");
    if (threadIdx.x == 0)
      by[(z * gridDim.y + y) * gridDim.x + x] = make_uint2(blockIdx.x + 1, 100 * blockIdx.z + blockIdx.y + 1);
    unsigned done = 0, found, tx, ty, tz;
    while (!done)
      asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                   : "=r"(done) : "r"(b), "r"(phase) : "memory");
    phase ^= 1;
    asm volatile("{.reg .b128 r; .reg .pred p; ld.shared.b128 r, [%4];"
                 "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, r; selp.u32 %0, 1, 0, p;"
                 "@p clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%1, %2, %3, _}, r;}"
                 : "=r"(found), "=r"(tx), "=r"(ty), "=r"(tz) : "r"(a) : "memory");
    if (!found) break;
    x = tx + blockIdx.x % 2, y = ty + blockIdx.y % 2, z = tz;
  }
}"""


def _taken(starts: int, most: int = 100, **how: Any) -> Emulation:
    kernel = kernels.kernel(TAKEN, "sm_100a")
    by = argument(np.zeros((3, 4, 6, 2), np.uint32))
    launch = Launch((6, 4, 3), (32, 1, 1), (by, argument(most)), cluster=(2, 2, 1), starts=starts)
    return emulate(kernel, launch, **how)


@pytest.mark.parametrize("compiled", [True, False])
def test_clusters_take_over_clusters_of_a_grid_in_three_dimensions(compiled: bool) -> None:
    """The answer names the first block of the cluster that is taken over, in x, y and z."""
    for starts in (4, 18):
        e = _taken(starts, blocks="all", compiled=compiled)
        z, y, x = np.indices((3, 4, 6))
        cluster = x // 2 + 3 * (y // 2 + 2 * z)
        by = cluster % starts
        want = np.stack([by % 3 * 2 + x % 2 + 1, 100 * (by // 6) + by // 3 % 2 * 2 + y % 2 + 1], axis=-1)
        np.testing.assert_array_equal(e.buffer("by").reshape(3, 4, 6, 2), want)
        assert len(e.profile.blocks) == 4 * starts
        assert not e.left


def test_a_sample_represents_the_clusters_that_start() -> None:
    """Weights add up to the blocks that start, so that the counts are those of all of the work."""
    whole, sampled = _taken(4, blocks="all").profile, _taken(4).profile
    for profile in (whole, sampled):
        assert sum(sample.weight for sample in profile.blocks) == 16
        assert {s.coordinates for s in profile.blocks} <= {(x, y, 0) for x in range(6) for y in range(4)}
    assert sampled.sampling is not None
    assert whole.sampling is not None
    assert sampled.sampling.estimate == whole.sampling.estimate


def test_clusters_that_stop_asking_leave_work() -> None:
    """With three turns each, 4 clusters cannot do the work of 18."""
    assert _taken(4, most=3, blocks="all").left
    assert not _taken(6, most=3, blocks="all").left
    assert _taken(6, most=2, blocks="all").left, "nobody was told that none is left"
    assert not _taken(0, most=1, blocks="all").left, "all of them start"


def test_one_block_asks_for_its_whole_cluster() -> None:
    """The answer and the signal reach every block of the cluster; what lay there before is overwritten."""
    source = """extern "C" __global__ void __cluster_dims__(4, 1, 1) k(unsigned* told) {
  __shared__ __align__(16) uint4 answer[2]; __shared__ __align__(8) unsigned long long barrier;
  unsigned a = (unsigned)__cvta_generic_to_shared(answer + 1), done = 0;
  unsigned b = (unsigned)__cvta_generic_to_shared(&barrier);
  if (threadIdx.x == 0) {
    answer[0] = answer[1] = make_uint4(7, 7, 7, 7);
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(b) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 16;" :: "r"(b) : "memory");
  }
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
  if (blockIdx.x % 4 == 1 && threadIdx.x == 0)
    asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
                 ".multicast::cluster::all.b128 [%0], [%1];" :: "r"(a), "r"(b) : "memory");
  while (!done)
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}"
                 : "=r"(done) : "r"(b) : "memory");
  if (threadIdx.x == 0) told[2 * blockIdx.x] = answer[0].x, told[2 * blockIdx.x + 1] = answer[1].x + answer[1].z;
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}"""
    for compiled in (True, False):
        e = run(source, 8, 32, np.full(16, 9, np.uint32), arch="sm_100a", compiled=compiled)
        assert e.buffer("told").reshape(8, 2).tolist() == [[7, 0]] * 8
        assert any("BROADCAST" in i.modifiers for i in e.profile.kernel.instructions if i.opcode == "UGETNEXTWORKID")
