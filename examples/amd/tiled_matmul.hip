// C = A*B for square matrices, each block computing one TILE x TILE tile through shared memory.
// drywarp: --grid 64,64 --block 16,16
// drywarp: --arg A=f32[1024,1024]:random --arg B=f32[1024,1024]:random --arg C=f32[1024,1024] --arg n=1024

#include <hip/hip_runtime.h>

#ifndef TILE
#define TILE 16
#endif

__global__ void tiled_matmul(const float* A, const float* B, float* C, int n) {
  __shared__ float a[TILE][TILE];
  __shared__ float b[TILE][TILE];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * TILE + ty;
  int col = blockIdx.x * TILE + tx;
  float sum = 0.0f;
  for (int tile = 0; tile < n; tile += TILE) {
    a[ty][tx] = A[row * n + tile + tx];
    b[ty][tx] = B[(tile + ty) * n + col];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE; ++k) sum += a[ty][k] * b[k][tx];
    __syncthreads();
  }
  C[row * n + col] = sum;
}
