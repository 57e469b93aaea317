// One chain of dependent loads a thread: no address is known before the load ahead of it is back.
// drywarp: --grid 64 --block 1 --arg next=u32[16777216]:iota --arg last=u32[64] --arg mask=16777215 --arg steps=1024

// The element read is scrambled by a linear congruence of full period over any power of two. A table
// that holds 0, 1, 2, … is thus one cycle through all of memory; any other table stays in bounds too.
__global__ void pointer_chase(const unsigned* next, unsigned* last, unsigned mask, int steps) {
  unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned at = thread & mask;
  for (int step = 0; step < steps; ++step) at = (next[at] * 1664525u + 1013904223u) & mask;
  last[thread] = at;
}
