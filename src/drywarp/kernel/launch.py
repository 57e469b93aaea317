"""A launch: grid, block, dynamic shared memory and the arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from .tensor_map import TensorMap
    from .texture import Texture, TextureTable

Dim3 = tuple[int, int, int]

DTYPES: dict[str, tuple[str, int]] = {
    "f16": ("float16", 2), "bf16": ("bfloat16", 2), "f32": ("float32", 4), "f64": ("float64", 8),
    "i8": ("int8", 1), "i16": ("int16", 2), "i32": ("int32", 4), "i64": ("int64", 8),
    "u8": ("uint8", 1), "u16": ("uint16", 2), "u32": ("uint32", 4), "u64": ("uint64", 8),
}  # fmt: skip
"""Element types of buffers: our name to (what it is, bytes). NumPy has no bf16; see `Buffer`."""

FILLS = ("zeros", "ones", "iota", "random", "array")


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer in device memory.

    `dtype` is a key of `DTYPES`, `shape` its dimensions. `fill` is one of `FILLS`: ``random`` is
    uniform in [0, 1) for floating-point types and over 0..99 for integers, from a fixed seed and the
    buffer's place among the arguments, so that a run repeats; ``array`` takes the bytes of `array`.
    """

    dtype: str
    shape: tuple[int, ...]
    fill: str = "zeros"
    array: npt.NDArray[Any] | None = None

    @property
    def count(self) -> int:
        """Number of elements."""
        n = 1
        for extent in self.shape:
            n *= extent
        return n

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.count * DTYPES[self.dtype][1]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value passed by copy: the bytes as they stand in the parameter area, and what was written."""

    data: bytes
    text: str


Argument: TypeAlias = "Buffer | Scalar | TensorMap | Texture | TextureTable"


@dataclass(frozen=True)
class Launch:
    """One launch. `arguments` are in the order of the kernel's parameters, one each.

    `constants` fills `__constant__` variables by name; `seed` is that of random fills; `warp_size` is lanes.
    """

    grid: Dim3
    block: Dim3
    arguments: tuple[Argument, ...] = ()
    dynamic_shared: int = 0
    constants: Mapping[str, Argument] = field(default_factory=dict)
    seed: int = 0
    warp_size: int = 32

    @property
    def threads_per_block(self) -> int:
        """Threads in one block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def warps_per_block(self) -> int:
        """Warps in one block; a partly filled last warp counts whole."""
        return -(-self.threads_per_block // self.warp_size)

    @property
    def blocks(self) -> int:
        """Thread blocks in the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    def coordinates(self, linear: int) -> Dim3:
        """(x, y, z) of the block with this linear index; x runs fastest, as blocks are launched."""
        x, rest = linear % self.grid[0], linear // self.grid[0]
        return x, rest % self.grid[1], rest // self.grid[1]


def array_buffer(array: npt.NDArray[Any]) -> Buffer:
    """A buffer that holds a copy-free view of a NumPy array; bool counts as u8.

    Raises TypeError for an element type that has no counterpart on the device.
    """
    array = np.ascontiguousarray(array)
    if array.dtype == np.bool_:
        array = array.view(np.uint8)
    for name, (numpy_name, _) in DTYPES.items():
        if array.dtype.name == numpy_name:
            return Buffer(name, array.shape, "array", array)
    raise TypeError(f"no device type for NumPy elements of type {array.dtype.name}")
