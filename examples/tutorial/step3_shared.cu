// Tutorial, step 3: a block fetches each element of its strips of A and B once, into shared memory.
// drywarp: --grid 64,64 --block 32,32
// drywarp: --arg A=f32[2048,2048]:random --arg B=f32[2048,2048]:random --arg C=f32[2048,2048] --arg n=2048

constexpr int TILE = 32;

__global__ void matmul(const float* A, const float* B, float* C, int n) {
  __shared__ float a[TILE][TILE], b[TILE][TILE];
  int x = threadIdx.x, y = threadIdx.y;
  int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
  float sum = 0.0f;
  for (int tile = 0; tile < n; tile += TILE) {
    a[y][x] = A[row * n + tile + x];
    b[y][x] = B[(tile + y) * n + column];
    __syncthreads();
    for (int k = 0; k < TILE; ++k) sum += a[y][k] * b[k][x];
    __syncthreads();
  }
  C[row * n + column] = sum;
}
