// Sum of an array: the threads that add stand next to each other, so warps stay whole or idle; the words do not.
// drywarp: --grid 65536 --block 256
// drywarp: --arg in=i32[16777216]:random --arg out=i32[65536] --arg n=16777216

#define THREADS 256

__global__ void reduce(const int* in, int* out, int n) {
  __shared__ int sums[THREADS];
  unsigned thread = threadIdx.x;
  unsigned i = blockIdx.x * blockDim.x + thread;
  sums[thread] = i < n ? in[i] : 0;
  __syncthreads();
  for (unsigned step = 1; step < blockDim.x; step *= 2) {
    // Words that are 2, 4, 8, … apart: as many of them as that lie in one bank of shared memory.
    unsigned at = 2 * step * thread;
    if (at < blockDim.x) sums[at] += sums[at + step];
    __syncthreads();
  }
  if (thread == 0) out[blockIdx.x] = sums[0];
}
