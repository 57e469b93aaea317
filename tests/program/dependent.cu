// Two kernels, of which the second may start before the first has ended, if that is asked for.
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int N = 64 * 128;

__global__ void produce(float* x, int turns) {
  asm volatile("griddepcontrol.launch_dependents;");
  float sum = threadIdx.x;
  for (int n = 0; n < turns; ++n) sum = sum * 0.5f + 1;
  x[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void consume(const float* x, float* y, int turns) {
  float sum = threadIdx.x;
  for (int n = 0; n < turns; ++n) sum = sum * 0.5f + 1;
  asm volatile("griddepcontrol.wait;" ::: "memory");
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = sum - x[i];
}

int main(int count, char** words) {
  float *x, *y;
  cudaMalloc(&x, N * 4);
  cudaMalloc(&y, N * 4);
  produce<<<64, 128>>>(x, 20000);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = std::atoi(words[1]);
  cudaLaunchConfig_t config = {};
  config.gridDim = 64;
  config.blockDim = 128;
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, consume, (const float*)x, y, 20000);
  std::vector<float> got(N, 1);
  cudaMemcpy(got.data(), y, N * 4, cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (float value : got) wrong += value != 0;
  std::printf("%d wrong\n", wrong);

  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 4, attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  int clusters[2];
  for (int alone = 0; alone < 2; alone++) {
    config.dynamicSmemBytes = alone ? 200 * 1024 : 0;
    cudaOccupancyMaxActiveClusters(&clusters[alone], consume, &config);
  }
  std::printf("%d clusters, %d with an SM for each block\n", clusters[0], clusters[1]);
}
