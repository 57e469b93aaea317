// out = in^T through a shared tile whose rows are padded by one word, so that no bank conflicts.
// drywarp: --grid 128,128 --block 32,8
// drywarp: --arg in=f32[4096,4096]:random --arg out=f32[4096,4096] --arg n=4096

#define TILE 32
#define ROWS 8

__global__ void transpose_padded(const float* in, float* out, int n) {
  __shared__ float tile[TILE][TILE + 1];
  int x = blockIdx.x * TILE + threadIdx.x;
  int y = blockIdx.y * TILE + threadIdx.y;
#pragma unroll
  for (int r = 0; r < TILE; r += ROWS) tile[threadIdx.y + r][threadIdx.x] = in[(y + r) * n + x];
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x;
  y = blockIdx.x * TILE + threadIdx.y;
#pragma unroll
  for (int r = 0; r < TILE; r += ROWS) out[(y + r) * n + x] = tile[threadIdx.x][threadIdx.y + r];
}
