"""Tensor maps (`CUtensorMap`): which box of a tensor in global memory one bulk tensor copy moves."""

from __future__ import annotations

from dataclasses import dataclass

from .launch import DTYPES, Buffer

SWIZZLES = (0, 32, 64, 128)
"""Bytes within which a copy may permute 16-byte pieces, so that columns spread over the banks; 0 does not."""
MAP_BYTES = 128


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A tensor map that a kernel takes by value.

    `buffer` holds the tensor, or `of` names the argument that does. All dimensions are listed as NumPy
    lists them, the one without gaps last (CUDA counts from that one): `shape` the tensor's extents, `box`
    those of one copy, `strides` the elements from one index to the next in all dimensions but the last,
    `element_strides` takes every so many elements of the box. Empty ones are as the buffer says, or ones;
    `dtype` is the buffer's. Places outside the tensor read as zero, with `nan` as NaN.
    """

    buffer: Buffer | None
    of: str
    box: tuple[int, ...]
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    element_strides: tuple[int, ...] = ()
    swizzle: int = 0
    nan: bool = False
    dtype: str = ""

    @property
    def element_bytes(self) -> int:
        """Bytes of an element."""
        return DTYPES[self.dtype][1]

    @property
    def text(self) -> str:
        """The map as a user writes it."""
        words = [f"box={_times(self.box)}"]
        if self.swizzle:
            words.append(f"swizzle={self.swizzle}")
        if any(step != 1 for step in self.element_strides):
            words.append(f"step={_times(self.element_strides)}")
        words += ["nan"] if self.nan else []
        held = self.of
        if self.buffer is not None:
            held = f"{self.buffer.dtype}[{','.join(map(str, self.buffer.shape))}]:{self.buffer.fill}"
        return f"tensormap({','.join(words)}):{held}"


def _times(extents: tuple[int, ...]) -> str:
    return "x".join(map(str, extents))
