// Sum of an array, one partial sum a block: a tree in shared memory whose threads of one warp part ways.
// -D MASK=1 asks the same without a division, which the compiler does not know to be one by a power of two.
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
    // Every 2nd thread adds, then every 4th, …: all warps stay, with ever fewer of their threads.
#ifdef MASK
    if ((thread & (2 * step - 1)) == 0) sums[thread] += sums[thread + step];
#else
    if (thread % (2 * step) == 0) sums[thread] += sums[thread + step];
#endif
    __syncthreads();
  }
  if (thread == 0) out[blockIdx.x] = sums[0];
}
