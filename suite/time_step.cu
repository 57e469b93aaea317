// Flow solver: the five variables of each element go one Runge-Kutta step on.
// drywarp: --grid 506 --block 192
// drywarp: --arg old=f32[5,97046]:random --arg variables=f32[5,97046] --arg factors=f32[97046]:random
// drywarp: --arg fluxes=f32[5,97046]:random --arg n=97046 --arg stage=1

#ifndef BLOCK
#define BLOCK 192
#endif
#define STAGES 3

__global__ void time_step(const float* old, float* variables, const float* factors, const float* fluxes, int n,
                          int stage) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i >= n) return;
  float factor = factors[i] / (float)(STAGES + 1 - stage);
  for (int v = 0; v < 5; ++v) variables[v * n + i] = old[v * n + i] + factor * fluxes[v * n + i];
}
