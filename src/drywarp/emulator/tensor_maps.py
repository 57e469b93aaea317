"""The 128 bytes of a tensor map in an encoding of our own: CUDA's is not documented, and no program reads it."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ..errors import EmulationError
from ..kernel.launch import DTYPES
from ..kernel.tensor_map import MAP_BYTES, TensorMap

_MAGIC = b"drywarp\1"
_DIMENSIONS = 5
_FORM = struct.Struct(f"<8sQ4B{_DIMENSIONS}Q{_DIMENSIONS - 1}Q{_DIMENSIONS}H{_DIMENSIONS}B")
_TYPES = tuple(DTYPES)


@dataclass(frozen=True, slots=True)
class TensorView:
    """A tensor map as the copy engine reads it; the fastest dimension comes first, as coordinates do.

    `base` is the address of the first element, `strides` are bytes in every dimension.
    """

    base: int
    dtype: str
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: int
    nan: bool

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
    )
    return data.ljust(MAP_BYTES, b"\0")


def decode(data: bytes, where: str) -> TensorView:
    """The map that bytes encode. Raises EmulationError naming `where` for bytes that are none."""
    if data[: len(_MAGIC)] != _MAGIC:
        raise EmulationError(f"{where}: there is no tensor map at this address; give the parameter one")
    _, base, kind, rank, swizzle, nan, *rest = _FORM.unpack(data[: _FORM.size])
    dtype = _TYPES[kind]
    extents, rest = rest[:rank], rest[_DIMENSIONS:]
    strides, rest = rest[: rank - 1], rest[_DIMENSIONS - 1 :]
    box, steps = rest[:rank], rest[_DIMENSIONS : _DIMENSIONS + rank]
    whole = (DTYPES[dtype][1], *strides)
    return TensorView(base, dtype, tuple(extents), whole, tuple(box), tuple(steps), swizzle, bool(nan))
