"""λ of memory instructions, from real kernels bound to a GPU."""

from __future__ import annotations

import pytest

import drywarp
from drywarp.analysis.prepare import prepare_kernel
from drywarp.hardware import load_gpu
from drywarp.workload.cost import to_ticks
from drywarp.workload.memory_costs import MemoryCosts, dram_bandwidth

STRIDED = """
__global__ void strided(const WORD* in, float* out, int ld) {
  float sum = 0;
  for (int k = 0; k < 64; ++k) sum += *(const float*)&in[threadIdx.x % 32 * ld + 32 * k];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""


def lsu_cycles(ld: int) -> float:
    """Cycles of the load-store unit per warp for 64 loads with this distance between lanes."""
    result = drywarp.analyze(
        STRIDED, gpu="a100", grid=108, block=256, args={"in": "f32[40000]", "out": "f32[27648]", "ld": ld},
        defines={"WORD": "float"}, models=["roofline"],
    )  # fmt: skip
    return result.predictions["roofline"].headroom["lsu"] / 8


@pytest.mark.parametrize(
    ("ld", "passes"),
    [
        (1, 1),  # one line: a wavefront each
        (0, 1),  # a broadcast
        (1024, 32),  # 32 lines, all in one bank of the data stage
        (1025, 8),  # 32 lines in 32 banks: 4 tags a cycle remain
        (2, 2),
    ],
)
def test_a_global_load_pays_for_its_tags_sectors_or_banks(ld: int, passes: int) -> None:
    # Besides the loads a warp has a store and reads of special registers: 4 cycles at most.
    assert 64 * passes <= lsu_cycles(ld) <= 64 * passes + 4


CONFLICTS = """
__global__ void conflicts(float* out, int stride, int every) {
  extern __shared__ float words[];
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < 64; ++k)
    if (k % every == 0) sum += ((volatile float*)words)[threadIdx.x * stride];
  out[threadIdx.x] = sum;
}
"""


@pytest.mark.parametrize("every", [1, 4])
def test_iterations_without_a_load_do_not_hide_the_conflicts_of_others(every: int) -> None:
    """Cycles of the load-store unit: each further wavefront counts, whatever else happens between the loads."""

    def cycles(stride: int) -> float:
        result = drywarp.analyze(
            CONFLICTS, gpu="a100", grid=108, block=32, shared=4096, models=["roofline"],
            args={"out": "f32[32]", "stride": stride, "every": every},
        )  # fmt: skip
        return result.predictions["roofline"].headroom["lsu"]

    assert cycles(32) - cycles(1) == pytest.approx(64 / every * 31)


@pytest.mark.parametrize(("read", "written", "gbs"), [(1, 0, 100), (1, 1, 80), (0, 1, 120), (3, 1, 90), (0, 0, 100)])
def test_dram_bandwidth_goes_in_lines_between_what_was_measured(read: float, written: float, gbs: float) -> None:
    assert dram_bandwidth(100, 80, 120, read, written) == pytest.approx(gbs)


LOOP = """
__global__ void sum(const float* in, float* out, int n) {
  float all = 0;
  #pragma unroll 1
  for (int k = 0; k < n; ++k) all += in[k * 32 + threadIdx.x];
  out[threadIdx.x] = all;
}
"""


def test_a_branch_that_is_taken_holds_its_warp() -> None:
    ready = prepare_kernel(LOOP, gpu="a100", grid=1, block=32, args={"in": "f32[3200]", "out": "f32[32]", "n": 100})
    code, (path,) = ready.kernel.instructions, ready.costed.paths
    taken = to_ticks(ready.gpu.scheduler.taken_cycles or 0)
    counts = dict(zip((node.instruction for node in path.nodes), path.counts(), strict=True))
    loop = [n for n in path.nodes if code[n.instruction].opcode == "BRA" and counts[n.instruction] > 1]
    others = [n for n in path.nodes if n not in loop]
    assert [n.stall_ticks for n in loop] == [taken]
    assert taken > to_ticks(code[loop[0].instruction].control.stall)
    assert all(n.stall_ticks == to_ticks(max(1, code[n.instruction].control.stall)) for n in others)


def test_the_l2_follows_the_clock_and_dram_does_not() -> None:
    gpu = load_gpu("a100")
    index = {name: number for number, name in enumerate(gpu.subsystems)}
    boost = gpu.device.boost_clock_mhz
    slow, fast = (MemoryCosts(gpu, clock, 108, index, 1.0, 0.0) for clock in (boost / 2, boost))
    assert slow.l2_latency == fast.l2_latency == gpu.cycles(gpu.memory.l2.latency_ns)
    assert fast.dram_latency == pytest.approx(gpu.cycles(gpu.memory.dram.latency_ns))
    assert fast.dram_latency - fast.l2_latency == pytest.approx(2 * (slow.dram_latency - slow.l2_latency))
