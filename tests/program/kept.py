"""A kept launch, made without a program: a kernel with constants, a variable, and pointers in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from drywarp.frontends.binary.containers import load_binary_module
from drywarp.frontends.binary.kept import scalars
from drywarp.frontends.cuda.nvrtc import compile_program
from drywarp.hardware import load_gpu
from drywarp.kernel.kernel import Kernel
from drywarp.kernel.launch.launch import Launch
from drywarp.program.heap import Heap
from drywarp.program.keep import Keeper

SOURCE = """
__constant__ int before[3], times; __device__ int unused[5], most = 100;
struct List { int* values; int count; };
__global__ void walk(const List* lists, int* out, int n) {
  int at = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
  if (at >= n) return;
  for (int k = 0; k < times; k++)
    for (int i = 0; i < lists[at & 1].count; i++) sum += lists[at & 1].values[i];
  out[at] = min(sum, most);
}
"""
COUNTS, TIMES, THREADS = (3, 40), 5, 256


@cache
def cubin() -> bytes:
    return compile_program(SOURCE, "walk.cu", ["--gpu-architecture=sm_80"]).cubin


def kernel() -> Kernel:
    (found,) = load_binary_module(Path("walk"), cubin(), arch="sm_80").values()
    return found


@dataclass(frozen=True)
class Program:
    """The memory that a program would hold before its launch of `walk`."""

    heap: Heap
    launch: Launch
    parameters: bytes
    kernel: Kernel


def program(grid: int = 4, block: int = 64) -> Program:
    """Two lists of different lengths: each warp iterates as often as the memory says."""
    heap, code = Heap(1 << 30), kernel()
    variables = heap.allocate(len(code.global_image), "variables")
    lists, values, out, other = (heap.allocate(size, "device") for size in (32, 4000, 4 * THREADS, 5 << 20))
    assert variables is not None
    assert lists is not None
    assert values is not None
    assert out is not None
    assert other is not None
    heap.view(variables.start, variables.size)[:] = np.frombuffer(code.global_image, np.uint8)
    words = [values.start, COUNTS[0], values.start + 400, COUNTS[1]]
    heap.view(lists.start, 32).view(np.uint64)[:] = words
    heap.view(values.start, 4000).view(np.int32)[:] = 1
    heap.view(other.start, other.size)[:] = 7
    bank = bytearray(code.constant_banks[3])
    place = code.symbols["times"]
    bank[place.offset : place.offset + 4] = TIMES.to_bytes(4, "little")
    code = replace(code, constant_banks={**code.constant_banks, 3: bytes(bank)})
    given = np.array([lists.start, out.start, THREADS], np.uint64).tobytes()[:20]
    image = heap.image(variables.start, {})
    launch = Launch((grid, 1, 1), (block, 1, 1), scalars(code, given), memory=image)
    return Program(heap, launch, given, code)


def keep(folder: Path, made: Program | None = None) -> Path:
    """The file of its launch."""
    made = made or program()
    keeper = Keeper(folder, load_gpu("a100"))
    return folder / keeper.keep(7, cubin(), made.kernel, made.launch, made.parameters, made.heap, None)
