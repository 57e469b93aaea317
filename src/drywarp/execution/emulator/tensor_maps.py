"""Tensor maps as bytes, and which bytes of a tensor a box contains.

A tiled map is encoded as hardware has it: PTX's `tensormap.replace` compiles to plain stores, which show where each
field is (ptxas 13, the same for sm_90a, sm_100a and sm_120a). Bits that no field has are zero here. An im2col map has
no such instruction, so its encoding is our own.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ...errors import EmulationError
from ...kernel.launch.launch import DTYPES, MAP_BYTES, SWIZZLES, TensorMap

Ints = npt.NDArray[np.int64]
_DIMENSIONS = 5
_PIECE = 16
_SPATIAL = _DIMENSIONS - 2
_TILED = struct.Struct(f"<QI{_DIMENSIONS - 1}II{_DIMENSIONS}II4B")
"""Address; kind; strides / 16; their upper 4 bits each; extents - 1; steps - 1 in 3 bits each and, in the upper 8, the
first extent of the box - 1; its other extents - 1."""
_RANK, _TYPE, _LAYOUT, _SWIZZLE, _NAN, _ATOM = 4, 7, 11, 13, 15, 19
"""Lowest bits of the fields of a map's kind: rank - 1 in 3 bits, type in 4, layout in 2, swizzle in 2, fill in 1, what
stays together in a swizzle in 3."""
_FREE = 0xFFC6_000F
"""Bits of the kind that belong to no field; bit 16 tells TF32 from F32."""
_TYPES = ("u8", "u16", "u32", "i32", "u64", "i64", "f16", "f32", "f32", "f64", "bf16", "u8", "u8", "u8")
"""By the number of an element type; the second f32 is flushed, further u8 hold elements of fewer bits."""
_NARROW = {11: (4, False), 12: (4, True), 13: (6, True)}
"""Bits of an element by the number of its type, and whether 16 of them are padded to 16 bytes in shared memory."""
_SIGNLESS = {"i8": "u8", "i16": "u16"}
_PIECES_TOGETHER = {0: 0, 1: 1, 3: 2}
"""Logarithms, by what a map says stays together; 2 also turns halves around, which is not modelled."""
_MAGIC = b"drYwarp\1"
"""Marks an im2col map. Bit 21 is zero: CUTLASS clears it in every map of a small tensor."""
_COLUMNS = struct.Struct(f"<Q8s4B{_DIMENSIONS}Q{_DIMENSIONS - 1}Q2H{_DIMENSIONS}B{2 * _SPATIAL}h")


@dataclass(frozen=True, slots=True)
class TensorView:
    """A tensor map as the copy engine reads it; the fastest dimension comes first, as coordinates do.

    `base` is the address of the first element, `strides` are bytes in every dimension. A map with corners (`lower` and
    `upper`, of the spatial dimensions) is an im2col map: its `box` is (channels, pixels). If elements have 4 or 6
    `bits`, everything but the coordinates of a copy counts packed bytes; those of 16 `padded` ones start 16 bytes apart
    in shared memory.
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
    bits: int = 8
    padded: bool = False

    @property
    def element_bytes(self) -> int:
        """Bytes of an element."""
        return DTYPES[self.dtype][1]

    @property
    def copied(self) -> tuple[int, ...]:
        """Elements of one copy in each dimension."""
        return tuple(-(-extent // step) for extent, step in zip(self.box, self.steps, strict=True))

    def unit(self, first: int) -> int:
        """Bytes that a copy moves together if its first coordinate is `first`."""
        if self.padded:
            return 4 if self.bits == 6 else 8
        width = self.element_bytes
        within = (first | self.box[0] | self.extents[0]) * width | self.base
        return _PIECE if self.steps[0] == 1 and within % _PIECE == 0 else width

    def apart(self, offsets: Ints) -> Ints:
        """Where packed bytes of a box lie in shared memory, before they are permuted."""
        if not self.padded:
            return offsets
        used = 2 * self.bits
        return offsets // used * _PIECE + offsets % used

    def room(self, size: int) -> int:
        """Bytes of shared memory that a box of so many bytes takes."""
        return size * 8 // self.bits if self.padded else size


def encode(made: TensorMap, base: int) -> bytes:
    """The bytes of a complete map of a tensor at address `base`."""
    rank, width = len(made.shape), DTYPES[made.dtype][1]
    kind, swizzle = _TYPES.index(_SIGNLESS.get(made.dtype, made.dtype)), SWIZZLES.index(made.swizzle)
    strides = tuple(stride * width for stride in made.strides)

    def filled(values: tuple[int, ...], count: int, less: int = 0) -> tuple[int, ...]:
        return (*(value - less for value in values[::-1]), *(0,) * (count - len(values)))

    if made.lower:
        lists = (*filled(made.shape, _DIMENSIONS), *filled(strides, _DIMENSIONS - 1), *made.box[::-1])
        corners = (*filled(made.lower, _SPATIAL), *filled(made.upper, _SPATIAL))
        steps = filled(made.element_strides, _DIMENSIONS)
        data = _COLUMNS.pack(base, _MAGIC, kind, rank, swizzle, made.nan, *lists, *steps, *corners)
        return data.ljust(MAP_BYTES, b"\0")
    word = rank - 1 << _RANK | kind << _TYPE | swizzle << _SWIZZLE | made.nan << _NAN
    apart = [stride >> 4 for stride in filled(strides, _DIMENSIONS - 1)]
    upper = sum((gap >> 32) << 4 * axis for axis, gap in enumerate(apart))
    box = filled(made.box, _DIMENSIONS, 1)
    last = sum(step << 3 * axis for axis, step in enumerate(filled(made.element_strides, _DIMENSIONS, 1)))
    lower = (gap & 0xFFFF_FFFF for gap in apart)
    data = _TILED.pack(base, word, *lower, upper, *filled(made.shape, _DIMENSIONS, 1), last | box[0] << 24, *box[1:])
    return data.ljust(MAP_BYTES, b"\0")


@lru_cache(maxsize=256)
def decode(data: bytes, where: str) -> TensorView:
    """The map that bytes encode. Raises EmulationError naming `where` for bytes that encode none."""
    if data[8 : 8 + len(_MAGIC)] == _MAGIC:
        return _columns(data)
    base, word, *rest = _TILED.unpack_from(data)
    lower, upper, extents, last = rest[:4], rest[4], rest[5:10], rest[10]
    rank, kind, atom = (word >> _RANK & 7) + 1, word >> _TYPE & 15, word >> _ATOM & 7
    fits = base and base % _PIECE == 0 and rank <= _DIMENSIONS and not word & _FREE
    if not fits or any(data[_TILED.size :]):
        raise EmulationError(f"{where}: there is no tensor map at this address; give one, as tensormap(…)")
    if kind >= len(_TYPES) or word >> _LAYOUT & 3 or atom not in _PIECES_TOGETHER:
        raise EmulationError(f"{where}: this tensor map's element type, layout or swizzle is not modelled")
    axes = range(rank)
    box = (last >> 24, *rest[11:])
    view = TensorView(
        base=base,
        dtype=_TYPES[kind],
        extents=tuple(extents[axis] + 1 for axis in axes),
        strides=(DTYPES[_TYPES[kind]][1], *(lower[axis] + ((upper >> 4 * axis & 15) << 32) << 4 for axis in axes[:-1])),
        box=tuple(box[axis] + 1 for axis in axes),
        steps=tuple((last >> 3 * axis & 7) + 1 for axis in axes),
        swizzle=_width(word >> _SWIZZLE & 3 | atom << 2),
        nan=bool(word >> _NAN & 1),
    )
    return _narrow(view, kind)


def _columns(data: bytes) -> TensorView:
    """The im2col map that bytes encode."""
    base, _, kind, rank, swizzle, nan, *rest = _COLUMNS.unpack_from(data)
    extents, rest = rest[:rank], rest[_DIMENSIONS:]
    strides, rest = rest[: rank - 1], rest[_DIMENSIONS - 1 :]
    box, steps, corners = rest[:2], rest[2 : 2 + rank], rest[2 + _DIMENSIONS :]
    lower, upper = corners[: rank - 2], corners[_SPATIAL : _SPATIAL + rank - 2]
    whole = (DTYPES[_TYPES[kind]][1], *strides)
    view = TensorView(base, _TYPES[kind], tuple(extents), whole, tuple(box), tuple(steps), _width(swizzle), bool(nan))
    view = replace(view, lower=tuple(lower), upper=tuple(upper))
    return _narrow(view, kind)


def _width(swizzle: int) -> int:
    """`swizzled`'s width, from a map's kind of swizzle (2 bits) and, above it, what stays together."""
    return SWIZZLES[swizzle & 3] | _PIECES_TOGETHER[swizzle >> 2] if swizzle & 3 else 0


def _narrow(view: TensorView, kind: int) -> TensorView:
    """A view whose elements, if their type says so, have fewer than 8 bits, by the bytes in which these are packed."""
    if kind not in _NARROW:
        return view
    bits, padded = _NARROW[kind]
    extents, box = ((n[0] * bits // 8, *n[1:]) for n in (view.extents, view.box))
    return replace(view, extents=extents, box=box, bits=bits, padded=padded)


# Which bytes of a tensor a box contains, and how they are permuted in shared memory.

ROWS = 4
"""Rows that a copy of scattered rows takes."""
_OFFSET_BITS = {1: 16, 2: 8, 3: 5}


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


def box_of(view: TensorView, coordinates: Sequence[int], offsets: int = 0) -> Box:
    """The box at a copy's coordinates, the fastest dimension's first.

    `offsets` holds those of an im2col map in the spatial dimensions: 16 bits for one, 8 for each of two, 5 of three.
    """
    first = coordinates[0] if view.bits == 8 else coordinates[0] * view.bits // 8
    if not view.lower:
        return _tile(view, (first, *coordinates[1:]))
    bits = _OFFSET_BITS[len(view.lower)]
    beside = tuple(offsets >> bits * axis & (1 << bits) - 1 for axis in range(len(view.lower)))
    return _columns_at(view, (first, *coordinates[1:]), beside)


def rows_of(view: TensorView, coordinates: Sequence[int]) -> Box:
    """Four rows of a matrix, one behind the other (tile::gather4, tile::scatter4): a column, and the row of each."""
    boxes = [box_of(view, (coordinates[0], row)) for row in coordinates[1:]]
    units = boxes[0].size // boxes[0].unit
    return replace(
        boxes[0],
        sources=np.concatenate([box.sources for box in boxes]),
        places=np.concatenate([box.places + units * n for n, box in enumerate(boxes)]),
        pieces=np.concatenate([box.pieces for box in boxes]),
        size=len(boxes) * boxes[0].size,
    )


def _tile(view: TensorView, coordinates: tuple[int, ...]) -> Box:
    unit = view.unit(coordinates[0])
    whole = unit > view.element_bytes
    ends = (c + step * (n - 1) for c, step, n in zip(coordinates, view.steps, view.copied, strict=True))
    if whole and min(coordinates) >= 0 and all(end < extent for end, extent in zip(ends, view.extents, strict=True)):
        first, fresh = _inside(view, unit)
        start = view.base + sum(c * stride for c, stride in zip(coordinates, view.strides, strict=True))
        sources = start + first.sources
        if start % _PIECE == 0:
            return Box(unit, sources, first.places, sources[fresh] & -_PIECE, first.size)
    return _box(view, coordinates, unit)


@lru_cache(maxsize=64)
def _inside(view: TensorView, unit: int) -> tuple[Box, npt.NDArray[np.bool_]]:
    """A box within the tensor, its sources relative to the first one, and which of these begin another piece."""
    box = _box(view, (0,) * len(view.extents), unit)
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
    return _made_box(view, unit, offsets, inside)


def _made_box(view: TensorView, unit: int, offsets: Ints, inside: npt.NDArray[np.bool_]) -> Box:
    """The box whose units lie at these offsets from the tensor's first element, as far as they are inside."""
    places = np.flatnonzero(inside)
    sources = view.base + offsets[places]
    piece = sources // _PIECE
    fresh = np.ones(len(piece), bool)
    fresh[1:] = piece[1:] != piece[:-1]
    return Box(unit, sources, places, piece[fresh] * _PIECE, len(offsets) * unit)


def _columns_at(view: TensorView, coordinates: tuple[int, ...], offsets: tuple[int, ...]) -> Box:
    """Pixels of images as rows of a matrix, of which a copy takes some in a row, each read at these offsets.

    As in PTX ISA 9.0, "im2col mode": pixels are counted through the bounding box of the spatial dimensions, the fastest
    first, by the element strides; then comes the next image.
    """
    channel, channels, unit = coordinates[0], view.box[0], view.unit(coordinates[0])
    per = unit // view.element_bytes
    places = _pixels(view, coordinates[1:]) + np.array((*offsets, 0), np.int64)
    index = channel // per + np.arange(channels // per, dtype=np.int64)
    inside: npt.NDArray[np.bool_] = np.all((places >= 0) & (places < np.array(view.extents[1:])), axis=1)
    holds = (index >= 0) & (index < view.extents[0] // per)
    apart = places @ np.array(view.strides[1:], np.int64)
    every = (apart[:, None] + index * unit).reshape(-1)
    return _made_box(view, unit, every, (inside[:, None] & holds).reshape(-1))


@lru_cache(maxsize=256)
def _pixels(view: TensorView, first: tuple[int, ...]) -> Ints:
    """Coordinates of a copy's pixels before its offsets, shape (pixels, spatial dimensions and image)."""
    last = [extent - 1 + up for extent, up in zip(view.extents[1:-1], view.upper, strict=True)]
    at, found = list(first), []
    for _ in range(view.box[1]):
        found.append(tuple(at))
        for axis, low in enumerate(view.lower):
            at[axis] += view.steps[axis + 1]
            if at[axis] <= last[axis]:
                break
            at[axis] = low
        else:
            at[-1] += 1
    return np.array(found, np.int64)


def swizzled(addresses: Ints, width: int, offset: int = 0) -> Ints:
    """Where bytes at these shared addresses go in a pattern of `width` bytes; 0 leaves them in place.

    A pattern begins where the number of the 128-byte line is a multiple of 8, or `offset` lines behind that.

    The number of the 16-byte piece within `width` bytes is combined, by exclusive or, with the low bits of the number
    of the 128-byte line. 129 and 130: 128 bytes in pieces of 32 and 64 (CUTLASS's Swizzle<2,5,2> and Swizzle<1,6,1>).
    """
    if not width:
        return addresses
    pieces = width // _PIECE - 1 >> (width & 3)
    return addresses ^ (((addresses >> 7) - offset & pieces) << 4 + (width & 3))
