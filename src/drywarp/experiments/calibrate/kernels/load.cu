// Whole warps walk through fresh memory, ILP independent chains each: latency under load (Volkov, section 6.4).
// Every load needs the one before it in its chain: zeros are loaded, and added to the address.
#include "record.cuh"
#ifndef ILP
#define ILP 1
#endif

extern "C" __global__ void bench(unsigned steps, char *data, unsigned *out, u64 *clocks)
{
    u64 width = (u64)gridDim.x * blockDim.x * 4;
    u64 at[ILP];
    for (int i = 0; i < ILP; ++i) at[i] = (u64)data + ((u64)blockIdx.x * blockDim.x + threadIdx.x) * 4 + i * width;
    u64 start = clock64();
#pragma unroll 4
    for (unsigned step = 0; step < steps; ++step) {
#pragma unroll
        for (int i = 0; i < ILP; ++i) {
            unsigned found;
            asm volatile("ld.global.cg.b32 %0, [%1];" : "=r"(found) : "l"(at[i]) : "memory");
            at[i] += found + ILP * width;
        }
    }
    record(clocks, start);
    u64 sum = 0;
    for (int i = 0; i < ILP; ++i) sum += at[i];
    if (sum == 1) *out = 1;
}
