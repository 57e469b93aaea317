// Particles under gravity, one step: everything that the kernel needs is in one structure, passed by value.
// drywarp: --grid 'cdiv(p.particles.count,256)' --block 256
// drywarp: --arg 'p={particles={position=f32[3145728]:random, velocity=f32[3145728], count=1048576}, dt=0.01}'
// drywarp: --arg 'p.gravity=[0, -9.81, 0]' --arg p.border=Reflect

struct Particles {
  float* position;  // x, y and z of each particle
  float* velocity;
  int count;
};

enum class Border : unsigned char { Open, Reflect };

struct Parameters {
  Particles particles;
  float gravity[3];
  float dt;
  Border border;
};

__global__ void step(const Parameters p) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= p.particles.count) return;
  for (int axis = 0; axis < 3; ++axis) {
    float v = p.particles.velocity[3 * i + axis] + p.gravity[axis] * p.dt;
    float x = p.particles.position[3 * i + axis] + v * p.dt;
    if (p.border == Border::Reflect && (x < 0.0f || x > 1.0f)) v = -v, x = x < 0.0f ? -x : 2.0f - x;
    p.particles.velocity[3 * i + axis] = v;
    p.particles.position[3 * i + axis] = x;
  }
}
