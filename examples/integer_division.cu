// Digits in bases known at run time only: the sum of those of i, and those of a 64-bit multiple of i reversed.
// drywarp: --grid 4096 --block 256
// drywarp: --arg sums=u32[1048576] --arg mirrors=u64[1048576] --arg base=10 --arg wide_base=10 --arg n=1048576

__global__ void integer_division(
    unsigned* sums, unsigned long long* mirrors, unsigned base, unsigned long long wide_base, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned sum = 0;
  for (unsigned rest = i; rest != 0; rest /= base) sum += rest % base;
  sums[i] = sum;
  unsigned long long mirror = 0, multiple = i * 0x9e3779b97f4a7c15ull;  // modulo 2^64
  for (unsigned long long rest = multiple; rest != 0; rest /= wide_base) mirror = mirror * wide_base + rest % wide_base;
  mirrors[i] = mirror;
}
