// A program of several files in one: each file is a part of it (-DPART=0 to 2), and nvlink puts their device code together.
#include <cstdio>

typedef int (*Function)(int);
struct Shape {
  __device__ virtual int area(int x) const = 0;
};
__device__ int twice(int x);
__device__ float quotient(float a, float b);
__device__ long long long_quotient(long long a, long long b);
__device__ int choose(int which, int x);
__device__ float half_of(float x, float by);
__device__ int turned(int x);
__device__ int* made(int count);
extern __device__ int numbers[4];
extern __constant__ int factors[4];
extern __device__ Function table[2];

#if PART == 0
struct Square : Shape {
  __device__ int area(int x) const override { return x * x; }
};
struct Strip : Shape {
  int width;
  __device__ explicit Strip(int width) : width(width) {}
  __device__ int area(int x) const override { return width * twice(x); }
};

__global__ void calls(int* out, float* ratio, long long* large, int which) {
  int t = threadIdx.x;
  Square square;
  Strip strip(5);
  const Shape* shape = which ? (const Shape*)&square : (const Shape*)&strip;
  out[t] = shape->area(t) + numbers[t % 4] + factors[t % 4] + choose(t % 8, t) + table[which](t) + turned(t);
  // Each file has a slow path of divisions of its own, under the same name.
  ratio[t] = quotient(1e-38f * t, 3e-39f * (t + 1)) + half_of(1e-38f * t, 2e-39f * (t + 1)) + 1e-39f * t / (1e-39f * (t + 2));
  large[t] = long_quotient(10000000000ll * (t + 1), t + 3);
}
__global__ void given(int* out, Function function) {
  out[threadIdx.x] = function(threadIdx.x) + (threadIdx.x == 3 ? twice(100) : 0);
}
__global__ void with_heap(int* out) {
  int* own = made(4);
  for (int n = 0; n < 4; ++n) own[n] = n * threadIdx.x;
  out[threadIdx.x] = own[1] + own[3];
  free(own);
  if (threadIdx.x == 31) printf("last %d\n", twice(threadIdx.x));
}

static int chosen(int which, int x) {
  switch (which) {
    case 0: return x * 3;
    case 1: return x - 7;
    case 2: return x * x + 1;
    case 3: return x % 5;
    case 4: return x / 3;
    case 5: return x ^ 33;
    case 6: return 77;
    default: return -x;
  }
}

int main() {
  int *out, host[32], change[4] = {4, 3, 2, 1};
  float *ratio, ratios[32];
  long long *large, larges[32];
  cudaMalloc(&out, sizeof host);
  cudaMalloc(&ratio, sizeof ratios);
  cudaMalloc(&large, sizeof larges);
  Function functions[2];
  cudaMemcpyFromSymbol(functions, table, sizeof functions);
  cudaMemcpyToSymbol(factors, change, sizeof change);
  for (int which = 0; which < 2; ++which) {
    calls<<<1, 32>>>(out, ratio, large, which);
    cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
    cudaMemcpy(ratios, ratio, sizeof ratios, cudaMemcpyDeviceToHost);
    cudaMemcpy(larges, large, sizeof larges, cudaMemcpyDeviceToHost);
    for (int t = 0; t < 32; ++t) {
      int own = which ? t * t * t : t + 11;
      int right = (which ? t * t : 10 * t) + 10 * (t % 4 + 1) + change[t % 4] + chosen(t % 8, t) + own + 31 - t;
      float q = 1e-38f * t / (3e-39f * (t + 1)) + 1e-38f * t / (2e-39f * (t + 1)) + 1e-39f * t / (1e-39f * (t + 2));
      if (host[t] != right || larges[t] != 10000000000ll * (t + 1) / (t + 3) || ratios[t] != q) {
        std::printf("wrong: thread %d has %d, %g, %lld, not %d, %g\n", t, host[t], ratios[t], larges[t], right, q);
        return 1;
      }
    }
    given<<<1, 32>>>(out, functions[which]);
    cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
    std::printf("given %d %d\n", host[2], host[3]);
  }
  with_heap<<<1, 32>>>(out);
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  std::printf("heap %d, %s\n", host[9], cudaGetErrorString(cudaDeviceSynchronize()));
}
#elif PART == 1
__device__ int numbers[4] = {10, 20, 30, 40};
__constant__ int factors[4];
__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ __noinline__ float quotient(float a, float b) { return a / b; }
__device__ __noinline__ long long long_quotient(long long a, long long b) { return a / b; }
__device__ __noinline__ int* made(int count) { return (int*)malloc(count * sizeof(int)); }
__device__ __noinline__ int turned(int x) {
  __shared__ int all[32];
  all[x] = x;
  __syncthreads();
  return all[31 - x];
}
#else
__device__ __noinline__ int plus(int x) { return x + 11; }
__device__ __noinline__ int cube(int x) { return x * x * x; }
__device__ Function table[2] = {plus, cube};
__device__ __noinline__ float half_of(float x, float by) { return x / by; }
__device__ __noinline__ int choose(int which, int x) {
  switch (which) {
    case 0: return x * 3;
    case 1: return x - 7;
    case 2: return x * x + 1;
    case 3: return x % 5;
    case 4: return x / 3;
    case 5: return x ^ 33;
    case 6: return 77;
    default: return -x;
  }
}
#endif
