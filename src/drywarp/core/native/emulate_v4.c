// The emulator's loop for processors with AVX-512 F, BW, DQ, VL and CD (x86-64-v4).
#if defined(__x86_64__)

#include <math.h>

#include "core.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,bmi,bmi2,lzcnt,popcnt"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,bmi,bmi2,lzcnt,popcnt,prefer-vector-width=512")
#endif

#define VARIANT v4
#include "emulate_all.h"

#if defined(__clang__)
#pragma clang attribute pop
#endif

#endif
