// As before, with the atoms sorted into cells as long as the cutoff: a thread reads those of its own cell and of the 26
// around it. A cell has room for 16 atoms, `counts` says how many it holds, and atoms are in fractions of their cell.
// drywarp: --grid 12,12,48 --block 8,8,2
// drywarp: --arg atoms=f32[27648,4]:random --arg counts=i32[1728]:random(0,17) --arg map=f32[884736]

constexpr float SOFTENING = 1e-6f;
constexpr int SLOTS = 16;

__global__ void __launch_bounds__(128) potential(const float4* atoms, const int* counts, float* map) {
  int cells_z = gridDim.z / 4, plane = blockIdx.z % 4 * 2 + threadIdx.z;
  float own_x = threadIdx.x / 8.f, own_y = threadIdx.y / 8.f, own_z = plane / 8.f;
  float sum = 0;
  for (int neighbour = 0; neighbour < 27; ++neighbour) {
    int step_x = neighbour % 3, step_y = neighbour / 3 % 3, step_z = neighbour / 9;
    int cell_x = (blockIdx.x + step_x + gridDim.x - 1) % gridDim.x;
    int cell_y = (blockIdx.y + step_y + gridDim.y - 1) % gridDim.y;
    int cell_z = (blockIdx.z / 4 + step_z + cells_z - 1) % cells_z;
    int cell = (cell_z * gridDim.y + cell_y) * gridDim.x + cell_x;
    float from_x = own_x + 1 - step_x, from_y = own_y + 1 - step_y, from_z = own_z + 1 - step_z;
    int count = counts[cell];
    for (int i = 0; i < count; ++i) {
      float4 atom = atoms[cell * SLOTS + i];
      float dx = from_x - atom.x, dy = from_y - atom.y, dz = from_z - atom.z;
      float square = dx * dx + dy * dy + dz * dz + SOFTENING;
      if (square < 1) {
        float fade = 1 - square;
        sum += atom.w * rsqrtf(square) * fade * fade;
      }
    }
  }
  int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, z = blockIdx.z * 2 + threadIdx.z;
  map[(z * gridDim.y * 8 + y) * gridDim.x * 8 + x] = sum;
}
