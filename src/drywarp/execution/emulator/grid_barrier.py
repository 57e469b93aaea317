"""Grid-wide barriers (`this_grid().sync()` of cooperative groups): the word in memory with their counter.

The driver hands a cooperative launch the address of a small area, in two words of bank 0 that CUDA calls environment
registers 2 and 1. A thread of each block adds to a counter there and waits until the last one has flipped its top bit,
so all blocks of the grid must run at once.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

from ...errors import UsageError
from ...kernel.instruction import Constant
from ...kernel.kernel import Kernel
from ...kernel.launch.launch import Launch

AREA_BYTES = 64
WHOLE_GRID_NOTE = "blocks wait for each other: the whole grid was emulated at once"
_MOST_WARPS = 1 << 14
"""Most warps that are run at once: more than any GPU holds, and a cooperative grid must fit on one."""
CLUSTER_SIZE = 1
"""The content of the cluster-size register; from sm_100 on it shifts the two words."""
_CLUSTER_STRIDE = 0xA0


def _places(kernel: Kernel) -> tuple[int, int]:
    """Offsets in bank 0 of the low and the high half of the area's address, as the code names them."""
    if kernel.compute_capability >= (10, 0):
        return 0x258, 0x254
    return (0x48, 0x44) if kernel.compute_capability >= (9, 0) else (0x90, 0x8C)


def uses_grid_barrier(kernel: Kernel) -> bool:
    """Whether the code reads the words that hold the area's address."""
    places = set(_places(kernel))
    shifted = kernel.compute_capability >= (10, 0)
    read = {
        operand.offset
        for instruction in kernel.instructions
        for operand in instruction.operands
        if isinstance(operand, Constant) and operand.bank == 0 and (operand.register is not None) == shifted
    }
    return places <= read


def put_area(bank: npt.NDArray[np.uint8], kernel: Kernel, address: int) -> None:
    """Write the area's address where the code looks for it."""
    shift = CLUSTER_SIZE * _CLUSTER_STRIDE if kernel.compute_capability >= (10, 0) else 0
    for offset, half in zip(_places(kernel), struct.unpack("<II", struct.pack("<Q", address)), strict=True):
        bank[offset - shift : offset - shift + 4] = np.frombuffer(struct.pack("<I", half), np.uint8)


def fits_at_once(launch: Launch) -> bool:
    """Whether all blocks of a grid can be emulated together."""
    return launch.blocks * launch.warps_per_block <= _MOST_WARPS


def check_whole_grid(kernel: Kernel, launch: Launch) -> None:
    """Raise UsageError for a grid whose blocks cannot all be emulated at once."""
    if not fits_at_once(launch):
        raise UsageError(
            f"{kernel.name}: its blocks wait for each other at a grid-wide barrier, but {launch.blocks} blocks of"
            f" {launch.warps_per_block} warps cannot run at once; expected at most {_MOST_WARPS} warps"
        )
