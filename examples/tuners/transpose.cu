// Transpose of a square matrix through shared memory; sizes and padding of the tile are left to a tuner.
// drywarp: --grid 64,64 --block 32,8 -D block_size_x=32 -D block_size_y=8 -D padding=1
// drywarp: --arg out=f32[2048,2048] --arg in=f32[2048,2048]:random --arg n=2048

__global__ void transpose(float* out, const float* in, int n) {
  __shared__ float tile[block_size_x][block_size_x + padding];
  int left = blockIdx.x * block_size_x, top = blockIdx.y * block_size_x;
  for (int row = threadIdx.y; row < block_size_x; row += block_size_y)
    tile[row][threadIdx.x] = in[(top + row) * n + left + threadIdx.x];
  __syncthreads();
  for (int row = threadIdx.y; row < block_size_x; row += block_size_y)
    out[(left + row) * n + top + threadIdx.x] = tile[threadIdx.x][row];
}
