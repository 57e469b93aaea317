// Tensor maps whose swizzle moves pieces of 32 or 64 bytes, and of pairs of 4-bit elements: what a copy leaves in shared memory.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <vector>

constexpr int ROWS = 16, ROW = 256, LINE = 128;  // rows of bytes; a box is a line of each row

__device__ uint32_t address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }

__global__ void raw(const __grid_constant__ CUtensorMap from, int x, int y, unsigned char* out) {
  __shared__ alignas(1024) unsigned char box[ROWS * LINE];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n fence.mbarrier_init.release.cluster;" ::"r"(address(&full)));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(&full)), "n"(sizeof box) : "memory");
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
  auto encoded = [&](int type, int elements, int each, int swizzle) {  // `each` elements in a byte
    cuuint64_t extents[] = {(cuuint64_t)ROW * each, ROWS}, strides[] = {ROW};
    cuuint32_t box[] = {(cuuint32_t)elements, ROWS}, steps[] = {1, 1};
    return (int)encode(&map, (CUtensorMapDataType)type, 2, from, extents, strides, box, steps,
                                       CU_TENSOR_MAP_INTERLEAVE_NONE, (CUtensorMapSwizzle)swizzle,
                                       CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  // Element x, row y of the box is where its 16-byte piece goes; rows past the tensor are zeros.
  auto wrong = [&](int x, int y, int each, auto moved) {
    raw<<<1, 64>>>(map, x * each, y, to);
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
  std::printf("unpacked: %d\n", encoded(CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B, LINE, 2, CU_TENSOR_MAP_SWIZZLE_128B));
}
