// C = A * transpose(B) for half matrices, 256 x 256 a pair of blocks: both load their 128 rows of A and half of B's, the first
// multiplies with the tensor cores of both SMs (tcgen05.mma.cta_group::2), and the sums of a block's rows are in its own
// tensor memory. Otherwise as tcgen05_tile.cu. Needs compute capability 10.0 (b200).
// drywarp: --grid 148 --block 192 --shared 197768
// drywarp: --arg A=tensormap(box=128x64,swizzle=128):f16[4096,4096]:random
// drywarp: --arg B=tensormap(box=128x64,swizzle=128):f16[4096,4096]:random
// drywarp: --arg C=f16[4096,4096] --arg m=4096 --arg n=4096 --arg k=4096
#include <cuda.h>
#include <cuda_fp16.h>
#include <stdint.h>

#ifndef STAGES
#define STAGES 6
#endif
constexpr int SETS = 2;  // of sums: one is read while the other grows
constexpr int ROWS = 256, COLUMNS = 256, DEPTH = 64;  // of a pair's tile
constexpr int HALF_BYTES = 128 * DEPTH * 2;  // a block's part of A, or of B
constexpr int WAVE = 8;  // rows of tiles that pairs take side by side, so that they find operands in the L2
// Results in float32, operands in float16, COLUMNS columns and ROWS rows.
constexpr uint32_t INSTRUCTION = 1 << 4 | COLUMNS / 8 << 17 | ROWS / 16 << 24;

struct Barriers {
  uint64_t full[STAGES], empty[STAGES], summed[SETS], taken[SETS];
  uint32_t columns;
};

__device__ uint32_t address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }

// The same place in the pair's first block.
__device__ uint32_t of_first(const void* p) {
  uint32_t there;
  asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(there) : "r"(address(p)));
  return there;
}

__device__ uint32_t rank() {
  uint32_t it;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(it));
  return it;
}

__device__ void both_blocks() {
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}

__device__ void wait(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{ .reg .pred done;\n again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
      " @!done bra again;\n}"
      ::"r"(address(barrier)), "r"(parity) : "memory");
}

__device__ void prepare(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(barrier)), "r"(arrivals));
}

// Into the block's own memory; the first block's barrier counts the bytes of both.
__device__ void load(void* to, const CUtensorMap* map, int x, int y, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2"
      " [%0], [%1, {%2, %3}], [%4];"
      ::"r"(address(to)), "l"(map), "r"(x), "r"(y), "r"(of_first(barrier)) : "memory");
}

// Rows of 128 bytes, permuted by the swizzle; 8 rows are 1024 bytes.
__device__ uint64_t descriptor(const void* tile) {
  return (address(tile) & 0x3ffff) >> 4 | 1ull << 16 | (uint64_t)(1024 >> 4) << 32 | 1ull << 46 | 2ull << 61;
}

__device__ void multiply(uint32_t sums, uint64_t a, uint64_t b, bool add) {
  asm volatile(
      "{ .reg .pred add;\n setp.ne.b32 add, %4, 0;\n"
      " tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, add;\n}"
      ::"r"(sums), "l"(a), "l"(b), "r"(INSTRUCTION), "r"((int)add) : "memory");
}

// Signal both blocks once all earlier products are complete.
__device__ void commit(uint64_t* barrier) {
  asm volatile(
      "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;"
      ::"r"(address(barrier)), "h"((short)3) : "memory");
}

__device__ bool elected() {
  int it;
  asm volatile("{ .reg .pred p;\n elect.sync _|p, 0xffffffff;\n selp.s32 %0, 1, 0, p;\n}" : "=r"(it));
  return it;
}

// The tile of C with a number: WAVE rows of tiles at a time, column after column.
__device__ int2 place(int tile, int m, int n) {
  int columns = n / COLUMNS, rows = min(m / ROWS, WAVE), group = tile / (rows * columns), within = tile % (rows * columns);
  return {within / rows * COLUMNS, (group * rows + within % rows) * ROWS};
}

__device__ void produce(char* tiles, Barriers* barriers, const CUtensorMap* A, const CUtensorMap* B, int m, int n, int k) {
  int step = 0, mine = 128 * rank();
  for (int tile = blockIdx.x / 2; tile < m / ROWS * (n / COLUMNS); tile += gridDim.x / 2) {
    int2 at = place(tile, m, n);
    for (int x = 0; x < k; x += DEPTH, ++step) {
      int stage = step % STAGES;
      char* to = tiles + stage * 2 * HALF_BYTES;
      wait(barriers->empty + stage, step / STAGES % 2 ^ 1);
      if (mine == 0)
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                     ::"r"(address(barriers->full + stage)), "r"(2 * 2 * HALF_BYTES) : "memory");
      load(to, A, x, at.y + mine, barriers->full + stage);
      load(to + HALF_BYTES, B, x, at.x + mine, barriers->full + stage);
    }
  }
}

// In the first block alone.
__device__ void consume(char* tiles, Barriers* barriers, int m, int n, int k) {
  int step = 0, set = 0, round = 0;
  for (int tile = blockIdx.x / 2; tile < m / ROWS * (n / COLUMNS); tile += gridDim.x / 2) {
    uint32_t sums = barriers->columns + set * COLUMNS;
    wait(barriers->taken + set, round % 2 ^ 1);
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    for (int x = 0; x < k; x += DEPTH, ++step) {
      int stage = step % STAGES;
      char* from = tiles + stage * 2 * HALF_BYTES;
      uint64_t a = descriptor(from), b = descriptor(from + HALF_BYTES);
      wait(barriers->full + stage, step / STAGES % 2);
      asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
#pragma unroll
      for (int part = 0; part < DEPTH / 16; ++part) multiply(sums, a + 2 * part, b + 2 * part, x + part > 0);
      commit(barriers->empty + stage);  // the tiles of both blocks are free once their products are done
    }
    commit(barriers->summed + set);
    if (++set == SETS) set = 0, ++round;
  }
}

#define TAKE(i) "=r"(sums[i]), "=r"(sums[i + 1]), "=r"(sums[i + 2]), "=r"(sums[i + 3])

// Each of four warps reads its quarter of the block's rows, 32 of them, a row each thread.
__device__ void store(Barriers* barriers, __half* C, int m, int n) {
  int set = 0, round = 0, row = threadIdx.x % 128;
  for (int tile = blockIdx.x / 2; tile < m / ROWS * (n / COLUMNS); tile += gridDim.x / 2) {
    int2 at = place(tile, m, n);
    wait(barriers->summed + set, round % 2);
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    for (int column = 0; column < COLUMNS; column += 32) {
      uint32_t sums[32];
      asm volatile(
          "tcgen05.ld.sync.aligned.32x32b.x32.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
          "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
          : TAKE(0), TAKE(4), TAKE(8), TAKE(12), TAKE(16), TAKE(20), TAKE(24), TAKE(28)
          : "r"(barriers->columns + set * COLUMNS + column + (row / 32 * 32 << 16)));
      asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
      uint32_t halves[16];
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        __half2 two = __floats2half2_rn(__uint_as_float(sums[2 * i]), __uint_as_float(sums[2 * i + 1]));
        halves[i] = *(uint32_t*)&two;
      }
      uint4* to = (uint4*)(C + (size_t)(at.y + 128 * rank() + row) * n + at.x + column);
#pragma unroll
      for (int i = 0; i < 4; ++i) to[i] = make_uint4(halves[4 * i], halves[4 * i + 1], halves[4 * i + 2], halves[4 * i + 3]);
    }
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    if (threadIdx.x % 32 == 0)
      asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
                   ::"r"(of_first(barriers->taken + set)) : "memory");
    if (++set == SETS) set = 0, ++round;
  }
}

__global__ void __cluster_dims__(2) __launch_bounds__(192) tcgen05_pair(
    const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B, __half* C, int m, int n, int k) {
  extern __shared__ __align__(1024) char tiles[];
  Barriers* barriers = (Barriers*)(tiles + STAGES * 2 * HALF_BYTES);
  int warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) prepare(barriers->full + stage, 1), prepare(barriers->empty + stage, 1);
    for (int set = 0; set < SETS; ++set) prepare(barriers->summed + set, 1), prepare(barriers->taken + set, 2 * 4);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (warp == 4)
    asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;"
                 ::"r"(address(&barriers->columns)), "n"(SETS * COLUMNS) : "memory");
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  both_blocks();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  if (warp < 4) store(barriers, C, m, n);
  if (warp == 4 && rank() == 0 && elected()) consume(tiles, barriers, m, n, k);
  if (warp == 5 && elected()) produce(tiles, barriers, &A, &B, m, n, k);
  both_blocks();  // neither block ends while the other signals it
  if (warp == 4)
    asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(barriers->columns), "n"(SETS * COLUMNS));
}
