// Absolute value in place, after Volkov's thesis, section 3.10: only what was negative is written back.
// Random numbers lie between 0 and 1; SHIFT moves their zero: -D SHIFT=0.0f writes nothing, 1.0f everything.
// drywarp: --grid 65536 --block 256 -D SHIFT=0.5f --arg a=f32[16777216]:random --arg n=16777216

#ifndef SHIFT
#define SHIFT 0.0f
#endif

__global__ void vabs(float* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float b = a[i] - SHIFT;
  if (b < 0.0f) a[i] = -b;
}
