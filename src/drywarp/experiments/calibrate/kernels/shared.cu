// Accesses to shared memory. Lane l is at word l * stride, and every word holds its own address, so that a load
// or an exchange gives the address of the next one: a chain of nothing else.
#include "record.cuh"
#ifndef ILP
#define ILP 1
#endif

#if defined(OP_LDS)
#define STEP(x, i) asm volatile("ld.shared.b32 %0, [%0];" : "+r"(x) :: "memory")
#elif defined(OP_LDS128)
#define STEP(x, i) asm volatile("{.reg .b32 y, z, w; ld.shared.v4.b32 {%0, y, z, w}, [%0]; and.b32 %0, %0, y; and.b32 z, z, w; and.b32 %0, %0, z;}" : "+r"(x) :: "memory")
#elif defined(OP_STS)
#define STEP(x, i) asm volatile("st.shared.b32 [%0], %1;" :: "r"(x + 128u * ((i) % 8)), "r"(x) : "memory")
#elif defined(OP_ATOMS)
#define STEP(x, i) asm volatile("atom.shared.exch.b32 %0, [%0], %0;" : "+r"(x) :: "memory")
#endif
#ifndef WIDTH
#define WIDTH 1
#endif

extern __shared__ __align__(16) unsigned words[];

extern "C" __global__ void bench(unsigned iterations, unsigned every, unsigned stride, unsigned *out, u64 *clocks)
{
    unsigned at = (threadIdx.x & 31) * stride;
    unsigned own = (unsigned)__cvta_generic_to_shared(words + at);
    for (unsigned i = 0; i < WIDTH; ++i) words[at + i] = own;
    __syncthreads();
    if (warp_of_block() % every) return;
    unsigned x[ILP];
    for (int i = 0; i < ILP; ++i) x[i] = own;
    u64 start = clock64();
#pragma unroll 1
    for (unsigned iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll
        for (int i = 0; i < LENGTH; ++i) STEP(x[i % ILP], i);
    }
    record(clocks, start);
    unsigned sum = x[0];
    for (int i = 1; i < ILP; ++i) sum += x[i];
    if (out) out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
