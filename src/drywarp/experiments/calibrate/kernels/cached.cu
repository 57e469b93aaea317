// Accesses to global memory that stay at one place per lane, which holds its own address: a chain of nothing else.
// Lane l is at byte l * stride, a warp's chains are `apart` bytes from each other and from those of the next warp.
// Loads of a chain hit the L1, or past it the L2, each time.
#include "record.cuh"
#ifndef ILP
#define ILP 1
#endif

#if defined(OP_LDG)
#define STEP(p, i) asm volatile("ld.global.ca.b64 %0, [%0];" : "+l"(p) :: "memory")
#elif defined(OP_LDG_L2)
#define STEP(p, i) asm volatile("ld.global.cg.b64 %0, [%0];" : "+l"(p) :: "memory")
#elif defined(OP_STG)
#define STEP(p, i) asm volatile("st.global.b64 [%0], %1;" :: "l"(p + 4096u * ((i) % 8)), "l"(p) : "memory")
#elif defined(OP_ATOMG)
#define STEP(p, i) asm volatile("atom.global.exch.b64 %0, [%0], %0;" : "+l"(p) :: "memory")
#endif

extern "C" __global__ void bench(
    unsigned iterations, unsigned every, unsigned lanes, unsigned stride, unsigned apart, char *data, unsigned *out, u64 *clocks)
{
    if (warp_of_block() % every || (threadIdx.x & 31) >= lanes) return;
    u64 p[ILP];
    for (int i = 0; i < ILP; ++i) {
        p[i] = (u64)data + (u64)(ILP * warp_of_block() + i) * apart + (threadIdx.x & 31) * stride;
        *(u64 *)p[i] = p[i];
    }
    __threadfence();
    u64 start = clock64();
#pragma unroll 1
    for (unsigned iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll
        for (int i = 0; i < LENGTH; ++i) STEP(p[i % ILP], i);
    }
    record(clocks, start);
    unsigned sum = 0;
    for (int i = 0; i < ILP; ++i) sum += (unsigned)p[i];
    if (out) out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
