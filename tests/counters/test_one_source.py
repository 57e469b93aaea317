"""One source for every figure: `analyze` and `counts` say the same of a kernel, and no total exceeds its bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

import drywarp
from drywarp.analysis.counters.count import counts_of
from drywarp.analysis.prepare import prepare_kernel
from drywarp.analysis.stages import answer_prepared
from drywarp.kernel.profile import SPACE_GLOBAL

from ..effort import only

ROOT = Path(__file__).parents[2]
FILES = sorted([*(ROOT / "examples").glob("*.cu"), *(ROOT / "suite").glob("*.cu")])
# Shared memory, atomics, a stencil, and stores all over a buffer.
KINDS = [path for path in FILES if path.stem in ("tiled_matmul", "histogram", "hotspot", "kmeans_swap")]
SECTOR = 32


@pytest.mark.parametrize("path", only(FILES, *KINDS), ids=lambda path: path.stem)
@pytest.mark.parametrize("gpu", ["a100"])
def test_totals_of_both_verbs_agree(path: Path, gpu: str) -> None:
    ready = prepare_kernel(path, gpu=gpu)
    told, memory = answer_prepared(ready), ready.behaviour
    counts = counts_of(ready, drywarp.Options()).counts
    assert counts["smsp__inst_executed.sum"] == pytest.approx(told.warp_instructions)
    assert counts["dram__sectors_read.sum"] == pytest.approx(told.memory.dram_read_bytes / SECTOR, abs=1)
    # What stays in the L2 at the end is not counted.
    assert counts["dram__sectors_write.sum"] <= told.memory.dram_write_bytes / SECTOR + 1
    # What DRAM is read for was asked of the L2, and the L2 keeps what it may.
    at_l2 = sum(
        access.units * (1 - access.l1_hit) * access.executions
        for access in memory.accesses.values()
        if access.space == SPACE_GLOBAL
    )
    local = sum(a.units * a.executions for a in memory.accesses.values() if a.space != SPACE_GLOBAL)
    assert memory.dram_read_bytes / SECTOR <= (at_l2 + local) * (1 + 1e-9) + 1
    stored = memory.global_store_sectors * SECTOR
    assert memory.dram_write_bytes <= stored + SECTOR * (at_l2 + local)


SCATTER = """extern "C" __global__ void f(const int* where, float* out, int passes) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int p = 0; p < passes; ++p) out[where[i]] = p;
}"""


@pytest.mark.parametrize("passes", [1, 3])
def test_scattered_stores_write_no_more_than_their_buffer_in_each_pass(passes: int) -> None:
    """Threads store all over a buffer: at most its sectors are written in a pass, however many stores there are."""
    count, elements = 1 << 18, 1 << 14
    args = {"where": f"i32[{count}]:random", "out": f"f32[{elements}]", "passes": passes}
    found = drywarp.analyze(SCATTER, gpu="a100", grid=count // 256, block=256, args=args)
    assert found.memory.dram_write_bytes <= passes * elements * 4
    assert found.memory.dram_read_bytes <= count * 4 + elements * 4 + SECTOR
