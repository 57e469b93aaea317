"""Predictions of kernels whose blocks take over others that have not started (cluster launch control)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from drywarp.analysis.prepare import prepare_kernel, prepare_on
from drywarp.analysis.prepared import Prepared
from drywarp.analysis.request import Options
from drywarp.analysis.stages import answer_prepared
from drywarp.hardware import load_gpu

SOURCE = """
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
extern "C" __global__ void k(const float4* a, float4* b, int rounds, int most) {
  __shared__ __align__(16) uint4 answer; __shared__ __align__(8) unsigned long long barrier; unsigned phase = 0;
#ifdef COLUMNS
  __shared__ unsigned columns;
  if (threadIdx.x < 32) asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;"
                                     :: "r"(at(&columns)), "n"(COLUMNS) : "memory");
#endif
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at(&barrier)) : "memory");
  __syncthreads();
  for (unsigned block = blockIdx.x, turn = 0; turn < most; turn++) {
#ifdef TAKE
    if (threadIdx.x == 0) {
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 16;" :: "r"(at(&barrier)) : "memory");
      asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];"
                   :: "r"(at(&answer)), "r"(at(&barrier)) : "memory");
    }
#endif
    float4 v = a[(size_t)block * blockDim.x + threadIdx.x];
    for (int n = 0; n < rounds; n++) v.x = v.x * v.y + v.z, v.y = v.y * v.z + v.w;
    b[(size_t)block * blockDim.x + threadIdx.x] = v;
#ifdef TAKE
    unsigned done = 0, found, next;
    while (!done)
      asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                   : "=r"(done) : "r"(at(&barrier)), "r"(phase) : "memory");
    phase ^= 1;
    asm volatile("{.reg .b128 r; .reg .pred p; ld.shared.b128 r, [%2];"
                 "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, r; selp.u32 %0, 1, 0, p;"
                 "@p clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %1, r;}"
                 : "=r"(found), "=r"(next) : "r"(at(&answer)) : "memory");
    if (!found) break;
    __syncthreads();
    block = next;
#else
    block += gridDim.x;
    if (block >= BLOCKS) break;
    __syncthreads();
#endif
  }
#ifdef COLUMNS
  __syncthreads();
  if (threadIdx.x < 32) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;"
                                     :: "r"(columns), "n"(COLUMNS) : "memory");
#endif
}"""
BLOCKS, THREADS, SMS = 3000, 1024, 148


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "k.cu"
    path.write_text(SOURCE)
    return path


def ready(
    source: Path,
    blocks: int = BLOCKS,
    most: int = 1000,
    grid: int = 0,
    rounds: int = 300,
    options: Options | None = None,
    **defines: str,
) -> Prepared:
    count = blocks * THREADS * 4
    args = {"a": f"f32[{count}]:random", "b": f"f32[{count}]", "rounds": str(rounds), "most": str(most)}
    return prepare_kernel(
        source, gpu="b200", grid=grid or blocks, block=THREADS, args=args, defines=defines, options=options
    )


def test_the_blocks_that_an_sm_holds_start_and_take_over_the_others(source: Path) -> None:
    """Two blocks of 1024 threads an SM; as many do the same work in a loop over the grid, in about the same time."""
    took = ready(source, TAKE="1")
    assert took.launch.blocks == took.profile.launch.blocks == took.costed.blocks == 2 * SMS
    assert took.launch.grid == (BLOCKS, 1, 1)
    assert took.profile.sampling is not None
    assert took.profile.sampling.of == 2 * SMS
    strided = ready(source, grid=2 * SMS, BLOCKS=str(BLOCKS))
    ours, theirs = (answer_prepared(one, Options()) for one in (took, strided))
    assert ours.waves == theirs.waves == 1
    assert ours.time_s == pytest.approx(theirs.time_s, rel=0.05)
    assert any("296 blocks that start take over the other 2,704" in note for note in ours.notes)
    assert ours.to_dict()["launch"]["grid"] == [BLOCKS, 1, 1]


def test_a_second_answer_from_the_cache_is_the_same(source: Path, own_results: Path) -> None:
    first, second = (ready(source, TAKE="1") for _ in range(2))
    assert second.launch == first.launch
    assert second.costed.blocks == first.costed.blocks
    assert answer_prepared(second, Options()).time_s == answer_prepared(first, Options()).time_s


def test_another_gpu_starts_as_many_as_it_holds(source: Path) -> None:
    took, known = ready(source, TAKE="1"), load_gpu("b200")
    half = prepare_on(took, replace(known.with_sms(SMS // 2), name="half"))
    assert half.launch.starts == half.profile.launch.starts == SMS
    assert prepare_on(took, known).profile is took.profile


def test_all_blocks_start_if_the_gpu_holds_them(source: Path) -> None:
    few = ready(source, blocks=2 * SMS, TAKE="1")
    assert (few.launch.starts, few.launch.blocks) == (0, 2 * SMS)


def test_blocks_that_stop_asking_leave_the_others_to_start(source: Path) -> None:
    """Nobody takes over all of the work, so that each block is as if it did its own, which the notes say."""
    once = ready(source, most=1, TAKE="1")
    assert (once.launch.starts, once.launch.blocks) == (0, BLOCKS)
    assert any("each block does its own work" in note for note in answer_prepared(once, Options()).notes)
    again = ready(source, most=1, TAKE="1")
    assert again.launch == once.launch


def test_columns_of_tensor_memory_limit_the_blocks_that_start(source: Path) -> None:
    """They are known once a block was emulated; 512 columns leave room for one block an SM."""
    took = ready(source, TAKE="1", COLUMNS="512")
    assert took.fits.blocks_per_sm == 1
    assert took.launch.starts == took.costed.blocks == SMS
    assert ready(source, TAKE="1", COLUMNS="256").launch.starts == 2 * SMS


@pytest.mark.parametrize("blocks", ["all", 3, [0, 295]])
def test_chosen_blocks_are_among_those_that_start(source: Path, blocks: object) -> None:
    took = ready(source, rounds=3, TAKE="1", options=Options(blocks=blocks))  # type: ignore[arg-type]
    chosen = [sample.linear for sample in took.profile.blocks]
    assert max(chosen) < 2 * SMS
    assert len(chosen) == (2 * SMS if blocks == "all" else blocks if isinstance(blocks, int) else 2)
    assert sum(sample.weight for sample in took.profile.blocks) == pytest.approx(2 * SMS)
