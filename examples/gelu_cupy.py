"""An elementwise kernel as CUDA C++ in a CuPy program. drywarp reads the string; it needs no CuPy and runs nothing."""

# drywarp: --grid cdiv(n,256) --block 256
# drywarp: --arg x=f32[4194304]:random --arg y=f32[4194304] --arg n=4194304

import cupy

gelu = cupy.RawKernel(
    r"""
extern "C" __global__ void gelu(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 0.5f * x[i] * (1.0f + erff(x[i] * SQRT_HALF));
}
""",
    "gelu",
    options=("-DSQRT_HALF=0.70710678f", "--std=c++17"),
)

if __name__ == "__main__":
    x = cupy.random.standard_normal(1 << 22, dtype=cupy.float32)
    y = cupy.empty_like(x)
    gelu(((x.size + 255) // 256,), (256,), (x, y, x.size))
