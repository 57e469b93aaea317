// As load.cu, with one access in eight of each block's first warp timed (Volkov, section 6.6). Latencies are kept in shared memory until the warp has ended.
#include "record.cuh"
#define EVERY 8
#define MOST 64

extern "C" __global__ void bench(unsigned steps, char *data, unsigned *out, unsigned *latencies, u64 *clocks)
{
    __shared__ unsigned took[MOST], last[MOST];
    u64 width = (u64)gridDim.x * blockDim.x * 4;
    u64 at = (u64)data + ((u64)blockIdx.x * blockDim.x + threadIdx.x) * 4;
    bool first = threadIdx.x == 0;
    u64 start = clock64();
#pragma unroll 1
    for (unsigned step = 0; step < steps; ++step) {
        unsigned found;
        u64 before, after;
#pragma unroll
        for (int i = 0; i < EVERY - 1; ++i) {
            asm volatile("ld.global.cg.b32 %0, [%1];" : "=r"(found) : "l"(at) : "memory");
            at += found + width;
        }
        asm volatile("mov.u64 %0, %%clock64;" : "=l"(before) :: "memory");
        asm volatile("ld.global.cg.b32 %0, [%1];" : "=r"(found) : "l"(at) : "memory");
        // The second clock comes after an instruction that needs what was loaded.
        if (first) *(volatile unsigned *)&last[step % MOST] = found;
        asm volatile("mov.u64 %0, %%clock64;" : "=l"(after) :: "memory");
        if (first) took[step % MOST] = (unsigned)(after - before);
        at += found + width;
    }
    record(clocks, start);
    if (first)
        for (unsigned step = 0; step < steps && step < MOST; ++step) latencies[blockIdx.x * MOST + step] = took[step];
    if (at == 1) *out = last[0];
}
