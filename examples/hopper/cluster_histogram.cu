// A histogram of BINS bins that a cluster of two blocks shares: each block holds half of them in its shared memory and
// counts into either half, then adds its own to the result. Needs compute capability 9.0 (h100).
// drywarp: --grid 264 --block 256
// drywarp: --arg values=i32[4194304]:random(0,16384) --arg bins=i32[16384] --arg n=4194304
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

constexpr int BINS = 16384, BLOCKS = 2, OWN = BINS / BLOCKS;

extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1) histogram(const int* values, int* bins, int n) {
  __shared__ int counts[OWN];
  cg::cluster_group cluster = cg::this_cluster();
  for (int i = threadIdx.x; i < OWN; i += blockDim.x) counts[i] = 0;
  cluster.sync();

  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    int bin = values[i];
    atomicAdd(cluster.map_shared_rank(counts, bin / OWN) + bin % OWN, 1);
  }
  cluster.sync();

  int first = cluster.block_rank() * OWN;
  for (int i = threadIdx.x; i < OWN; i += blockDim.x) atomicAdd(bins + first + i, counts[i]);
}
