// Back propagation: inputs times weights, summed over the inputs of a block by a tree in shared memory.
// drywarp: --grid 1,4096 --block 16,16
// drywarp: --arg input=f32[65537]:random --arg weights=f32[65537,17]:random --arg weighted=f32[65537,17]
// drywarp: --arg partial=f32[4096,16] --arg hidden=16

#ifndef HEIGHT
#define HEIGHT 16
#endif
#define WIDTH 16

// Row 0 and column 0 of the weights belong to the thresholds, which are not part of the sum.
__global__ void bpnn_layerforward(const float* input, const float* weights, float* weighted, float* partial,
                                  int hidden) {
  __shared__ float node[HEIGHT];
  __shared__ float product[HEIGHT][WIDTH];
  int x = threadIdx.x, y = threadIdx.y;
  int row = blockIdx.y * HEIGHT + y + 1;
  int index = row * (hidden + 1) + x + 1;
  if (x == 0) node[y] = input[row];
  __syncthreads();
  product[y][x] = weights[index];
  __syncthreads();
  product[y][x] *= node[y];
  __syncthreads();
  for (int step = 2; step <= HEIGHT; step *= 2) {
    if (y % step == 0) product[y][x] += product[y + step / 2][x];
    __syncthreads();
  }
  weighted[index] = product[y][x];
  if (y == 0) partial[blockIdx.y * hidden + x] = product[0][x];
}
