// Five-point stencil on a square grid; border cells are copied.
// drywarp: --grid 128,512 --block 32,8
// drywarp: --arg in=f32[4096,4096]:random --arg out=f32[4096,4096] --arg n=4096

__global__ void stencil(const float* in, float* out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n || y >= n) return;
  int i = y * n + x;
  if (x == 0 || y == 0 || x == n - 1 || y == n - 1) {
    out[i] = in[i];
    return;
  }
  out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n]);
}
