// European option prices by the Black-Scholes formula: a call and a put a thread.
// drywarp: --grid 16384 --block 256
// drywarp: --arg call=f32[4194304] --arg put=f32[4194304] --arg price=f32[4194304]:random
// drywarp: --arg strike=f32[4194304]:random --arg years=f32[4194304]:random
// drywarp: --arg rate=0.02 --arg volatility=0.3 --arg n=4194304

__device__ float normal_cdf(float x) { return 0.5f * erfcf(-0.70710678f * x); }

__global__ void black_scholes(
    float* call, float* put, const float* price, const float* strike, const float* years, float rate,
    float volatility, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float now = price[i], due = strike[i], time = years[i];
  float deviation = volatility * sqrtf(time);
  float d1 = (logf(now / due) + (rate + 0.5f * volatility * volatility) * time) / deviation;
  float d2 = d1 - deviation;
  due *= expf(-rate * time);
  call[i] = now * normal_cdf(d1) - due * normal_cdf(d2);
  put[i] = due * normal_cdf(-d2) - now * normal_cdf(-d1);
}
