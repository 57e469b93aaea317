// Tutorial, step 4: 4 x 4 results a thread. A word from shared memory, kept in a register, now serves four of them.
// drywarp: --grid 32,32 --block 16,16
// drywarp: --arg A=f32[2048,2048]:random --arg B=f32[2048,2048]:random --arg C=f32[2048,2048] --arg n=2048

constexpr int TILE = 64, DEPTH = 16;  // a block's tile of C, and how much of A's rows and B's columns it holds at once
constexpr int SIDE = 4;               // of a thread's results
constexpr int THREADS = (TILE / SIDE) * (TILE / SIDE);

__global__ void matmul(const float* A, const float* B, float* C, int n) {
  __shared__ float a[TILE][DEPTH], b[DEPTH][TILE];
  int thread = threadIdx.y * blockDim.x + threadIdx.x;
  int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
  int x = threadIdx.x * SIDE, y = threadIdx.y * SIDE;
  float sums[SIDE][SIDE] = {};
  for (int tile = 0; tile < n; tile += DEPTH) {
#pragma unroll
    for (int i = thread; i < TILE * DEPTH; i += THREADS) {
      a[i / DEPTH][i % DEPTH] = A[(first_row + i / DEPTH) * n + tile + i % DEPTH];
      b[i / TILE][i % TILE] = B[(tile + i / TILE) * n + first_column + i % TILE];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < DEPTH; ++k) {
      float left[SIDE], right[SIDE];
      for (int i = 0; i < SIDE; ++i) left[i] = a[y + i][k];
      for (int j = 0; j < SIDE; ++j) right[j] = b[k][x + j];
      for (int i = 0; i < SIDE; ++i)
        for (int j = 0; j < SIDE; ++j) sums[i][j] += left[i] * right[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < SIDE; ++i)
    for (int j = 0; j < SIDE; ++j) C[(first_row + y + i) * n + first_column + x + j] = sums[i][j];
}
