"""Kernels that several tests of the frontends read."""

from __future__ import annotations

import pytest

from drywarp.frontends.cuda import CudaOptions
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.kernel.kernel import Kernel

VARIABLES = """
__constant__ float coefficient[9];
__device__ int counter;
__device__ float table[4] = {1, 2, 3, 4};
struct Point { double a; int b; char c; };
__global__ void variables(char letter, Point point, float* x, short s, int n) {
  x[n] = coefficient[threadIdx.x] + point.a + point.b + point.c + letter + s + table[n];
  atomicAdd(&counter, 1);
}
"""


@pytest.fixture(scope="session", params=["sm_80", "sm_90"])
def variables(request: pytest.FixtureRequest) -> Kernel:
    """A kernel with every kind of variable, and parameters that need alignment."""
    return compile_cuda(VARIABLES, arch=request.param)


RESOURCES = """
extern __shared__ float dynamic[];
__global__ void __launch_bounds__(192) resources(float* x) {
  __shared__ float tile[100];
  int t = threadIdx.x;
  tile[t % 100] = x[t];
  asm volatile("bar.sync 3;");
  __syncthreads();
  x[t] = tile[(t * 7) % 100] + dynamic[t];
}
"""


@pytest.fixture(scope="session", params=["sm_80", "sm_90"])
def resources(request: pytest.FixtureRequest) -> Kernel:
    return compile_cuda(RESOURCES, arch=request.param)


SPILLING = """
__global__ void spilling(float* x) {
  float a[48];
#pragma unroll
  for (int i = 0; i < 48; i++) a[i] = x[threadIdx.x + i * 256];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 48; i++) x[threadIdx.x + i * 256] = a[i] * a[(i * 7) % 48] + a[47 - i];
}
"""


@pytest.fixture(scope="session")
def spilling() -> Kernel:
    return compile_cuda(SPILLING, arch="sm_80", options=CudaOptions(max_registers=24))
