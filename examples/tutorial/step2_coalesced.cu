// Tutorial, step 2: x and y are swapped, so that neighbouring threads hold neighbouring columns of C.
// drywarp: --grid 64,64 --block 32,32
// drywarp: --arg A=f32[2048,2048]:random --arg B=f32[2048,2048]:random --arg C=f32[2048,2048] --arg n=2048

__global__ void matmul(const float* A, const float* B, float* C, int n) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < n; ++k) sum += A[row * n + k] * B[k * n + column];
  C[row * n + column] = sum;
}
