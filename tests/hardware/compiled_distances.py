"""How far NVIDIA's compiler keeps a consumer from its producer: what it knows of latencies, read off its schedule."""

from __future__ import annotations

from collections import defaultdict
from functools import cache

from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.kernel.cfg import build_cfg
from drywarp.kernel.dataflow import Dataflow

CHAINS = """
#include <cuda_fp16.h>
__global__ void chains(float* f, __half2* h, int* i, unsigned* u, long long* l, int n) {
  int t = threadIdx.x;
  float a = f[t], b = f[t + 1];
  __half2 x = h[t], y = h[t + 1];
  int p = i[t], q = i[t + 1];
  unsigned v = u[t];
  long long w = l[t];
  for (int k = 0; k < n; ++k) {
    a = fmaf(a, b, 1.5f); a = fmaf(a, a, b); a = fmaxf(a, b); a = a > b ? b : a * 3.0f; if (a < 2.0f) a += 1.0f;
    x = __hfma2(x, y, x); x = __hfma2(x, x, y);
    p = p * q + 7; p = p * p + q; p ^= q; p += p << 3; p = (p & q) + 5; p = p > q ? q : p; p = __funnelshift_l(p, q, p);
    w = (long long)p * q + w; w = (long long)(int)w * p + w;
    v = v >> (p & 31); v += v << 2; v = v * 5 + p;
    if (__any_sync(0xffffffffu, p > 3)) q += 3;
    q += __ballot_sync(0xffffffffu, q > 5);
  }
  f[t] = a; h[t] = x; i[t] = p + q; u[t] = v; l[t] = w;
}
"""
JUMPS = ("BRA", "BSYNC", "EXIT", "WARPSYNC")


@cache
def distances(arch: str) -> dict[str, int]:
    """The fewest cycles from an instruction of each class to one that uses its result, in straight-line code.

    Instructions that tell the end of their work by a scoreboard are left out. `branch` is the least stall count of a
    jump or an exit.
    """
    kernel = compile_cuda(CHAINS, arch=arch)
    code, producers = kernel.instructions, Dataflow(kernel.instructions, build_cfg(kernel.instructions)).producers
    issued = [0]
    for instruction in code:
        assert instruction.control is not None
        issued.append(issued[-1] + max(1, instruction.control.stall))
    found: dict[str, int] = defaultdict(lambda: 1000)
    for consumer, of in enumerate(producers):
        for producer in of:
            between = code[producer:consumer]
            fixed = producer < consumer and code[producer].control.write_barrier is None  # type: ignore[union-attr]
            if fixed and not any(instruction.opcode.startswith(JUMPS) for instruction in between):
                class_ = code[producer].class_
                found[class_] = min(found[class_], issued[consumer] - issued[producer])
    found["branch"] = min(i.control.stall for i in code if i.control and i.opcode in ("BRA", "EXIT"))
    return dict(found)
