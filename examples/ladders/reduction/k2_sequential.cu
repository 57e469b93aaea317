// Sum of an array: each step adds the upper half of the words to the lower one, a bank for every thread.
// drywarp: --grid 65536 --block 256
// drywarp: --arg in=i32[16777216]:random --arg out=i32[65536] --arg n=16777216

#define THREADS 256

__global__ void reduce(const int* in, int* out, int n) {
  __shared__ int sums[THREADS];
  unsigned thread = threadIdx.x;
  unsigned i = blockIdx.x * blockDim.x + thread;
  sums[thread] = i < n ? in[i] : 0;
  __syncthreads();
  // Half of the threads have nothing to do from the first step on.
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (thread < half) sums[thread] += sums[thread + half];
    __syncthreads();
  }
  if (thread == 0) out[blockIdx.x] = sums[0];
}
