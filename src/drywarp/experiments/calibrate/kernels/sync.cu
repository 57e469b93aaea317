// What a barrier adds between loads (GPUPerf, Γ): a warp loads fresh memory, computes on what it loaded, leaves the result
// in shared memory and reads it again, behind a barrier with SYNC. Zeros are loaded, and added to the address, so that each
// load needs the step before; the shared memory keeps the compiler from moving the computation past the barrier.
#include "record.cuh"

extern "C" __global__ void bench(unsigned steps, char *data, unsigned *out, u64 *clocks)
{
    __shared__ volatile float left[1024];
    u64 width = (u64)gridDim.x * blockDim.x * 4;
    u64 at = (u64)data + ((u64)blockIdx.x * blockDim.x + threadIdx.x) * 4;
    u64 start = clock64();
#pragma unroll 4
    for (unsigned step = 0; step < steps; ++step) {
        unsigned found;
        asm volatile("ld.global.cg.b32 %0, [%1];" : "=r"(found) : "l"(at) : "memory");
        float x = __uint_as_float(found);
#pragma unroll
        for (int i = 0; i < LENGTH; ++i) asm volatile("fma.rn.f32 %0, %0, 0f3F800001, %0;" : "+f"(x));
        left[threadIdx.x] = x;
#ifdef SYNC
        asm volatile("bar.sync 0;" ::: "memory");
#endif
        at += __float_as_uint(left[threadIdx.x]) + width;
    }
    record(clocks, start);
    if (at == 1) *out = 1;
}
