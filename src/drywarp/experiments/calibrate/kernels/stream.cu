// What a grid reads, writes or copies once, 16 bytes a lane: `steps` lines for each thread, the grid side by side.
#include "record.cuh"

extern "C" __global__ void bench(unsigned steps, char *from, char *to, unsigned *out, u64 *clocks)
{
    u64 start = clock64();
    u64 width = (u64)gridDim.x * blockDim.x * 16;
    u64 at = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * 16;
    unsigned sum = 0;
#pragma unroll 4
    for (unsigned step = 0; step < steps; ++step, at += width) {
#if defined(READ)
        uint4 v = *(const uint4 *)(from + at);
        sum += v.x + v.y + v.z + v.w;
#elif defined(WRITE)
        *(uint4 *)(to + at) = make_uint4(steps, steps, steps, steps);
#else
        *(uint4 *)(to + at) = *(const uint4 *)(from + at);
#endif
    }
    record(clocks, start);
    if (sum == 1) *out = sum;
}
