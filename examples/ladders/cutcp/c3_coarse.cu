// As before, with four lattice points a thread, one above the other: an atom is read once for them, and its distance
// along x and y is the same.
// drywarp: --grid 12,12,12 --block 8,8,2
// drywarp: --arg atoms=f32[13824,4]:random --arg map=f32[884736]

constexpr float SOFTENING = 1e-6f;
constexpr int SLOTS = 8, POINTS = 4;

__global__ void __launch_bounds__(128) potential(const float4* atoms, float* map) {
  float own_x = threadIdx.x / 8.f, own_y = threadIdx.y / 8.f, own_z = threadIdx.z / 8.f;
  float sums[POINTS] = {};
  for (int neighbour = 0; neighbour < 27; ++neighbour) {
    int step_x = neighbour % 3, step_y = neighbour / 3 % 3, step_z = neighbour / 9;
    int cell_x = (blockIdx.x + step_x + gridDim.x - 1) % gridDim.x;
    int cell_y = (blockIdx.y + step_y + gridDim.y - 1) % gridDim.y;
    int cell_z = (blockIdx.z + step_z + gridDim.z - 1) % gridDim.z;
    int cell = (cell_z * gridDim.y + cell_y) * gridDim.x + cell_x;
    float from_x = own_x + 1 - step_x, from_y = own_y + 1 - step_y, from_z = own_z + 1 - step_z;
    for (int i = 0; i < SLOTS; ++i) {
      float4 atom = atoms[cell * SLOTS + i];
      float dx = from_x - atom.x, dy = from_y - atom.y, dz = from_z - atom.z;
      float beside = dx * dx + dy * dy + SOFTENING;
      for (int p = 0; p < POINTS; ++p) {
        float height = dz + p * .25f, square = beside + height * height;
        if (square < 1) {
          float fade = 1 - square;
          sums[p] += atom.w * rsqrtf(square) * fade * fade;
        }
      }
    }
  }
  int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, z = blockIdx.z * 8 + threadIdx.z;
  for (int p = 0; p < POINTS; ++p) map[((z + 2 * p) * gridDim.y * 8 + y) * gridDim.x * 8 + x] = sums[p];
}
