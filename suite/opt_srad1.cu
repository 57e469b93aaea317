// Speckle reducing anisotropic diffusion, first half: derivatives and the coefficient of diffusion.
// drywarp: --grid 128,128 --block 16,16
// drywarp: --arg image=f32[2048,2048]:random --arg c=f32[2048,2048] --arg dn=f32[2048,2048] --arg ds=f32[2048,2048]
// drywarp: --arg dw=f32[2048,2048] --arg de=f32[2048,2048] --arg n=2048 --arg q0=0.25

#ifndef TILE
#define TILE 16
#endif

// Cells are 1 + image, so that none is zero. Neighbours within the tile come from shared memory.
__global__ void opt_srad1(const float* image, float* c, float* dn, float* ds, float* dw, float* de, int n, float q0) {
  __shared__ float tile[TILE][TILE];
  int x = threadIdx.x, y = threadIdx.y;
  int column = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
  int cell = row * n + column;
  float here = 1.0f + image[cell];
  tile[y][x] = here;
  __syncthreads();
  float north = y > 0 ? tile[y - 1][x] : row > 0 ? 1.0f + image[cell - n] : here;
  float south = y < TILE - 1 ? tile[y + 1][x] : row < n - 1 ? 1.0f + image[cell + n] : here;
  float west = x > 0 ? tile[y][x - 1] : column > 0 ? 1.0f + image[cell - 1] : here;
  float east = x < TILE - 1 ? tile[y][x + 1] : column < n - 1 ? 1.0f + image[cell + 1] : here;
  north -= here, south -= here, west -= here, east -= here;

  float gradient = (north * north + south * south + west * west + east * east) / (here * here);
  float laplacian = (north + south + west + east) / here;
  float denominator = 1.0f + 0.25f * laplacian;
  float q = (0.5f * gradient - 0.0625f * laplacian * laplacian) / (denominator * denominator);
  float diffusion = 1.0f / (1.0f + (q - q0) / (q0 * (1.0f + q0)));
  c[cell] = fminf(fmaxf(diffusion, 0.0f), 1.0f);
  dn[cell] = north, ds[cell] = south, dw[cell] = west, de[cell] = east;
}
