// Launches for their speed under `drywarp run`: COUNT small ones that differ in what they find, or one long one.
#include <cstdio>
#include <cstdlib>

__global__ void step(float *x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1;
}

__global__ void rounds(float *x, int n, int times) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value = x[i];
  for (int k = 0; k < times; ++k) value = value * value * 0.25f + 0.5f;
  x[i] = value;
}

int main(int count, char **words) {
  const int launches = atoi(words[1]), times = atoi(words[2]), n = 1 << 16;
  float *x, first;
  cudaMalloc(&x, n * sizeof *x);
  cudaMemset(x, 0, n * sizeof *x);
  for (int k = 0; k < launches; ++k) step<<<n / 256, 256>>>(x, n);
  if (times) rounds<<<n / 256, 256>>>(x, n, times);
  cudaMemcpy(&first, x, sizeof first, cudaMemcpyDeviceToHost);
  printf("%g\n", first);
}
