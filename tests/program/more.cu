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

// Forty launches, each a little longer than the one before, perhaps on an allocation of its own.
static int growing(bool elsewhere) {
  enum { LAUNCHES = 40, BLOCKS = 640, THREADS = 64 };
  int* to;
  cudaEvent_t start, end;
  TRY(cudaMalloc(&to, BLOCKS * THREADS * sizeof(int)));
  TRY(cudaEventCreate(&start));
  TRY(cudaEventCreate(&end));
  TRY(cudaEventRecord(start));
  for (int k = 0; k < LAUNCHES; k++) {
    if (elsewhere) TRY(cudaMalloc(&to, BLOCKS * THREADS * sizeof(int)));
    spin<<<BLOCKS, THREADS>>>(to, 1000 + 20 * k);
  }
  TRY(cudaEventRecord(end));
  float ms = 0;
  TRY(cudaEventSynchronize(end));
  TRY(cudaEventElapsedTime(&ms, start, end));
  std::printf("%.6f ms\n", ms);
  return 0;
}

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

__global__ void talk(int n) { std::printf("said %d\n", n); }
__global__ void add(int* to, int n) { to[threadIdx.x] += n; }
static void note(void* said) { ++*static_cast<int*>(said); }

// A graph node by node; its copy, with another kernel argument and fill; a graph with another one in it.
static int nodes() {
  enum { N = 32 };
  int *to, got[N], n = 5, said = 0;
  cudaGraph_t graph, outer, clone;
  cudaGraphExec_t made, both, cloned;
  cudaGraphNode_t filled, launched, copied, called, child;
  TRY(cudaMalloc(&to, sizeof got));
  TRY(cudaGraphCreate(&graph, 0));
  cudaMemsetParams fill = {};
  fill.dst = to, fill.elementSize = 4, fill.value = 100, fill.width = N, fill.height = 1;
  TRY(cudaGraphAddMemsetNode(&filled, graph, nullptr, 0, &fill));
  void* arguments[] = {&to, &n};
  cudaKernelNodeParams launch = {};
  launch.func = (void*)add, launch.gridDim = dim3(1), launch.blockDim = dim3(N), launch.kernelParams = arguments;
  TRY(cudaGraphAddKernelNode(&launched, graph, &filled, 1, &launch));
  TRY(cudaGraphAddMemcpyNode1D(&copied, graph, &launched, 1, got, to, sizeof got, cudaMemcpyDeviceToHost));
  cudaHostNodeParams call = {note, &said};
  TRY(cudaGraphAddHostNode(&called, graph, &copied, 1, &call));
  size_t count = 0;
  cudaGraphNodeType type;
  TRY(cudaGraphGetNodes(graph, nullptr, &count));
  TRY(cudaGraphNodeGetType(launched, &type));
  if (count != 4 || type != cudaGraphNodeTypeKernel) return 1;
  TRY(cudaGraphInstantiate(&made, graph, 0));
  TRY(cudaGraphClone(&clone, graph));
  TRY(cudaGraphInstantiate(&cloned, clone, 0));
  TRY(cudaGraphLaunch(made, 0));
  TRY(cudaDeviceSynchronize());
  std::printf("%d", got[N - 1]);
  n = 7, fill.value = 200;
  TRY(cudaGraphExecKernelNodeSetParams(made, launched, &launch));
  TRY(cudaGraphExecMemsetNodeSetParams(made, filled, &fill));
  TRY(cudaGraphLaunch(made, 0));
  TRY(cudaDeviceSynchronize());
  std::printf(" %d", got[N - 1]);
  TRY(cudaGraphLaunch(cloned, 0));
  TRY(cudaDeviceSynchronize());
  std::printf(" %d", got[N - 1]);
  TRY(cudaGraphKernelNodeSetParams(launched, &launch));
  cudaGraphExecUpdateResultInfo result;
  TRY(cudaGraphExecUpdate(cloned, graph, &result));
  TRY(cudaGraphCreate(&outer, 0));
  TRY(cudaGraphAddChildGraphNode(&child, outer, nullptr, 0, graph));
  TRY(cudaGraphAddKernelNode(&launched, outer, &child, 1, &launch));
  TRY(cudaGraphAddMemcpyNode1D(&copied, outer, &launched, 1, got, to, sizeof got, cudaMemcpyDeviceToHost));
  TRY(cudaGraphInstantiate(&both, outer, 0));
  std::printf(" %s", cudaGetErrorName(cudaGraphExecUpdate(cloned, outer, &result)));
  TRY(cudaGraphLaunch(both, 0));
  TRY(cudaDeviceSynchronize());
  std::printf(" %d said %d", got[N - 1], said);
  TRY(cudaGraphLaunch(cloned, 0));
  TRY(cudaDeviceSynchronize());
  std::printf(" %d\n", got[N - 1]);
  TRY(cudaGraphExecDestroy(made));
  TRY(cudaGraphDestroy(graph));
  return cudaGraphDestroy(graph) != cudaErrorInvalidValue;
}

// What a second stream does between two events is captured, too.
static int forked() {
  int *to, got;
  cudaStream_t first, second;
  cudaEvent_t begin, end;
  cudaGraph_t graph;
  cudaGraphExec_t made;
  TRY(cudaMalloc(&to, 4));
  TRY(cudaMemset(to, 0, 4));
  TRY(cudaStreamCreate(&first));
  TRY(cudaStreamCreate(&second));
  TRY(cudaEventCreate(&begin));
  TRY(cudaEventCreate(&end));
  TRY(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
  TRY(cudaEventRecord(begin, first));
  TRY(cudaStreamWaitEvent(second, begin, 0));
  add<<<1, 1, 0, second>>>(to, 1);
  TRY(cudaEventRecord(end, second));
  TRY(cudaStreamWaitEvent(first, end, 0));
  add<<<1, 1, 0, first>>>(to, 10);
  TRY(cudaStreamEndCapture(first, &graph));
  add<<<1, 1, 0, second>>>(to, 100);
  TRY(cudaStreamSynchronize(second));
  TRY(cudaGraphInstantiate(&made, graph, 0));
  for (int k = 0; k < 3; k++) TRY(cudaGraphLaunch(made, first));
  TRY(cudaStreamSynchronize(first));
  TRY(cudaMemcpy(&got, to, 4, cudaMemcpyDeviceToHost));
  std::printf("%d\n", got);
  return 0;
}

__global__ void copy_flagged(const int* flags, const int* from, int* to, int n) {
  int at = threadIdx.x;
  for (int k = 0; k < flags[0]; k++)
    if (at < n) to[at] += from[at];
}

// Two chains of launches; the host changes what they read in between, frees one of them early, and reads the other.
static int unread(bool reads) {
  enum { N = 64 };
  int *a, *b, *c, *flags, got[N], ones[N], twos[N], two = 2;
  for (int k = 0; k < N; k++) ones[k] = 1, twos[k] = 2;
  TRY(cudaMalloc(&a, sizeof got));
  TRY(cudaMalloc(&b, sizeof got));
  TRY(cudaMalloc(&c, sizeof got));
  TRY(cudaMalloc(&flags, 4));
  TRY(cudaMemset(b, 0, sizeof got));
  TRY(cudaMemset(c, 0, sizeof got));
  TRY(cudaMemcpy(a, ones, sizeof ones, cudaMemcpyHostToDevice));
  TRY(cudaMemcpy(flags, &two, 4, cudaMemcpyHostToDevice));
  spin<<<1, N>>>(c, 10);
  copy_flagged<<<1, N>>>(flags, a, b, N);  // adds 2
  TRY(cudaMemcpy(a, twos, sizeof twos, cudaMemcpyHostToDevice));
  copy_flagged<<<1, N>>>(flags, a, b, N);  // adds 4
  TRY(cudaMemset(a, 1, sizeof got));
  add<<<1, N>>>(b, 1000);
  spin<<<1, N>>>(c, 10);
  TRY(cudaFree(c));
  if (cudaFree(c) == cudaSuccess) return 1;
  if (reads) {
    TRY(cudaMemcpy(got, b, sizeof got, cudaMemcpyDeviceToHost));
    for (int k = 0; k < N; k++)
      if (got[k] != 1006) return 1;
    TRY(cudaMemcpy(got, a, sizeof got, cudaMemcpyDeviceToHost));
    if (got[0] != 0x01010101) return 1;
  }
  TRY(cudaFree(a));
  TRY(cudaFree(b));
  TRY(cudaFree(flags));
  size_t left, total;
  TRY(cudaMemGetInfo(&left, &total));
  std::printf("%d of %d\n", reads, left + (2 << 20) > total);
  return 0;
}

// What the host sees without a copy is computed: managed memory, pinned memory, text.
static int seen() {
  int *managed, *pinned, *hidden;
  TRY(cudaMallocManaged(&managed, 4));
  TRY(cudaMallocHost(&pinned, 4));
  TRY(cudaMalloc(&hidden, 4));
  *managed = *pinned = 0;
  add<<<1, 1>>>(managed, 5);
  add<<<1, 1>>>(pinned, 6);
  spin<<<1, 1>>>(hidden, 7);
  talk<<<1, 1>>>(8);
  TRY(cudaDeviceSynchronize());
  std::printf("%d %d\n", *managed, *pinned);
  return 0;
}

__global__ void twice(int* to, const int* from) { to[threadIdx.x] = 2 * from[threadIdx.x]; }

// Launches that differ in where their pointers lie in one allocation: alike but for the last two.
static int slices() {
  int *all, got;
  TRY(cudaMalloc(&all, 32 * 256));
  TRY(cudaMemset(all, 1, 32 * 256));
  for (int i = 0; i < 8; ++i) twice<<<1, 64>>>(all + 64 * i + 64, all + 64 * i);
  twice<<<1, 64>>>(all + 64 * 12, all + 64 * 8);
  twice<<<1, 64>>>(all + 64 * 14 + 1, all + 64 * 13 + 1);
  TRY(cudaMemcpy(&got, all + 64 * 12, 4, cudaMemcpyDeviceToHost));
  std::printf("%x\n", got);
  return 0;
}

int main(int count, char** words) {
  const char* which = count > 1 ? words[1] : "";
  if (!std::strcmp(which, "growing")) return growing(false);
  if (!std::strcmp(which, "growing elsewhere")) return growing(true);
  if (!std::strcmp(which, "devices")) return devices();
  if (!std::strcmp(which, "peers")) return peers();
  if (!std::strcmp(which, "threads")) return threads();
  if (!std::strcmp(which, "nodes")) return nodes();
  if (!std::strcmp(which, "forked")) return forked();
  if (!std::strcmp(which, "unread")) return unread(false);
  if (!std::strcmp(which, "read")) return unread(true);
  if (!std::strcmp(which, "seen")) return seen();
  if (!std::strcmp(which, "slices")) return slices();
  return 9;
}
