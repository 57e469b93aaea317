// k-means: from a point's features side by side to points side by side, a point a thread.
// drywarp: --grid 1930 --block 256
// drywarp: --arg in=f32[494020,34]:random --arg out=f32[34,494020] --arg points=494020 --arg dimensions=34

#ifndef BLOCK
#define BLOCK 256
#endif

__global__ void kmeans_swap(const float* in, float* out, int points, int dimensions) {
  int point = blockIdx.x * BLOCK + threadIdx.x;
  if (point >= points) return;
  for (int d = 0; d < dimensions; ++d) out[d * points + point] = in[point * dimensions + d];
}
