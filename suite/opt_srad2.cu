// Speckle reducing anisotropic diffusion, second half: the image moves on by the divergence.
// drywarp: --grid 128,128 --block 16,16
// drywarp: --arg image=f32[2048,2048]:random --arg c=f32[2048,2048]:random --arg dn=f32[2048,2048]:random
// drywarp: --arg ds=f32[2048,2048]:random --arg dw=f32[2048,2048]:random --arg de=f32[2048,2048]:random
// drywarp: --arg n=2048 --arg lambda=0.5

#ifndef TILE
#define TILE 16
#endif

__global__ void opt_srad2(float* image, const float* c, const float* dn, const float* ds, const float* dw,
                          const float* de, int n, float lambda) {
  __shared__ float tile[TILE][TILE];
  int x = threadIdx.x, y = threadIdx.y;
  int column = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
  int cell = row * n + column;
  float here = c[cell];
  tile[y][x] = here;
  __syncthreads();
  float south = y < TILE - 1 ? tile[y + 1][x] : row < n - 1 ? c[cell + n] : here;
  float east = x < TILE - 1 ? tile[y][x + 1] : column < n - 1 ? c[cell + 1] : here;
  float divergence = here * dn[cell] + south * ds[cell] + here * dw[cell] + east * de[cell];
  image[cell] += 0.25f * lambda * divergence;
}
