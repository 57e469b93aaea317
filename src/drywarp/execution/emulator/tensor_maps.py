"""Tensor maps in our own encoding (CUDA's is not documented), and which bytes of a tensor a box contains."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ...errors import EmulationError
from ...kernel.launch.launch import DTYPES, MAP_BYTES, TensorMap

_MAGIC = b"drywarp\1"
_DIMENSIONS = 5
_SPATIAL = _DIMENSIONS - 2
_FORM = struct.Struct(f"<8sQ4B{_DIMENSIONS}Q{_DIMENSIONS - 1}Q{_DIMENSIONS}H{_DIMENSIONS}BB{2 * _SPATIAL}h")
_TYPES = tuple(DTYPES)
_IM2COL, _PAIRED = 1, 2


@dataclass(frozen=True, slots=True)
class TensorView:
    """A tensor map as the copy engine reads it; the fastest dimension comes first, as coordinates do.

    `base` is the address of the first element, `strides` are bytes in every dimension. A map with corners (`lower` and
    `upper`, of the spatial dimensions) is an im2col map: its `box` is (channels, pixels). If elements of 4 bits lie in
    pairs (`paired`), everything but the coordinates of a copy counts bytes, of two elements each.
    """

    base: int
    dtype: str
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: int
    nan: bool
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()
    paired: bool = False

    @property
    def element_bytes(self) -> int:
        """Bytes of an element."""
        return DTYPES[self.dtype][1]

    @property
    def copied(self) -> tuple[int, ...]:
        """Elements of one copy in each dimension."""
        return tuple(-(-extent // step) for extent, step in zip(self.box, self.steps, strict=True))


def encode(made: TensorMap, base: int) -> bytes:
    """The bytes of a complete map of a tensor at address `base`."""
    rank, width = len(made.shape), DTYPES[made.dtype][1]

    def filled(values: tuple[int, ...], count: int) -> tuple[int, ...]:
        return (*values[::-1], *(0,) * (count - len(values)))

    data = _FORM.pack(
        _MAGIC,
        base,
        _TYPES.index(made.dtype),
        rank,
        made.swizzle,
        made.nan,
        *filled(made.shape, _DIMENSIONS),
        *filled(tuple(stride * width for stride in made.strides), _DIMENSIONS - 1),
        *filled(made.box, _DIMENSIONS),
        *filled(made.element_strides, _DIMENSIONS),
        bool(made.lower),
        *filled(made.lower, _SPATIAL),
        *filled(made.upper, _SPATIAL),
    )
    return data.ljust(MAP_BYTES, b"\0")


@lru_cache(maxsize=256)
def decode(data: bytes, where: str) -> TensorView:
    """The map that bytes encode. Raises EmulationError naming `where` for bytes that encode none."""
    if data[: len(_MAGIC)] != _MAGIC:
        raise EmulationError(f"{where}: there is no tensor map at this address; give one, as tensormap(…)")
    _, base, kind, rank, swizzle, nan, *rest = _FORM.unpack(data[: _FORM.size])
    dtype = _TYPES[kind]
    extents, rest = rest[:rank], rest[_DIMENSIONS:]
    strides, rest = rest[: rank - 1], rest[_DIMENSIONS - 1 :]
    box, steps = rest[:rank], rest[_DIMENSIONS : _DIMENSIONS + rank]
    flags, *corners = rest[2 * _DIMENSIONS :]
    whole = (DTYPES[dtype][1], *strides)
    paired = bool(flags & _PAIRED)
    view = TensorView(base, dtype, tuple(extents), whole, tuple(box), tuple(steps), swizzle, bool(nan), paired=paired)
    if not flags & _IM2COL:
        return view
    lower, upper = tuple(corners[: rank - 2]), tuple(corners[_SPATIAL : _SPATIAL + rank - 2])
    return replace(view, box=tuple(box[:2]), lower=lower, upper=upper)


# Which bytes of a tensor a box contains, and how they are permuted in shared memory.

Ints = npt.NDArray[np.int64]
_PIECE = 16


@dataclass(frozen=True, slots=True)
class Box:
    """What one tensor copy moves, in units of `unit` bytes: whole 16-byte pieces where it is made of such.

    `sources` are the addresses in global memory of the parts within the tensor, `places` their positions in the dense
    box of `size` bytes; `pieces` are the addresses of the 16-byte pieces that contain them.
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
    ends = (c + step * (n - 1) for c, step, n in zip(coordinates, view.steps, view.copied, strict=True))
    if whole and min(coordinates) >= 0 and all(end < extent for end, extent in zip(ends, view.extents, strict=True)):
        first, fresh = _inside(view)
        start = view.base + sum(c * stride for c, stride in zip(coordinates, view.strides, strict=True))
        sources = start + first.sources
        if start % _PIECE == 0:
            return Box(unit, sources, first.places, sources[fresh] & -_PIECE, first.size)
    return _box(view, coordinates, unit)


@lru_cache(maxsize=64)
def _inside(view: TensorView) -> tuple[Box, npt.NDArray[np.bool_]]:
    """A box within the tensor, its sources relative to the first one, and which of these begin another piece."""
    box = _box(view, (0,) * len(view.extents), _PIECE)
    relative = box.sources - view.base
    fresh = np.ones(len(relative), bool)
    fresh[1:] = relative[1:] // _PIECE != relative[:-1] // _PIECE
    return replace(box, sources=relative), fresh


def _box(view: TensorView, coordinates: tuple[int, ...], unit: int) -> Box:
    width = view.element_bytes
    offsets: Ints = np.zeros(1, np.int64)
    inside: npt.NDArray[np.bool_] = np.ones(1, bool)
    for axis in reversed(range(len(view.extents))):  # The slowest outermost, so that the fastest runs fastest.
        per = 1 if axis else unit // width
        count = view.copied[axis] // per
        index = coordinates[axis] // per + view.steps[axis] * np.arange(count, dtype=np.int64)
        holds = (index >= 0) & (index < view.extents[axis] // per)
        offsets = (offsets[:, None] + index * (view.strides[axis] * per)).reshape(-1)
        inside = (inside[:, None] & holds).reshape(-1)
    return made_box(view, unit, offsets, inside)


def made_box(view: TensorView, unit: int, offsets: Ints, inside: npt.NDArray[np.bool_]) -> Box:
    """The box whose units lie at these offsets from the tensor's first element, as far as they are inside."""
    places = np.flatnonzero(inside)
    sources = view.base + offsets[places]
    piece = sources // _PIECE
    fresh = np.ones(len(piece), bool)
    fresh[1:] = piece[1:] != piece[:-1]
    return Box(unit, sources, places, piece[fresh] * _PIECE, len(offsets) * unit)


def swizzled(addresses: Ints, width: int) -> Ints:
    """Where bytes at these shared addresses go in a pattern of `width` bytes; 0 leaves them in place.

    The number of the 16-byte piece within `width` bytes is combined, by exclusive or, with the low bits of the number
    of the 128-byte line. 129 and 130: 128 bytes in pieces of 32 and 64 (CUTLASS's Swizzle<2,5,2> and Swizzle<1,6,1>).
    """
    if not width:
        return addresses
    pieces = width // _PIECE - 1 >> (width & 3)
    return addresses ^ (((addresses >> 7) & pieces) << 4 + (width & 3))
