// The fixed-width integer types with their limits, which NVRTC does not define by itself.
#pragma once
// Some sources include what lies here from within extern "C".
extern "C++" {
#include <cuda/std/cstdint>
}
#ifndef INT32_C
#define INT8_C(value) value
#define INT16_C(value) value
#define INT32_C(value) value
#define INT64_C(value) value##LL
#define UINT8_C(value) value
#define UINT16_C(value) value
#define UINT32_C(value) value##U
#define UINT64_C(value) value##ULL
#endif
