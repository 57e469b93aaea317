// The potential of charged atoms at the points of a regular lattice, from atoms nearer than a cutoff: every thread takes
// one point and goes through all atoms. The box is periodic; lengths are in cutoffs, 8 lattice points each, and atoms
// are in fractions of the box.
// drywarp: --grid 12,12,48 --block 8,8,2
// drywarp: --arg atoms=f32[13824,4]:random --arg map=f32[884736] --arg count=13824

constexpr float SOFTENING = 1e-6f;  // keeps the distance above zero

__global__ void __launch_bounds__(128) potential(const float4* atoms, float* map, int count) {
  int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, z = blockIdx.z * 2 + threadIdx.z;
  float cells_x = gridDim.x, cells_y = gridDim.y, cells_z = gridDim.z / 4;
  float own_x = x / (8 * cells_x), own_y = y / (8 * cells_y), own_z = z / (8 * cells_z);
  float sum = 0;
  for (int i = 0; i < count; ++i) {
    float4 atom = atoms[i];
    float dx = own_x - atom.x, dy = own_y - atom.y, dz = own_z - atom.z;
    dx = (dx - rintf(dx)) * cells_x;  // the nearest of the atom's periodic images
    dy = (dy - rintf(dy)) * cells_y;
    dz = (dz - rintf(dz)) * cells_z;
    float square = dx * dx + dy * dy + dz * dz + SOFTENING;
    if (square < 1) {
      float fade = 1 - square;
      sum += atom.w * rsqrtf(square) * fade * fade;
    }
  }
  map[(z * gridDim.y * 8 + y) * gridDim.x * 8 + x] = sum;
}
