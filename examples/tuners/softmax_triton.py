"""Softmax of rows in Triton, several rows a program; of eight configurations drywarp leaves two to be measured."""

# drywarp: --grid "cdiv(rows,ROWS)" --config best
# drywarp: --arg x=f32[4096,1000]:random --arg y=f32[4096,1000] --arg rows=4096 --arg columns=1000 --arg BLOCK=1024

import triton
import triton.language as tl

from drywarp.experiments.tuners.triton import predicted

CONFIGS = [triton.Config({"ROWS": rows}, num_warps=warps) for rows in (1, 4) for warps in (1, 2, 4, 8)]


@triton.autotune(configs=CONFIGS, key=["columns"], prune_configs_by=predicted(lambda: softmax, gpu="a100", top_k=2))
@triton.jit
def softmax(x, y, rows, columns, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    """Rows side by side; what lies beyond their columns counts as minus infinity."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < columns)
    values = tl.load(x + row * columns + column, mask=inside, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=1)[:, None])
    tl.store(y + row * columns + column, powers / tl.sum(powers, axis=1)[:, None], mask=inside)


def run(x):
    """How a program with a GPU calls it."""
    import torch

    rows, columns = x.shape
    y = torch.empty_like(x)
    block = triton.next_power_of_2(columns)
    softmax[lambda meta: (triton.cdiv(rows, meta["ROWS"]),)](x, y, rows, columns, BLOCK=block)
    return y
