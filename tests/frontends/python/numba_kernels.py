"""Numba-CUDA kernels of the tests, in a file that could not be run here."""

import math

import a_framework_that_is_not_there
from numba import cuda, float32, int32, void

a_framework_that_is_not_there.set_device(0)
TILE = 16
WEIGHTS = (0.25, 0.5, 0.25)


@cuda.jit(device=True)
def wave(v):
    return math.sqrt(v) + math.sin(v)


@cuda.jit
def saxpy(out, a, x, y):
    i = cuda.grid(1)
    if i < out.shape[0]:
        out[i] = a * x[i] + y[i]


@cuda.jit(fastmath=True)
def waves(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = wave(x[i])


@cuda.jit
def matmul(a, b, c):
    left = cuda.shared.array((TILE, TILE), dtype=float32)
    right = cuda.shared.array((TILE, TILE), dtype=float32)
    row, column = cuda.grid(2)
    i, j = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0.0)
    for tile in range(a.shape[1] // TILE):
        left[i, j] = a[row, tile * TILE + j]
        right[i, j] = b[tile * TILE + i, column]
        cuda.syncthreads()
        for k in range(TILE):
            total += left[i, k] * right[k, j]
        cuda.syncthreads()
    c[row, column] = total


@cuda.jit("void(float32[:], int32)")
def stated(x, n):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += n


@cuda.jit(void(int32[:, :], int32[:]), max_registers=24)
def stated_too(x, y):
    i = cuda.grid(1)
    if i < y.size:
        x[i, 1] = y[i]


@cuda.jit
def block_sums(x, out):
    partial = cuda.shared.array(0, dtype=float32)
    t = cuda.threadIdx.x
    partial[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    step = cuda.blockDim.x // 2
    while step > 0:
        if t < step:
            partial[t] += partial[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        cuda.atomic.add(out, 0, partial[0])


@cuda.jit
def wrong(x):
    x[0] = no_such_name  # noqa: F821
