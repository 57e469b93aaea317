// Chains of matrix instructions of a warp: each accumulates on the result of the one before. ILP chains in turn.
#include "record.cuh"
#ifndef ILP
#define ILP 1
#endif

#if defined(TYPE_F16)
typedef float element;
#define ELEMENTS 4
#define STEP(d) asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%4,%5}, {%4,%5}, {%0,%1,%2,%3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a), "r"(b))
#elif defined(TYPE_F16_K8)
typedef float element;
#define ELEMENTS 4
#define STEP(d) asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%4}, {%0,%1,%2,%3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a), "r"(b))
#elif defined(TYPE_BF16)
typedef float element;
#define ELEMENTS 4
#define STEP(d) asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%4,%5}, {%4,%5}, {%0,%1,%2,%3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a), "r"(b))
#elif defined(TYPE_TF32)
typedef float element;
#define ELEMENTS 4
#define STEP(d) asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%4,%5}, {%4,%5}, {%0,%1,%2,%3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a), "r"(b))
#elif defined(TYPE_INT8)
typedef int element;
#define ELEMENTS 4
#define STEP(d) asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%4,%5}, {%4,%5}, {%0,%1,%2,%3};" : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a), "r"(b))
#elif defined(TYPE_INT8_K16)
typedef int element;
#define ELEMENTS 2
#define STEP(d) asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+r"(d[0]), "+r"(d[1]) : "r"(a), "r"(b))
#elif defined(TYPE_FP64)
typedef double element;
#define ELEMENTS 2
#define STEP(d) asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(d[0]), "+d"(d[1]) : "d"(da), "d"(db))
#endif

extern "C" __global__ void bench(unsigned iterations, unsigned every, unsigned a, unsigned b, unsigned *out, u64 *clocks)
{
    if (warp_of_block() % every) return;
    double da = __hiloint2double(a, b), db = __hiloint2double(b, a);
    element d[ILP][ELEMENTS];
    for (int i = 0; i < ILP; ++i)
        for (int j = 0; j < ELEMENTS; ++j) d[i][j] = (element)(threadIdx.x + i + j);
    u64 start = clock64();
#pragma unroll 1
    for (unsigned iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll
        for (int i = 0; i < LENGTH; ++i) STEP(d[i % ILP]);
    }
    record(clocks, start);
    element sum = 0;
    for (int i = 0; i < ILP; ++i)
        for (int j = 0; j < ELEMENTS; ++j) sum += d[i][j];
    if (out) out[blockIdx.x * blockDim.x + threadIdx.x] = (unsigned)(long long)sum;
}
