// A walk by one lane of each warp over a footprint, `stride` bytes a step. The memory holds zeros; what was loaded is
// added to the place, so that each load needs the one before. It starts at `place`; `own` bytes lie
// between the regions of two warps.
#include "record.cuh"
#ifndef CACHE
#define CACHE "cg"
#endif

extern "C" __global__ void bench(
    unsigned iterations, unsigned stride, unsigned footprint, unsigned own, unsigned place, char *data, unsigned *out, u64 *clocks)
{
    if (threadIdx.x & 31) return;
    const char *region = data + place + (u64)own * (blockIdx.x * (blockDim.x >> 5) + warp_of_block());
    unsigned at = 0;
    u64 start = clock64();
#pragma unroll 1
    for (unsigned iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll
        for (int i = 0; i < LENGTH; ++i) {
            unsigned found;
            asm volatile("ld.global." CACHE ".b32 %0, [%1];" : "=r"(found) : "l"(region + at) : "memory");
            at += stride + found;
            at = min(at, at - footprint);
        }
    }
    record(clocks, start);
    if (out) out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}
