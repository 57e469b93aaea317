// C = A*B, an element of C a thread; the block shares tiles of A and B, so each element is fetched once a block.
// drywarp: --grid 128,128 --block 32,32
// drywarp: --arg A=f32[4096,4096]:random --arg B=f32[4096,4096]:random --arg C=f32[4096,4096] --arg n=4096

#define TILE 32

__global__ void sgemm(const float* A, const float* B, float* C, int n) {
  __shared__ float a[TILE][TILE];
  __shared__ float b[TILE][TILE];
  int x = threadIdx.x, y = threadIdx.y;
  int row = blockIdx.y * TILE + y;
  int column = blockIdx.x * TILE + x;
  float sum = 0.0f;
  for (int tile = 0; tile < n; tile += TILE) {
    a[y][x] = A[row * n + tile + x];
    b[y][x] = B[(tile + y) * n + column];
    __syncthreads();
    // Two words from shared memory for each multiply-add.
    for (int k = 0; k < TILE; ++k) sum += a[y][k] * b[k][x];
    __syncthreads();
  }
  C[row * n + column] = sum;
}
