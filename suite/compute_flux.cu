// Flow solver: what flows into each element from its four neighbours, with some artificial viscosity.
// drywarp: --grid 506 --block 192
// drywarp: --arg nearby=i32[4,97046]:random --arg normals=f32[4,3,97046]:random --arg variables=f32[5,97046]:random
// drywarp: --arg fluxes=f32[5,97046] --arg n=97046

#include "cfd.cuh"

#define VISCOSITY 0.2f
#define WALL 0

struct Flux {
  float3 x, y, z, energy;
};

__device__ inline Flux contribution(const State& s, float3 v, float pressure) {
  Flux f;
  f.x = make_float3(v.x * s.momentum.x + pressure, v.x * s.momentum.y, v.x * s.momentum.z);
  f.y = make_float3(f.x.y, v.y * s.momentum.y + pressure, v.y * s.momentum.z);
  f.z = make_float3(f.x.z, f.y.z, v.z * s.momentum.z + pressure);
  float whole = s.energy + pressure;
  f.energy = make_float3(v.x * whole, v.y * whole, v.z * whole);
  return f;
}

__device__ inline float along(float3 normal, float3 a, float3 b) {
  return 0.5f * (normal.x * (a.x + b.x) + normal.y * (a.y + b.y) + normal.z * (a.z + b.z));
}

// `nearby` holds 0 for a wall, else how far off in the list of elements the neighbour is, less 50. What lies beyond
// either end of the list is the free stream.
__global__ void compute_flux(const int* nearby, const float* normals, const float* variables, float* fluxes, int n) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i >= n) return;
  State own = state_of(variables, n, i);
  float3 velocity = velocity_of(own);
  float speed_squared = square(velocity);
  float speed = sqrtf(speed_squared);
  float pressure = pressure_of(own, speed_squared);
  float sound = sound_of(own, pressure);
  Flux out = contribution(own, velocity, pressure);

  State sum = {0.0f, 0.0f, {0.0f, 0.0f, 0.0f}};
  for (int side = 0; side < 4; ++side) {
    int far = nearby[side * n + i];
    const float* at = normals + side * 3 * n + i;
    float3 normal = make_float3(at[0], at[n], at[2 * n]);
    if (far == WALL) {
      sum.momentum.x += normal.x * pressure;
      sum.momentum.y += normal.y * pressure;
      sum.momentum.z += normal.z * pressure;
      continue;
    }
    int j = i + far - 50;
    State other = {FREE_DENSITY, FREE_ENERGY, {1.0f, 0.0f, 0.0f}};
    float viscosity = 0.0f;
    if (j >= 0 && j < n) {
      other = state_of(variables, n, j);
      viscosity = -0.5f * VISCOSITY * sqrtf(square(normal));
    }
    float3 v = velocity_of(other);
    float squared = square(v);
    float p = pressure_of(other, squared);
    viscosity *= speed + sqrtf(squared) + sound + sound_of(other, p);
    Flux in = contribution(other, v, p);
    sum.density += viscosity * (own.density - other.density) + along(normal, own.momentum, other.momentum);
    sum.energy += viscosity * (own.energy - other.energy) + along(normal, out.energy, in.energy);
    sum.momentum.x += viscosity * (own.momentum.x - other.momentum.x) + along(normal, out.x, in.x);
    sum.momentum.y += viscosity * (own.momentum.y - other.momentum.y) + along(normal, out.y, in.y);
    sum.momentum.z += viscosity * (own.momentum.z - other.momentum.z) + along(normal, out.z, in.z);
  }
  fluxes[i] = sum.density;
  fluxes[n + i] = sum.momentum.x;
  fluxes[2 * n + i] = sum.momentum.y;
  fluxes[3 * n + i] = sum.momentum.z;
  fluxes[4 * n + i] = sum.energy;
}
