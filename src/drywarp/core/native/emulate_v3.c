// The emulator's loop for processors with AVX2, FMA and BMI2 (x86-64-v3).
#if defined(__x86_64__)

#include <math.h>

#include "core.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,bmi,bmi2,lzcnt,popcnt"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,bmi,bmi2,lzcnt,popcnt")
#endif

#define VARIANT v3
#include "emulate_all.h"

#if defined(__clang__)
#pragma clang attribute pop
#endif

#endif
