// Random numbers on the device, for machines without cuRAND's headers (pip install nvidia-curand).
//
// The generators are those of the literature: Philox4x32-10 (Salmon et al., SC 2011) and xorwow (Marsaglia, Journal of
// Statistical Software 8:14, 2003). Drawing costs what it costs with cuRAND. Setting up an xorwow state costs less: its
// sequences differ by a hash of the seed, not by a jump ahead.
#pragma once

#define DRYWARP_DEVICE static __forceinline__ __device__

struct curandStatePhilox4_32_10 {
  uint4 ctr;
  uint4 output;
  uint2 key;
  unsigned int STATE;
  int boxmuller_flag;
  int boxmuller_flag_double;
  float boxmuller_extra;
  double boxmuller_extra_double;
};
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;

struct curandStateXORWOW {
  unsigned int d, v[5];
  int boxmuller_flag;
  int boxmuller_flag_double;
  float boxmuller_extra;
  double boxmuller_extra_double;
};
typedef curandStateXORWOW curandStateXORWOW_t;
typedef curandStateXORWOW curandState_t;
typedef curandStateXORWOW curandState;

DRYWARP_DEVICE uint4 drywarp_philox(uint4 c, uint2 k) {
#pragma unroll
  for (int round = 0; round < 10; round++) {
    unsigned int low0 = 0xD2511F53u * c.x, low1 = 0xCD9E8D57u * c.z;
    unsigned int high0 = __umulhi(0xD2511F53u, c.x), high1 = __umulhi(0xCD9E8D57u, c.z);
    c = make_uint4(high1 ^ c.y ^ k.x, low1, high0 ^ c.w ^ k.y, low0);
    k.x += 0x9E3779B9u;
    k.y += 0xBB67AE85u;
  }
  return c;
}

DRYWARP_DEVICE void drywarp_advance(curandStatePhilox4_32_10_t *s, unsigned long long n) {
  unsigned int low = (unsigned int)n, high = (unsigned int)(n >> 32);
  s->ctr.x += low;
  high += s->ctr.x < low;
  s->ctr.y += high;
  if (s->ctr.y < high && ++s->ctr.z == 0) ++s->ctr.w;
}

DRYWARP_DEVICE void skipahead(unsigned long long n, curandStatePhilox4_32_10_t *s) {
  s->STATE += (unsigned int)(n & 3);
  n >>= 2;
  if (s->STATE > 3) {
    n++;
    s->STATE -= 4;
  }
  drywarp_advance(s, n);
  s->output = drywarp_philox(s->ctr, s->key);
}

DRYWARP_DEVICE void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset,
                                curandStatePhilox4_32_10_t *s) {
  s->ctr = make_uint4(0, 0, (unsigned int)sequence, (unsigned int)(sequence >> 32));
  s->key = make_uint2((unsigned int)seed, (unsigned int)(seed >> 32));
  s->STATE = 0;
  s->boxmuller_flag = s->boxmuller_flag_double = 0;
  s->boxmuller_extra = 0;
  s->boxmuller_extra_double = 0;
  skipahead(offset, s);
}

DRYWARP_DEVICE unsigned int curand(curandStatePhilox4_32_10_t *s) {
  unsigned int at = s->STATE++;
  unsigned int drawn = at == 0 ? s->output.x : at == 1 ? s->output.y : at == 2 ? s->output.z : s->output.w;
  if (s->STATE == 4) {
    drywarp_advance(s, 1);
    s->output = drywarp_philox(s->ctr, s->key);
    s->STATE = 0;
  }
  return drawn;
}

DRYWARP_DEVICE uint4 curand4(curandStatePhilox4_32_10_t *s) {
  uint4 a = s->output;
  drywarp_advance(s, 1);
  uint4 b = s->output = drywarp_philox(s->ctr, s->key);
  if (s->STATE == 0) return a;
  if (s->STATE == 1) return make_uint4(a.y, a.z, a.w, b.x);
  if (s->STATE == 2) return make_uint4(a.z, a.w, b.x, b.y);
  return make_uint4(a.w, b.x, b.y, b.z);
}

DRYWARP_DEVICE unsigned int drywarp_mixed(unsigned long long x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return (unsigned int)(x ^ (x >> 31));
}

DRYWARP_DEVICE unsigned int curand(curandStateXORWOW_t *s) {
  unsigned int t = s->v[0] ^ (s->v[0] >> 2);
  for (int n = 0; n < 4; n++) s->v[n] = s->v[n + 1];
  s->v[4] = (s->v[4] ^ (s->v[4] << 4)) ^ (t ^ (t << 1));
  s->d += 362437;
  return s->v[4] + s->d;
}

DRYWARP_DEVICE void skipahead(unsigned long long n, curandStateXORWOW_t *s) {
  for (; n; n--) curand(s);
}

DRYWARP_DEVICE void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset,
                                curandStateXORWOW_t *s) {
  unsigned long long x = seed + 0x9E3779B97F4A7C15ull * (sequence + 1);
  for (int n = 0; n < 5; n++) s->v[n] = drywarp_mixed(x += 0x9E3779B97F4A7C15ull) | 1;
  s->d = drywarp_mixed(x);
  s->boxmuller_flag = s->boxmuller_flag_double = 0;
  s->boxmuller_extra = 0;
  s->boxmuller_extra_double = 0;
  skipahead(offset, s);
}

// Distributions. Uniform numbers lie in (0, 1], as cuRAND's do.

DRYWARP_DEVICE float drywarp_uniform(unsigned int x) { return x * 0x1p-32f + 0x1p-33f; }
DRYWARP_DEVICE double drywarp_uniform(unsigned int x, unsigned int y) {
  unsigned long long z = (unsigned long long)x ^ ((unsigned long long)y << 21);
  return z * 0x1p-53 + 0x1p-54;
}
DRYWARP_DEVICE float2 drywarp_normal(unsigned int x, unsigned int y) {
  float u = drywarp_uniform(x), angle = y * 0x1p-31f * 3.14159265f, s = sqrtf(-2.0f * logf(u));
  float2 drawn;
  __sincosf(angle, &drawn.x, &drawn.y);
  return make_float2(drawn.x * s, drawn.y * s);
}
DRYWARP_DEVICE double2 drywarp_normal(double u, double v) {
  double s = sqrt(-2.0 * log(u)), x, y;
  sincospi(2.0 * v, &x, &y);
  return make_double2(x * s, y * s);
}

template <class State> DRYWARP_DEVICE float curand_uniform(State *s) { return drywarp_uniform(curand(s)); }
template <class State> DRYWARP_DEVICE double curand_uniform_double(State *s) {
  unsigned int x = curand(s);
  return drywarp_uniform(x, curand(s));
}
template <class State> DRYWARP_DEVICE float2 curand_normal2(State *s) {
  unsigned int x = curand(s);
  return drywarp_normal(x, curand(s));
}
template <class State> DRYWARP_DEVICE double2 curand_normal2_double(State *s) {
  double u = curand_uniform_double(s);
  return drywarp_normal(u, curand_uniform_double(s));
}
template <class State> DRYWARP_DEVICE float curand_normal(State *s) {
  if ((s->boxmuller_flag ^= 1) == 0) return s->boxmuller_extra;
  float2 drawn = curand_normal2(s);
  s->boxmuller_extra = drawn.y;
  return drawn.x;
}
template <class State> DRYWARP_DEVICE double curand_normal_double(State *s) {
  if ((s->boxmuller_flag_double ^= 1) == 0) return s->boxmuller_extra_double;
  double2 drawn = curand_normal2_double(s);
  s->boxmuller_extra_double = drawn.y;
  return drawn.x;
}
template <class State> DRYWARP_DEVICE float curand_log_normal(State *s, float mean, float deviation) {
  return expf(mean + deviation * curand_normal(s));
}
template <class State> DRYWARP_DEVICE double curand_log_normal_double(State *s, double mean, double deviation) {
  return exp(mean + deviation * curand_normal_double(s));
}
DRYWARP_DEVICE float4 curand_uniform4(curandStatePhilox4_32_10_t *s) {
  uint4 x = curand4(s);
  return make_float4(drywarp_uniform(x.x), drywarp_uniform(x.y), drywarp_uniform(x.z), drywarp_uniform(x.w));
}
DRYWARP_DEVICE double2 curand_uniform2_double(curandStatePhilox4_32_10_t *s) {
  uint4 x = curand4(s);
  return make_double2(drywarp_uniform(x.x, x.y), drywarp_uniform(x.z, x.w));
}
DRYWARP_DEVICE float4 curand_normal4(curandStatePhilox4_32_10_t *s) {
  uint4 x = curand4(s);
  float2 a = drywarp_normal(x.x, x.y), b = drywarp_normal(x.z, x.w);
  return make_float4(a.x, a.y, b.x, b.y);
}
#undef DRYWARP_DEVICE
