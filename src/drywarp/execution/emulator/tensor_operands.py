"""Matrices in shared memory as tensor memory's instructions read them: bytes by descriptor, and their numbers.

A descriptor is that of a warp-group product (`wgmma`) with other codes for the patterns. Floats of less than a byte are
packed, or sixteen of them lie at the start of each 16 bytes. A row that reaches the end of its pattern may go on at the
start of a line elsewhere, which the descriptor gives in place of the leading offset: products of 96 elements along K
read rings of buffers so (CUTLASS, sm103_blockscaled_mma_warpspecialized.hpp).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import EmulationError, UnsupportedInstructionError
from ...kernel.instruction import Address, Operand
from .decode import Decoder
from .frame import Frame
from .operands import join
from .rounding import SMALL, scale_to_double, small_to_single
from .wgmma import KINDS, offsets, split_descriptor

Bytes = npt.NDArray[np.uint8]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
K_BYTES = 32
_PIECE = 16
BELOW_A_BYTE = tuple(name for name, form in SMALL.items() if form.bits < 8)


def descriptor_words(d: Decoder, operand: Operand) -> Callable[[Frame], npt.NDArray[np.uint64]]:
    """The 64-bit descriptors of an operand `gdesc[UR4]`, one per row of a frame."""
    if not isinstance(operand, Address) or operand.descriptor is None:
        raise UnsupportedInstructionError(f"operand {operand}")
    low, high = (d.register(operand.descriptor.index + part, True) for part in (0, 1))
    return lambda f: np.broadcast_to(join(low(f), high(f)), (f.rows, 1))[:, 0]


def matrix_bytes(f: Frame, block: int, word: int, rows: int, size: int, where: str) -> npt.NDArray[np.uint8]:
    """Rows of `size` bytes that a descriptor finds in a block's shared memory, shape (rows, size); along K."""
    machine = f.machine
    start, layout, further = described(word, where)
    if 0 < layout.swizzle < size:
        raise UnsupportedInstructionError(f"{where}: rows longer than their pattern")
    whole = offsets(layout, rows, size // _PIECE, _PIECE, False)
    addresses = start + whole
    if further is not None:
        if not layout.swizzle:
            raise UnsupportedInstructionError(f"{where}: rows that go on at another address, without a pattern")
        within = start % layout.swizzle + whole[:1]
        addresses = np.where(
            within < layout.swizzle, addresses, addresses - start + further + within[0, 0] - layout.swizzle
        )
    places = layout.permuted(addresses)
    in_bounds(f, block, places, _PIECE, where)
    pieces = machine.shared[16].take(places // _PIECE + block * machine.shared_stride // _PIECE)
    return np.ascontiguousarray(pieces).view(np.uint8).reshape(rows, size)


def described(word: int, where: str) -> tuple[int, Any, int | None]:
    """Start and layout of a matrix descriptor, and where rows go on that reach the end of their pattern, if it says so.

    Raises UnsupportedInstructionError for what is not emulated.
    """
    start, layout = split_descriptor(word)
    if word >> 61 & 1:
        raise UnsupportedInstructionError(f"{where}: a matrix descriptor with layout {word >> 61}")
    return start, layout, layout.leading if word >> 52 & 1 else None


def in_bounds(f: Frame, block: int, places: Ints, width: int, where: str) -> None:
    """Raises EmulationError if an operand leaves its block's shared memory."""
    machine = f.machine
    if places.max() + width > machine.shared_bytes:
        name = machine.launch.coordinates(machine.blocks[block])
        raise EmulationError(
            f"{where}: operand out of bounds at shared address {int(places.max()):#x},"
            f" block {name}: the block has {machine.shared_bytes} bytes"
        )


def elements(rows: Bytes, kind: str, packed: bool) -> Singles:
    """Numbers of the elements in rows of bytes.

    Floats of less than a byte are `packed` without gaps, or 16 of them at the start of each 16 bytes.
    """
    if kind not in BELOW_A_BYTE:
        width = KINDS[kind].width
        return KINDS[kind].widen(rows.view({1: np.uint8, 2: np.uint16, 4: np.uint32}[width]))
    each = SMALL[kind].bits
    used = rows if packed else rows.reshape(len(rows), -1, _PIECE)[:, :, : 2 * each]
    bits = np.unpackbits(np.ascontiguousarray(used), axis=-1, bitorder="little").reshape(len(rows), -1, each)
    return small_to_single(bits @ (1 << np.arange(each)), kind)


def bytes_across(f: Frame, block: int, word: int, extent: int, size: int, width: int, where: str) -> Bytes:
    """Like `matrix_bytes`, where elements of `width` bytes that follow each other along the extent are neighbours."""
    machine = f.machine
    start, layout, further = described(word, where)
    if further is not None:
        raise UnsupportedInstructionError(f"{where}: rows that go on at another address, across K")
    places = layout.permuted(start + offsets(layout, extent, size // width, width, True))
    in_bounds(f, block, places, width, where)
    found = machine.shared[width].take((places + block * machine.shared_stride) // width)
    return np.ascontiguousarray(found).view(np.uint8).reshape(extent, size)


def scale_factors(found: Bytes, exponents: bool) -> Singles:
    """Numbers of scale factors: powers of two, or 8-bit floats without a sign."""
    if not exponents:
        return small_to_single(found & np.uint8(0x7F), "E4M3")
    return np.asarray(scale_to_double(found), np.float32)
