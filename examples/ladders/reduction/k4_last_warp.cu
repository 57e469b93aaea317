// Sum of an array: the last six steps are one warp's, written out, and need no barrier of the block.
// drywarp: --grid 32768 --block 256
// drywarp: --arg in=i32[16777216]:random --arg out=i32[32768] --arg n=16777216

#define THREADS 256

// All lanes read before any writes: since Volta the lanes of a warp need not keep step by themselves.
__device__ void add_from(volatile int* sums, unsigned lane, unsigned distance) {
  int sum = sums[lane] + sums[lane + distance];
  __syncwarp();
  sums[lane] = sum;
  __syncwarp();
}

__global__ void reduce(const int* in, int* out, int n) {
  __shared__ int sums[THREADS];
  unsigned thread = threadIdx.x;
  unsigned i = blockIdx.x * (blockDim.x * 2) + thread;
  int sum = i < n ? in[i] : 0;
  if (i + blockDim.x < n) sum += in[i + blockDim.x];
  sums[thread] = sum;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 32; half /= 2) {
    if (thread < half) sums[thread] += sums[thread + half];
    __syncthreads();
  }
  if (thread < 32) {
    for (unsigned distance = 32; distance > 0; distance /= 2) add_from(sums, thread, distance);
    if (thread == 0) out[blockIdx.x] = sums[0];
  }
}
