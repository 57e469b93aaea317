// The instruction mix (analysis paper, section 4.2): BETA instructions of one kind, each on the result of the one
// before, and one of another. TWO or THREE kinds in turn show the issue limit where no single one reaches it.
#include "record.cuh"

// One register is read by each, so that the banks of the register file hold none up.
#define ALU(x) asm volatile("fma.rn.f32 %0, %0, 0f3F800001, %0;" : "+f"(x))
#define SFU(x) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x))
#define LOGIC(x) asm volatile("shf.l.wrap.b32 %0, %0, %0, 7;" : "+r"(x))
#define HALF(x) asm volatile("add.rn.f16x2 %0, %0, %1;" : "+r"(x) : "r"(0x3c003c00))

extern "C" __global__ void bench(unsigned iterations, unsigned a, unsigned b, unsigned *out, u64 *clocks)
{
    float fa = __uint_as_float(a), fb = __uint_as_float(b), x = fa + threadIdx.x, y = fb + threadIdx.x;
    unsigned l = a + threadIdx.x, h = b + threadIdx.x;
    u64 start = clock64();
#pragma unroll 1
    for (unsigned iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll
        for (int i = 0; i < LENGTH; ++i) {
#if defined(THREE)
            ALU(x); LOGIC(l); HALF(h);
#elif defined(TWO)
            ALU(x); LOGIC(l);
#else
#pragma unroll
            for (int j = 0; j < BETA; ++j) ALU(x);
            SFU(y);
#endif
        }
    }
    record(clocks, start);
    if (out) out[blockIdx.x * blockDim.x + threadIdx.x] = __float_as_uint(x + y) + l + h;
}
