// Back propagation: each weight moves by its error and by a part of its last move.
// drywarp: --grid 1,4096 --block 16,16
// drywarp: --arg delta=f32[17]:random --arg input=f32[65537]:random --arg weights=f32[65537,17]:random
// drywarp: --arg moves=f32[65537,17]:random --arg hidden=16

#ifndef HEIGHT
#define HEIGHT 16
#endif
#define WIDTH 16
#define RATE 0.3f
#define MOMENTUM 0.3f

__global__ void bpnn_adjust_weights(const float* delta, const float* input, float* weights, float* moves, int hidden) {
  int x = threadIdx.x + 1, y = blockIdx.y * HEIGHT + threadIdx.y + 1;
  int index = y * (hidden + 1) + x;
  float move = RATE * delta[x] * input[y] + MOMENTUM * moves[index];
  weights[index] += move;
  moves[index] = move;
  __syncthreads();
  // The thresholds' row: its input is 1.
  if (threadIdx.y == 0 && blockIdx.y == 0) {
    float bias = RATE * delta[x] + MOMENTUM * moves[x];
    weights[x] += bias;
    moves[x] = bias;
  }
}
