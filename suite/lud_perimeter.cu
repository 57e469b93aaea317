// LU decomposition: the tiles to the right of a diagonal tile and below it; one of each a block.
// drywarp: --grid 127 --block 32
// drywarp: --arg m=f32[2048,2048]:random --arg n=2048 --arg offset=0

#ifndef TILE
#define TILE 16
#endif

// The first TILE threads solve a column each of the tile on the right, the others a row each of the tile below. The
// diagonal tile is taken to hold its own decomposition; 1 is added to its diagonal, so that any random matrix will do.
__global__ void lud_perimeter(float* m, int n, int offset) {
  __shared__ float diagonal[TILE][TILE];
  __shared__ float right[TILE][TILE];
  __shared__ float below[TILE][TILE + 1];
  int half = threadIdx.x / TILE, lane = threadIdx.x % TILE;
  int ahead = (blockIdx.x + 1) * TILE;
  float* corner = m + offset * n + offset;

  for (int y = half; y < TILE; y += 2) {
    diagonal[y][lane] = corner[y * n + lane] + (y == lane ? 1.0f : 0.0f);
    right[y][lane] = corner[y * n + ahead + lane];
    below[y][lane] = corner[(ahead + y) * n + lane];
  }
  __syncthreads();
  if (half == 0) {
    for (int y = 1; y < TILE; ++y) {
      float sum = right[y][lane];
      for (int k = 0; k < y; ++k) sum -= diagonal[y][k] * right[k][lane];
      right[y][lane] = sum;
    }
  } else {
    for (int x = 0; x < TILE; ++x) {
      float sum = below[lane][x];
      for (int k = 0; k < x; ++k) sum -= below[lane][k] * diagonal[k][x];
      below[lane][x] = sum / diagonal[x][x];
    }
  }
  __syncthreads();
  for (int y = half; y < TILE; y += 2) {
    corner[y * n + ahead + lane] = right[y][lane];
    corner[(ahead + y) * n + lane] = below[y][lane];
  }
}
