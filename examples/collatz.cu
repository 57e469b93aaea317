// Steps of the Collatz sequence from each number to 1: every thread runs its own number of times.
// drywarp: --grid 4096 --block 256 --arg steps=i32[1048576] --arg n=1048576

__global__ void collatz(int* steps, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned long long value = i + 1;
  int count = 0;
  while (value != 1) {
    if (value & 1)
      value = 3 * value + 1;
    else
      value >>= 1;
    ++count;
  }
  steps[i] = count;
}
