// A stand-in for HIP's half-precision header: __half is the compiler's own type, so that arithmetic is written plainly.
#ifndef DRYWARP_HIP_FP16
#define DRYWARP_HIP_FP16
#include <hip/hip_runtime.h>

typedef _Float16 __half;
typedef _Float16 half;
typedef _Float16 dw_half2 __attribute__((ext_vector_type(2)));
typedef dw_half2 __half2;
typedef dw_half2 half2;

DW_BOTH __half __float2half(float x) { return (__half)x; }
DW_BOTH __half __float2half_rn(float x) { return (__half)x; }
DW_BOTH float __half2float(__half x) { return (float)x; }
DW_BOTH __half __int2half_rn(int x) { return (__half)x; }
DW __half2 __halves2half2(__half a, __half b) { return __half2{a, b}; }
DW __half2 __half2half2(__half a) { return __half2{a, a}; }
DW __half2 __float2half2_rn(float a) { return __half2{(__half)a, (__half)a}; }
DW __half2 __floats2half2_rn(float a, float b) { return __half2{(__half)a, (__half)b}; }
DW __half __low2half(__half2 a) { return a.x; }
DW __half __high2half(__half2 a) { return a.y; }
DW float __low2float(__half2 a) { return (float)a.x; }
DW float __high2float(__half2 a) { return (float)a.y; }
DW float2 __half22float2(__half2 a) { return {(float)a.x, (float)a.y}; }
#define DW_HALVES(T, suffix)                                                                      \
    DW T __hadd##suffix(T a, T b) { return a + b; }                                               \
    DW T __hsub##suffix(T a, T b) { return a - b; }                                               \
    DW T __hmul##suffix(T a, T b) { return a * b; }                                               \
    DW T __hfma##suffix(T a, T b, T c) { return __builtin_elementwise_fma(a, b, c); }             \
    DW T __hmax##suffix(T a, T b) { return __builtin_elementwise_max(a, b); }                     \
    DW T __hmin##suffix(T a, T b) { return __builtin_elementwise_min(a, b); }                     \
    DW T __habs##suffix(T a) { return __builtin_elementwise_abs(a); }
DW_HALVES(__half, )
DW_HALVES(__half2, 2)
DW __half hsqrt(__half a) { return __builtin_elementwise_sqrt(a); }
DW __half hexp(__half a) { return (__half)__builtin_expf((float)a); }

#endif
