// Sum of an array: each thread adds two elements as it loads them, so half as many blocks do the same work.
// drywarp: --grid 32768 --block 256
// drywarp: --arg in=i32[16777216]:random --arg out=i32[32768] --arg n=16777216

#define THREADS 256

__global__ void reduce(const int* in, int* out, int n) {
  __shared__ int sums[THREADS];
  unsigned thread = threadIdx.x;
  unsigned i = blockIdx.x * (blockDim.x * 2) + thread;
  int sum = i < n ? in[i] : 0;
  if (i + blockDim.x < n) sum += in[i + blockDim.x];
  sums[thread] = sum;
  __syncthreads();
  // The loop's own instructions and a barrier for every step, though the last six concern one warp.
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (thread < half) sums[thread] += sums[thread + half];
    __syncthreads();
  }
  if (thread == 0) out[blockIdx.x] = sums[0];
}
