// Tutorial, step 1: C = A*B as one would write it down. Each thread computes an element of C.
// drywarp: --grid 64,64 --block 32,32
// drywarp: --arg A=f32[2048,2048]:random --arg B=f32[2048,2048]:random --arg C=f32[2048,2048] --arg n=2048

__global__ void matmul(const float* A, const float* B, float* C, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  int column = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0.0f;
  for (int k = 0; k < n; ++k) sum += A[row * n + k] * B[k * n + column];
  C[row * n + column] = sum;
}
