// Sum of an array: the block's size is known to the compiler, so no step is left to a loop.
// drywarp: --grid 32768 --block 256 --entry 'reduce<256>'
// drywarp: --arg in=i32[16777216]:random --arg out=i32[32768] --arg n=16777216

__device__ void add_from(volatile int* sums, unsigned lane, unsigned distance) {
  int sum = sums[lane] + sums[lane + distance];
  __syncwarp();
  sums[lane] = sum;
  __syncwarp();
}

template <unsigned THREADS>
__global__ void reduce(const int* in, int* out, int n) {
  __shared__ int sums[THREADS];
  unsigned thread = threadIdx.x;
  unsigned i = blockIdx.x * (THREADS * 2) + thread;
  int sum = i < n ? in[i] : 0;
  if (i + THREADS < n) sum += in[i + THREADS];
  sums[thread] = sum;
  __syncthreads();
#pragma unroll
  for (unsigned half = THREADS / 2; half > 32; half /= 2) {
    if (thread < half) sums[thread] += sums[thread + half];
    __syncthreads();
  }
  if (thread < 32) {
#pragma unroll
    for (unsigned distance = 32; distance > 0; distance /= 2) add_from(sums, thread, distance);
    if (thread == 0) out[blockIdx.x] = sums[0];
  }
}
