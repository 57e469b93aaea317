// Chains of dependent instructions of one kind: each takes the result of the one before.
// The FFMA reads one register alone, so that the banks of the register file do not hold it up.
// ILP independent chains go round in turn; LENGTH is the instructions of one iteration of the loop.
// Only every EVERY-th warp of a block takes part (1: all, 4: those of one partition).
#include "record.cuh"
#ifndef ILP
#define ILP 1
#endif

#if defined(OP_FFMA)
typedef float value;
#define STEP(x) asm volatile("fma.rn.f32 %0, %0, 0f3F800001, %0;" : "+f"(x))
#elif defined(OP_FMNMX)
typedef float value;
#define STEP(x) asm volatile("{min.f32 %0, %0, %1; max.f32 %0, %0, %2;}" : "+f"(x) : "f"(fa), "f"(fb))
#elif defined(OP_HALF)
typedef unsigned value;
#define STEP(x) asm volatile("add.rn.f16x2 %0, %0, %1;" : "+r"(x) : "r"(a))
#elif defined(OP_DFMA)
typedef double value;
#define STEP(x) asm volatile("fma.rn.f64 %0, %0, %1, %2;" : "+d"(x) : "d"(da), "d"(db))
#elif defined(OP_INT)
typedef unsigned value;
#define STEP(x) asm volatile("{xor.b32 %0, %0, %1; min.u32 %0, %0, %2;}" : "+r"(x) : "r"(a), "r"(b))
#elif defined(OP_IMAD)
typedef unsigned value;
#define STEP(x) asm volatile("mad.lo.u32 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b))
#elif defined(OP_IMAD_HI)
typedef unsigned value;
#define STEP(x) asm volatile("mad.hi.u32 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b))
#elif defined(OP_SHF)
typedef unsigned value;
#define STEP(x) asm volatile("shf.l.wrap.b32 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b))
#elif defined(OP_POPC)
typedef unsigned value;
#define STEP(x) asm volatile("popc.b32 %0, %0;" : "+r"(x))
#elif defined(OP_MUFU)
typedef float value;
#define STEP(x) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x))
#elif defined(OP_FRND)
typedef float value;
#define STEP(x) asm volatile("cvt.rni.f32.f32 %0, %0;" : "+f"(x))
#elif defined(OP_F2I)
typedef float value;
#define STEP(x) asm volatile("{.reg .s32 i; cvt.rni.s32.f32 i, %0; mov.b32 %0, i;}" : "+f"(x))
#elif defined(OP_F2FP)
typedef float value;
#define STEP(x) asm volatile("{.reg .b32 i; cvt.rn.f16x2.f32 i, %0, %1; mov.b32 %0, i;}" : "+f"(x) : "f"(fa))
#elif defined(OP_I2F)
typedef float value;
#define STEP(x) asm volatile("{.reg .b32 i; mov.b32 i, %0; cvt.rn.f32.u32 %0, i;}" : "+f"(x))
#elif defined(OP_VOTE)
typedef unsigned value;
#define STEP(x) asm volatile("{.reg .pred p; setp.ne.u32 p, %0, 0; vote.sync.ballot.b32 %0, p, -1;}" : "+r"(x))
#elif defined(OP_SHFL)
typedef unsigned value;
#define STEP(x) asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+r"(x))
#elif defined(OP_REDUX)
typedef unsigned value;
#define STEP(x) asm volatile("redux.sync.add.s32 %0, %0, -1;" : "+r"(x))
#elif defined(OP_MEMBAR)
typedef unsigned value;
#define STEP(x) asm volatile("membar.gl;" ::: "memory")
#elif defined(OP_MEMBAR_CTA)
typedef unsigned value;
#define STEP(x) asm volatile("membar.cta;" ::: "memory")
#elif defined(OP_WARPSYNC)
typedef unsigned value;
#define STEP(x) asm volatile("bar.warp.sync %0;" :: "r"(b) : "memory")
#elif defined(OP_BAR)
typedef unsigned value;
#define STEP(x) asm volatile("bar.sync 0;" ::: "memory")
#elif defined(OP_S2R)
typedef unsigned value;
#define STEP(x) asm volatile("{.reg .u32 i; mov.u32 i, %%smid; add.u32 %0, %0, i;}" : "+r"(x))
#elif defined(OP_LDC)
typedef unsigned value;
__constant__ unsigned table[64];
#define STEP(x) x = *(const unsigned *)((const char *)table + x)
#elif defined(OP_PLOP3)
typedef unsigned value;
#define STEP(x) asm volatile("{.reg .pred p, q, r; setp.ne.u32 p, %0, 0; setp.ne.u32 q, %1, 0; xor.pred r, p, q; selp.u32 %0, %1, %2, r;}" : "+r"(x) : "r"(a), "r"(b))
#endif

extern "C" __global__ void bench(unsigned iterations, unsigned every, unsigned a, unsigned b, unsigned *out, u64 *clocks)
{
    if (warp_of_block() % every) return;
    float fa = __uint_as_float(a), fb = __uint_as_float(b);
    double da = __hiloint2double(a, b), db = __hiloint2double(b, a);
    value x[ILP];
#ifdef OP_LDC
    for (int i = 0; i < ILP; ++i) x[i] = 0;  // an offset into the table, whose zeros lead back to it
#else
    for (int i = 0; i < ILP; ++i) x[i] = (value)(a + threadIdx.x * b + i);
#endif
    u64 start = clock64();
#pragma unroll 1
    for (unsigned iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll
        for (int i = 0; i < LENGTH; ++i) STEP(x[i % ILP]);
    }
    record(clocks, start);
    value sum = x[0];
    for (int i = 1; i < ILP; ++i) sum += x[i];
    if (out) out[blockIdx.x * blockDim.x + threadIdx.x] = (unsigned)sum;
}
