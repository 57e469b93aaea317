"""Which bytes of a tensor a box holds, and how they are permuted in shared memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .tensor_maps import TensorView

Ints = npt.NDArray[np.int64]
_PIECE = 16


@dataclass(frozen=True, slots=True)
class Box:
    """What one tensor copy moves, in units of `unit` bytes: whole 16-byte pieces where it is made of such.

    `sources` are the addresses in global memory of what lies within the tensor, `places` where that stands in
    the dense box of `size` bytes; `pieces` are the addresses of the 16-byte pieces that hold it.
    """

    unit: int
    sources: Ints
    places: Ints
    pieces: Ints
    size: int


def box_of(view: TensorView, coordinates: tuple[int, ...]) -> Box:
    """The box at some coordinates, the fastest dimension's first."""
    width = view.element_bytes
    whole = view.steps[0] == 1 and (coordinates[0] * width | view.extents[0] * width | view.base) % _PIECE == 0
    unit = _PIECE if whole else width
    offsets: Ints = np.zeros(1, np.int64)
    inside: npt.NDArray[np.bool_] = np.ones(1, bool)
    # The slowest dimension outermost, so that the fastest runs fastest.
    for axis in reversed(range(len(view.extents))):
        per = 1 if axis else unit // width
        count = view.copied[axis] // per
        index = coordinates[axis] // per + view.steps[axis] * np.arange(count, dtype=np.int64)
        holds = (index >= 0) & (index < view.extents[axis] // per)
        offsets = (offsets[:, None] + index * (view.strides[axis] * per)).reshape(-1)
        inside = (inside[:, None] & holds).reshape(-1)
    places = np.flatnonzero(inside)
    sources = view.base + offsets[places]
    piece = sources // _PIECE
    fresh = np.ones(len(piece), bool)
    fresh[1:] = piece[1:] != piece[:-1]
    return Box(unit, sources, places, piece[fresh] * _PIECE, len(offsets) * unit)


def swizzled(addresses: Ints, width: int) -> Ints:
    """Where bytes at these shared addresses go in a pattern of `width` bytes; 0 leaves them.

    The number of the 16-byte piece within `width` bytes is combined, by exclusive or, with the low bits of
    the number of the 128-byte line: as many bits as the piece has.
    """
    if not width:
        return addresses
    pieces = width // _PIECE - 1
    return addresses ^ (((addresses >> 7) & pieces) << 4)
