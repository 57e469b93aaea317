// Tensor maps whose swizzle moves pieces of 32 or 64 bytes, and of elements of 4 or 6 bits: what a copy leaves in shared memory.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <vector>

constexpr int ROWS = 16, ROW = 256, LINE = 128;  // rows of bytes; a box is a line of each row

__device__ uint32_t address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }

__global__ void raw(const __grid_constant__ CUtensorMap from, int x, int y, int bytes, unsigned char* out) {
  __shared__ alignas(1024) unsigned char box[ROWS * LINE];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n fence.mbarrier_init.release.cluster;" ::"r"(address(&full)));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(&full)), "r"(bytes) : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
        ::"r"(address(box)), "l"(&from), "r"(x), "r"(y), "r"(address(&full)) : "memory");
  }
  __syncthreads();
  asm volatile(
      "{ .reg .pred done;\n again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n @!done bra again;\n}"
      ::"r"(address(&full)) : "memory");
  for (int i = threadIdx.x; i < ROWS * LINE; i += blockDim.x) out[i] = box[i];
}

// Writes a box of bytes through a map of 6-bit elements.
__global__ void packed(const __grid_constant__ CUtensorMap to, int x, int y, const unsigned char* in) {
  __shared__ alignas(1024) unsigned char box[ROWS * LINE];
  for (int i = threadIdx.x; i < ROWS * LINE; i += blockDim.x) box[i] = in[i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
                 ::"l"(&to), "r"(x), "r"(y), "r"(address(box)) : "memory");
    asm volatile("cp.async.bulk.commit_group;\n cp.async.bulk.wait_group 0;" ::: "memory");
  }
}

int main() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult how;
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &how) || !found) return 2;
  auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
  std::vector<unsigned char> in(ROWS * ROW), out(ROWS * LINE);
  for (int i = 0; i < ROWS * ROW; ++i) in[i] = i * 7 + i / ROW * 3;
  unsigned char *from, *to;
  cudaMalloc(&from, in.size());
  cudaMalloc(&to, out.size());
  cudaMemcpy(from, in.data(), in.size(), cudaMemcpyHostToDevice);
  CUtensorMap map;
  auto made = [&](int type, int width, int elements, int swizzle, int stride, unsigned char* base) {
    cuuint64_t extents[] = {(cuuint64_t)width, ROWS}, strides[] = {(cuuint64_t)stride};
    cuuint32_t box[] = {(cuuint32_t)elements, ROWS}, steps[] = {1, 1};
    return (int)encode(&map, (CUtensorMapDataType)type, 2, base, extents, strides, box, steps,
                                       CU_TENSOR_MAP_INTERLEAVE_NONE, (CUtensorMapSwizzle)swizzle,
                                       CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  auto encoded = [&](int type, int elements, int each, int swizzle) {  // `each` elements in a byte
    return made(type, ROW * each, elements, swizzle, ROW, from);
  };
  // Element x, row y of the box is where its 16-byte piece goes; rows past the tensor are zeros.
  auto wrong = [&](int x, int y, int each, auto moved) {
    raw<<<1, 64>>>(map, x * each, y, ROWS * LINE, to);
    if (cudaDeviceSynchronize()) return -1;
    cudaMemcpy(out.data(), to, out.size(), cudaMemcpyDeviceToHost);
    int bad = 0;
    for (int row = 0; row < ROWS; ++row)
      for (int byte = 0; byte < LINE; ++byte) {
        int want = row + y < ROWS && x + byte < ROW ? in[(row + y) * ROW + x + byte] : 0;
        bad += out[row * LINE + moved(byte / 16, row) * 16 + byte % 16] != want;
      }
    return bad;
  };
  int u8 = CU_TENSOR_MAP_DATA_TYPE_UINT8, pairs = CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B;
  int status = encoded(u8, LINE, 1, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B);
  std::printf("32 bytes: %d %d\n", status, wrong(64, 4, 1, [](int piece, int row) { return piece ^ row % 4 * 2; }));
  status = encoded(u8, LINE, 1, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B);
  std::printf("64 bytes: %d %d\n", status, wrong(144, 0, 1, [](int piece, int row) { return piece ^ row % 2 * 4; }));
  status = encoded(pairs, 2 * LINE, 2, CU_TENSOR_MAP_SWIZZLE_128B);
  std::printf("pairs: %d %d\n", status, wrong(32, 2, 2, [](int piece, int row) { return piece ^ row % 8; }));
  std::printf("odd: %d\n", encoded(pairs, 33, 2, CU_TENSOR_MAP_SWIZZLE_NONE));
  std::printf("flipped: %d\n", encoded(u8, LINE, 1, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B));
  // Sixteen elements of `bits` bits, packed in global memory, at the start of each 16 bytes.
  int fours = CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B, sixes = CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B;
  auto padded = [&](int bits, int width, int x, int y, auto moved) {
    raw<<<1, 64>>>(map, x, y, ROWS * 16 * bits, to);
    if (cudaDeviceSynchronize()) return -1;
    cudaMemcpy(out.data(), to, out.size(), cudaMemcpyDeviceToHost);
    int bad = 0;
    for (int row = 0; row < ROWS; ++row)
      for (int byte = 0; byte < 16 * bits; ++byte) {
        int piece = byte / (2 * bits), column = x * bits / 8 + byte;
        int want = row + y < ROWS && column < width * bits / 8 ? in[(row + y) * ROW + column] : 0;
        bad += out[row * LINE + moved(piece, row) * 16 + byte % (2 * bits)] != want;
      }
    return bad;
  };
  auto straight = [](int piece, int) { return piece; };
  auto turned = [](int piece, int row) { return piece ^ row % 8; };
  status = made(fours, 512, 128, CU_TENSOR_MAP_SWIZZLE_NONE, ROW, from);
  std::printf("padded 4: %d %d\n", status, padded(4, 512, 128, 0, straight));
  status = made(fours, 512, 128, CU_TENSOR_MAP_SWIZZLE_128B, ROW, from);
  std::printf("padded 4: %d %d\n", status, padded(4, 512, 384, 3, turned));
  status = made(sixes, 256, 128, CU_TENSOR_MAP_SWIZZLE_128B, ROW, from);
  std::printf("padded 6: %d %d %d\n", status, padded(6, 256, 128, 0, turned), padded(6, 256, 256, 0, turned));
  std::printf("refused: %d %d %d %d %d %d\n", made(fours, 512, 64, 0, ROW, from), made(fours, 448, 128, 0, ROW, from),
              made(sixes, 256, 128, 0, 208, from), made(sixes, 256, 128, 0, ROW, from + 16),
              made(fours, 512, 128, CU_TENSOR_MAP_SWIZZLE_64B, ROW, from),
              made(fours, 512, 128, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B, ROW, from));
  // Back: of each byte the lower 6 bits.
  unsigned char* back;
  cudaMalloc(&back, in.size());
  cudaMemset(back, 0, in.size());
  status = made(sixes, 256, 128, CU_TENSOR_MAP_SWIZZLE_128B, ROW, back);
  packed<<<1, 64>>>(map, 128, 0, from);
  int failed = cudaDeviceSynchronize(), bad = 0;
  std::vector<unsigned char> held(in.size());
  cudaMemcpy(held.data(), back, held.size(), cudaMemcpyDeviceToHost);
  for (int row = 0; row < ROWS; ++row)
    for (int element = 0; element < ROW * 8 / 6; ++element) {
      int k = element - 128, piece = (k / 16) ^ row % 8, got = 0;
      int want = k >= 0 && k < 128 ? in[row * LINE + piece * 16 + k % 16] & 63 : 0;
      for (int bit = 0; bit < 6; ++bit) {
        int at = element * 6 + bit;
        got |= (held[row * ROW + at / 8] >> at % 8 & 1) << bit;
      }
      bad += got != want;
    }
  std::printf("packed 6: %d %d %d\n", status, failed, bad);
  made(fours, 512, 128, 0, ROW, back);
  packed<<<1, 64>>>(map, 0, 0, from);
  std::printf("packed 4: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
