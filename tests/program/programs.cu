// Small programs in one: the first argument says which.
#include <cassert>
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

__global__ void greet(int from) {
  if (threadIdx.x < 2) std::printf("%s %d of block %u: %5.2f%%\n", "thread", threadIdx.x + from, blockIdx.x, 1.5 * threadIdx.x);
}
__global__ void insist(int n) { assert(threadIdx.x != n); }
__global__ void sample(cudaTextureObject_t image, cudaTextureObject_t rows, cudaTextureObject_t line,
                       cudaTextureObject_t layers, cudaSurfaceObject_t drawn, float* out) {
  int x = threadIdx.x, y = blockIdx.x, at = 8 * y + x;
  out[at] = tex2D<float>(image, x + 1.0f, y + 1.0f);
  out[at + 32] = tex2D<unsigned char>(rows, x, y);
  out[at + 64] = tex1Dfetch<int2>(line, at).y;
  out[at + 96] = tex2DLayered<float>(layers, x + 0.5f, 0.5f, y);
  surf2Dwrite(2.0f * at, drawn, 4 * x, y);
}
__global__ void twice(int* host, int n) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < n) host[at] *= 2;
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

static int textures() {
  const int width = 8, height = 4, size = width * height;
  float *out, got[4 * size], image[size], back[size];
  for (int k = 0; k < size; k++) image[k] = k * k;
  cudaArray_t array, surface, stack;
  cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
  TRY(cudaMalloc(&out, sizeof got));
  TRY(cudaMallocArray(&array, &floats, width, height));
  TRY(cudaMemcpy2DToArray(array, 0, 0, image, width * 4, width * 4, height, cudaMemcpyHostToDevice));
  for (cudaArray_t wrong : {array, cudaArray_t(nullptr)})  // beyond the end of the rows, and no array
    if (cudaMemcpy2DToArray(wrong, 4, 0, image, width * 4, width * 4, 1, cudaMemcpyHostToDevice) != cudaErrorInvalidValue)
      return 4;
  TRY(cudaMallocArray(&surface, &floats, width, height, cudaArraySurfaceLoadStore));
  TRY(cudaMalloc3DArray(&stack, &floats, make_cudaExtent(width, 1, height), cudaArrayLayered));
  cudaMemcpy3DParms volume = {};
  volume.srcPtr = make_cudaPitchedPtr(image, width * 4, width, 1);
  volume.dstArray = stack, volume.extent = make_cudaExtent(width, 1, height), volume.kind = cudaMemcpyHostToDevice;
  TRY(cudaMemcpy3D(&volume));
  unsigned char* rows;
  size_t pitch;
  std::vector<unsigned char> bytes(size);
  for (int k = 0; k < size; k++) bytes[k] = 3 * k;
  TRY(cudaMallocPitch(&rows, &pitch, width, height));
  TRY(cudaMemcpy2D(rows, pitch, bytes.data(), width, width, height, cudaMemcpyHostToDevice));
  std::vector<int2> pairs(size);
  for (int k = 0; k < size; k++) pairs[k] = make_int2(k, -k);
  int2* line;
  TRY(cudaMalloc(&line, size * sizeof(int2)));
  TRY(cudaMemcpy(line, pairs.data(), size * sizeof(int2), cudaMemcpyHostToDevice));

  cudaTextureObject_t objects[4];
  cudaSurfaceObject_t drawn;
  cudaResourceDesc what = {};
  cudaTextureDesc how = {};
  what.resType = cudaResourceTypeArray, what.res.array.array = array;
  how.filterMode = cudaFilterModeLinear, how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
  TRY(cudaCreateTextureObject(&objects[0], &what, &how, nullptr));
  what.res.array.array = surface;
  TRY(cudaCreateSurfaceObject(&drawn, &what));
  what.res.array.array = stack, how = {};
  TRY(cudaCreateTextureObject(&objects[3], &what, &how, nullptr));
  what = {}, what.resType = cudaResourceTypePitch2D, what.res.pitch2D.devPtr = rows;
  what.res.pitch2D.desc = cudaCreateChannelDesc<unsigned char>(), what.res.pitch2D.pitchInBytes = pitch;
  what.res.pitch2D.width = width, what.res.pitch2D.height = height;
  TRY(cudaCreateTextureObject(&objects[1], &what, &how, nullptr));
  what = {}, what.resType = cudaResourceTypeLinear, what.res.linear.devPtr = line;
  what.res.linear.desc = cudaCreateChannelDesc<int2>(), what.res.linear.sizeInBytes = size * sizeof(int2);
  TRY(cudaCreateTextureObject(&objects[2], &what, &how, nullptr));
  sample<<<height, width>>>(objects[0], objects[1], objects[2], objects[3], drawn, out);
  TRY(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
  TRY(cudaMemcpy2DFromArray(back, width * 4, surface, 0, 0, width * 4, height, cudaMemcpyDeviceToHost));
  for (int k = 0; k < size; k++) {
    // The corner between four texels: their mean, with those beyond the edge clamped to it.
    int x = k % width, y = k / width, right = x + (x < width - 1), down = y + (y < height - 1);
    float mean = (image[k] + image[y * width + right] + image[down * width + x] + image[down * width + right]) / 4;
    if (got[k] != mean || got[k + size] != bytes[k] || got[k + 2 * size] != -k || got[k + 3 * size] != image[k]) return 1;
    if (back[k] != 2.0f * k) return 2;
  }
  for (int k = 0; k < 4; k++) TRY(cudaDestroyTextureObject(objects[k]));
  TRY(cudaDestroySurfaceObject(drawn));
  TRY(cudaFreeArray(array));
  // What is destroyed cannot be read any more.
  sample<<<height, width>>>(objects[0], objects[1], objects[2], objects[3], drawn, out);
  return cudaDeviceSynchronize() == cudaSuccess ? 3 : 0;
}

static int registered() {
  const int n = 5000;
  std::vector<int> numbers(n + 100, 7);
  int *host = numbers.data() + 50, *device;
  TRY(cudaHostRegister(host, n * sizeof(int), cudaHostRegisterMapped));
  if (cudaHostRegister(host + 10, 8, 0) != cudaErrorHostMemoryAlreadyRegistered) return 1;
  TRY(cudaHostGetDevicePointer(&device, host, 0));
  twice<<<20, 256>>>(device, n);
  TRY(cudaDeviceSynchronize());
  host[1]++;
  twice<<<20, 256>>>(host, n);  // as the address that the host uses
  TRY(cudaDeviceSynchronize());
  TRY(cudaHostUnregister(host));
  if (cudaHostUnregister(host) != cudaErrorHostMemoryNotRegistered) return 2;
  for (int k = 0; k < n; k++)
    if (host[k] != (k == 1 ? 30 : 28)) return 3;
  return host[-1] == 7 && host[n] == 7 ? 0 : 4;
}

static int prints() {
  std::puts("before");
  greet<<<2, 64>>>(0);
  std::puts("launched");
  TRY(cudaDeviceSynchronize());
  std::puts("waited");
  greet<<<2, 64>>>(0);
  TRY(cudaDeviceSynchronize());
  insist<<<1, 64>>>(40);
  std::puts(cudaGetErrorName(cudaDeviceSynchronize()));
  return 0;
}

int main(int count, char** words) {
  const char* which = count > 1 ? words[1] : "";
  if (!std::strcmp(which, "results")) return results();
  if (!std::strcmp(which, "errors")) return errors();
  if (!std::strcmp(which, "streams")) return streams();
  if (!std::strcmp(which, "graph")) return graph();
  if (!std::strcmp(which, "passed on")) return passed_on();
  if (!std::strcmp(which, "chain")) return chain();
  if (!std::strcmp(which, "textures")) return textures();
  if (!std::strcmp(which, "registered")) return registered();
  if (!std::strcmp(which, "prints")) return prints();
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
  if (!std::strcmp(which, "unknown")) {
    cudaIpcMemHandle_t handle;
    cudaMipmappedArray_t levels;
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    return cudaDeviceGraphMemTrim(0) == cudaErrorNotSupported && cudaIpcGetMemHandle(&handle, 0) == cudaErrorNotSupported &&
                   cudaMallocMipmappedArray(&levels, &format, make_cudaExtent(8, 8, 0), 2) == cudaErrorNotSupported
               ? 0
               : 1;
  }
  return 9;
}
