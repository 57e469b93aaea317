"""DRAM bytes of matrix products whose tiles are ordered in groups: as predicted, and with every block of the grid run.

    python benchmarks/l2_reuse.py

Three kernels of the kinds that people tune: tiles in shared memory, Triton's (where the extra is installed), tiles by
the copy engine with products of warp groups. Each at 2048 and 4096, once as `drywarp.analyze` answers within its limits
and once with the addresses of every block found by running it to its end, without limits.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from drywarp.analysis.fits import geometry_of
from drywarp.analysis.prepare import prepare_kernel
from drywarp.analysis.prepared import Prepared
from drywarp.execution.emulator import Limits
from drywarp.execution.emulator.skim import Skim
from drywarp.kernel.profile import SPACE_GLOBAL, Profile
from drywarp.memory.dram import dram_traffic

EXAMPLES = Path(__file__).parents[1] / "examples"
GROUP = 8
IN_GROUPS = f"""
  int across = {{columns}}, down = {{rows}}, number = blockIdx.y * gridDim.x + blockIdx.x;
  int above = number / ({GROUP} * across) * {GROUP}, height = min(down - above, {GROUP});
  int tile_y = above + number % ({GROUP} * across) % height, tile_x = number % ({GROUP} * across) / height;
"""
TILED = """
#define T 128
#define K 8
extern "C" __global__ void tiled(const float* a, const float* b, float* c, int n) {
  __shared__ float as[K][T], bs[K][T];
  ORDER
  int t = threadIdx.x, row = t / 16 * 8, column = t % 16 * 8;
  float sum[8][8] = {};
  for (int k = 0; k < n; k += K) {
    for (int i = 0; i < 4; ++i) as[t % K][t / K + i * 32] = a[(tile_y * T + t / K + i * 32) * n + k + t % K];
    for (int i = 0; i < 4; ++i) bs[t / 32 + 0][t % 32 + i * 32] = b[(k + t / 32) * n + tile_x * T + t % 32 + i * 32];
    __syncthreads();
    for (int d = 0; d < K; ++d)
      for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j) sum[i][j] += as[d][row + i] * bs[d][column + j];
    __syncthreads();
  }
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) c[(tile_y * T + row + i) * n + tile_x * T + column + j] = sum[i][j];
}
"""
TRITON = """
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, n, T: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr):
    number, across = tl.program_id(0), tl.cdiv(n, T)
    first = number // (GROUP * across) * GROUP
    height = min(across - first, GROUP)
    row, column = first + number % (GROUP * across) % height, number % (GROUP * across) // height
    rows, columns, depth = row * T + tl.arange(0, T), column * T + tl.arange(0, T), tl.arange(0, K)
    total = tl.zeros((T, T), tl.float32)
    for k in range(0, n, K):
        left = tl.load(a + rows[:, None] * n + (k + depth)[None, :])
        right = tl.load(b + (k + depth)[:, None] * n + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.float16))
"""


@dataclass(frozen=True)
class Case:
    """A kernel on a GPU; `launch` gives what `prepare_kernel` takes, by the size of the matrices."""

    name: str
    gpu: str
    launch: Callable[[int, Path], dict[str, Any]]


def tiled(n: int, folder: Path) -> dict[str, Any]:
    """Tiles of 128 x 128 in shared memory, fp32."""
    order = IN_GROUPS.format(columns=n // 128, rows=n // 128)
    matrix = f"f32[{n},{n}]"
    return {"source": TILED.replace("ORDER", order), "grid": (n // 128, n // 128), "block": 256,
            "args": {"a": matrix, "b": matrix, "c": matrix, "n": n}}  # fmt: skip


def copied(n: int, folder: Path) -> dict[str, Any]:
    """The packaged example of the copy engine and warp groups, its tiles in groups, fp16."""
    source = (EXAMPLES / "hopper" / "wgmma_tile.cu").read_text(encoding="utf-8")
    order = IN_GROUPS.format(columns=n // 256, rows=n // 128)
    loop = "  for (int tile = 0; tile < k / DEPTH; ++tile) {"
    source = source.replace(loop, order + loop)
    source = source.replace("blockIdx.y * ROWS", "tile_y * ROWS").replace("blockIdx.x * COLUMNS", "tile_x * COLUMNS")
    maps = {name: f"tensormap(box={rows}x64,swizzle=128):f16[{n},{n}]" for name, rows in (("A", 128), ("B", 256))}
    return {"source": source, "grid": (n // 256, n // 128), "block": 384, "shared": 197632,
            "args": {**maps, "C": f"f16[{n},{n}]", "n": n, "k": n}}  # fmt: skip


def triton(n: int, folder: Path) -> dict[str, Any]:
    """Tiles of 128 x 128, fp16, written in Triton."""
    file = folder / "product.py"
    file.write_text(TRITON, encoding="utf-8")
    matrix = f"f16[{n},{n}]"
    return {"source": file, "grid": (n // 128) ** 2, "args": {"a": matrix, "b": matrix, "c": matrix, "n": n, "T": 128,
            "K": 32, "GROUP": GROUP, "num_warps": 8, "num_stages": 3}}  # fmt: skip


CASES = (
    Case("tiles in shared memory", "a100", tiled),
    Case("Triton", "a100", triton),
    Case("copy engine and warp groups", "h100", copied),
)


def asked(ready: Prepared) -> float:
    """Sectors that the grid asks of the L2."""
    accesses = [access for access in ready.behaviour.accesses.values() if access.space == SPACE_GLOBAL]
    return sum(access.units * access.executions * (1 - access.l1_hit) for access in accesses)


def every_block(ready: Prepared) -> float:
    """DRAM bytes, both ways, where every block of each wave is run to its end for its addresses."""
    profile = ready.profile
    skim = Skim(profile.kernel, profile.launch, profile.cfg, Limits(lane_steps=10**15))

    def run(blocks: Sequence[int]) -> Profile | None:
        return skim(blocks)

    geometry = geometry_of(ready.gpu, ready.fits)
    totals, method = dram_traffic(profile, None, geometry, False, run, asked(ready) / profile.launch.blocks)
    assert method == "emulated", method
    return (sum(totals.fetched.values()) + sum(totals.written.values())) * geometry.sector_bytes


def main() -> None:
    """Print a line for each kernel and size."""
    print("kernel                             n   predicted   every block run   ratio   asked of the L2     took")
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if case.launch is triton and find_spec("triton") is None:
                print(f"{case.name:30}left out: Triton is not installed (pip install 'drywarp[triton]')")
                continue
            for n in (2048, 4096):
                given = case.launch(n, Path(folder))
                begun = time.perf_counter()
                ready = prepare_kernel(gpu=case.gpu, **given)
                took = time.perf_counter() - begun
                found, known = ready.behaviour.dram_bytes, every_block(ready)
                print(
                    f"{case.name:30}{n:6}{found / 2**20:8.1f} MiB{known / 2**20:14.1f} MiB{found / known:8.3f}"
                    f"{asked(ready) * 32 / 2**20:14.0f} MiB{took:7.1f} s"
                )


if __name__ == "__main__":
    typer.run(main)
