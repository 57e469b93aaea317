// Heat in a chip of several layers: seven-point stencil, a column of cells a thread, layers one after the other.
// drywarp: --grid 8,128 --block 64,4
// drywarp: --arg power=f32[8,512,512]:random --arg before=f32[8,512,512]:random --arg after=f32[8,512,512]
// drywarp: --arg nx=512 --arg ny=512 --arg nz=8

#ifndef BLOCK_X
#define BLOCK_X 64
#endif
#ifndef BLOCK_Y
#define BLOCK_Y 4
#endif
#define ALONG 0.0625f
#define UP 0.03125f
#define AMBIENT 0.0078125f
#define GAIN 0.25f

__global__ void hotspot(const float* power, const float* before, float* after, int nx, int ny, int nz) {
  int x = blockIdx.x * BLOCK_X + threadIdx.x;
  int y = blockIdx.y * BLOCK_Y + threadIdx.y;
  if (x >= nx || y >= ny) return;
  int layer = nx * ny, cell = y * nx + x;
  int west = x == 0 ? 0 : -1, east = x == nx - 1 ? 0 : 1;
  int north = y == 0 ? 0 : -nx, south = y == ny - 1 ? 0 : nx;
  // The layer below, this one and the one above travel through registers.
  float here = before[cell], below = here, above = nz > 1 ? before[cell + layer] : here;
  for (int z = 0; z < nz; ++z, cell += layer) {
    float sides = before[cell + west] + before[cell + east] + before[cell + north] + before[cell + south];
    float own = 1.0f - (4.0f * ALONG + 2.0f * UP + AMBIENT);
    after[cell] = own * here + ALONG * sides + UP * (below + above) + GAIN * power[cell] + AMBIENT * 80.0f;
    below = here;
    here = above;
    above = z + 2 < nz ? before[cell + 2 * layer] : here;
  }
}
