"""How long a module of 292,000 instructions takes to read, and how much memory: CUBIN, disassembly, kernels.

    python benchmarks/parse_speed.py [--kernels 45] [--keep FILE | --cubin FILE]

The module is compiled first (kernels with big unrolled loops, from the text below), which takes a minute or two and
is not counted. Each step then runs in a process of its own, without the cache: nvdisasm alone, and all of it.
"""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

from drywarp.errors import DrywarpError
from drywarp.frontends.binary.containers import architecture
from drywarp.frontends.binary.cubin import kernels_of
from drywarp.frontends.binary.sass import disassemble
from drywarp.frontends.cuda.nvrtc import compile_program

MOST_SECONDS, MOST_MIB = 10.0, 2048.0
KERNEL = """
extern "C" __global__ void k{n}(const float* __restrict__ a, const float* __restrict__ b, float* c, double* d,
                                const int* __restrict__ index, int n) {{
  __shared__ float tile[64][64 + 1];
  float sum[8][8] = {{}};
  int t = threadIdx.x, hash = t + {n};
  double whole = 0;
#pragma unroll
  for (int i = 0; i < 64; i++) tile[i][t & 63] = a[(blockIdx.x * 64 + i) * n + t];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < 40; k++) {{
    float x[8], y[8];
#pragma unroll
    for (int i = 0; i < 8; i++) x[i] = tile[k][(t + i * 8) & 63];
#pragma unroll
    for (int i = 0; i < 8; i++) y[i] = b[(k * 8 + i) * n + t];
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
      for (int j = 0; j < 8; j++) sum[i][j] += x[i] * y[j];
    hash = hash * {odd} + (hash >> 7 ^ index[k * n + t]);
    if (hash & 1 << (k & 15)) whole += sqrt((double)hash) / (k + 1);
  }}
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < 8; j++) c[(i * 8 + j) * n + t] = fmaxf(sum[i][j], 0) + __shfl_xor_sync(~0u, sum[i][j], {lane});
  d[blockIdx.x * n + t] = whole;
}}
"""


def source(kernels: int) -> str:
    """A module of so many kernels, no two of them alike."""
    return "\n".join(KERNEL.format(n=n, odd=2 * n + 3, lane=1 + n % 31) for n in range(kernels))


def measured(step: str, work: Callable[[], str]) -> tuple[float, float]:
    """Run a step in a child process, print what it took, and return its processor seconds and its peak in MiB."""
    print(f"{step:14}", end="", flush=True)
    started = time.perf_counter()
    child = os.fork()
    if child == 0:
        try:
            print(f"{work():>12}", end="", flush=True)
            os._exit(0)
        except DrywarpError as error:
            print(error, flush=True)
            os._exit(2)
    _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit(f"{step} failed")
    wall, peak = time.perf_counter() - started, usage.ru_maxrss / 1024
    # The child's times include those of nvdisasm, which it waited for; of the peaks it is the larger.
    seconds = usage.ru_utime + usage.ru_stime
    print(f"{wall:8.2f} s {seconds:9.2f} s {peak:7.0f} MiB", flush=True)
    return seconds, peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", type=int, default=45, help="kernels of the module, 6,600 instructions each")
    parser.add_argument("--cubin", type=Path, help="read this file instead of compiling one")
    parser.add_argument("--keep", type=Path, help="keep the compiled module here")
    given = parser.parse_args()
    if given.cubin:
        cubin = given.cubin.read_bytes()
    else:
        options = ["--gpu-architecture=sm_80", "-lineinfo"]
        cubin = compile_program(source(given.kernels), "big.cu", options).cubin
        if given.keep:
            given.keep.write_bytes(cubin)
    arch = f"sm_{architecture(cubin, 'module')}"

    def whole() -> str:
        """Disassemble and parse; what is printed: instructions."""
        kernels = kernels_of(cubin, disassemble(cubin, "module"), arch, "module")
        return f"{sum(len(kernel.instructions) for kernel in kernels.values()):,}"

    print(f"{'step':14}{'count':>12} {'wall':>10} {'processor':>11} {'peak':>11}")
    measured("nvdisasm", lambda: f"{len(disassemble(cubin, 'module')) >> 20} MiB")
    seconds, peak = measured("all", whole)
    good = seconds < MOST_SECONDS and peak < MOST_MIB
    print(f"target: {MOST_SECONDS:g} s and {MOST_MIB:g} MiB, {'met' if good else 'missed'}")


if __name__ == "__main__":
    main()
