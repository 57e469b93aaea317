// A stand-in for HIP's bfloat16 header: the compiler's own type.
#ifndef DRYWARP_HIP_BF16
#define DRYWARP_HIP_BF16
#include <hip/hip_runtime.h>

typedef __bf16 __hip_bfloat16;
typedef __bf16 hip_bfloat16;
DW_BOTH __hip_bfloat16 __float2bfloat16(float x) { return (__hip_bfloat16)x; }
DW_BOTH float __bfloat162float(__hip_bfloat16 x) { return (float)x; }

#endif
