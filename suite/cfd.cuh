// What the three kernels of the flow solver share: the state of a gas, as deviations from the free stream.
#ifndef BLOCK
#define BLOCK 192
#endif
#define GAMMA 1.4f
#define FREE_DENSITY 1.4f
#define FREE_ENERGY 4.0f

struct State {
  float density, energy;
  float3 momentum;
};

__device__ inline State state_of(const float* variables, int n, int i) {
  State s;
  s.density = FREE_DENSITY + variables[i];
  s.momentum = make_float3(variables[n + i], variables[2 * n + i], variables[3 * n + i]);
  s.energy = FREE_ENERGY + variables[4 * n + i];
  return s;
}

__device__ inline float3 velocity_of(const State& s) {
  return make_float3(s.momentum.x / s.density, s.momentum.y / s.density, s.momentum.z / s.density);
}

__device__ inline float square(float3 v) { return v.x * v.x + v.y * v.y + v.z * v.z; }

__device__ inline float pressure_of(const State& s, float speed_squared) {
  return (GAMMA - 1.0f) * (s.energy - 0.5f * s.density * speed_squared);
}

__device__ inline float sound_of(const State& s, float pressure) { return sqrtf(GAMMA * pressure / s.density); }
