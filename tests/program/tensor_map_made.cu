// Tensor maps that kernels make: in shared memory from nothing, and from the host's in device memory.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

constexpr int ROWS = 24, COLUMNS = 40, BOX_ROWS = 8, BOX_COLUMNS = 32;

__device__ uint32_t address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }

#define REPLACE(field, width, value) \
  asm volatile("tensormap.replace.tile." field ".shared::cta.b1024." width " [%0], %1;" ::"r"(address(&map)), value : "memory")
#define REPLACE_AT(field, width, axis, value) \
  asm volatile("tensormap.replace.tile." field ".shared::cta.b1024." width " [%0], " axis ", %1;" \
               ::"r"(address(&map)), value : "memory")

#ifdef __CUDA_ARCH_FEAT_SM90_ALL  // not for compute_90, for which nvcc 13 compiles too
// A map of a tensor of floats, every field set, copied to device memory.
__global__ void from_nothing(const float* base, CUtensorMap* made) {
  __shared__ alignas(128) CUtensorMap map;
  reinterpret_cast<uint32_t*>(&map)[threadIdx.x] = 0;
  __syncwarp();
  if (threadIdx.x == 0) {
    REPLACE("global_address", "b64", "l"(base));
    REPLACE("rank", "b32", "r"(1));
    REPLACE_AT("box_dim", "b32", "0", "r"(BOX_COLUMNS));
    REPLACE_AT("box_dim", "b32", "1", "r"(BOX_ROWS));
    REPLACE_AT("global_dim", "b32", "0", "r"(COLUMNS));
    REPLACE_AT("global_dim", "b32", "1", "r"(ROWS));
    REPLACE_AT("global_stride", "b64", "0", "l"(COLUMNS * sizeof(float)));
    REPLACE_AT("element_stride", "b32", "0", "r"(1));
    REPLACE_AT("element_stride", "b32", "1", "r"(2));
    REPLACE("elemtype", "b32", "n"(7));
    REPLACE("interleave_layout", "b32", "n"(0));
    REPLACE("swizzle_mode", "b32", "n"(3));
    REPLACE("fill_mode", "b32", "n"(1));
  }
  __syncwarp();
  asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;"
               ::"l"(made), "r"(address(&map)) : "memory");
}

// The host's map of a tensor, moved to another one with fewer rows.
__global__ void moved(CUtensorMap* map, const float* base, int rows) {
  asm volatile("tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;" ::"l"(map), "l"(base) : "memory");
  asm volatile("tensormap.replace.tile.global_dim.global.b1024.b32 [%0], 1, %1;" ::"l"(map), "r"(rows) : "memory");
}

#else
__global__ void from_nothing(const float*, CUtensorMap*) {}
__global__ void moved(CUtensorMap*, const float*, int) {}
#endif

__global__ void box(const CUtensorMap* from, int x, int y, float* out) {
  __shared__ alignas(1024) float tile[BOX_ROWS * BOX_COLUMNS];
  __shared__ uint64_t full;
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(from) : "memory");
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n fence.mbarrier_init.release.cluster;" ::"r"(address(&full)));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(&full)), "n"(sizeof tile) : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
        ::"r"(address(tile)), "l"(from), "r"(x), "r"(y), "r"(address(&full)) : "memory");
  }
  __syncthreads();
  asm volatile(
      "{ .reg .pred done;\n again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n @!done bra again;\n}"
      ::"r"(address(&full)) : "memory");
  for (int i = threadIdx.x; i < BOX_ROWS * BOX_COLUMNS; i += blockDim.x) out[i] = tile[i];
}

int main() {
  std::vector<float> in(2 * ROWS * COLUMNS), out(BOX_ROWS * BOX_COLUMNS);
  for (size_t i = 0; i < in.size(); ++i) in[i] = float(i);
  float *from, *to;
  CUtensorMap host, made, *device;
  cudaMalloc(&from, in.size() * sizeof(float));
  cudaMalloc(&to, out.size() * sizeof(float));
  cudaMalloc(&device, sizeof host);
  cudaMemcpy(from, in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice);
  void* found = nullptr;
  cudaDriverEntryPointQueryResult how;
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &how) || !found) return 2;
  auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
  cuuint64_t extents[] = {COLUMNS, ROWS}, strides[] = {COLUMNS * sizeof(float)};
  cuuint32_t size[] = {BOX_COLUMNS, 2 * BOX_ROWS}, steps[] = {1, 2};
  // With a step of two, the box takes every second of twice as many rows.
  auto encoded = [&](cuuint32_t rows) {
    size[1] = rows;
    return (int)encode(&host, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, from, extents, strides, size, steps,
                       CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                       CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
  };
  from_nothing<<<1, 32>>>(from, device);
  cudaMemcpy(&made, device, sizeof made, cudaMemcpyDeviceToHost);
  int status = encoded(BOX_ROWS);
  std::printf("encoded: %d, %s\n", status, std::memcmp(&made, &host, sizeof made) ? "differs" : "the same bytes");

  std::printf("encoded: %d\n", encoded(2 * BOX_ROWS));
  cudaMemcpy(device, &host, sizeof host, cudaMemcpyHostToDevice);
  const int rows = 12, x = 16, y = 4;
  moved<<<1, 1>>>(device, from + ROWS * COLUMNS, rows);
  box<<<1, 64>>>(device, x, y, to);
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  cudaMemcpy(out.data(), to, out.size() * sizeof(float), cudaMemcpyDeviceToHost);
  int wrong = 0, outside = 0;
  for (int row = 0; row < BOX_ROWS; ++row)
    for (int column = 0; column < BOX_COLUMNS; ++column) {
      float got = out[row * BOX_COLUMNS + (column ^ row % 8 * 4)];
      bool holds = y + 2 * row < rows && x + column < COLUMNS;
      wrong += holds ? got != in[(ROWS + y + 2 * row) * COLUMNS + x + column] : got == got;
      outside += !holds;
    }
  std::printf("%d wrong, %d outside\n", wrong, outside);

  cudaMemset(device, 0, sizeof host);
  box<<<1, 64>>>(device, 0, 0, to);
  std::printf("nothing: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
