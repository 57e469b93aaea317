// Every lane reads a word of another sector at a pseudo-random place of `words` words, past the L1. Addresses come from
// registers alone, so that a warp has LENGTH loads under way. Before, every thread reads 16 bytes `rounds` times, side by side.
#include "record.cuh"

extern "C" __global__ void bench(
    unsigned iterations, unsigned words, unsigned rounds, const char *data, unsigned *out, u64 *clocks)
{
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    u64 start = clock64();
#pragma unroll 1
    for (unsigned round = 0; round < rounds; ++round) {
        uint4 v;
        const char *at = data + ((u64)round * gridDim.x * blockDim.x + thread) * 16;
        asm volatile("ld.global.cg.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at) : "memory");
        sum += v.x + v.y + v.z + v.w;
    }
    // Neighbouring threads must not begin at neighbouring places: a multiplicative hash, twice, with the halves swapped between.
    unsigned state = (thread + 1) * 0x9E3779B1u;
    state = (state ^ (state >> 16)) * 0x85EBCA6Bu;
    state ^= state >> 13;
#pragma unroll 1
    for (unsigned iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll
        for (int i = 0; i < LENGTH; ++i) {
            unsigned found;
            // A congruential step; its high bits are the good ones, and those choose the place.
            state = state * 1664525u + 1013904223u;
            asm volatile("ld.global.cg.b32 %0, [%1];" : "=r"(found) : "l"(data + 4ull * __umulhi(state, words)) : "memory");
            sum += found;
        }
    }
    record(clocks, start);
    if (sum == 1) *out = sum;
}
