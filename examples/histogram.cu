// Histogram of bytes: each block counts in shared memory with atomics, then adds its bins to the total.
// drywarp: --grid 864 --block 256
// drywarp: --arg data=u8[33554432]:random --arg bins=u32[256] --arg words=8388608

#define BINS 256

__global__ void histogram(const uchar4* data, unsigned* bins, int words) {
  __shared__ unsigned counts[BINS];
  for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) counts[bin] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) {
    uchar4 four = data[i];
    atomicAdd(&counts[four.x], 1u);
    atomicAdd(&counts[four.y], 1u);
    atomicAdd(&counts[four.z], 1u);
    atomicAdd(&counts[four.w], 1u);
  }
  __syncthreads();
  for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) atomicAdd(&bins[bin], counts[bin]);
}
