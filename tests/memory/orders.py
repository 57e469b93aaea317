"""Kernels whose blocks pick their work in other ways than by a straight line through the block index."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

N, TILE = 128, 16
TILES = N // TILE

PRODUCT = """
extern "C" __global__ void k(const float* A, const float* B, float* C, int n) {
  __shared__ float a[16][16], b[16][16];
  int tiles = n / 16, x = threadIdx.x % 16, y = threadIdx.x / 16;
  LOOP {
    int row, column;
    ORDER
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
      a[y][x] = A[(row * 16 + y) * n + k + x];
      b[y][x] = B[(k + y) * n + column * 16 + x];
      __syncthreads();
      for (int q = 0; q < 16; ++q) sum += a[y][q] * b[q][x];
      __syncthreads();
    }
    C[(row * 16 + y) * n + column * 16 + x] = sum;
  }
}"""
"""A tiled product; LOOP says which numbers a block has, ORDER which tile belongs to a number."""

IN_ROWS = "row = t / tiles; column = t % tiles;"
IN_GROUPS = """int group = t / (3 * tiles), size = min(tiles - group * 3, 3);
    row = group * 3 + t % (3 * tiles) % size; column = t % (3 * tiles) / size;"""
SWIZZLED = "row = t / tiles; column = t % tiles ^ (row & 7);"
EACH_ITS_OWN = "int t = blockIdx.x;"
PERSISTENT = "for (int t = blockIdx.x; t < tiles * tiles; t += gridDim.x)"

Tile = Callable[[int], tuple[int, int]]


def in_groups(number: int) -> tuple[int, int]:
    """The tile of a number where three rows of tiles are taken together, the last ones fewer."""
    group, rest = divmod(number, 3 * TILES)
    size = min(TILES - group * 3, 3)
    return group * 3 + rest % size, rest // size


def swizzled(number: int) -> tuple[int, int]:
    """The tile of a number where columns are taken in another order in every row."""
    row, column = divmod(number, TILES)
    return row, column ^ (row & 7)


def product(order: str, loop: str = EACH_ITS_OWN) -> str:
    """The source of a product."""
    return PRODUCT.replace("LOOP", loop).replace("ORDER", order)


ROTARY = """
extern "C" __global__ void k(float* q, float* keys, int heads, int kept) {
  int token = blockIdx.x, head = blockIdx.y, i = threadIdx.x;
  float* p = q + (token * heads + head) * 64;
  p[i] = p[i] * 2;
  if (head < kept) {
    p = keys + (token * kept + head) * 64;
    p[i] = p[i] * 2;
  }
}"""
"""Every block turns a head's queries, those of the first heads their keys too."""

CAUSAL = """
extern "C" __global__ void k(const float* keys, float* out, int n) {
  __shared__ float s[16];
  int tile = gridDim.x - 1 - blockIdx.x, head = blockIdx.y, t = threadIdx.x;
  float sum = 0;
  for (int j = 0; j <= tile; ++j) {
    s[t] = keys[(head * n + j * 16) + t];
    __syncthreads();
    for (int c = 0; c < 16; ++c) sum += s[c];
    __syncthreads();
  }
  out[head * n + tile * 16 + t] = sum;
}"""
"""The later a tile, the more tiles before it are read."""

INDIRECT = """
extern "C" __global__ void k(const int* where, const float* x, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = x[where[i]];
}"""


def sectors(addresses: npt.NDArray[np.int64]) -> int:
    """Distinct sectors of 32 bytes among byte addresses."""
    return len(np.unique(addresses // 32))
