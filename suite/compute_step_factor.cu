// Flow solver: how far each element may step in time, by its size and the speed of what crosses it.
// drywarp: --grid 506 --block 192
// drywarp: --arg variables=f32[5,97046]:random --arg areas=f32[97046]:random --arg factors=f32[97046] --arg n=97046

#include "cfd.cuh"

__global__ void compute_step_factor(const float* variables, const float* areas, float* factors, int n) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i >= n) return;
  State s = state_of(variables, n, i);
  float speed_squared = square(velocity_of(s));
  float sound = sound_of(s, pressure_of(s, speed_squared));
  factors[i] = 0.5f / (sqrtf(1.0f + areas[i]) * (sqrtf(speed_squared) + sound));
}
