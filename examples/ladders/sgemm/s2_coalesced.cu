// C = A*B, an element of C a thread; neighbouring threads hold neighbouring columns, as memory does.
// drywarp: --grid 128,128 --block 32,32
// drywarp: --arg A=f32[4096,4096]:random --arg B=f32[4096,4096]:random --arg C=f32[4096,4096] --arg n=4096

__global__ void sgemm(const float* A, const float* B, float* C, int n) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  // Each element of A and B is read from global memory by every block, row or column that needs it.
  for (int k = 0; k < n; ++k) sum += A[row * n + k] * B[k * n + column];
  C[row * n + column] = sum;
}
