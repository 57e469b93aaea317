// All blocks read the same region of `steps` times a block's width past the L1, `iterations` times, each from a place of its own.
#include "record.cuh"

extern "C" __global__ void bench(unsigned iterations, unsigned steps, char *data, unsigned *out, u64 *clocks)
{
    u64 start = clock64();
    unsigned sum = 0;
    for (unsigned iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll 4
        for (unsigned step = 0; step < steps; ++step) {
            uint4 v;
            const char *at = data + ((u64)step * blockDim.x + threadIdx.x) * 16;
            asm volatile("ld.global.cg.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at) : "memory");
            sum += v.x + v.y + v.z + v.w;
        }
    }
    record(clocks, start);
    if (sum == 1) *out = sum;
}
