// C = A * transpose(B) for half matrices, 128 x 256 a block: one warp has the copy engine fill a ring of STAGES
// tiles, two warp groups multiply them on the tensor cores. Needs compute capability 9.0 (h100).
// drywarp: --grid 16,32 --block 384 --shared 197632
// drywarp: --arg A=tensormap(box=128x64,swizzle=128):f16[4096,2048]:random
// drywarp: --arg B=tensormap(box=256x64,swizzle=128):f16[4096,2048]:random
// drywarp: --arg C=f16[4096,4096] --arg n=4096 --arg k=2048
#include <cuda.h>
#include <cuda_fp16.h>
#include <stdint.h>

#ifndef STAGES
#define STAGES 4
#endif
constexpr int ROWS = 128, COLUMNS = 256, DEPTH = 64;  // of a tile; 64 halves are the 128 bytes of the swizzle
constexpr int A_BYTES = ROWS * DEPTH * 2, B_BYTES = COLUMNS * DEPTH * 2, CONSUMER_WARPS = 8;

__device__ uint32_t address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ void wait(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{ .reg .pred done;\n again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n @!done bra again;\n}"
      ::"r"(address(barrier)), "r"(parity) : "memory");
}

__device__ void load(void* to, const CUtensorMap* map, int x, int y, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
      ::"r"(address(to)), "l"(map), "r"(x), "r"(y), "r"(address(barrier)) : "memory");
}

// Rows of 128 bytes, permuted by the swizzle; 8 rows are 1024 bytes.
__device__ uint64_t descriptor(const void* tile) {
  return (address(tile) & 0x3ffff) >> 4 | 1ull << 16 | (uint64_t)(1024 >> 4) << 32 | 1ull << 62;
}

#define FOUR(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)

__device__ void multiply(float (&d)[64], uint64_t a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, 1, 1, 1, 0, 0;"
      : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48) : "l"(a), "l"(b));
}

__device__ void produce(char* tiles, uint64_t* full, uint64_t* empty, const CUtensorMap* A, const CUtensorMap* B, int k) {
  for (int tile = 0; tile < k / DEPTH; ++tile) {
    int stage = tile % STAGES;
    char* to = tiles + stage * (A_BYTES + B_BYTES);
    wait(empty + stage, tile / STAGES % 2 ^ 1);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 ::"r"(address(full + stage)), "r"(A_BYTES + B_BYTES) : "memory");
    load(to, A, tile * DEPTH, blockIdx.y * ROWS, full + stage);
    load(to + A_BYTES, B, tile * DEPTH, blockIdx.x * COLUMNS, full + stage);
  }
}

__device__ void release(uint64_t* barrier) {
  if (threadIdx.x % 32 == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(barrier)) : "memory");
}

__global__ void __launch_bounds__(384) wgmma_tile(
    const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B, __half* C, int n, int k) {
  extern __shared__ __align__(1024) char tiles[];
  uint64_t* full = (uint64_t*)(tiles + STAGES * (A_BYTES + B_BYTES));
  uint64_t* empty = full + STAGES;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(full + stage)));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(empty + stage)), "n"(CONSUMER_WARPS));
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  int group = threadIdx.x / 128;
  if (group == 2) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 256) produce(tiles, full, empty, &A, &B, k);
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  float upper[64] = {}, lower[64] = {};  // rows 0 to 63 and 64 to 127 of the group's 128 columns
  for (int tile = 0; tile < k / DEPTH; ++tile) {
    int stage = tile % STAGES;
    char* at = tiles + stage * (A_BYTES + B_BYTES);
    uint64_t a = descriptor(at), b = descriptor(at + A_BYTES + group * (B_BYTES / 2));
    wait(full + stage, tile / STAGES % 2);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int step = 0; step < DEPTH / 16; ++step) {
      multiply(upper, a + 2 * step, b + 2 * step);
      multiply(lower, a + A_BYTES / 32 + 2 * step, b + 2 * step);
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");  // the tile before is done with
    if (tile > 0) release(empty + (tile - 1) % STAGES);
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  int row = blockIdx.y * ROWS + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
  int column = blockIdx.x * COLUMNS + group * 128 + threadIdx.x % 4 * 2;
  for (int i = 0; i < 64; i += 2) {
    size_t to = (size_t)(row + i / 2 % 2 * 8) * n + column + i / 4 * 8;
    *(__half2*)(C + to) = __floats2half2_rn(upper[i], upper[i + 1]);
    *(__half2*)(C + to + (size_t)64 * n) = __floats2half2_rn(lower[i], lower[i + 1]);
  }
}
