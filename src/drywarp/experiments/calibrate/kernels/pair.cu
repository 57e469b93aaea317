// A chain in which two kinds of instruction take turns: each works on the result of the other.
#include "record.cuh"

#define FFMA(x) asm volatile("{.reg .f32 f; mov.b32 f, %0; fma.rn.f32 f, f, %1, %2; mov.b32 %0, f;}" : "+r"(x) : "f"(fa), "f"(fb))
#define MUFU(x) asm volatile("{.reg .f32 f; mov.b32 f, %0; ex2.approx.ftz.f32 f, f; mov.b32 %0, f;}" : "+r"(x))
#define IMAD(x) asm volatile("mad.lo.u32 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b))
#define SHF(x) asm volatile("shf.l.wrap.b32 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b))
#define POPC(x) asm volatile("popc.b32 %0, %0;" : "+r"(x))
#define SHFL(x) asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+r"(x))

extern "C" __global__ void bench(unsigned iterations, unsigned a, unsigned b, unsigned *out, u64 *clocks)
{
    float fa = __uint_as_float(a), fb = __uint_as_float(b);
    unsigned x = a + threadIdx.x * b;
    u64 start = clock64();
#pragma unroll 1
    for (unsigned iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll
        for (int i = 0; i < LENGTH; ++i) {
            FIRST(x);
            SECOND(x);
        }
    }
    record(clocks, start);
    if (out) out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
