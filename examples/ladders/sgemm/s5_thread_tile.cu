// C = A*B, 8 x 8 elements of C a thread: sixteen words from shared memory serve 64 multiply-adds.
// drywarp: --grid 32,32 --block 256
// drywarp: --arg A=f32[4096,4096]:random --arg B=f32[4096,4096]:random --arg C=f32[4096,4096] --arg n=4096

constexpr int TILE = 128, DEPTH = 8;  // a block's tile of C, and of A and B along k
constexpr int SIDE = 8;               // of a thread's tile
constexpr int THREADS = (TILE / SIDE) * (TILE / SIDE);

__global__ void sgemm(const float* A, const float* B, float* C, int n) {
  __shared__ float a[TILE][DEPTH];
  __shared__ float b[DEPTH][TILE];
  int thread = threadIdx.x;
  int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
  int x = thread % (TILE / SIDE) * SIDE, y = thread / (TILE / SIDE) * SIDE;
  float sums[SIDE][SIDE] = {};
  for (int tile = 0; tile < n; tile += DEPTH) {
    // One word a load and a store: four of each for A and for B.
#pragma unroll
    for (int done = 0; done < TILE * DEPTH; done += THREADS) {
      int i = done + thread;
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
