// Small programs in one: the first argument says which.
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

__device__ int calls;
__constant__ int factor;

__global__ void scale(const int* from, int* to, int n) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < n) to[at] = from[at] * factor;
  if (at == 0) calls++;
}
__global__ void spin(int* to, int times) {
  int sum = 0;
  for (int k = 0; k < times; k++) sum += k * k ^ sum;
  to[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

static int failed(cudaError_t status, const char* what) {
  std::printf("%s: %s\n", what, cudaGetErrorName(status));
  return 3;
}
#define TRY(call)                                               \
  if (cudaError_t status = (call)) return failed(status, #call)

// Each device scales by a number of its own; what the last one has passes back to the first.
static int devices() {
  enum { N = 1000, MOST = 16 };
  int count, *held[MOST], got[N], numbers[N];
  TRY(cudaGetDeviceCount(&count));
  for (int k = 0; k < N; k++) numbers[k] = k;
  for (int one = 0; one < count; one++) {
    int by = one + 2, current, can;
    TRY(cudaSetDevice(one));
    TRY(cudaGetDevice(&current));
    if (current != one) return 1;
    TRY(cudaMalloc(&held[one], 2 * sizeof numbers));
    TRY(cudaMemcpyToSymbol(factor, &by, sizeof by));
    TRY(cudaDeviceCanAccessPeer(&can, one, one ? 0 : count - 1));
    cudaPointerAttributes attributes;
    TRY(cudaPointerGetAttributes(&attributes, held[one]));
    if (attributes.device != one || can != (count > 1)) return 1;
  }
  TRY(cudaSetDevice(0));
  TRY(cudaMemcpy(held[0], numbers, sizeof numbers, cudaMemcpyHostToDevice));
  for (int one = 0; one < count; one++) {
    TRY(cudaSetDevice(one));
    if (one) TRY(cudaMemcpyPeer(held[one], one, held[one - 1] + N, one - 1, sizeof numbers));
    scale<<<4, 256>>>(held[one], held[one] + N, N);
    TRY(cudaGetLastError());
  }
  TRY(cudaMemcpy(got, held[count - 1] + N, sizeof got, cudaMemcpyDeviceToHost));
  int by = 1, called = 0, wrong = 0;
  for (int one = 0; one < count; one++) by *= one + 2;
  for (int k = 0; k < N; k++) wrong += got[k] != k * by;
  TRY(cudaMemcpyFromSymbol(&called, calls, sizeof called));
  std::printf("%d devices, %d wrong, %d call\n", count, wrong, called);
  return wrong != 0 || cudaSetDevice(count) != cudaErrorInvalidDevice;
}

// A kernel reaches the memory of another device once that is allowed; a stream takes work of its own device.
static int peers() {
  int *there, *here, got;
  cudaStream_t stream;
  TRY(cudaSetDevice(1));
  TRY(cudaMalloc(&there, 4));
  TRY(cudaMemset(there, 0, 4));
  TRY(cudaStreamCreate(&stream));
  TRY(cudaSetDevice(0));
  TRY(cudaMalloc(&here, 4));
  spin<<<1, 1, 0, stream>>>(here, 1);
  std::printf("%s\n", cudaGetErrorName(cudaGetLastError()));
  std::printf("%s\n", cudaGetErrorName(cudaDeviceDisablePeerAccess(1)));
  TRY(cudaDeviceEnablePeerAccess(1, 0));
  std::printf("%s\n", cudaGetErrorName(cudaDeviceEnablePeerAccess(1, 0)));
  spin<<<1, 1>>>(there, 3);
  TRY(cudaDeviceSynchronize());
  TRY(cudaMemcpy(&got, there, 4, cudaMemcpyDeviceToHost));
  std::printf("%d\n", got);
  TRY(cudaDeviceDisablePeerAccess(1));
  spin<<<1, 1>>>(there, 3);
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  TRY(cudaSetDevice(1));
  spin<<<1, 1>>>(there, 3);
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  return 0;
}

// A thread of the host for each device.
static int threads() {
  std::vector<std::thread> hosts;
  int count;
  TRY(cudaGetDeviceCount(&count));
  for (int one = 0; one < count; one++)
    hosts.emplace_back([one] {
      int* to;
      cudaSetDevice(one);
      cudaMalloc(&to, 4096);
      spin<<<1, 32>>>(to, 20000);
      cudaDeviceSynchronize();
    });
  for (auto& one : hosts) one.join();
  return 0;
}

int main(int count, char** words) {
  const char* which = count > 1 ? words[1] : "";
  if (!std::strcmp(which, "devices")) return devices();
  if (!std::strcmp(which, "peers")) return peers();
  if (!std::strcmp(which, "threads")) return threads();
  return 9;
}
