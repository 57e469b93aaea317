// A polynomial by Horner's rule in half precision, two numbers to an instruction.
// drywarp: --grid 32768 --block 256 --arg x=f16[16777216]:random --arg y=f16[16777216] --arg pairs=8388608

#include <cuda_fp16.h>

__global__ void polynomial(const __half2* x, __half2* y, int pairs) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= pairs) return;
  __half2 t = x[i];
  __half2 sum = __float2half2_rn(0.125f);
#pragma unroll
  for (int k = 7; k >= 0; --k) sum = __hfma2(sum, t, __float2half2_rn(0.25f + 0.125f * k));
  y[i] = sum;
}
