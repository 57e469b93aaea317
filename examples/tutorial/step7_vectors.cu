// Tutorial, step 7: all copies go in vectors of four floats. A's tile is transposed for that, its rows padded.
// drywarp: --grid 32,32 --block 16,16
// drywarp: --arg A=f32[2048,2048]:random --arg B=f32[2048,2048]:random --arg C=f32[2048,2048] --arg n=2048

constexpr int TILE = 64, DEPTH = 16;  // a block's tile of C, and how much of A's rows and B's columns it holds at once
constexpr int SIDE = 4;               // of a thread's results, and the floats of a vector
constexpr int THREADS = (TILE / SIDE) * (TILE / SIDE);

__global__ void __launch_bounds__(THREADS, 6) matmul(const float4* A, const float4* B, float4* C, int n) {
  __shared__ __align__(16) float a_buffers[2][DEPTH][TILE + 4];  // transposed; the padding spreads a column over banks
  __shared__ float4 b_buffers[2][DEPTH][TILE / 4];
  int x = threadIdx.x, y = threadIdx.y;
  int thread = y * blockDim.x + x;
  int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
  int row = thread / (DEPTH / 4), k4 = thread % (DEPTH / 4);
  float sums[SIDE][SIDE] = {};
  for (int tile = 0; tile < n; tile += DEPTH) {
    auto& a = a_buffers[tile / DEPTH % 2];
    auto& b = b_buffers[tile / DEPTH % 2];
    float4 four = A[((first_row + row) * n + tile) / 4 + k4];
    a[4 * k4][row] = four.x;
    a[4 * k4 + 1][row] = four.y;
    a[4 * k4 + 2][row] = four.z;
    a[4 * k4 + 3][row] = four.w;
    b[y][x] = B[((tile + y) * n + first_column) / 4 + x];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < DEPTH; ++k) {
      float4 l = reinterpret_cast<float4&>(a[k][SIDE * y]), r = b[k][x];
      float left[SIDE] = {l.x, l.y, l.z, l.w}, right[SIDE] = {r.x, r.y, r.z, r.w};
      for (int i = 0; i < SIDE; ++i)
        for (int j = 0; j < SIDE; ++j) sums[i][j] += left[i] * right[j];
    }
  }
  for (int i = 0; i < SIDE; ++i) {
    float4 out = {sums[i][0], sums[i][1], sums[i][2], sums[i][3]};
    C[((first_row + SIDE * y + i) * n + first_column) / 4 + x] = out;
  }
}
