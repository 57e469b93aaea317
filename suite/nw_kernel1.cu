// Needleman-Wunsch: the tiles of one anti-diagonal of the score matrix, a block each; the longest diagonal.
// drywarp: --grid 128 --block 16
// drywarp: --arg similarity=i32[2048,2048]:random --arg score=i32[2049,2049]:random --arg n=2048 --arg penalty=10

#ifndef BLOCK
#define BLOCK 16
#endif

__global__ void nw_kernel1(const int* similarity, int* score, int n, int penalty) {
  __shared__ int tile[BLOCK + 1][BLOCK + 1];
  __shared__ int alike[BLOCK][BLOCK];
  int lane = threadIdx.x, pitch = n + 1;
  int left = blockIdx.x * BLOCK, top = (gridDim.x - 1 - blockIdx.x) * BLOCK;
  int* corner = score + top * pitch + left;

  for (int y = 0; y < BLOCK; ++y) alike[y][lane] = similarity[(top + y) * n + left + lane];
  if (lane == 0) tile[0][0] = corner[0];
  tile[lane + 1][0] = corner[(lane + 1) * pitch];
  tile[0][lane + 1] = corner[lane + 1];
  __syncthreads();

  // The wavefront grows to the tile's own diagonal, then shrinks; thread `lane` is in column `lane`.
  for (int step = 0; step < 2 * BLOCK - 1; ++step) {
    int x = lane, y = step - lane;
    if (y >= 0 && y < BLOCK) {
      int match = tile[y][x] + alike[y][x];
      int gap = max(tile[y][x + 1], tile[y + 1][x]) - penalty;
      tile[y + 1][x + 1] = max(match, gap);
    }
    __syncthreads();
  }
  for (int y = 0; y < BLOCK; ++y) corner[(y + 1) * pitch + lane + 1] = tile[y + 1][lane + 1];
}
