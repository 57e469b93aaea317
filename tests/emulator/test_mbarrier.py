"""Barriers in shared memory: arrivals, announced bytes, phases, and who waits for whom."""

from __future__ import annotations

import numpy as np
import pytest

from drywarp.errors import EmulationError
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.kernel.profile import SYNC_SIGNAL, SYNC_WAIT
from tests.effort import first

from .support import run

ARCHES = ("sm_90", "sm_100", "sm_120")
PREFACE = """#include <cstdint>
__device__ uint32_t at(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ void init(uint64_t* b, uint32_t n) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(b)), "r"(n)); }
__device__ uint64_t arrive(uint64_t* b) { uint64_t s;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(s) : "r"(at(b)) : "memory"); return s; }
__device__ void expect(uint64_t* b, uint32_t n) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at(b)), "r"(n) : "memory"); }
__device__ int tested(uint64_t* b, uint32_t parity) { int p;
  asm volatile("{.reg .pred P; mbarrier.test_wait.parity.shared::cta.b64 P, [%1], %2; selp.s32 %0, 1, 0, P;}"
    : "=r"(p) : "r"(at(b)), "r"(parity) : "memory"); return p; }
__device__ int tried(uint64_t* b, uint32_t parity) { int p;
  asm volatile("{.reg .pred P; mbarrier.try_wait.parity.shared::cta.b64 P, [%1], %2; selp.s32 %0, 1, 0, P;}"
    : "=r"(p) : "r"(at(b)), "r"(parity) : "memory"); return p; }
__device__ void wait(uint64_t* b, uint32_t parity) { while (!tried(b, parity)) {} }
"""


@pytest.mark.parametrize("arch", first(ARCHES))
def test_phases_follow_arrivals(arch):
    """A phase ends with the last of three arrivals; its parity flips each time."""
    source = (
        PREFACE
        + """extern "C" __global__ void k(int* out) {
      __shared__ uint64_t b; init(&b, 3);
      for (int i = 0; i < 8; ++i) { out[2 * i] = tested(&b, 0); out[2 * i + 1] = tested(&b, 1); arrive(&b); } }"""
    )
    got = run(source, 1, 1, np.zeros(16, np.int32), arch=arch).buffer("out").reshape(8, 2)
    phase = np.arange(8) // 3 % 2
    np.testing.assert_array_equal(got[:, 0], phase != 0)
    np.testing.assert_array_equal(got[:, 1], phase != 1)


@pytest.mark.parametrize("arch", first(ARCHES))
def test_every_lane_arrives_for_itself(arch):
    source = (
        PREFACE
        + """extern "C" __global__ void k(int* out) {
      __shared__ uint64_t b; if (threadIdx.x == 0) init(&b, 96);
      __syncthreads(); arrive(&b); wait(&b, 0); out[threadIdx.x] = tested(&b, 0) * 10 + tested(&b, 1); }"""
    )
    got = run(source, 1, 96, np.zeros(96, np.int32), arch=arch).buffer("out")
    assert (got == 10).all()


def test_lanes_of_a_warp_name_different_barriers():
    """Of 32 lanes 16 arrive at each: the first expects 17, so only the second's phase is over, and then its own."""
    source = (
        PREFACE
        + """extern "C" __global__ void k(int* own, int* both, int* after) {
      __shared__ uint64_t b[2]; if (threadIdx.x == 0) { init(b, 17); init(b + 1, 16); }
      __syncwarp(); uint64_t* mine = b + threadIdx.x % 2;
      arrive(mine); own[threadIdx.x] = tested(mine, 0); both[threadIdx.x] = 2 * tested(b, 0) + tested(b + 1, 0);
      __syncwarp(); if (threadIdx.x == 0) arrive(b);
      __syncwarp(); wait(mine, 0); after[threadIdx.x] = tested(mine, 0); }"""
    )
    got = run(source, 1, 32, *(np.zeros(32, np.int32) for _ in range(3)), arch="sm_90")
    np.testing.assert_array_equal(got.buffer("own"), np.arange(32) % 2)
    assert (got.buffer("both") == 1).all()
    assert (got.buffer("after") == 1).all()


def test_the_state_tells_what_was_pending_before():
    """`mbarrier.pending_count` of the state of each of five arrivals, by one thread and by five lanes at once."""
    source = (
        PREFACE
        + """
    __device__ uint32_t pending(uint64_t s) { uint32_t n;
      asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(n) : "l"(s)); return n; }
    extern "C" __global__ void k(int* out) {
      __shared__ uint64_t b, c; if (threadIdx.x == 0) { init(&b, 7); init(&c, 9); }
      __syncthreads();
      if (threadIdx.x == 0) for (int i = 0; i < 5; ++i) out[i] = pending(arrive(&b));
      uint64_t s;
      asm volatile("mbarrier.arrive.noComplete.shared::cta.b64 %0, [%1], 1;" : "=l"(s) : "r"(at(&c)) : "memory");
      out[5 + threadIdx.x] = pending(s); }"""
    )
    got = run(source, 1, 5, np.zeros(10, np.int32), arch="sm_90").buffer("out")
    np.testing.assert_array_equal(got, [7, 6, 5, 4, 3, 9, 8, 7, 6, 5])


def test_counts_bytes_and_leaving():
    source = (
        PREFACE
        + """extern "C" __global__ void k(int* out) {
      __shared__ uint64_t b; uint32_t a = at(&b); init(&b, 2); int n = 0;
      expect(&b, 64); out[n++] = tested(&b, 0);
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], 1;" :: "r"(a) : "memory"); out[n++] = tested(&b, 0);
      asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 48;" :: "r"(a)); out[n++] = tested(&b, 0);
      asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 16;" :: "r"(a)); out[n++] = tested(&b, 0);
      asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 32;" :: "r"(a));
      asm volatile("mbarrier.arrive_drop.shared::cta.b64 _, [%0];" :: "r"(a) : "memory"); out[n++] = tested(&b, 1);
      asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 32;" :: "r"(a)); out[n++] = tested(&b, 1);
      arrive(&b); out[n++] = tested(&b, 1);
      arrive(&b); out[n++] = tested(&b, 0);
    }"""
    )
    got = run(source, 1, 1, np.zeros(8, np.int32), arch="sm_90").buffer("out")
    # Bytes may be told before they are announced; after the drop one arrival is enough.
    np.testing.assert_array_equal(got, [0, 0, 0, 1, 0, 0, 1, 1])


PIPELINE = (
    PREFACE
    + """extern "C" __global__ void k(const int* in, int* out, int n) {
  __shared__ int ring[STAGES][32]; __shared__ uint64_t full[STAGES], empty[STAGES];
  if (threadIdx.x == 0) for (int s = 0; s < STAGES; ++s) { init(full + s, 32); init(empty + s, 32); }
  __syncthreads();
  int lane = threadIdx.x % 32;
  for (int i = 0; i < n; ++i) {
    int s = i % STAGES, phase = i / STAGES % 2;
    if (threadIdx.x < 32) { wait(empty + s, phase ^ 1); ring[s][lane] = in[32 * i + lane]; arrive(full + s); }
    else { wait(full + s, phase); out[32 * i + lane] = ring[s][31 - lane]; arrive(empty + s); }
  } }"""
)


@pytest.mark.parametrize("arch", first(ARCHES))
@pytest.mark.parametrize("stages", first([3, 1]))
def test_producer_and_consumer(arch, stages):
    data = np.arange(10 * 32, dtype=np.int32)
    kernel = compile_cuda(PIPELINE.replace("STAGES", str(stages)), arch=arch)
    got = run(kernel, 3, 64, data, np.zeros_like(data), 10, arch=arch)
    np.testing.assert_array_equal(got.buffer("out").reshape(10, 32), data.reshape(10, 32)[:, ::-1])
    assert got.profile.notes == ()


def test_the_record_says_who_waited_for_whom():
    data = np.arange(6 * 32, dtype=np.int32)
    run_ = run(PIPELINE.replace("STAGES", "2"), 2, 64, data, np.zeros_like(data), 6, arch="sm_90")
    rows = run_.profile.syncs
    for block in range(2):
        mine = rows[rows[:, 0] // 2 == block]
        for warp, kind, phases in (
            (0, SYNC_WAIT, [-1, -1, 0, 0, 1, 1]),
            (0, SYNC_SIGNAL, [0, 0, 1, 1, 2, 2]),
            (1, SYNC_WAIT, [0, 0, 1, 1, 2, 2]),
            (1, SYNC_SIGNAL, [0, 0, 1, 1, 2, 2]),
        ):
            those = mine[(mine[:, 0] % 2 == warp) & (mine[:, 3] == kind)]
            assert those[:, 5].tolist() == phases
            # The two stages take turns, and every row lies in a step that issues its instruction.
            assert (those[:, 4] == np.resize(those[:2, 4], 6)).all()
        for warp, step, instruction in mine[:, :3].tolist():
            path = run_.profile.paths[run_.profile.blocks[block].paths[warp % 2]]
            basic = run_.profile.cfg.blocks[path.blocks[step]]
            assert basic.start <= instruction < basic.end


def test_a_wait_that_nobody_ends_is_a_deadlock():
    source = (
        PREFACE
        + """extern "C" __global__ void k(int* out) {
      __shared__ uint64_t b; init(&b, 2); arrive(&b); wait(&b, 0); out[0] = 1; }"""
    )
    with pytest.raises(EmulationError, match=r"deadlock.*mbarrier"):
        run(source, 1, 1, np.zeros(1, np.int32), arch="sm_90")


def test_a_look_before_the_own_arrival_runs_out_of_time():
    """A wait may end without its phase; a thread that looks before it has arrived itself goes on."""
    source = (
        PREFACE
        + """extern "C" __global__ void k(int* out) {
      __shared__ uint64_t b; init(&b, 1); out[0] = tried(&b, 0); arrive(&b); out[1] = tried(&b, 0); }"""
    )
    got = run(source, 1, 1, np.zeros(2, np.int32), arch="sm_90")
    assert got.buffer("out").tolist() == [0, 1]
    assert any("timed out" in note for note in got.profile.notes)


def test_a_look_whose_answer_nobody_reads_runs_out_of_time_too():
    source = (
        PREFACE
        + """extern "C" __global__ void k(int* out) {
      __shared__ uint64_t b; init(&b, 1);
      asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;}" ::
        "r"((uint32_t)__cvta_generic_to_shared(&b)) : "memory");
      out[0] = 1; }"""
    )
    assert run(source, 1, 1, np.zeros(1, np.int32), arch="sm_90").buffer("out").tolist() == [1]


def test_too_many_arrivals_are_an_error():
    source = (
        PREFACE
        + """extern "C" __global__ void k(int* out) {
      __shared__ uint64_t b; uint32_t a = at(&b); init(&b, 2);
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], 3;" :: "r"(a) : "memory"); out[0] = 1; }"""
    )
    with pytest.raises(EmulationError, match=r"3 arrivals at the barrier at shared address .*, which expects 2 more"):
        run(source, 1, 1, np.zeros(1, np.int32), arch="sm_90")


def test_a_barrier_of_a_block_that_the_cluster_does_not_have():
    source = (
        PREFACE
        + """extern "C" __global__ void k(int* out) {
      __shared__ uint64_t b; init(&b, 1); uint32_t other;
      asm volatile("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(other) : "r"(at(&b)));
      asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(other) : "memory"); }"""
    )
    with pytest.raises(EmulationError, match="barrier at shared address 0x1000400: expected a multiple of 8 within"):
        run(source, 1, 1, np.zeros(1, np.int32), arch="sm_90")


@pytest.mark.parametrize("form", ["", ".noinc"])
def test_lane_wise_copies_arrive(form):
    """cp.async tells a barrier; without .noinc the barrier expects nothing more for it."""
    own = "" if form else "arrive(&b);"
    source = (
        PREFACE
        + f"""extern "C" __global__ void k(const int4* in, int4* out) {{
      __shared__ int4 s[64]; __shared__ uint64_t b; if (threadIdx.x == 0) init(&b, 64); __syncthreads();
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at(s + threadIdx.x)), "l"(in + threadIdx.x));
      asm volatile("cp.async.mbarrier.arrive{form}.shared::cta.b64 [%0];" :: "r"(at(&b)) : "memory"); {own}
      wait(&b, 0); out[threadIdx.x] = s[63 - threadIdx.x]; }}"""
    )
    data = np.arange(256, dtype=np.int32)
    got = run(source, 1, 64, data, np.zeros_like(data), arch="sm_90").buffer("out")
    np.testing.assert_array_equal(got.reshape(64, 4), data.reshape(64, 4)[::-1])


@pytest.mark.exhaustive
@pytest.mark.parametrize("arch", first(["sm_80", "sm_90"]))
def test_the_standard_librarys_barrier(arch):
    source = """#include <cuda/barrier>
    extern "C" __global__ void k(const int* in, int* out, int n) {
      using Barrier = cuda::barrier<cuda::thread_scope_block>;
      __shared__ alignas(Barrier) unsigned char room[sizeof(Barrier)]; __shared__ int s[96];
      Barrier& b = *reinterpret_cast<Barrier*>(room);
      if (threadIdx.x == 0) init(&b, blockDim.x);
      __syncthreads();
      for (int i = 0; i < n; ++i) {
        s[threadIdx.x] = in[96 * i + threadIdx.x]; auto token = b.arrive(); b.wait(std::move(token));
        out[96 * i + threadIdx.x] = s[95 - threadIdx.x]; b.arrive_and_wait(); } }"""
    data = np.arange(3 * 96, dtype=np.int32)
    got = run(source, 2, 96, data, np.zeros_like(data), 3, arch=arch, entry="k").buffer("out")
    np.testing.assert_array_equal(got.reshape(3, 96), data.reshape(3, 96)[:, ::-1])


def test_an_older_barriers_phases():
    """sm_80 keeps another word: arrivals flip its phase as well, and lane-wise copies arrive."""
    source = """#include <cstdint>
    extern "C" __global__ void k(const int4* in, int4* out, int* flips) {
      __shared__ int4 s[64]; __shared__ uint64_t b, c; uint64_t state; int p;
      uint32_t a = (uint32_t)__cvta_generic_to_shared(&b), one = (uint32_t)__cvta_generic_to_shared(&c);
      uint32_t to = (uint32_t)__cvta_generic_to_shared(s + threadIdx.x);
      if (threadIdx.x == 0) { asm volatile("mbarrier.init.shared.b64 [%0], 128;" :: "r"(a));
        asm volatile("mbarrier.init.shared.b64 [%0], 3;" :: "r"(one));
        for (int i = 0; i < 7; ++i) {
          asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(one) : "memory");
          asm volatile("{.reg .pred P; mbarrier.test_wait.shared.b64 P, [%1], %2; selp.s32 %0, 1, 0, P;}"
            : "=r"(p) : "r"(one), "l"(state) : "memory"); flips[i] = p; } }
      __syncthreads();
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(in + threadIdx.x));
      asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(a) : "memory");
      asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(a) : "memory");
      do asm volatile("{.reg .pred P; mbarrier.test_wait.shared.b64 P, [%1], %2; selp.s32 %0, 1, 0, P;}"
            : "=r"(p) : "r"(a), "l"(state) : "memory"); while (!p);
      out[threadIdx.x] = s[63 - threadIdx.x]; }"""
    data = np.arange(256, dtype=np.int32)
    got = run(source, 1, 64, data, np.zeros_like(data), np.zeros(7, np.int32), arch="sm_80")
    np.testing.assert_array_equal(got.buffer("out").reshape(64, 4), data.reshape(64, 4)[::-1])
    # Every third arrival completes a phase, which the state of that arrival then finds over.
    np.testing.assert_array_equal(got.buffer("flips"), [0, 0, 1, 0, 0, 1, 0])
