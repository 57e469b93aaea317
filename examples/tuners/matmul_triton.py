"""Product of two matrices in Triton, tuned over sixteen configurations of which drywarp leaves four to be measured."""

# drywarp: --grid "cdiv(m,TILE_M)*cdiv(n,TILE_N)" --config best
# drywarp: --arg a=f16[512,512]:random --arg b=f16[512,512]:random --arg c=f16[512,512]
# drywarp: --arg m=512 --arg n=512 --arg k=512

import triton
import triton.language as tl

from drywarp.experiments.tuners.triton import predicted

CONFIGS = [
    triton.Config({"TILE_M": tile_m, "TILE_N": tile_n, "TILE_K": tile_k}, num_warps=warps, num_stages=3)
    for tile_m in (32, 128)
    for tile_n in (32, 64)
    for tile_k in (32, 64)
    for warps in (4, 8)
]


@triton.autotune(configs=CONFIGS, key=["m", "n", "k"], prune_configs_by=predicted(lambda: matmul, gpu="a100", top_k=4))
@triton.jit
def matmul(a, b, c, m, n, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    """One tile of c = a b, row-major; what lies outside counts as zero."""
    tiles_n = tl.cdiv(n, TILE_N)
    tile_row, tile_column = tl.program_id(0) // tiles_n, tl.program_id(0) % tiles_n
    rows = tile_row * TILE_M + tl.arange(0, TILE_M)
    columns = tile_column * TILE_N + tl.arange(0, TILE_N)
    depth = tl.arange(0, TILE_K)
    total = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for start in range(0, k, TILE_K):
        inner = start + depth
        left = tl.load(
            a + rows[:, None] * k + inner[None, :], mask=(rows[:, None] < m) & (inner[None, :] < k), other=0.0
        )
        right = tl.load(
            b + inner[:, None] * n + columns[None, :], mask=(inner[:, None] < k) & (columns[None, :] < n), other=0.0
        )
        total = tl.dot(left, right, total)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.float16), mask=inside)


def run(a, b):
    """How a program with a GPU calls it."""
    import torch

    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    matmul[lambda meta: (triton.cdiv(m, meta["TILE_M"]) * triton.cdiv(n, meta["TILE_N"]),)](a, b, c, m, n, k)
    return c
