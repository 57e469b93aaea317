// C = alpha * A * transpose(B) for matrices of packed 4-bit floats (e2m1) with a scale factor (ue4m3) for every 16 along k,
// 128 x 128 a block. The scale factors come in tiles of 512 bytes, in the order in which tensor memory wants them:
// those of 128 rows and 64 elements along k, of row r and group g at byte r % 32 * 16 + r / 32 * 4 + g. Copies from shared to
// tensor memory (tcgen05.cp) bring them there ahead of the products. Otherwise as tcgen05_tile.cu. Needs compute
// capability 10.0 (b200).
// drywarp: --grid 148 --block 192 --shared 221320
// drywarp: --arg A=tensormap(box=128x128,swizzle=128):u8[4096,2048]:random
// drywarp: --arg B=tensormap(box=128x128,swizzle=128):u8[4096,2048]:random
// drywarp: --arg scales_a=u8[1048576]:random(48,63) --arg scales_b=u8[1048576]:random(48,63)
// drywarp: --arg C=f16[4096,4096] --arg alpha=0.01 --arg m=4096 --arg n=4096 --arg k=4096
#include <cuda.h>
#include <cuda_fp16.h>
#include <stdint.h>

#ifndef COLUMNS
#define COLUMNS 128
#endif
#ifndef STAGES
#define STAGES 6
#endif
#ifndef SETS
#define SETS 2
#endif
constexpr int ROWS = 128, DEPTH = 256;  // of a tile; 256 4-bit floats are the 128 bytes of the swizzle
constexpr int A_BYTES = ROWS * DEPTH / 2, B_BYTES = COLUMNS * DEPTH / 2, TILES_B = COLUMNS / 128;
constexpr int SCALES = 128 * DEPTH / 16;  // bytes of scale factors for 128 rows of a tile
constexpr int STAGE_BYTES = A_BYTES + B_BYTES + (1 + TILES_B) * SCALES;
constexpr int SCALE_COLUMNS = SCALES / 128;  // of tensor memory, for 128 rows; each of its four quarters has all of them
constexpr int WAVE = 8;  // rows of tiles that blocks take side by side, so that they find operands in the L2
// Operands in e2m1, scale factors in ue4m3, COLUMNS columns and ROWS rows.
constexpr uint32_t INSTRUCTION = 1 << 7 | 1 << 10 | COLUMNS / 8 << 17 | ROWS / 16 << 24;

struct Barriers {
  uint64_t full[STAGES], empty[STAGES], summed[SETS], taken[SETS];
  uint32_t columns;
};

__device__ uint32_t address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ void wait(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{ .reg .pred done;\n again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n @!done bra again;\n}"
      ::"r"(address(barrier)), "r"(parity) : "memory");
}

__device__ void prepare(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(barrier)), "r"(arrivals));
}

__device__ void load(void* to, const CUtensorMap* map, int x, int y, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
      ::"r"(address(to)), "l"(map), "r"(x), "r"(y), "r"(address(barrier)) : "memory");
}

__device__ void load(void* to, const uint8_t* from, int bytes, uint64_t* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               ::"r"(address(to)), "l"(from), "r"(bytes), "r"(address(barrier)) : "memory");
}

// Rows of 128 bytes, permuted by the swizzle; 8 rows are 1024 bytes.
__device__ uint64_t descriptor(const void* tile) {
  return (address(tile) & 0x3ffff) >> 4 | 1ull << 16 | (uint64_t)(1024 >> 4) << 32 | 1ull << 46 | 2ull << 61;
}

// 512 bytes of scale factors in a row, to four columns.
__device__ void copy_scales(uint32_t columns, const char* from) {
  uint64_t rows = (address(from) & 0x3ffff) >> 4 | 1ull << 16 | (uint64_t)(128 >> 4) << 32 | 1ull << 46;
  asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(columns), "l"(rows) : "memory");
}

__device__ void multiply(uint32_t sums, uint64_t a, uint64_t b, uint32_t scales_a, uint32_t scales_b, bool add) {
  asm volatile(
      "{ .reg .pred add;\n setp.ne.b32 add, %6, 0;\n"
      " tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%0], %1, %2, %3, [%4], [%5], add;\n}"
      ::"r"(sums), "l"(a), "l"(b), "r"(INSTRUCTION), "r"(scales_a), "r"(scales_b), "r"((int)add) : "memory");
}

__device__ void commit(uint64_t* barrier) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(address(barrier)) : "memory");
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

__device__ void produce(char* tiles, Barriers* barriers, const CUtensorMap* A, const CUtensorMap* B,
                        const uint8_t* scales_a, const uint8_t* scales_b, int m, int n, int k) {
  int step = 0;
  for (int tile = blockIdx.x; tile < m / ROWS * (n / COLUMNS); tile += gridDim.x) {
    int2 at = place(tile, m, n);
    for (int x = 0; x < k; x += DEPTH, ++step) {
      int stage = step % STAGES;
      uint64_t* full = barriers->full + stage;
      char* to = tiles + stage * STAGE_BYTES;
      wait(barriers->empty + stage, step / STAGES % 2 ^ 1);
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                   ::"r"(address(full)), "r"(STAGE_BYTES) : "memory");
      load(to, A, x / 2, at.y, full);
      load(to + A_BYTES + B_BYTES, scales_a + (size_t)at.y / 128 * 8 * k + 8 * x, SCALES, full);
#pragma unroll
      for (int part = 0; part < TILES_B; ++part) {
        load(to + A_BYTES + part * A_BYTES, B, x / 2, at.x + part * 128, full);
        load(to + A_BYTES + B_BYTES + (1 + part) * SCALES, scales_b + (size_t)(at.x / 128 + part) * 8 * k + 8 * x, SCALES, full);
      }
    }
  }
}

__device__ void consume(char* tiles, Barriers* barriers, int m, int n, int k) {
  int step = 0, set = 0, round = 0;
  for (int tile = blockIdx.x; tile < m / ROWS * (n / COLUMNS); tile += gridDim.x) {
    uint32_t sums = barriers->columns + set * COLUMNS;
    wait(barriers->taken + set, round % 2 ^ 1);
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    for (int x = 0; x < k; x += DEPTH, ++step) {
      int stage = step % STAGES;
      char* from = tiles + stage * STAGE_BYTES;
      uint64_t a = descriptor(from), b = descriptor(from + A_BYTES);
      uint32_t scales = barriers->columns + SETS * COLUMNS + stage * (1 + TILES_B) * SCALE_COLUMNS;
      wait(barriers->full + stage, step / STAGES % 2);
      asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
      // Products follow the copies that the same thread started before, but copies do not wait for earlier products:
      // every stage has columns of its own for its scale factors.
#pragma unroll
      for (int part = 0; part < DEPTH / 64; ++part)
#pragma unroll
        for (int tile = 0; tile <= TILES_B; ++tile) {
          int column = tile == 0 ? part * 4 : SCALE_COLUMNS + (part * TILES_B + tile - 1) * 4;
          copy_scales(scales + column, from + A_BYTES + B_BYTES + tile * SCALES + part * 512);
        }
#pragma unroll
      for (int part = 0; part < DEPTH / 64; ++part)
        multiply(sums, a + 2 * part, b + 2 * part, scales + 4 * part, scales + SCALE_COLUMNS + 4 * TILES_B * part, x + part > 0);
      commit(barriers->empty + stage);  // the tile is free once its products are done
    }
    commit(barriers->summed + set);
    if (++set == SETS) set = 0, ++round;
  }
}

#define TAKE(i) "=r"(sums[i]), "=r"(sums[i + 1]), "=r"(sums[i + 2]), "=r"(sums[i + 3])

// Each of four warps reads its quarter of the rows, 32 of them, a row each thread.
__device__ void store(Barriers* barriers, __half* C, float alpha, int m, int n) {
  int set = 0, round = 0, row = threadIdx.x % 128;
  for (int tile = blockIdx.x; tile < m / ROWS * (n / COLUMNS); tile += gridDim.x) {
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
        __half2 two = __floats2half2_rn(alpha * __uint_as_float(sums[2 * i]), alpha * __uint_as_float(sums[2 * i + 1]));
        halves[i] = *(uint32_t*)&two;
      }
      uint4* to = (uint4*)(C + (size_t)(at.y + row) * n + at.x + column);
#pragma unroll
      for (int i = 0; i < 4; ++i) to[i] = make_uint4(halves[4 * i], halves[4 * i + 1], halves[4 * i + 2], halves[4 * i + 3]);
    }
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    if (threadIdx.x % 32 == 0)
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(barriers->taken + set)) : "memory");
    if (++set == SETS) set = 0, ++round;
  }
}

__global__ void __launch_bounds__(192) tcgen05_fp4(
    const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B, const uint8_t* scales_a,
    const uint8_t* scales_b, __half* C, float alpha, int m, int n, int k) {
  extern __shared__ __align__(1024) char tiles[];
  Barriers* barriers = (Barriers*)(tiles + STAGES * STAGE_BYTES);
  int warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) prepare(barriers->full + stage, 1), prepare(barriers->empty + stage, 1);
    for (int set = 0; set < SETS; ++set) prepare(barriers->summed + set, 1), prepare(barriers->taken + set, 4);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (warp == 4)
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;"
                 ::"r"(address(&barriers->columns)), "n"(512) : "memory");
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  if (warp < 4) store(barriers, C, alpha, m, n);
  if (warp == 4 && elected()) consume(tiles, barriers, m, n, k);
  if (warp == 5 && elected()) produce(tiles, barriers, &A, &B, scales_a, scales_b, m, n, k);
  __syncthreads();
  if (warp == 4)
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(barriers->columns), "n"(512));
}
