"""A launch: grid, block, dynamic shared memory and arguments."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Dim3 = tuple[int, int, int]

DTYPES: dict[str, tuple[str, int]] = {
    "f16": ("float16", 2), "bf16": ("bfloat16", 2), "f32": ("float32", 4), "f64": ("float64", 8),
    "i8": ("int8", 1), "i16": ("int16", 2), "i32": ("int32", 4), "i64": ("int64", 8),
    "u8": ("uint8", 1), "u16": ("uint16", 2), "u32": ("uint32", 4), "u64": ("uint64", 8),
}  # fmt: skip
"""Element types of buffers: drywarp's name to (full name, bytes). NumPy has no bf16; see `Buffer`."""

FILLS = ("zeros", "ones", "iota", "random", "array")
DRAWN = {"random": 2, "normal": 2, "permutation": 0}
"""Fills with parameters, drawn at random, and how many numbers each takes."""
_DRAWN = re.compile(r"(\w+)\(([^()]*)\)")


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer in device memory.

    `dtype` is a key of `DTYPES`, `shape` its dimensions. `fill` is one of `FILLS`, a number, or a text that `drawn`
    reads. ``random`` is uniform in [0, 1) for floating-point types and over 0..99 for integers; a fixed seed and the
    buffer's position among the arguments make runs reproducible. ``array`` uses the bytes of `array`. A `host` buffer
    is mapped host memory.
    """

    dtype: str
    shape: tuple[int, ...]
    fill: str = "zeros"
    array: npt.NDArray[Any] | None = None
    host: bool = False

    @property
    def text(self) -> str:
        """The buffer in user syntax."""
        return f"{'host ' if self.host else ''}{self.dtype}[{','.join(map(str, self.shape))}]:{self.fill}"

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
class Drawn:
    """A random fill with parameters: ``random`` in [a, b), ``normal`` with mean a and deviation b, ``permutation``.

    Integers are drawn as whole numbers (normal ones rounded). Equal seeds give equal content; without one, the launch's
    seed and the buffer's position decide.
    """

    kind: str
    numbers: tuple[float, ...]
    seed: int | None = None


def drawn(fill: str) -> Drawn | None:
    """A fill such as ``random(0,81)``, ``normal(0,1,seed=3)`` or ``permutation``; None for others.

    Raises ValueError with what was expected for a malformed one.
    """
    match = _DRAWN.fullmatch("permutation()" if fill == "permutation" else fill.replace(" ", ""))
    if match is None or match[1] not in DRAWN:
        return None
    words = [word for word in match[2].split(",") if word]
    seeds = [word.removeprefix("seed=") for word in words if word.startswith("seed=")]
    numbers = [word for word in words if not word.startswith("seed=")]
    kind, takes = match[1], DRAWN[match[1]]
    try:
        values = tuple(float(word) for word in numbers)
        seed = int(seeds[0]) if seeds else None
    except ValueError:
        values, seed = (), None
    finite = all(abs(value) < float("inf") for value in values)
    orderly = kind == "permutation" or (
        len(values) == 2 and (values[0] < values[1] or (kind == "normal" and values[1] >= 0))
    )
    if len(values) != takes or len(seeds) > 1 or not finite or not orderly or (seed is None and seeds):
        raise ValueError({"random": "random(low,high)", "normal": "normal(mean,deviation)"}.get(kind, kind))
    return Drawn(kind, values, seed)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value passed by copy: its bytes in the parameter area, and the text that the user wrote."""

    data: bytes
    text: str


@dataclass(frozen=True, slots=True)
class Structure:
    """A structure passed by value, or with `in_memory` by the address of device memory that holds it.

    `data` is its bytes, with zeros where `parts` go: offset in bytes, the field as a user writes it (`p.v.data`), and
    what it points to or holds. `zeroed` lists the fields that nobody gave; `text` is what the user wrote.
    """

    data: bytes
    parts: tuple[tuple[int, str, Argument], ...]
    text: str
    zeroed: tuple[str, ...] = ()
    in_memory: bool = False


Argument: TypeAlias = "Buffer | Scalar | Structure | TensorMap | Texture | TextureTable"


SCRATCH_BYTES = 1 << 30
"""Beyond a program's last allocation, for what an emulation adds."""
_GAP, _PAGE = 1 << 16, 4096


@dataclass(frozen=True, eq=False)
class DeviceImage:
    """The device memory that a program leaves to a launch.

    `file` is the descriptor of a file that holds it from address `start` on, sparsely; it extends at least
    `SCRATCH_BYTES` beyond `scratch`. `areas` are the allocations in order, each with its name, address
    and bytes, and `variables` is the address of the module's `__device__` variables. `digest` stands for the content;
    empty if that changes. `objects` are texture and surface objects: handle, what it is, and the address of its first
    texel. `freed` are allocations that ended, in the form of areas. `host` are the names of areas in host memory.
    """

    file: int
    start: int
    areas: tuple[tuple[str, int, int], ...]
    variables: int
    digest: str = ""
    objects: tuple[tuple[int, Texture, int], ...] = ()
    freed: tuple[tuple[str, int, int], ...] = ()
    host: tuple[str, ...] = ()

    @property
    def scratch(self) -> int:
        """Address from which on an emulation may add areas."""
        end = self.areas[-1][1] + self.areas[-1][2] if self.areas else self.start
        return -(-(end + _GAP) // _PAGE) * _PAGE


@dataclass(frozen=True)
class Launch:
    """One launch. `arguments` has one entry per kernel parameter, in order.

    `constants` fills `__constant__` variables by name; `seed` is for random fills; `warp_size` is in lanes. `cluster`
    is how many blocks in x, y and z form a thread block cluster; the grid is a multiple of it. `memory` is the device
    memory of a program that makes the launch, whose pointers are plain numbers. If `starts` is not 0, only that many
    clusters start, and take over the work of the others (cluster launch control). Blocks are then numbered cluster by
    cluster, so that those that start are the first ones.
    """

    grid: Dim3
    block: Dim3
    arguments: tuple[Argument, ...] = ()
    dynamic_shared: int = 0
    constants: Mapping[str, Argument] = field(default_factory=dict)
    seed: int = 0
    warp_size: int = 32
    cluster: Dim3 = (1, 1, 1)
    memory: DeviceImage | None = None
    starts: int = 0

    @property
    def threads_per_block(self) -> int:
        """Threads in one block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def warps_per_block(self) -> int:
        """Warps in one block; a partially filled last warp counts as a whole one."""
        return -(-self.threads_per_block // self.warp_size)

    @property
    def blocks(self) -> int:
        """Thread blocks that start: those of the grid, unless some take over others."""
        return self.starts * self.cluster_blocks or math.prod(self.grid)

    @property
    def starting(self) -> Dim3:
        """The blocks that start as the extents of a grid of linear indices: the grid's own, or all in one row."""
        return (self.blocks, 1, 1) if self.starts else self.grid

    @property
    def reach(self) -> Dim3:
        """How far the blocks that start extend in x, y and z."""
        if not self.starts:
            return self.grid
        x, y, z = (int(at.max()) + 1 for at in self.coordinates(np.arange(self.blocks)))
        return x, y, z

    def coordinates(self, linear: Any) -> Any:
        """(x, y, z) of the block with this linear index, or arrays of them; x varies fastest, as in launch order."""
        if not self.starts:
            return _unravelled(linear, self.grid)
        cluster, rank = divmod(linear, self.cluster_blocks)
        places = zip(self.first_block(cluster), _unravelled(rank, self.cluster), strict=True)
        return tuple(first + at for first, at in places)

    @property
    def cluster_blocks(self) -> int:
        """Thread blocks in one cluster."""
        return self.cluster[0] * self.cluster[1] * self.cluster[2]

    @property
    def clusters(self) -> Dim3:
        """Clusters in the grid, in x, y and z."""
        x, y, z = (extent // size for extent, size in zip(self.grid, self.cluster, strict=True))
        return x, y, z

    def cluster_of(self, linear: int) -> int:
        """The linear index, x fastest, of the cluster that the block with this linear index belongs to."""
        if self.starts:
            return linear // self.cluster_blocks
        x, y, z = (at // size for at, size in zip(self.coordinates(linear), self.cluster, strict=True))
        across, down, _ = self.clusters
        return int(x + across * (y + down * z))

    def first_block(self, cluster: Any) -> Any:
        """(x, y, z) of the first block of the cluster with this linear index, or arrays of them."""
        return tuple(at * size for at, size in zip(_unravelled(cluster, self.clusters), self.cluster, strict=True))

    def members(self, cluster: int) -> list[int]:
        """Linear indices of a cluster's blocks in the order of their ranks, x fastest."""
        if self.starts:
            return list(range(cluster * self.cluster_blocks, (cluster + 1) * self.cluster_blocks))
        first = self.first_block(cluster)
        return [
            first[0] + x + self.grid[0] * (first[1] + y + self.grid[1] * (first[2] + z))
            for z in range(self.cluster[2])
            for y in range(self.cluster[1])
            for x in range(self.cluster[0])
        ]


def _unravelled(linear: Any, extents: Dim3) -> Any:
    across, down, _ = extents
    return linear % across, linear // across % down, linear // (across * down)


def array_buffer(array: npt.NDArray[Any]) -> Buffer:
    """A buffer over a NumPy array, without copying it if it is contiguous; bool counts as u8.

    Raises TypeError for an element type that the device does not have.
    """
    array = np.ascontiguousarray(array)
    if array.dtype == np.bool_:
        array = array.view(np.uint8)
    for name, (numpy_name, _) in DTYPES.items():
        if array.dtype.name == numpy_name:
            return Buffer(name, array.shape, "array", array)
    raise TypeError(f"no device type for NumPy elements of type {array.dtype.name}")


# Textures and surfaces: a buffer, and how accesses through an object read or write it.
#
# The terms are those of CUDA's `cudaTextureDesc`; defaults are those of a zero-filled descriptor.

ADDRESS_MODES = ("wrap", "clamp", "mirror", "border")
CHANNELS = (1, 2, 4)
CUBE_FACES = 6


@dataclass(frozen=True, slots=True)
class Texture:
    """A texture object, or a surface object if `surface` is set.

    `buffer` holds the elements row by row, with the channels of a texel adjacent. `extents` are in texels, width last:
    (width), (height, width) or (depth, height, width); for layered textures and cube maps, the first extent counts
    layers or faces. `address` is one of `ADDRESS_MODES`. With `normalized`, coordinates run from 0 to 1; with
    `normalized_float`, integers are read as fractions of their range. `border` is the value of each channel outside
    the texture in mode ``border``. `row` is the distance of rows in texels; 0 if they follow each other.
    """

    buffer: Buffer
    extents: tuple[int, ...]
    channels: int = 1
    surface: bool = False
    linear: bool = False
    address: str = "wrap"
    normalized: bool = False
    normalized_float: bool = False
    layered: bool = False
    cube: bool = False
    border: float = 0.0
    row: int = 0

    @property
    def shape(self) -> str:
        """The shape, in machine-code spelling: ``2D``, ``ARRAY_1D``, ``CUBE``."""
        dimensions = "CUBE" if self.cube else f"{len(self.extents) - self.layered}D"
        return f"ARRAY_{dimensions}" if self.layered else dimensions

    @property
    def sizes(self) -> tuple[int, ...]:
        """Texels along x, y and z: one number per coordinate of a fetch within one layer or face."""
        return self.extents[1:][::-1] if self.layered or self.cube else self.extents[::-1]

    @property
    def spans(self) -> tuple[int, ...]:
        """The same with the distance of rows in the place of the first: what each coordinate is a multiple of."""
        return (self.row or self.sizes[0], *self.sizes[1:])

    @property
    def nbytes(self) -> int:
        """Bytes from the first texel to the end of the last row."""
        rows = math.prod(self.extents[:-1])
        return ((rows - 1) * self.spans[0] + self.extents[-1]) * self.texel_bytes

    @property
    def layers(self) -> int:
        """Layers, or layers times faces; 1 where there are none."""
        return self.extents[0] if self.layered or self.cube else 1

    @property
    def texel_bytes(self) -> int:
        """Bytes per texel, over all channels."""
        return DTYPES[self.buffer.dtype][1] * self.channels

    @property
    def floating(self) -> bool:
        """Whether fetches return floating-point numbers."""
        return self.normalized_float or self.buffer.dtype in ("f16", "f32")

    @property
    def text(self) -> str:
        """The object in user syntax."""
        words = ["linear"] if self.linear else []
        if not self.surface and (self.address != "wrap" or self.normalized):
            words.append(self.address)
        words += [f"border={self.border:g}"] if self.border else []
        words += [w for w in ("normalized", "normalized_float", "layered", "cube") if getattr(self, w)]
        options = f"({','.join(words)})" if words else ""
        width = f"x{self.channels}" if self.channels > 1 else ""
        kind = "surface" if self.surface else "texture"
        return f"{kind}{options}:{self.buffer.dtype}{width}[{','.join(map(str, self.extents))}]:{self.buffer.fill}"


@dataclass(frozen=True, slots=True)
class TextureTable:
    """An array of texture or surface objects in device memory, as `const cudaTextureObject_t*` takes it."""

    objects: tuple[Texture, ...]

    @property
    def text(self) -> str:
        """The array in user syntax."""
        return f"[{'; '.join(o.text for o in self.objects)}]"


# Tensor maps (`CUtensorMap`): the box of a tensor in global memory that one bulk tensor copy moves.

SWIZZLES = (0, 32, 64, 128)
"""Span in bytes within which a copy permutes 16-byte pieces to spread columns over the banks; 0 means no swizzle."""
MAP_BYTES = 128


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A tensor map that a kernel takes by value.

    `buffer` holds the tensor, or `of` names the argument that does. Dimensions are in NumPy order, the contiguous one
    last (CUDA starts with it). `shape` is the tensor's extents and `box` those of one copy; `strides`, in elements, are
    those of all dimensions but the last; `element_strides` are the strides inside the box. Empty `shape` and `strides`
    follow the buffer, empty `element_strides` are 1. `dtype` is the buffer's. Elements outside the tensor read as zero,
    or with `nan` as NaN.

    With `lower` and `upper` it is an im2col map of images: all dimensions between the first and the last are spatial.
    `box` is (pixels, channels); a copy takes pixels in a row out of those whose coordinates lie from `lower` up to the
    last coordinate plus `upper`, and reads each at the copy's offsets from there.
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
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()

    @property
    def element_bytes(self) -> int:
        """Bytes of an element."""
        return DTYPES[self.dtype][1]

    @property
    def corners(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """The corners of an im2col map by name."""
        return ("lower", self.lower), ("upper", self.upper)

    @property
    def text(self) -> str:
        """The map in user syntax."""
        words = [f"box={_times(self.box)}"]
        if self.swizzle:
            words.append(f"swizzle={self.swizzle}")
        if any(step != 1 for step in self.element_strides):
            words.append(f"step={_times(self.element_strides)}")
        words += [f"{name}={_times(corner)}" for name, corner in self.corners if corner]
        words += ["nan"] if self.nan else []
        held = self.of
        if self.buffer is not None:
            held = self.buffer.text
        return f"tensormap({','.join(words)}):{held}"


def _times(extents: tuple[int, ...]) -> str:
    return "x".join(map(str, extents))


def buffers_in(argument: Argument | None) -> Iterator[Buffer]:
    """All buffers of an argument in device memory: its own, texels, tensors, and those that its fields point to."""
    if isinstance(argument, Buffer):
        yield argument
    elif isinstance(argument, Texture | TensorMap):
        yield from buffers_in(argument.buffer)
    elif isinstance(argument, TextureTable | Structure):
        inside = argument.objects if isinstance(argument, TextureTable) else [part for _, _, part in argument.parts]
        for one in inside:
            yield from buffers_in(one)
