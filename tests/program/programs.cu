// Small programs in one: the first argument says which.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

struct List {
  int* values;
  int count;
};

__constant__ int factor;
__device__ int total = 5;

__global__ void scale(const int* from, int* to, int n) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < n) to[at] = from[at] * factor;
}
__global__ void add_up(const List* lists, int count) {
  for (int k = 0; k < count; k++)
    for (int at = threadIdx.x; at < lists[k].count; at += blockDim.x) atomicAdd(&total, lists[k].values[at]);
}
__global__ void beyond(int* to) { to[1 << 24] = 1; }
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

static int results() {
  int n = 1000, by = 7, sum = 0;
  std::vector<int> numbers(n), got(n);
  for (int k = 0; k < n; k++) numbers[k] = k;
  int *from, *to;
  TRY(cudaMalloc(&from, n * sizeof(int)));
  TRY(cudaMalloc(&to, n * sizeof(int)));
  TRY(cudaMemcpyToSymbol(factor, &by, sizeof by));
  TRY(cudaMemcpy(from, numbers.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  scale<<<4, 256>>>(from, to, n);
  TRY(cudaMemcpy(got.data(), to, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int k = 0; k < n; k++)
    if (got[k] != 7 * k) return 1;
  // Pointers in memory that point to memory; managed memory, which the host writes directly.
  List* lists;
  TRY(cudaMallocManaged(&lists, 2 * sizeof(List)));
  lists[0] = List{from, n};
  lists[1] = List{to, 10};
  add_up<<<1, 64>>>(lists, 2);
  TRY(cudaDeviceSynchronize());
  TRY(cudaMemcpyFromSymbol(&sum, total, sizeof sum));
  std::printf("sum %d\n", sum);
  return sum == 5 + n * (n - 1) / 2 + 7 * 45 ? 0 : 1;
}

static int errors() {
  int* to;
  std::printf("%s\n", cudaGetErrorName(cudaMalloc(&to, size_t(1) << 50)));
  TRY(cudaMalloc(&to, 64));
  std::printf("%s\n", cudaGetErrorName(cudaMemcpy(to, to + 100, 64, cudaMemcpyDeviceToDevice)));
  scale<<<1, 4096>>>(to, to, 1);
  std::printf("%s\n", cudaGetErrorName(cudaGetLastError()));
  std::printf("%s\n", cudaGetErrorName(cudaGetLastError()));
  beyond<<<1, 1>>>(to);
  std::printf("%s\n", cudaGetErrorName(cudaGetLastError()));
  std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  return 0;
}

static int streams() {
  int* to;
  float one, both;
  cudaStream_t first, second;
  cudaEvent_t begin, middle, end;
  TRY(cudaMalloc(&to, 4096));
  TRY(cudaStreamCreate(&first));
  TRY(cudaStreamCreate(&second));
  TRY(cudaEventCreate(&begin));
  TRY(cudaEventCreate(&middle));
  TRY(cudaEventCreate(&end));
  TRY(cudaEventRecord(begin, first));
  spin<<<1, 32, 0, first>>>(to, 20000);
  TRY(cudaEventRecord(middle, first));
  spin<<<1, 32, 0, second>>>(to + 32, 20000);
  TRY(cudaStreamWaitEvent(first, middle, 0));
  TRY(cudaStreamSynchronize(second));
  TRY(cudaEventRecord(end, second));
  TRY(cudaEventSynchronize(end));
  TRY(cudaEventElapsedTime(&one, begin, middle));
  TRY(cudaEventElapsedTime(&both, begin, end));
  std::printf("%.4f %.4f\n", one, both);
  return 0;
}

// Results of a launch that is given results; and a copy of managed memory that the host has changed since.
static int passed_on() {
  int by = 2, got = 0, *managed, *from, *to;
  TRY(cudaMallocManaged(&managed, 64 * sizeof(int)));
  TRY(cudaMalloc(&from, 64 * sizeof(int)));
  TRY(cudaMalloc(&to, 64 * sizeof(int)));
  TRY(cudaMemcpyToSymbol(factor, &by, sizeof by));
  for (int k = 1; k < 4; k++) {
    managed[63] = k;
    TRY(cudaMemcpy(from, managed, 64 * sizeof(int), cudaMemcpyDefault));
    scale<<<1, 64>>>(from, to, 64);
    TRY(cudaMemcpy(&got, to + 63, sizeof got, cudaMemcpyDeviceToHost));
    if (got != 2 * k) return 1;
  }
  return 0;
}

static int chain() {
  int got, *from, *to;
  TRY(cudaMalloc(&from, 64 * sizeof(int)));
  TRY(cudaMalloc(&to, 64 * sizeof(int)));
  spin<<<1, 64>>>(from, 20000);
  scale<<<1, 64>>>(from, to, 64);
  TRY(cudaMemcpy(&got, to, sizeof got, cudaMemcpyDeviceToHost));
  return 0;
}

static double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

static int clocks() {
  int* to;
  float milliseconds;
  cudaEvent_t begin, end;
  TRY(cudaMalloc(&to, 1 << 16));
  TRY(cudaEventCreate(&begin));
  TRY(cudaEventCreate(&end));
  double started = now();
  TRY(cudaEventRecord(begin));
  spin<<<64, 256>>>(to, 20000);
  TRY(cudaEventRecord(end));
  TRY(cudaDeviceSynchronize());
  double took = now() - started;
  TRY(cudaEventElapsedTime(&milliseconds, begin, end));
  std::printf("%.4f %.4f\n", took * 1e3, milliseconds);
  return 0;
}

static int graph() {
  int n = 64, by = 2;
  std::vector<int> numbers(n, 1), got(n);
  int *from, *to;
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t made;
  TRY(cudaMalloc(&from, n * sizeof(int)));
  TRY(cudaMalloc(&to, n * sizeof(int)));
  TRY(cudaMemcpyToSymbol(factor, &by, sizeof by));
  TRY(cudaStreamCreate(&stream));
  TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  TRY(cudaMemcpyAsync(from, numbers.data(), n * sizeof(int), cudaMemcpyHostToDevice, stream));
  scale<<<1, 64, 0, stream>>>(from, to, n);
  TRY(cudaMemcpyAsync(got.data(), to, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
  TRY(cudaStreamEndCapture(stream, &graph));
  if (got[0] != 0) return 1;
  TRY(cudaGraphInstantiate(&made, graph, 0));
  for (int k = 0; k < 3; k++) TRY(cudaGraphLaunch(made, stream));
  TRY(cudaStreamSynchronize(stream));
  return got[63] == 2 ? 0 : 1;
}

int main(int count, char** words) {
  const char* which = count > 1 ? words[1] : "";
  if (!std::strcmp(which, "results")) return results();
  if (!std::strcmp(which, "errors")) return errors();
  if (!std::strcmp(which, "streams")) return streams();
  if (!std::strcmp(which, "graph")) return graph();
  if (!std::strcmp(which, "passed on")) return passed_on();
  if (!std::strcmp(which, "chain")) return chain();
  if (!std::strcmp(which, "clocks")) return clocks();
  if (!std::strcmp(which, "unset")) {
    int *to, got;
    TRY(cudaMalloc(&to, 4));
    TRY(cudaMemcpy(&got, to, 4, cudaMemcpyDeviceToHost));
    return 0;
  }
  if (!std::strcmp(which, "fork")) {
    int devices;
    TRY(cudaGetDeviceCount(&devices));
    if (fork() == 0) _exit(cudaFree(0) == cudaErrorInitializationError ? 0 : 1);
    int status;
    wait(&status);
    return status ? 1 : 0;
  }
  if (!std::strcmp(which, "words")) {
    cudaFree(0);
    for (int k = 2; k < count; k++) std::printf("%s ", words[k]);
    return 0;
  }
  if (!std::strcmp(which, "abort")) {
    cudaFree(0);
    abort();
  }
  if (!std::strcmp(which, "sleep")) {
    cudaFree(0);
    char began[4096];
    std::snprintf(began, sizeof began, "%s.new", words[2]);
    std::FILE* file = std::fopen(began, "w");
    std::fprintf(file, "%d", getpid());
    std::fclose(file);
    std::rename(began, words[2]);
    for (;;) sleep(1);
  }
  if (!std::strcmp(which, "unknown")) return cudaDeviceEnablePeerAccess(1, 0) == cudaErrorNotSupported ? 0 : 1;
  return 9;
}
