// Softmax of each row, one block a row: maximum and sum over shuffles in each warp, then over the warps.
// drywarp: --grid 4096 --block 256
// drywarp: --arg in=f32[4096,1024]:random --arg out=f32[4096,1024] --arg columns=1024

#include <cfloat>

template <typename Combine>
__device__ float reduce_block(float value, float neutral, Combine combine) {
  __shared__ float partial[32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  for (int offset = 16; offset > 0; offset /= 2) value = combine(value, __shfl_xor_sync(0xffffffff, value, offset));
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  value = lane < warps ? partial[lane] : neutral;
  for (int offset = 16; offset > 0; offset /= 2) value = combine(value, __shfl_xor_sync(0xffffffff, value, offset));
  return value;
}

__global__ void softmax(const float* in, float* out, int columns) {
  const float* x = in + (size_t)blockIdx.x * columns;
  float* y = out + (size_t)blockIdx.x * columns;

  float largest = -FLT_MAX;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) largest = fmaxf(largest, x[c]);
  largest = reduce_block(largest, -FLT_MAX, [](float a, float b) { return fmaxf(a, b); });

  float sum = 0.0f;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) sum += expf(x[c] - largest);
  sum = reduce_block(sum, 0.0f, [](float a, float b) { return a + b; });

  float scale = 1.0f / sum;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) y[c] = expf(x[c] - largest) * scale;
}
