// What every kernel of ours shares: which warps take part, and when each of them started and ended.
#pragma once
typedef unsigned long long u64;

__device__ __forceinline__ unsigned warp_of_block() { return threadIdx.x >> 5; }

// Three words for each warp: SM, first and last clock. Warps that do not take part leave zeros.
__device__ __forceinline__ void record(u64 *clocks, u64 start)
{
    u64 end = clock64();
    if ((threadIdx.x & 31) == 0) {
        unsigned sm;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
        u64 *row = clocks + 3ull * (blockIdx.x * (blockDim.x >> 5) + warp_of_block());
        row[0] = sm;
        row[1] = start;
        row[2] = end;
    }
}
