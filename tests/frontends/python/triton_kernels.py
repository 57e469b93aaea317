"""Triton kernels of the tests. Read as a file and imported as a module; nothing else here may be needed."""

import a_framework_that_is_not_there
import triton
import triton.language as tl

a_framework_that_is_not_there.set_device(0)
SCALE = tl.constexpr(3)


@triton.jit
def twice(v):
    return v + v


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + twice(tl.load(y + i, mask=inside)) * SCALE, mask=inside)


@triton.jit
def softmax(x, out, stride, columns, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + column, mask=column < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * stride + column, powers / tl.sum(powers, axis=0), mask=column < columns)


def on_cuda():
    return triton.runtime.driver.active.get_current_target().backend == "cuda"


def tiles():
    sizes = [(32, 32, 16), (64, 32, 32)] if on_cuda() else [(16, 16, 16)]
    return [triton.Config({"M": m, "N": n, "K": k}, num_warps=2, num_stages=3) for m, n, k in sizes]


@triton.autotune(configs=tiles(), key=["m", "n", "k"])
@triton.heuristics({"EVEN": lambda args: args["k"] % args["K"] == 0})
@triton.jit
def matmul(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, EVEN: tl.constexpr, ACT: tl.constexpr):
    row = tl.program_id(0) * M + tl.arange(0, M)
    column = tl.program_id(1) * N + tl.arange(0, N)
    depth = tl.arange(0, K)
    total = tl.zeros((M, N), dtype=tl.float32)
    for start in range(tl.cdiv(k, K)):
        at = start * K + depth
        left, right = (row < m)[:, None], (column < n)[None, :]
        if not EVEN:
            left = left & (at < k)[None, :]
            right = right & (at < k)[:, None]
        x = tl.load(a + row[:, None] * k + at[None, :], mask=left, other=0.0)
        y = tl.load(b + at[:, None] * n + column[None, :], mask=right, other=0.0)
        total = tl.dot(x, y, total)
    if ACT == "relu":
        total = tl.maximum(total, 0.0)
    where = (row < m)[:, None] & (column < n)[None, :]
    tl.store(c + row[:, None] * n + column[None, :], total.to(tl.float16), mask=where)


@triton.jit
def typed(x, out, n: tl.int64, scale: tl.float32, flag, TYPE: tl.constexpr):
    value = tl.load(x + tl.program_id(0)).to(TYPE)
    if flag:
        tl.store(out + tl.program_id(0), value.to(tl.float32) * scale + n)


@triton.jit
def total(x, sums, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(sums, tl.sum(tl.load(x + i, mask=i < n, other=0.0)))


@triton.jit
def wrong_name(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, no_such_name)  # noqa: F821


@triton.jit
def wrong_inside(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), refuses(BLOCK))


@triton.jit
def refuses(size: tl.constexpr):
    tl.static_assert(size < 8, "a small size")
    return size


@triton.jit
def product(a, b, c, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    across = tl.cdiv(n, N)
    rows = tl.program_id(0) // across * M + tl.arange(0, M)
    columns = tl.program_id(0) % across * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    sums = tl.zeros((M, N), tl.float32)
    for start in range(0, n, K):
        left = tl.load(a + rows[:, None] * n + (start + inner)[None, :])
        right = tl.load(b + (start + inner)[:, None] * n + columns[None, :])
        sums = tl.dot(left, right, sums)
    tl.store(c + rows[:, None] * n + columns[None, :], sums)
