// Tensor maps that the program makes itself, with the driver's function as libraries find it.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <vector>

constexpr int ROWS = 100, COLUMNS = 72, BOX_ROWS = 16, BOX_COLUMNS = 32;  // neither extent is a multiple of the box's

__device__ uint32_t address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }

// Copies a box in through one map, doubles it, and copies it out through another, whose rows are further apart.
__global__ void twice(const __grid_constant__ CUtensorMap from, const CUtensorMap* to) {
  __shared__ alignas(1024) float tile[BOX_ROWS * BOX_COLUMNS];
  __shared__ uint64_t full;
  int x = blockIdx.x * BOX_COLUMNS, y = blockIdx.y * BOX_ROWS;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n fence.mbarrier_init.release.cluster;" ::"r"(address(&full)));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(&full)), "n"(sizeof tile) : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
        ::"r"(address(tile)), "l"(&from), "r"(x), "r"(y), "r"(address(&full)) : "memory");
  }
  __syncthreads();
  asm volatile(
      "{ .reg .pred done;\n again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n @!done bra again;\n}"
      ::"r"(address(&full)) : "memory");
  for (int i = threadIdx.x; i < BOX_ROWS * BOX_COLUMNS; i += blockDim.x) tile[i] *= 2;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                 ::"l"(to), "r"(x), "r"(y), "r"(address(tile)) : "memory");
    asm volatile("cp.async.bulk.commit_group;\n cp.async.bulk.wait_group 0;" ::: "memory");
  }
}

// Adds up what a 3 x 3 filter reads: 36 pixels of 32 channels for each of its places, through an im2col map.
__global__ void neighbours(const __grid_constant__ CUtensorMap images, float* sums) {
  __shared__ alignas(128) float pixels[36 * 32];
  __shared__ uint64_t full;
  float sum[9] = {};
  for (int place = 0; place < 9; ++place) {
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n fence.mbarrier_init.release.cluster;" ::"r"(address(&full)));
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(&full)), "n"(sizeof pixels) : "memory");
      asm volatile(
          "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
          " [%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};"
          ::"r"(address(pixels)), "l"(&images), "r"(0), "r"(-1), "r"(-1), "r"((int)blockIdx.x), "r"(address(&full)),
          "h"((short)(place % 3)), "h"((short)(place / 3)) : "memory");
    }
    __syncthreads();
    asm volatile(
        "{ .reg .pred done;\n again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n @!done bra again;\n}"
        ::"r"(address(&full)) : "memory");
    for (int i = 0; i < 9; ++i) sum[i] += pixels[threadIdx.x + 128 * i];
    __syncthreads();
    if (threadIdx.x == 0) asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(address(&full)) : "memory");
  }
  for (int i = 0; i < 9; ++i) sums[blockIdx.x * 36 * 32 + threadIdx.x + 128 * i] = sum[i];
}

using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*,
                            const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                            CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
static Encode encode;

static int map_of(CUtensorMap* made, void* base, uint64_t row_bytes, uint32_t box_columns, CUtensorMapSwizzle swizzle,
                  CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE) {
  cuuint64_t extents[] = {COLUMNS, ROWS}, strides[] = {row_bytes};
  cuuint32_t box[] = {box_columns, BOX_ROWS}, steps[] = {1, 1};
  return encode(made, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, extents, strides, box, steps, interleave, swizzle,
                CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

using EncodeImages = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                                  const cuuint64_t*, const int*, const int*, cuuint32_t, cuuint32_t, const cuuint32_t*,
                                  CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                                  CUtensorMapFloatOOBfill);

static int images() {
  constexpr int IMAGES = 2, SIDE = 6, CHANNELS = 32;
  void* found = nullptr;
  cudaDriverEntryPointQueryResult how;
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2col", &found, 12000, cudaEnableDefault, &how) || !found) return 2;
  auto made = reinterpret_cast<EncodeImages>(found);
  std::vector<float> in(IMAGES * SIDE * SIDE * CHANNELS), out(in.size());
  for (size_t i = 0; i < in.size(); ++i) in[i] = i % 97;
  float *from, *to;
  cudaMalloc(&from, in.size() * 4);
  cudaMalloc(&to, in.size() * 4);
  cudaMemcpy(from, in.data(), in.size() * 4, cudaMemcpyHostToDevice);
  CUtensorMap map;
  cuuint64_t extents[] = {CHANNELS, SIDE, SIDE, IMAGES}, strides[] = {CHANNELS * 4, SIDE * CHANNELS * 4, SIDE * SIDE * CHANNELS * 4};
  cuuint32_t steps[] = {1, 1, 1, 1};
  auto encoded = [&](int low, cuuint32_t pixels, cuuint32_t rank) {
    int lower[] = {low, low}, upper[] = {-1, -1};
    return made(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, rank, from, extents, strides, lower, upper, CHANNELS, pixels, steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  std::printf("refused images: %d %d %d\n", encoded(-129, 36, 4), encoded(-1, 1025, 4), encoded(-1, 36, 2));
  if (encoded(-1, 36, 4)) return 3;
  reinterpret_cast<unsigned long long*>(&map)[1] &= ~(1ull << 21);  // as CUTLASS does for small tensors
  neighbours<<<IMAGES, 128>>>(map, to);
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  cudaMemcpy(out.data(), to, out.size() * 4, cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int n = 0; n < IMAGES; ++n)
    for (int y = 0; y < SIDE; ++y)
      for (int x = 0; x < SIDE; ++x)
        for (int c = 0; c < CHANNELS; ++c) {
          float sum = 0;
          for (int v = y - 1; v <= y + 1; ++v)
            for (int u = x - 1; u <= x + 1; ++u)
              if (v >= 0 && v < SIDE && u >= 0 && u < SIDE) sum += in[((n * SIDE + v) * SIDE + u) * CHANNELS + c];
          wrong += out[((n * SIDE + y) * SIDE + x) * CHANNELS + c] != sum;
        }
  std::printf("%d wrong pixels\n", wrong);
  return 0;
}

int main() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult how;
  cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &found, 12000, cudaEnableDefault, &how);
  std::printf("missing: %d %d\n", found != nullptr, how == cudaDriverEntryPointSymbolNotFound);
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &how) || !found) return 2;
  encode = reinterpret_cast<Encode>(found);

  constexpr int FAR = 96;
  std::vector<float> in(ROWS * COLUMNS), out(ROWS * FAR, -1);
  for (int i = 0; i < ROWS * COLUMNS; ++i) in[i] = i;
  float *from, *to;
  CUtensorMap maps[2], *there;
  cudaMalloc(&from, in.size() * 4);
  cudaMalloc(&to, out.size() * 4);
  cudaMalloc(&there, sizeof maps[1]);
  cudaMemcpy(from, in.data(), in.size() * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(to, out.data(), out.size() * 4, cudaMemcpyHostToDevice);
  std::printf("narrow rows: %d\n", map_of(maps, from, COLUMNS * 4, 6, CU_TENSOR_MAP_SWIZZLE_NONE));
  std::printf("wider than the swizzle: %d\n", map_of(maps, from, COLUMNS * 4, BOX_COLUMNS, CU_TENSOR_MAP_SWIZZLE_64B));
  std::printf("misaligned: %d\n", map_of(maps, from + 1, COLUMNS * 4, BOX_COLUMNS, CU_TENSOR_MAP_SWIZZLE_NONE));
  std::printf("interleaved: %d\n", map_of(maps, from, COLUMNS * 4, 8, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_INTERLEAVE_16B));
  if (map_of(maps, from, COLUMNS * 4, BOX_COLUMNS, CU_TENSOR_MAP_SWIZZLE_128B)) return 3;
  if (map_of(maps + 1, to, FAR * 4, BOX_COLUMNS, CU_TENSOR_MAP_SWIZZLE_128B)) return 4;
  cudaMemcpy(there, maps + 1, sizeof maps[1], cudaMemcpyHostToDevice);
  twice<<<dim3((COLUMNS + BOX_COLUMNS - 1) / BOX_COLUMNS, (ROWS + BOX_ROWS - 1) / BOX_ROWS), 64>>>(maps[0], there);
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  cudaMemcpy(out.data(), to, out.size() * 4, cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int y = 0; y < ROWS; ++y)
    for (int x = 0; x < FAR; ++x) wrong += out[y * FAR + x] != (x < COLUMNS ? 2.0f * in[y * COLUMNS + x] : -1);
  std::printf("%d wrong\n", wrong);
  return images();
}
