// A step of Gaussian elimination: column t is cleared below the diagonal, in the matrix and on the right-hand side.
// drywarp: --grid 128,128 --block 8,8
// drywarp: --arg a=f32[1024,1024]:random --arg b=f32[1024]:random --arg factors=f32[1024,1024]:random
// drywarp: --arg n=1024 --arg t=0

#ifndef BLOCK_X
#define BLOCK_X 8
#endif
#ifndef BLOCK_Y
#define BLOCK_Y 8
#endif

// Threads along x take rows, as the original does: neighbours in a warp are a whole row apart.
__global__ void Fan2(float* a, float* b, const float* factors, int n, int t) {
  int below = blockIdx.x * BLOCK_X + threadIdx.x;
  int right = blockIdx.y * BLOCK_Y + threadIdx.y;
  if (below >= n - 1 - t || right >= n - t) return;
  int row = t + 1 + below, column = t + right;
  float factor = factors[row * n + t];
  a[row * n + column] -= factor * a[t * n + column];
  if (right == 0) b[row] -= factor * b[t];
}
