// LU decomposition: what is left of the matrix, less the product of the perimeter's tiles; a tile a block.
// drywarp: --grid 127,127 --block 16,16
// drywarp: --arg m=f32[2048,2048]:random --arg n=2048 --arg offset=0

#ifndef TILE
#define TILE 16
#endif

__global__ void lud_internal(float* m, int n, int offset) {
  __shared__ float above[TILE][TILE];
  __shared__ float before[TILE][TILE];
  int x = threadIdx.x, y = threadIdx.y;
  int row = offset + (blockIdx.y + 1) * TILE + y;
  int column = offset + (blockIdx.x + 1) * TILE + x;
  above[y][x] = m[(offset + y) * n + column];
  before[y][x] = m[row * n + offset + x];
  __syncthreads();
  float sum = 0.0f;
  for (int k = 0; k < TILE; ++k) sum += before[y][k] * above[k][x];
  m[row * n + column] -= sum;
}
