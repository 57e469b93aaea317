// The built-in functions of OpenCL C, as far as the AMDGPU backend needs no library for them.
//
// Work-item functions read what the HSA runtime hands a kernel, as AMD's device library does. Functions that are
// marked with DW_APPROXIMATE take fewer instructions than the library's: the compiler says so, and drywarp passes
// it on. What is not defined here clang declares itself; a kernel that calls it needs libclc.
#ifndef DRYWARP_OPENCL_FUNCTIONS
#define DRYWARP_OPENCL_FUNCTIONS
#include "opencl-c-base.h"
#include "opencl_convert.h"

#define DW static inline __attribute__((overloadable, always_inline, nodebug))
#define DW_APPROXIMATE(name) \
    __attribute__((diagnose_if(1, "drywarp: " name " is compiled in a short form; the library's takes more", "warning")))

// Work items.
#define DW_IMPLICIT(T) ((const __constant T *)__builtin_amdgcn_implicitarg_ptr())

DW size_t get_local_id(uint d) {
    return d == 0   ? __builtin_amdgcn_workitem_id_x()
           : d == 1 ? __builtin_amdgcn_workitem_id_y()
           : d == 2 ? __builtin_amdgcn_workitem_id_z()
                    : 0;
}
DW size_t get_group_id(uint d) {
    return d == 0   ? __builtin_amdgcn_workgroup_id_x()
           : d == 1 ? __builtin_amdgcn_workgroup_id_y()
           : d == 2 ? __builtin_amdgcn_workgroup_id_z()
                    : 0;
}
DW size_t get_local_size(uint d) { return d < 3 ? DW_IMPLICIT(ushort)[6 + d] : 1; }
DW size_t get_enqueued_local_size(uint d) { return get_local_size(d); }
DW size_t get_num_groups(uint d) { return d < 3 ? DW_IMPLICIT(uint)[d] : 1; }
DW size_t get_global_offset(uint d) { return d < 3 ? DW_IMPLICIT(ulong)[5 + d] : 0; }
DW size_t get_global_size(uint d) { return d < 3 ? (size_t)DW_IMPLICIT(uint)[d] * DW_IMPLICIT(ushort)[6 + d] : 1; }
DW uint get_work_dim(void) { return DW_IMPLICIT(ushort)[32]; }
DW size_t get_global_id(uint d) {
    return d < 3 ? (uint)get_group_id(d) * (uint)get_local_size(d) + (uint)get_local_id(d) + get_global_offset(d) : 0;
}
DW size_t get_local_linear_id(void) {
    return ((uint)get_local_id(2) * (uint)get_local_size(1) + (uint)get_local_id(1)) * (uint)get_local_size(0)
           + (uint)get_local_id(0);
}
DW size_t get_global_linear_id(void) {
    return ((get_global_id(2) - get_global_offset(2)) * get_global_size(1) + get_global_id(1) - get_global_offset(1))
               * get_global_size(0)
           + get_global_id(0) - get_global_offset(0);
}
DW uint get_sub_group_size(void) { return 64; }
DW uint get_max_sub_group_size(void) { return 64; }
DW uint get_sub_group_local_id(void) { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u)); }
DW uint get_sub_group_id(void) { return (uint)get_local_linear_id() / 64; }

// Synchronisation.
DW void mem_fence(cl_mem_fence_flags flags) { __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "workgroup"); }
DW void read_mem_fence(cl_mem_fence_flags flags) { __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"); }
DW void write_mem_fence(cl_mem_fence_flags flags) { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); }
#define DW_BARRIER                                        \
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); \
    __builtin_amdgcn_s_barrier();                          \
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
DW __attribute__((convergent)) void barrier(cl_mem_fence_flags flags) { DW_BARRIER }
DW __attribute__((convergent)) void work_group_barrier(cl_mem_fence_flags flags) { DW_BARRIER }
DW __attribute__((convergent)) void sub_group_barrier(cl_mem_fence_flags flags) { __builtin_amdgcn_wave_barrier(); }

// One definition for every width of a type.
#define DW_WIDTHS(M, T) M(T) M(T##2) M(T##3) M(T##4) M(T##8) M(T##16)
#define DW_REALS(M) DW_WIDTHS(M, float) DW_WIDTHS(M, double) DW_WIDTHS(M, half)
#define DW_SHORT_REALS(M) DW_WIDTHS(M, float) DW_WIDTHS(M, half)
#define DW_INTEGERS(M)                                                                     \
    DW_WIDTHS(M, char) DW_WIDTHS(M, uchar) DW_WIDTHS(M, short) DW_WIDTHS(M, ushort)        \
    DW_WIDTHS(M, int) DW_WIDTHS(M, uint) DW_WIDTHS(M, long) DW_WIDTHS(M, ulong)
#define DW_WITH_SCALAR(M, T) M(T##2, T) M(T##3, T) M(T##4, T) M(T##8, T) M(T##16, T)

// Rounding, extremes, and what else is exact.
#define DW_EXACT(T)                                                               \
    DW T fabs(T x) { return __builtin_elementwise_abs(x); }                       \
    DW T ceil(T x) { return __builtin_elementwise_ceil(x); }                      \
    DW T floor(T x) { return __builtin_elementwise_floor(x); }                    \
    DW T trunc(T x) { return __builtin_elementwise_trunc(x); }                    \
    DW T rint(T x) { return __builtin_elementwise_rint(x); }                      \
    DW T round(T x) { return __builtin_elementwise_round(x); }                    \
    DW T sqrt(T x) { return __builtin_elementwise_sqrt(x); }                      \
    DW T native_sqrt(T x) { return __builtin_elementwise_sqrt(x); }               \
    DW T half_sqrt(T x) { return __builtin_elementwise_sqrt(x); }                 \
    DW T copysign(T x, T y) { return __builtin_elementwise_copysign(x, y); }      \
    DW T fma(T x, T y, T z) { return __builtin_elementwise_fma(x, y, z); }        \
    DW T mad(T x, T y, T z) { return __builtin_elementwise_fma(x, y, z); }        \
    DW T fmin(T x, T y) { return __builtin_elementwise_min(x, y); }               \
    DW T fmax(T x, T y) { return __builtin_elementwise_max(x, y); }               \
    DW T min(T x, T y) { return __builtin_elementwise_min(x, y); }                \
    DW T max(T x, T y) { return __builtin_elementwise_max(x, y); }                \
    DW T clamp(T x, T a, T b) { return min(max(x, a), b); }                       \
    DW T mix(T x, T y, T a) { return fma(y - x, a, x); }                          \
    DW T fdim(T x, T y) { return max(x - y, (T)0); }                              \
    DW T native_recip(T x) { return (T)1 / x; }                                   \
    DW T native_divide(T x, T y) { return x / y; }                                \
    DW T fract(T x) { return x - floor(x); }                                      \
    DW T degrees(T x) { return x * (T)57.295779513082320876798154814105; }        \
    DW T radians(T x) { return x * (T)0.017453292519943295769236907684886; }      \
    DW T smoothstep(T a, T b, T x) {                                              \
        T t = clamp((x - a) / (b - a), (T)0, (T)1);                               \
        return t * t * ((T)3 - (T)2 * t);                                         \
    }
DW_REALS(DW_EXACT)
#define DW_SCALAR_OPERAND(V, T)                                       \
    DW V fmin(V x, T y) { return fmin(x, (V)y); }                     \
    DW V fmax(V x, T y) { return fmax(x, (V)y); }                     \
    DW V min(V x, T y) { return min(x, (V)y); }                       \
    DW V max(V x, T y) { return max(x, (V)y); }                       \
    DW V clamp(V x, T a, T b) { return clamp(x, (V)a, (V)b); }        \
    DW V mix(V x, V y, T a) { return mix(x, y, (V)a); }
DW_WITH_SCALAR(DW_SCALAR_OPERAND, float)
DW_WITH_SCALAR(DW_SCALAR_OPERAND, double)
DW_WITH_SCALAR(DW_SCALAR_OPERAND, half)

// Exponentials and logarithms: the backend expands the exact ones itself for float and half.
#define DW_EXPONENTIAL(T)                                                         \
    DW T exp(T x) { return __builtin_elementwise_exp(x); }                        \
    DW T exp2(T x) { return __builtin_elementwise_exp2(x); }                      \
    DW T exp10(T x) { return __builtin_elementwise_exp(x * (T)M_LN10); }          \
    DW T log(T x) { return __builtin_elementwise_log(x); }                        \
    DW T log2(T x) { return __builtin_elementwise_log2(x); }                      \
    DW T log10(T x) { return __builtin_elementwise_log10(x); }
DW_SHORT_REALS(DW_EXPONENTIAL)

// The hardware's own functions, element by element.
#define DW_SPREAD(name, T)                                                        \
    DW T##2 name(T##2 x) { return (T##2)(name(x.x), name(x.y)); }                 \
    DW T##3 name(T##3 x) { return (T##3)(name(x.x), name(x.y), name(x.z)); }      \
    DW T##4 name(T##4 x) { return (T##4)(name(x.lo), name(x.hi)); }               \
    DW T##8 name(T##8 x) { return (T##8)(name(x.lo), name(x.hi)); }               \
    DW T##16 name(T##16 x) { return (T##16)(name(x.lo), name(x.hi)); }
#define DW_HARDWARE(name, expression)                                             \
    DW float name(float x) { return expression; }                                 \
    DW_SPREAD(name, float)
DW_HARDWARE(native_rsqrt, __builtin_amdgcn_rsqf(x))
DW_HARDWARE(half_rsqrt, __builtin_amdgcn_rsqf(x))
DW_HARDWARE(native_exp2, __builtin_amdgcn_exp2f(x))
DW_HARDWARE(native_exp, __builtin_amdgcn_exp2f(x * M_LOG2E_F))
DW_HARDWARE(native_exp10, __builtin_amdgcn_exp2f(x * 3.32192809488736234787f))
DW_HARDWARE(native_log2, __builtin_amdgcn_logf(x))
DW_HARDWARE(native_log, __builtin_amdgcn_logf(x) * M_LN2_F)
DW_HARDWARE(native_log10, __builtin_amdgcn_logf(x) * 0.30102999566398119521f)
DW_HARDWARE(native_sin, __builtin_amdgcn_sinf(__builtin_amdgcn_fractf(x * 0.15915494309189533577f)))
DW_HARDWARE(native_cos, __builtin_amdgcn_cosf(__builtin_amdgcn_fractf(x * 0.15915494309189533577f)))
DW_HARDWARE(native_tan, native_sin(x) / native_cos(x))
DW float native_powr(float x, float y) { return __builtin_amdgcn_exp2f(__builtin_amdgcn_logf(x) * y); }
DW_HARDWARE(half_exp, native_exp(x))
DW_HARDWARE(half_log, native_log(x))
DW_HARDWARE(half_sin, native_sin(x))
DW_HARDWARE(half_cos, native_cos(x))
DW_HARDWARE(half_recip, __builtin_amdgcn_rcpf(x))

#define DW_SHORT_FORM(name, expression)                                           \
    DW_HARDWARE(dw_##name, expression)                                            \
    DW float name(float x) DW_APPROXIMATE(#name) { return dw_##name(x); }         \
    DW float2 name(float2 x) DW_APPROXIMATE(#name) { return dw_##name(x); }       \
    DW float3 name(float3 x) DW_APPROXIMATE(#name) { return dw_##name(x); }       \
    DW float4 name(float4 x) DW_APPROXIMATE(#name) { return dw_##name(x); }       \
    DW float8 name(float8 x) DW_APPROXIMATE(#name) { return dw_##name(x); }       \
    DW float16 name(float16 x) DW_APPROXIMATE(#name) { return dw_##name(x); }
DW_SHORT_FORM(rsqrt, __builtin_amdgcn_rsqf(x))
DW double dw_rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
DW double rsqrt(double x) { return dw_rsqrt(x); }
DW_SHORT_FORM(sin, native_sin(x))
DW_SHORT_FORM(cos, native_cos(x))
DW_SHORT_FORM(tan, native_tan(x))
DW_SHORT_FORM(tanh, 1.0f - 2.0f / (native_exp(2.0f * x) + 1.0f))
DW_SHORT_FORM(sinh, 0.5f * (native_exp(x) - native_exp(-x)))
DW_SHORT_FORM(cosh, 0.5f * (native_exp(x) + native_exp(-x)))
DW_SHORT_FORM(expm1, native_exp(x) - 1.0f)
DW_SHORT_FORM(log1p, native_log(x + 1.0f))
DW_SHORT_FORM(cbrt, copysign(native_powr(fabs(x), 0.33333333333333333333f), x))
#define DW_POWER(name)                                                                                     \
    DW float name(float x, float y) DW_APPROXIMATE(#name) { return native_powr(x, y); }                    \
    DW float2 name(float2 x, float2 y) DW_APPROXIMATE(#name) { return native_exp2(native_log2(x) * y); }   \
    DW float4 name(float4 x, float4 y) DW_APPROXIMATE(#name) { return native_exp2(native_log2(x) * y); }
DW_POWER(pow)
DW_POWER(powr)
DW float pown(float x, int n) DW_APPROXIMATE("pown") { return native_powr(fabs(x), n) * (x < 0 && n & 1 ? -1 : 1); }
DW float hypot(float x, float y) DW_APPROXIMATE("hypot") { return __builtin_sqrtf(x * x + y * y); }
DW float fmod(float x, float y) { return __builtin_fmodf(x, y); }
DW float ldexp(float x, int n) { return __builtin_ldexpf(x, n); }
DW float nan(uint code) { return as_float(0x7fc00000u | code); }

// In double precision.
#include "double_functions.h"
#define DW_DOUBLE(name, expression)                                                              \
    DW double name(double x) DW_APPROXIMATE(#name) { return expression; }                        \
    DW double2 name(double2 x) DW_APPROXIMATE(#name) { return (double2)(dw_##name(x.x), dw_##name(x.y)); } \
    DW double4 name(double4 x) DW_APPROXIMATE(#name) {                                           \
        return (double4)(dw_##name(x.x), dw_##name(x.y), dw_##name(x.z), dw_##name(x.w));        \
    }
#define DW_IN_DOUBLE(name, expression)               \
    DW double dw_##name(double x) { return expression; } \
    DW_DOUBLE(name, expression)
DW_IN_DOUBLE(exp, dw_double_exp(x))
DW_IN_DOUBLE(exp2, dw_double_exp(x * M_LN2))
DW_IN_DOUBLE(exp10, dw_double_exp(x * M_LN10))
DW_IN_DOUBLE(expm1, dw_double_exp(x) - 1.0)
DW_IN_DOUBLE(log, dw_double_log(x))
DW_IN_DOUBLE(log2, dw_double_log(x) * M_LOG2E)
DW_IN_DOUBLE(log10, dw_double_log(x) * 0.43429448190325182765)
DW_IN_DOUBLE(log1p, dw_double_log(1.0 + x))
DW_IN_DOUBLE(sin, dw_double_sin(x))
DW_IN_DOUBLE(cos, dw_double_cos(x))
DW_IN_DOUBLE(tan, dw_double_tan(x))
DW_IN_DOUBLE(tanh, dw_double_tanh(x))
DW_IN_DOUBLE(sinh, dw_double_sinh(x))
DW_IN_DOUBLE(cosh, dw_double_cosh(x))
DW_IN_DOUBLE(asin, dw_double_asin(x))
DW_IN_DOUBLE(acos, dw_double_acos(x))
DW_IN_DOUBLE(atan, dw_double_atan(x))
DW_IN_DOUBLE(cbrt, dw_double_cbrt(x))
DW_IN_DOUBLE(erf, dw_double_erf(x))
DW_IN_DOUBLE(erfc, 1.0 - dw_double_erf(x))
DW double pow(double x, double y) DW_APPROXIMATE("pow") { return dw_double_pow(x, y); }
DW double powr(double x, double y) DW_APPROXIMATE("powr") { return dw_double_pow(x, y); }
DW double pown(double x, int n) DW_APPROXIMATE("pown") { return dw_double_pow(x, n); }
DW double atan2(double y, double x) DW_APPROXIMATE("atan2") { return dw_double_atan2(y, x); }
DW double hypot(double x, double y) DW_APPROXIMATE("hypot") { return __builtin_sqrt(x * x + y * y); }
DW double fmod(double x, double y) DW_APPROXIMATE("fmod") { return dw_double_fmod(x, y); }
DW_SHORT_FORM(asin, (float)dw_double_asin(x))
DW_SHORT_FORM(acos, (float)dw_double_acos(x))
DW_SHORT_FORM(atan, (float)dw_double_atan(x))
DW_SHORT_FORM(erf, (float)dw_double_erf(x))
DW_SHORT_FORM(erfc, 1.0f - (float)dw_double_erf(x))
DW float atan2(float y, float x) DW_APPROXIMATE("atan2") { return (float)dw_double_atan2(y, x); }

// Questions about floating-point numbers.
DW int isnan(float x) { return __builtin_isnan(x); }
DW int isinf(float x) { return __builtin_isinf(x); }
DW int isfinite(float x) { return __builtin_isfinite(x); }
DW int isnan(double x) { return __builtin_isnan(x); }
DW int isinf(double x) { return __builtin_isinf(x); }
DW int isfinite(double x) { return __builtin_isfinite(x); }
DW int signbit(float x) { return __builtin_signbitf(x) != 0; }
#define DW_SIGN(T)                                                                                   \
    DW T sign(T x) { return x > (T)0 ? (T)1 : x < (T)0 ? (T)-1 : (T)0; }                             \
    DW T step(T edge, T x) { return x < edge ? (T)0 : (T)1; }
DW_SIGN(float)
DW_SIGN(double)

// Geometry.
#define DW_GEOMETRY(T)                                                                               \
    DW T dot(T x, T y) { return x * y; }                                                             \
    DW T dot(T##2 x, T##2 y) { return fma(x.y, y.y, x.x * y.x); }                                    \
    DW T dot(T##3 x, T##3 y) { return fma(x.z, y.z, fma(x.y, y.y, x.x * y.x)); }                     \
    DW T dot(T##4 x, T##4 y) { return fma(x.w, y.w, fma(x.z, y.z, fma(x.y, y.y, x.x * y.x))); }      \
    DW T##3 cross(T##3 x, T##3 y) { return x.yzx * y.zxy - x.zxy * y.yzx; }                          \
    DW_LENGTHS(T, T##2) DW_LENGTHS(T, T##3) DW_LENGTHS(T, T##4)
#define DW_LENGTHS(T, V)                                        \
    DW T length(V x) { return sqrt(dot(x, x)); }                \
    DW T distance(V x, V y) { return length(x - y); }           \
    DW V normalize(V x) { return x * dw_rsqrt(dot(x, x)); }        \
    DW T fast_length(V x) { return sqrt(dot(x, x)); }           \
    DW T fast_distance(V x, V y) { return length(x - y); }      \
    DW V fast_normalize(V x) { return x * dw_rsqrt(dot(x, x)); }
DW_GEOMETRY(float)
DW_GEOMETRY(double)

// Integers.
#define DW_INTEGER(T)                                                             \
    DW T min(T x, T y) { return __builtin_elementwise_min(x, y); }                \
    DW T max(T x, T y) { return __builtin_elementwise_max(x, y); }                \
    DW T clamp(T x, T a, T b) { return min(max(x, a), b); }                       \
    DW T add_sat(T x, T y) { return __builtin_elementwise_add_sat(x, y); }        \
    DW T sub_sat(T x, T y) { return __builtin_elementwise_sub_sat(x, y); }        \
    DW T bitselect(T x, T y, T c) { return (x & ~c) | (y & c); }
DW_INTEGERS(DW_INTEGER)
#define DW_SCALAR_INTEGER(V, T)                                  \
    DW V min(V x, T y) { return min(x, (V)y); }                  \
    DW V max(V x, T y) { return max(x, (V)y); }                  \
    DW V clamp(V x, T a, T b) { return clamp(x, (V)a, (V)b); }
DW_WITH_SCALAR(DW_SCALAR_INTEGER, int)
DW_WITH_SCALAR(DW_SCALAR_INTEGER, uint)
DW int popcount(int x) { return __builtin_popcount(x); }
DW uint popcount(uint x) { return __builtin_popcount(x); }
DW long popcount(long x) { return __builtin_popcountl(x); }
DW ulong popcount(ulong x) { return __builtin_popcountl(x); }
DW uint abs(int x) { return __builtin_elementwise_abs(x); }
DW ulong abs(long x) { return __builtin_elementwise_abs(x); }
DW uint abs(uint x) { return x; }
DW uint abs_diff(int x, int y) { return x > y ? (uint)x - y : (uint)y - x; }
DW uint abs_diff(uint x, uint y) { return x > y ? x - y : y - x; }
DW int mul24(int x, int y) { return ((x << 8) >> 8) * ((y << 8) >> 8); }
DW uint mul24(uint x, uint y) { return (x & 0xffffff) * (y & 0xffffff); }
DW int mad24(int x, int y, int z) { return mul24(x, y) + z; }
DW uint mad24(uint x, uint y, uint z) { return mul24(x, y) + z; }
DW int mul_hi(int x, int y) { return (int)(((long)x * y) >> 32); }
DW uint mul_hi(uint x, uint y) { return (uint)(((ulong)x * y) >> 32); }
DW int mad_hi(int x, int y, int z) { return mul_hi(x, y) + z; }
DW uint mad_hi(uint x, uint y, uint z) { return mul_hi(x, y) + z; }
DW int clz(int x) { return x ? __builtin_clz(x) : 32; }
DW uint clz(uint x) { return x ? __builtin_clz(x) : 32; }
DW long clz(long x) { return x ? __builtin_clzl(x) : 64; }
DW ulong clz(ulong x) { return x ? __builtin_clzl(x) : 64; }
DW int ctz(int x) { return x ? __builtin_ctz(x) : 32; }
DW uint ctz(uint x) { return x ? __builtin_ctz(x) : 32; }
DW int rotate(int x, int n) { return (int)(((uint)x << (n & 31)) | ((uint)x >> (-n & 31))); }
DW uint rotate(uint x, uint n) { return (x << (n & 31)) | (x >> (-n & 31)); }
DW ulong rotate(ulong x, ulong n) { return (x << (n & 63)) | (x >> (-n & 63)); }
DW uint hadd(uint x, uint y) { return (x & y) + ((x ^ y) >> 1); }
DW uint rhadd(uint x, uint y) { return (x | y) - ((x ^ y) >> 1); }

#define DW_SELECT(T, I) DW T select(T x, T y, I c) { return c ? y : x; }
DW_SELECT(float, int)
DW_SELECT(float, uint)
DW_SELECT(int, int)
DW_SELECT(int, uint)
DW_SELECT(uint, uint)
DW_SELECT(uint, int)
DW_SELECT(double, long)
DW_SELECT(double, ulong)
#define DW_SELECT_VECTOR(V, I) DW V select(V x, V y, I c) { return c ? y : x; }
DW_SELECT_VECTOR(float2, int2)
DW_SELECT_VECTOR(float4, int4)
DW_SELECT_VECTOR(float8, int8)
DW_SELECT_VECTOR(float16, int16)
DW_SELECT_VECTOR(int2, int2)
DW_SELECT_VECTOR(int4, int4)
DW int any(int x) { return x < 0; }
DW int all(int x) { return x < 0; }
DW int any(int4 x) { return (x.x | x.y | x.z | x.w) < 0; }
DW int all(int4 x) { return (x.x & x.y & x.z & x.w) < 0; }

// Vectors in memory, aligned as their elements are.
#define DW_MEMORY(T, n, space)                                                                              \
    DW T##n vload##n(size_t at, const space T *p) { return *(const space dw_##T##n *)(p + at * n); }        \
    DW void vstore##n(T##n value, size_t at, space T *p) { *(space dw_##T##n *)(p + at * n) = value; }
#define DW_MEMORY_3(T, space)                                                                               \
    DW T##3 vload3(size_t at, const space T *p) { return (T##3)(p[3 * at], p[3 * at + 1], p[3 * at + 2]); } \
    DW void vstore3(T##3 value, size_t at, space T *p) {                                                    \
        p[3 * at] = value.x, p[3 * at + 1] = value.y, p[3 * at + 2] = value.z;                              \
    }
#define DW_LOAD(T, n) \
    DW T##n vload##n(size_t at, const __constant T *p) { return *(const __constant dw_##T##n *)(p + at * n); }
#define DW_SPACES(T, n)                                              \
    typedef T##n dw_##T##n __attribute__((aligned(sizeof(T))));      \
    DW_MEMORY(T, n, __global) DW_MEMORY(T, n, __local) DW_MEMORY(T, n, __private) DW_LOAD(T, n)
#define DW_VECTOR_MEMORY(T)                                                                          \
    DW_SPACES(T, 2) DW_SPACES(T, 4) DW_SPACES(T, 8) DW_SPACES(T, 16)                                 \
    DW_MEMORY_3(T, __global) DW_MEMORY_3(T, __local) DW_MEMORY_3(T, __private)
DW_VECTOR_MEMORY(char)
DW_VECTOR_MEMORY(uchar)
DW_VECTOR_MEMORY(short)
DW_VECTOR_MEMORY(ushort)
DW_VECTOR_MEMORY(int)
DW_VECTOR_MEMORY(uint)
DW_VECTOR_MEMORY(long)
DW_VECTOR_MEMORY(ulong)
DW_VECTOR_MEMORY(half)
DW_VECTOR_MEMORY(float)
DW_VECTOR_MEMORY(double)
DW float vload_half(size_t at, const __global half *p) { return p[at]; }
DW float vload_half(size_t at, const __local half *p) { return p[at]; }
DW void vstore_half(float value, size_t at, __global half *p) { p[at] = (half)value; }
DW void vstore_half(float value, size_t at, __local half *p) { p[at] = (half)value; }
DW void prefetch(const __global void *p, size_t count) {}

// Atomics of OpenCL 1.x.
#define DW_ATOMIC(name, builtin, T, space)                                                                  \
    DW T atomic_##name(volatile space T *p, T v) {                                                          \
        return __scoped_atomic_##builtin(p, v, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);                    \
    }                                                                                                       \
    DW T atom_##name(volatile space T *p, T v) { return atomic_##name(p, v); }
#define DW_ATOMICS(T, space)                                                                                \
    DW_ATOMIC(add, fetch_add, T, space) DW_ATOMIC(sub, fetch_sub, T, space)                                 \
    DW_ATOMIC(and, fetch_and, T, space) DW_ATOMIC(or, fetch_or, T, space)                                   \
    DW_ATOMIC(xor, fetch_xor, T, space) DW_ATOMIC(min, fetch_min, T, space)                                 \
    DW_ATOMIC(max, fetch_max, T, space) DW_ATOMIC(xchg, exchange_n, T, space)                               \
    DW T atomic_inc(volatile space T *p) { return atomic_add(p, (T)1); }                                    \
    DW T atomic_dec(volatile space T *p) { return atomic_sub(p, (T)1); }                                    \
    DW T atom_inc(volatile space T *p) { return atomic_add(p, (T)1); }                                      \
    DW T atom_dec(volatile space T *p) { return atomic_sub(p, (T)1); }                                      \
    DW T atomic_cmpxchg(volatile space T *p, T expected, T value) {                                         \
        __scoped_atomic_compare_exchange_n(p, &expected, value, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED,      \
                                           __MEMORY_SCOPE_DEVICE);                                          \
        return expected;                                                                                    \
    }                                                                                                       \
    DW T atom_cmpxchg(volatile space T *p, T expected, T value) { return atomic_cmpxchg(p, expected, value); }
DW_ATOMICS(int, __global)
DW_ATOMICS(uint, __global)
DW_ATOMICS(long, __global)
DW_ATOMICS(ulong, __global)
DW_ATOMICS(int, __local)
DW_ATOMICS(uint, __local)

// Exchange between the lanes of a wavefront.
DW int dw_lane(int value, uint lane) { return __builtin_amdgcn_ds_bpermute((int)(lane << 2), value); }
DW int sub_group_shuffle(int x, uint lane) { return dw_lane(x, lane); }
DW uint sub_group_shuffle(uint x, uint lane) { return dw_lane((int)x, lane); }
DW float sub_group_shuffle(float x, uint lane) { return as_float(dw_lane(as_int(x), lane)); }
DW int sub_group_shuffle_xor(int x, uint mask) { return dw_lane(x, get_sub_group_local_id() ^ mask); }
DW float sub_group_shuffle_xor(float x, uint mask) { return sub_group_shuffle(x, get_sub_group_local_id() ^ mask); }
DW float sub_group_reduce_add(float x) {
    for (uint mask = 32; mask; mask >>= 1) x += sub_group_shuffle_xor(x, mask);
    return x;
}
DW int sub_group_reduce_add(int x) {
    for (uint mask = 32; mask; mask >>= 1) x += sub_group_shuffle_xor(x, mask);
    return x;
}

#endif
