#include <hip/hip_bf16.h>
typedef __bf16 __nv_bfloat16;
typedef __bf16 nv_bfloat16;
