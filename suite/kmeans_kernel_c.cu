// k-means: which of the clusters is nearest to each point. Features lie one after the other, points side by side.
// drywarp: --grid 1930 --block 256
// drywarp: --arg features=f32[34,494020]:random --arg centres=f32[5,34]:random --arg member=i32[494020]
// drywarp: --arg points=494020 --arg clusters=5 --arg dimensions=34

#ifndef BLOCK
#define BLOCK 256
#endif

__global__ void kmeans_kernel_c(const float* features, const float* centres, int* member, int points, int clusters,
                                int dimensions) {
  int point = blockIdx.x * BLOCK + threadIdx.x;
  if (point >= points) return;
  int nearest = 0;
  float least = 3.4e38f;
  for (int cluster = 0; cluster < clusters; ++cluster) {
    float distance = 0.0f;
    for (int d = 0; d < dimensions; ++d) {
      float apart = features[d * points + point] - centres[cluster * dimensions + d];
      distance += apart * apart;
    }
    if (distance < least) {
      least = distance;
      nearest = cluster;
    }
  }
  member[point] = nearest;
}
