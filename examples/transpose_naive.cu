// out = in^T straight through: reads run along rows, writes down columns, 32 sectors a request.
// drywarp: --grid 128,512 --block 32,8
// drywarp: --arg in=f32[4096,4096]:random --arg out=f32[4096,4096] --arg n=4096

__global__ void transpose_naive(const float* in, float* out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  out[x * n + y] = in[y * n + x];
}
