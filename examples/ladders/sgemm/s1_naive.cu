// C = A*B for square matrices, an element of C a thread; neighbouring threads hold neighbouring rows.
// drywarp: --grid 128,128 --block 32,32
// drywarp: --arg A=f32[4096,4096]:random --arg B=f32[4096,4096]:random --arg C=f32[4096,4096] --arg n=4096

__global__ void sgemm(const float* A, const float* B, float* C, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  int column = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0.0f;
  // A warp reads 32 rows of A at once, n floats apart: a sector for each of its threads.
  for (int k = 0; k < n; ++k) sum += A[row * n + k] * B[k * n + column];
  C[row * n + column] = sum;
}
