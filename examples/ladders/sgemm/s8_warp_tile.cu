// C = A*B, a tile of 64 x 64 of C a warp: a thread's 8 x 16 elements lie in squares of 4 x 4 among those of its lanes,
// so that the lanes of a warp read neighbouring vectors, and few different ones. Two buffers need one barrier a turn.
// drywarp: --grid 32,32 --block 128
// drywarp: --arg A=f32[4096,4096]:random --arg B=f32[4096,4096]:random --arg C=f32[4096,4096] --arg n=4096

constexpr int TILE = 128, DEPTH = 16;           // a block's tile of C, and of A and B along k
constexpr int WARP_TILE = 64, ACROSS = TILE / WARP_TILE;
constexpr int LANE_ROWS = 8, LANE_COLUMNS = 4;  // how a warp's lanes lie
constexpr int DOWN = 2, RIGHT = 4;              // a thread's squares
constexpr int THREADS = ACROSS * ACROSS * 32;

__device__ float4& vector(float& first) { return reinterpret_cast<float4&>(first); }
__device__ float4 vector(const float& first) { return reinterpret_cast<const float4&>(first); }

__global__ void __launch_bounds__(THREADS) sgemm(const float* A, const float* B, float* C, int n) {
  __shared__ __align__(16) float a_buffers[2][DEPTH][TILE];  // transposed
  __shared__ __align__(16) float b_buffers[2][DEPTH][TILE];
  int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
  int y = warp / ACROSS * WARP_TILE + lane / LANE_COLUMNS * 4;
  int x = warp % ACROSS * WARP_TILE + lane % LANE_COLUMNS * 4;
  float sums[4 * DOWN][4 * RIGHT] = {};
  for (int tile = 0; tile < n; tile += DEPTH) {
    // Others may still read the buffers of the turn before, but no more those of the one before that.
    auto& a = a_buffers[tile / DEPTH % 2];
    auto& b = b_buffers[tile / DEPTH % 2];
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
      float left[4 * DOWN], right[4 * RIGHT];
      for (int d = 0; d < DOWN; ++d) vector(left[4 * d]) = vector(a[k][y + d * 4 * LANE_ROWS]);
      for (int r = 0; r < RIGHT; ++r) vector(right[4 * r]) = vector(b[k][x + r * 4 * LANE_COLUMNS]);
      for (int i = 0; i < 4 * DOWN; ++i)
        for (int j = 0; j < 4 * RIGHT; ++j) sums[i][j] += left[i] * right[j];
    }
  }
  for (int i = 0; i < 4 * DOWN; ++i)
    for (int r = 0; r < RIGHT; ++r) {
      int row = first_row + y + i / 4 * 4 * LANE_ROWS + i % 4;
      vector(C[row * n + first_column + x + r * 4 * LANE_COLUMNS]) = vector(sums[i][4 * r]);
    }
}
