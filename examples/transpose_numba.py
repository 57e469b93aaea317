"""A transpose in Numba-CUDA through a tile in shared memory, padded by a column against bank conflicts."""

# drywarp: --grid 32,32 --block 32,8
# drywarp: --arg a=f32[1024,1024]:random --arg b=f32[1024,1024]

from numba import cuda, float32

TILE, PITCH, ROWS = 32, 33, 8


@cuda.jit
def transpose(a, b):
    """One tile a block: read along rows of `a`, written along rows of `b`."""
    tile = cuda.shared.array((TILE, PITCH), dtype=float32)
    x = cuda.blockIdx.x * TILE + cuda.threadIdx.x
    y = cuda.blockIdx.y * TILE + cuda.threadIdx.y
    for row in range(0, TILE, ROWS):
        tile[cuda.threadIdx.y + row, cuda.threadIdx.x] = a[y + row, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * TILE + cuda.threadIdx.x
    y = cuda.blockIdx.x * TILE + cuda.threadIdx.y
    for row in range(0, TILE, ROWS):
        b[y + row, x] = tile[cuda.threadIdx.x, cuda.threadIdx.y + row]
