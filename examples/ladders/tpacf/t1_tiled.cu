// As before, with the block's part of the points, and the edges of the bins, copied to shared memory tile by tile.
// drywarp: --grid 54,32 --block 256
// drywarp: --arg points=f32[3,13824]:normal(0,0.577) --arg bins=u32[32] --arg count=13824

// The cosines at which one bin ends and the next begins: angles of 180 degrees over powers of 10^(1/10).
__device__ const float EDGES[31] = {
    0.999996886f, 0.999995065f, 0.999992179f, 0.999987604f, 0.999980354f, 0.999968864f, 0.999950652f, 0.999921790f,
    0.999876046f, 0.999803548f, 0.999688651f, 0.999506560f, 0.999217989f, 0.998760690f, 0.998036063f, 0.996887966f,
    0.995069255f, 0.992189055f, 0.987629925f, 0.980418441f, 0.969024748f, 0.951056516f, 0.922802857f, 0.878583178f,
    0.809890950f, 0.704461356f, 0.545794915f, 0.314666954f, -0.003729796f, -0.399906317f, -0.798415744f,
};

__global__ void __launch_bounds__(256) correlate(const float* points, unsigned* bins, int count) {
  __shared__ float tile_x[256], tile_y[256], tile_z[256], edges[31];
  int thread = threadIdx.x, own = blockIdx.x * 256 + thread, part = (count + gridDim.y - 1) / gridDim.y;
  bool there = own < count;
  float x = there ? points[own] : 0, y = there ? points[count + own] : 0, z = there ? points[2 * count + own] : 0;
  if (thread < 31) edges[thread] = EDGES[thread];
  int end = min(count, (int)(blockIdx.y + 1) * part);
  for (int first = blockIdx.y * part; first < end; first += 256) {
    __syncthreads();
    if (first + thread < end) {
      tile_x[thread] = points[first + thread];
      tile_y[thread] = points[count + first + thread];
      tile_z[thread] = points[2 * count + first + thread];
    }
    __syncthreads();
    if (!there) continue;
    int held = min(256, end - first);
    for (int i = 0; i < held; ++i) {
      float cosine = fmaf(x, tile_x[i], fmaf(y, tile_y[i], z * tile_z[i]));
      int bin = 0;
#pragma unroll
      for (int step = 16; step > 0; step /= 2) bin += cosine < edges[bin + step - 1] ? step : 0;
      atomicAdd(&bins[bin], 1);
    }
  }
}
