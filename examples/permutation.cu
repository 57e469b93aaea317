// a[i] = b[c[i]], after Volkov's thesis, section 3.10. Writes and the reads of c are coalesced; those of b are as c says.
// The comment's c leaves all in place; -D MULTIPLIER=2654435769u scatters it: n is a power of two, so it permutes.
// drywarp: --grid 65536 --block 256
// drywarp: --arg a=i32[16777216] --arg b=i32[16777216]:random --arg c=i32[16777216]:iota --arg n=16777216

__global__ void permutation(int* a, const int* b, const int* c, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
#ifdef MULTIPLIER
  a[i] = b[c[i] * MULTIPLIER & (n - 1)];
#else
  a[i] = b[c[i]];
#endif
}
