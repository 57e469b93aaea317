// y = a*x + y: two loads, one multiply-add, one store a work-item, in OpenCL C. Bound by memory bandwidth.
// drywarp: --grid 65536 --block 256
// drywarp: --arg n=16777216 --arg a=2.0 --arg x=f32[16777216]:random --arg y=f32[16777216]:random

__kernel void saxpy(int n, float a, __global const float* x, __global float* y) {
  int i = get_global_id(0);
  if (i < n) y[i] = a * x[i] + y[i];
}
