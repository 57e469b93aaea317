"""λ of memory instructions, from real kernels bound to a GPU."""

from __future__ import annotations

import pytest

import drywarp
from drywarp.binding import dram_bandwidth

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


@pytest.mark.parametrize(("read", "written", "gbs"), [(1, 0, 100), (1, 1, 80), (0, 1, 120), (3, 1, 90), (0, 0, 100)])
def test_dram_bandwidth_goes_in_lines_between_what_was_measured(read: float, written: float, gbs: float) -> None:
    assert dram_bandwidth(100, 80, 120, read, written) == pytest.approx(gbs)
