"""Other numbers of threads per block, where the same threads in other blocks do the same.

That can be told for one-dimensional launches whose threads never meet: no barrier, no shared memory, and indices from
blockDim. Anything else may have its block size compiled in.
"""

from __future__ import annotations

from ...kernel.operand import Constant, Operand
from ...ready import BoundKernel
from .base import Build

SIZES = (32, 64, 128, 256, 512, 1024)
_SAME = 1e-3
"""Relative difference of the accesses to global memory up to which two launches do the same work."""


def block_sizes(ready: BoundKernel) -> list[Build]:
    """Each other size that divides the number of threads; or why there is none."""
    if reason := compiled_in(ready):
        return [Build("other block sizes", "launch", reason=reason)]
    launch = ready.launch
    threads, now = launch.grid[0] * launch.block[0], launch.block[0]
    most = min(ready.gpu.occupancy.max_threads_per_block, ready.kernel.resources.max_threads or SIZES[-1])
    fitting = [size for size in SIZES if size != now and size <= most and threads % size == 0]
    if not fitting:
        return [Build("other block sizes", "launch", reason=f"{threads} threads divide into no other size")]
    return [_sized(ready, threads // size, size) for size in fitting]


def compiled_in(ready: BoundKernel) -> str:
    """Why the block size cannot be another one, as far as the machine code tells; empty where it can."""
    launch, kernel = ready.launch, ready.kernel
    if ready.gpu.is_amd:
        return "only for NVIDIA's machine code"
    if launch.block[1:] != (1, 1) or launch.grid[1:] != (1, 1):
        return "the launch has more than one dimension"
    if kernel.resources.shared_bytes or launch.dynamic_shared:
        return "blocks share memory: its size may go with theirs"
    if any(instruction.class_ in ("barrier", "mbarrier") for instruction in kernel.instructions):
        return "threads of a block wait for each other: what they do may go with their number"
    operands = [operand for instruction in kernel.instructions for operand in instruction.operands]
    if not any(_is_block_size(operand, kernel.compute_capability) for operand in operands):
        return "the code does not read blockDim: the size is compiled in"
    return ""


def _is_block_size(operand: Operand, capability: tuple[int, int]) -> bool:
    inside = operand.offset if isinstance(operand, Constant) and operand.bank == 0 else None
    return inside == (0x360 if capability >= (10, 0) else 0x0)


def _sized(ready: BoundKernel, grid: int, block: int) -> Build:
    work = _accesses(ready)

    def refuse(made: BoundKernel) -> str:
        return "" if abs(_accesses(made) - work) <= _SAME * work else "it does other work: the size matters to the code"

    return Build(
        f"blocks of {block} threads",
        "launch",
        {"grid": grid, "block": block},
        rule="occupancy-block-size",
        remedy=f"launch {grid} blocks of {block} threads: emulated and predicted so",
        refuse=refuse,
    )


def _accesses(ready: BoundKernel) -> float:
    """Accesses of threads to global memory in the whole grid."""
    lanes, code = ready.profile.thread_instructions, ready.kernel.instructions
    touching = [n for n, ins in enumerate(code) if ins.memory and ins.memory.space in ("global", "generic")]
    return float(sum(block.weight * lanes[row, touching].sum() for row, block in enumerate(ready.profile.blocks)))
