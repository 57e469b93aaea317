// y = a*x + y: two loads, one multiply-add, one store a thread. Bound by memory bandwidth.
// drywarp: --grid 65536 --block 256
// drywarp: --arg n=16777216 --arg a=2.0 --arg x=f32[16777216]:random --arg y=f32[16777216]:random

__global__ void saxpy(int n, float a, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
