// C = A*B, 8 x 8 elements of C a thread; all copies go in vectors of four, for which A's tile is transposed.
// drywarp: --grid 32,32 --block 256
// drywarp: --arg A=f32[4096,4096]:random --arg B=f32[4096,4096]:random --arg C=f32[4096,4096] --arg n=4096

#ifndef TILE
#define TILE 128  // rows and columns of C a block
#endif
#ifndef DEPTH
#define DEPTH 8  // of the tiles along k
#endif
constexpr int SIDE = 8;  // of a thread's tile
constexpr int THREADS = (TILE / SIDE) * (TILE / SIDE);

__device__ float4& vector(float& first) { return reinterpret_cast<float4&>(first); }
__device__ float4 vector(const float& first) { return reinterpret_cast<const float4&>(first); }

__global__ void __launch_bounds__(THREADS) sgemm(const float* A, const float* B, float* C, int n) {
  __shared__ __align__(16) float a[DEPTH][TILE];  // transposed
  __shared__ __align__(16) float b[DEPTH][TILE];
  int thread = threadIdx.x;
  int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
  int x = thread % (TILE / SIDE) * SIDE, y = thread / (TILE / SIDE) * SIDE;
  float sums[SIDE][SIDE] = {};
  for (int tile = 0; tile < n; tile += DEPTH) {
#pragma unroll
    for (int done = 0; done < TILE * DEPTH; done += 4 * THREADS) {
      int i = done + 4 * thread, row = i / DEPTH, k = i % DEPTH;
      float4 four = vector(A[(first_row + row) * n + tile + k]);
      a[k][row] = four.x;
      a[k + 1][row] = four.y;
      a[k + 2][row] = four.z;
      a[k + 3][row] = four.w;
      vector(b[i / TILE][i % TILE]) = vector(B[(tile + i / TILE) * n + first_column + i % TILE]);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < DEPTH; ++k) {
      float left[SIDE], right[SIDE];
      for (int i = 0; i < SIDE; i += 4) vector(left[i]) = vector(a[k][y + i]);
      for (int j = 0; j < SIDE; j += 4) vector(right[j]) = vector(b[k][x + j]);
      for (int i = 0; i < SIDE; ++i)
        for (int j = 0; j < SIDE; ++j) sums[i][j] += left[i] * right[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < SIDE; ++i)
    for (int j = 0; j < SIDE; j += 4)
      vector(C[(first_row + y + i) * n + first_column + x + j]) = vector(sums[i][j]);
}
