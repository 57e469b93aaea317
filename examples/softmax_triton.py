"""Softmax of each row in Triton, one program a row; the number of warps is chosen among three."""

# drywarp: --grid rows --config best
# drywarp: --arg x=f32[4096,1024]:random --arg y=f32[4096,1024] --arg rows=4096 --arg columns=1024 --arg BLOCK=1024

import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({}, num_warps=warps) for warps in (1, 4, 8)], key=["columns"])
@triton.jit
def softmax(x, y, rows, columns, BLOCK: tl.constexpr):
    """One row; what lies beyond its columns counts as minus infinity."""
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    values = tl.load(x + row * columns + column, mask=inside, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row * columns + column, powers / tl.sum(powers, axis=0), mask=inside)


def run(x):
    """How a program with a GPU calls it; drywarp runs nothing of this."""
    import torch

    rows, columns = x.shape
    y = torch.empty_like(x)
    softmax[(rows,)](x, y, rows, columns, BLOCK=triton.next_power_of_2(columns))
    return y
