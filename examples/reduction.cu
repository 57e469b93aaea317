// Sum of an array: a tree in shared memory down to one warp, then shuffles; one partial sum a block.
// drywarp: --grid 16384 --block 256
// drywarp: --arg in=f32[8388608]:random --arg out=f32[16384] --arg n=8388608

__global__ void reduction(const float* in, float* out, int n) {
  __shared__ float partial[256];
  int i = blockIdx.x * (blockDim.x * 2) + threadIdx.x;
  float sum = 0.0f;
  if (i < n) sum = in[i];
  if (i + blockDim.x < n) sum += in[i + blockDim.x];
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half >= 32; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x < 32) {
    sum = partial[threadIdx.x];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
  }
}
