// C = A*B, eight elements of a column of C a thread: one word of B, kept in a register, serves eight multiply-adds.
// drywarp: --grid 64,64 --block 512
// drywarp: --arg A=f32[4096,4096]:random --arg B=f32[4096,4096]:random --arg C=f32[4096,4096] --arg n=4096

constexpr int TILE = 64, DEPTH = 8;  // a block's tile of C, and of A and B along k
constexpr int RESULTS = 8;           // a thread's

__global__ void sgemm(const float* A, const float* B, float* C, int n) {
  __shared__ float a[TILE][DEPTH];
  __shared__ float b[DEPTH][TILE];
  int thread = threadIdx.x;
  int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
  int x = thread % TILE, y = thread / TILE * RESULTS;
  float sums[RESULTS] = {};
  for (int tile = 0; tile < n; tile += DEPTH) {
    a[thread / DEPTH][thread % DEPTH] = A[(first_row + thread / DEPTH) * n + tile + thread % DEPTH];
    b[thread / TILE][x] = B[(tile + thread / TILE) * n + first_column + x];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < DEPTH; ++k) {
      float right = b[k][x];
#pragma unroll
      for (int i = 0; i < RESULTS; ++i) sums[i] += a[y + i][k] * right;
    }
    __syncthreads();
  }
  for (int i = 0; i < RESULTS; ++i) C[(first_row + y + i) * n + first_column + x] = sums[i];
}
