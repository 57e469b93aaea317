// O = softmax(Q * transpose(K) / sqrt(128)) * V for half matrices with heads of 128 columns, 128 queries a block: one warp has the
// copy engine fill a ring of STAGES tiles of keys and of values, two warp groups multiply. Needs compute capability 9.0 (h100).
// Q, K and V are rows of (head, token).
// drywarp: --grid 128,16 --block 384 --shared 164864
// drywarp: --arg Q=tensormap(box=128x64,swizzle=128):f16[262144,128]:random
// drywarp: --arg K=tensormap(box=128x64,swizzle=128):f16[262144,128]:random
// drywarp: --arg V=tensormap(box=128x64,swizzle=128):f16[262144,128]:random
// drywarp: --arg O=f16[262144,128] --arg tokens=16384
#include <cuda.h>
#include <cuda_fp16.h>
#include <stdint.h>

#ifndef STAGES
#define STAGES 2
#endif
constexpr int ROWS = 128, COLUMNS = 128, CONSUMER_WARPS = 8;
constexpr int HALF_BYTES = ROWS * 64 * 2, TILE_BYTES = 2 * HALF_BYTES;  // of 64 columns, the 128 bytes of the swizzle; of a tile

__device__ uint32_t address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ void wait(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{ .reg .pred done;\n again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n @!done bra again;\n}"
      ::"r"(address(barrier)), "r"(parity) : "memory");
}

__device__ void load(char* to, const CUtensorMap* map, int row, uint64_t* barrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(barrier)), "r"(TILE_BYTES) : "memory");
  for (int half = 0; half < 2; ++half)
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
        ::"r"(address(to + half * HALF_BYTES)), "l"(map), "r"(half * 64), "r"(row), "r"(address(barrier)) : "memory");
}

__device__ void release(uint64_t* barrier) {
  if (threadIdx.x % 32 == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(barrier)) : "memory");
}

// Rows of 128 bytes, permuted by the swizzle; 8 rows are 1024 bytes, `leading` lies between blocks along the columns.
__device__ uint64_t descriptor(const void* tile, uint32_t leading) {
  return (address(tile) & 0x3ffff) >> 4 | (uint64_t)(leading >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 | 1ull << 62;
}

#define FOUR(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)
#define PRODUCT                                                                                                \
  "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "                                                       \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                    \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                           \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                           \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "

__device__ void multiply(float (&d)[64], uint64_t a, uint64_t b, bool add) {
  asm volatile("{ .reg .pred add;\n setp.ne.b32 add, %66, 0;\n" PRODUCT "%64, %65, add, 1, 1, 0, 0;\n}"
               : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48) : "l"(a), "l"(b), "r"((int)add));
}

__device__ void multiply(float (&d)[64], const uint32_t* a, uint64_t b) {
  asm volatile(PRODUCT "{%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
               : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

__device__ void begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void finish() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

// The largest number, or the sum, of a row, which four threads hold.
__device__ float largest(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ float total(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

__device__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Scores become weights relative to the largest score so far; what was summed before shrinks if that has grown.
__device__ void weigh(float (&scores)[64], float (&out)[64], float (&highest)[2], float (&sum)[2], float scale) {
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    float most = highest[row];
#pragma unroll
    for (int i = 0; i < 64; i += 4) most = fmaxf(most, fmaxf(scores[i + 2 * row], scores[i + 2 * row + 1]));
    most = largest(most);
    float shrink = power_of_two((highest[row] - most) * scale), shift = most * scale;
    highest[row] = most;
    sum[row] *= shrink;
#pragma unroll
    for (int i = 0; i < 64; ++i) {
      if (i / 2 % 2 != row) continue;
      scores[i] = power_of_two(scores[i] * scale - shift);
      sum[row] += scores[i];
      out[i] *= shrink;
    }
  }
}

__global__ void __launch_bounds__(384) attention(
    const __grid_constant__ CUtensorMap Q, const __grid_constant__ CUtensorMap K, const __grid_constant__ CUtensorMap V,
    __half* O, int tokens) {
  extern __shared__ __align__(1024) char queries[];
  char* keys = queries + TILE_BYTES;
  char* values = keys + STAGES * TILE_BYTES;
  uint64_t* full = (uint64_t*)(values + STAGES * TILE_BYTES);  // of each stage, keys then values; at the end the queries
  uint64_t* empty = full + 2 * STAGES + 1;
  if (threadIdx.x == 0) {
    for (int i = 0; i <= 2 * STAGES; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(full + i)));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(empty + i)), "n"(CONSUMER_WARPS));
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  int group = threadIdx.x / 128, first = blockIdx.y * tokens;
  int query = first + blockIdx.x * ROWS;
  if (group == 2) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x != 256) return;
    load(queries, &Q, query, full + 2 * STAGES);
    for (int tile = 0; tile < tokens / ROWS; ++tile) {
      int stage = tile % STAGES, free = tile / STAGES % 2 ^ 1;
      wait(empty + 2 * stage, free);
      load(keys + stage * TILE_BYTES, &K, first + tile * ROWS, full + 2 * stage);
      wait(empty + 2 * stage + 1, free);
      load(values + stage * TILE_BYTES, &V, first + tile * ROWS, full + 2 * stage + 1);
    }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
  float out[64] = {}, highest[2] = {-INFINITY, -INFINITY}, sum[2] = {};
  const float scale = 1.44269504f * 0.0883883476f;  // log2(e) / sqrt(128)
  uint64_t q = descriptor(queries + group * (HALF_BYTES / 2), 16);
  wait(full + 2 * STAGES, 0);
  for (int tile = 0; tile < tokens / ROWS; ++tile) {
    int stage = tile % STAGES, ready = tile / STAGES % 2;
    uint64_t k = descriptor(keys + stage * TILE_BYTES, 16), v = descriptor(values + stage * TILE_BYTES, HALF_BYTES);
    float scores[64];
    wait(full + 2 * stage, ready);
    begin();
#pragma unroll
    for (int step = 0; step < COLUMNS / 16; ++step) {
      int at = step / 4 * (HALF_BYTES / 16) + step % 4 * 2;
      multiply(scores, q + at, k + at, step > 0);
    }
    finish();
    release(empty + 2 * stage);
    weigh(scores, out, highest, sum, scale);
    uint32_t weights[32];
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      __half2 two = __floats2half2_rn(scores[2 * i], scores[2 * i + 1]);
      weights[i] = *(uint32_t*)&two;
    }
    wait(full + 2 * stage + 1, ready);
    begin();
#pragma unroll
    for (int step = 0; step < ROWS / 16; ++step) multiply(out, weights + 4 * step, v + step * (16 * 128 / 16));
    finish();
    release(empty + 2 * stage + 1);
  }
  int row = query + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
  float whole[2] = {reciprocal(total(sum[0])), reciprocal(total(sum[1]))};
#pragma unroll
  for (int i = 0; i < 64; i += 2) {
    int half = i / 2 % 2;
    size_t to = (size_t)(row + half * 8) * COLUMNS + column + i / 4 * 8;
    *(__half2*)(O + to) = __floats2half2_rn(out[i] * whole[half], out[i + 1] * whole[half]);
  }
}
