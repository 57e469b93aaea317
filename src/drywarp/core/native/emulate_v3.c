// The emulator's loop once more, for processors with AVX2, FMA and BMI2 (x86-64-v3): the same sources, the same bits.
#if defined(__x86_64__)

#include <math.h>

#include "core.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,bmi,bmi2,lzcnt,popcnt"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,bmi,bmi2,lzcnt,popcnt")
#endif

#define VARIANT v3
#include "emulate.c"
#include "emulate_access.c"
#include "emulate_ends.c"
#include "emulate_floats.c"
#include "emulate_groups.c"
#include "emulate_log.c"
#include "emulate_predicates.c"
#include "emulate_words.c"

#if defined(__clang__)
#pragma clang attribute pop
#endif

#endif
