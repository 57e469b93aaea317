// A whole program: heat spreads over a plate, until a kernel finds that nothing changes by more than a threshold any
// more. The host decides after every tenth step from what the device computed, and checks the end against its own.
//
//     drywarp run --gpu h100 examples/programs/heat.cu -- 512
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                               \
  do {                                                                            \
    cudaError_t status = (call);                                                  \
    if (status != cudaSuccess) {                                                  \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status));        \
      std::exit(1);                                                               \
    }                                                                             \
  } while (0)

__constant__ float rate;

__global__ void step(const float* from, float* to, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n || y >= n) return;
  int at = y * n + x;
  if (x == 0 || y == 0 || x == n - 1 || y == n - 1) {
    to[at] = from[at];
    return;
  }
  to[at] = from[at] + rate * (from[at - 1] + from[at + 1] + from[at - n] + from[at + n] - 4.0f * from[at]);
}

__global__ void largest_change(const float* one, const float* other, int cells, unsigned* found) {
  __shared__ float part[256];
  float most = 0.0f;
  for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < cells; at += gridDim.x * blockDim.x)
    most = fmaxf(most, fabsf(one[at] - other[at]));
  part[threadIdx.x] = most;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + half]);
    __syncthreads();
  }
  // Floats that are not negative are ordered as their bits are.
  if (threadIdx.x == 0) atomicMax(found, __float_as_uint(part[0]));
}

int main(int count, char** words) {
  int n = count > 1 ? std::atoi(words[1]) : 256, cells = n * n, steps = 0;
  float diffusion = 0.2f, change = INFINITY;
  std::vector<float> plate(cells, 0.0f), got(cells);
  for (int x = 0; x < n; x++) plate[x] = 100.0f;
  float *one, *other;
  unsigned* found;
  CHECK(cudaMalloc(&one, cells * sizeof(float)));
  CHECK(cudaMalloc(&other, cells * sizeof(float)));
  CHECK(cudaMalloc(&found, sizeof(unsigned)));
  CHECK(cudaMemcpyToSymbol(rate, &diffusion, sizeof diffusion));
  CHECK(cudaMemcpy(one, plate.data(), cells * sizeof(float), cudaMemcpyHostToDevice));
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaEventRecord(begin));
  dim3 block(32, 8), grid((n + 31) / 32, (n + 7) / 8);
  while (change > 1.5f) {
    for (int k = 0; k < 10; k++) {
      step<<<grid, block>>>(one, other, n);
      std::swap(one, other);
    }
    steps += 10;
    CHECK(cudaMemset(found, 0, sizeof(unsigned)));
    largest_change<<<64, 256>>>(one, other, cells, found);
    CHECK(cudaMemcpy(&change, found, sizeof change, cudaMemcpyDeviceToHost));
  }
  CHECK(cudaEventRecord(end));
  CHECK(cudaEventSynchronize(end));
  float milliseconds;
  CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
  CHECK(cudaMemcpy(got.data(), one, cells * sizeof(float), cudaMemcpyDeviceToHost));

  std::vector<float> next(plate);
  for (int k = 0; k < steps; k++) {
    for (int y = 1; y < n - 1; y++)
      for (int x = 1; x < n - 1; x++) {
        int at = y * n + x;
        float sum = plate[at - 1] + plate[at + 1] + plate[at - n] + plate[at + n] - 4.0f * plate[at];
        next[at] = plate[at] + diffusion * sum;
      }
    std::swap(plate, next);
  }
  float worst = 0.0f;
  for (int at = 0; at < cells; at++) worst = std::fmax(worst, std::fabs(got[at] - plate[at]));
  std::printf("%d steps in %.3f ms, %s\n", steps, milliseconds, worst < 1e-3f ? "PASS" : "FAIL");
  return worst < 1e-3f ? 0 : 1;
}
