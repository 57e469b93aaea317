// Kernels that launch kernels: with arguments of several sizes, themselves, more than may wait at once, and at the end.
#include <cstdio>

struct Given {
  char first;
  double second;
};

__device__ int last;

__global__ void child(int *counts, short which, Given given, long more) {
  extern __shared__ int shared[];
  shared[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(counts + which, given.first + int(given.second * 2) + int(more) + shared[blockDim.x - 1]);
}

__global__ void parent(int *counts) {
  child<<<2, 64, 256>>>(counts, short(threadIdx.x), Given{3, 1.5}, threadIdx.x == 0 ? 1000 : 0);
}

__global__ void deeper(int depth, int which, int *counts) {
  atomicAdd(counts + depth, 1);
  if (depth < 3)
    for (int i = 0; i < 2; ++i) deeper<<<1, 1>>>(depth + 1, 2 * which + i, counts);
  char text[8];
  for (int i = 0; i < depth; ++i) text[i] = '.';
  text[depth] = 0;
  printf("%s%d\n", text, which);
}

__global__ void one_more(int *count) { atomicAdd(count, 1); }

__global__ void many(int *count) {
  for (int i = 0; i < 9; ++i) one_more<<<1, 1>>>(count);
}

__global__ void places(int mine) { last = 10 * last + mine; }

__global__ void ordered() {
  places<<<1, 1, 0, cudaStreamTailLaunch>>>(3);
  places<<<1, 1>>>(1);
  places<<<1, 1>>>(2);
  last = 0;
}

int main(int count, char **words) {
  int *counts, got[4] = {};
  cudaMallocManaged(&counts, sizeof got);
  parent<<<1, 2>>>(counts);
  cudaDeviceSynchronize();
  printf("children %d %d\n", counts[0], counts[1]);
  cudaMemset(counts, 0, sizeof got);
  deeper<<<1, 1>>>(0, 0, counts);
  cudaDeviceSynchronize();
  printf("levels %d %d %d %d\n", counts[0], counts[1], counts[2], counts[3]);
  if (count > 1) {
    cudaMemset(counts, 0, sizeof got);
    many<<<8, 32>>>(counts);
    cudaDeviceSynchronize();
    printf("many %d\n", counts[0]);
  }
  ordered<<<1, 1>>>();
  cudaMemcpyFromSymbol(got, last, sizeof(int));
  printf("order %d, %s\n", got[0], cudaGetErrorString(cudaGetLastError()));
}
