"""Textures and surfaces of a launch, the texels that a fetch reads, and their weights."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ...errors import EmulationError
from ...kernel.instruction import Instruction
from ...kernel.launch.launch import DTYPES, Texture
from ...kernel.profile import SPACE_GLOBAL
from .bits import LANES
from .content import numpy_dtype
from .decode import Decoder, place
from .frame import Frame
from .memory import DeviceMemory, Region
from .operands import Fetch
from .recorder import Recorder

LAYOUT_NOTE = (
    "textures and surfaces are assumed to be stored row by row; the layout of GPU arrays is not public, so sectors"
    " and hit rates are those of the assumed layout"
)


@dataclass(frozen=True)
class BoundTexture:
    """A texture or surface and the memory that holds it."""

    texture: Texture
    region: Region
    memory: DeviceMemory

    def refuse(self, d: Decoder, i: Instruction, what: str) -> NoReturn:
        """Raise for a use that does not fit the object."""
        extents = ",".join(map(str, self.texture.extents))
        raise EmulationError(
            f"{place(d.kernel, i)}: {self.region.name} is a {self.texture.shape} "
            f"{'surface' if self.texture.surface else 'texture'} of [{extents}] and {what}: {i.text}"
        )


def of_each_object(
    d: Decoder, i: Instruction, f: Frame, handle: Fetch, surface: bool = False
) -> Iterator[tuple[BoundTexture, npt.NDArray[np.bool_]]]:
    """The objects that the executing lanes name, each with its lanes."""
    f.machine.notes.add(LAYOUT_NOTE)
    handles, lanes = f.spread(handle(f)), f.lanes()
    for number in np.unique(handles[lanes]).tolist():
        found = d.memory.objects.get(number)
        if found is None:
            kind = "surface" if surface else "texture"
            known = ", ".join(region.name for _, region in d.memory.objects.values())
            raise EmulationError(
                f"{place(d.kernel, i)}: no {kind} object has the handle {number:#x} (the launch has: {known or 'none'})"
                f"; pass one, for example --arg name={kind}:f32[1024,1024]: {i.text}"
            )
        bound = BoundTexture(*found, d.memory)
        if bound.texture.surface != surface:
            bound.refuse(d, i, f"is used as a {'surface' if surface else 'texture'}")
        yield bound, lanes & (handles == np.uint32(number))


# Which texels a fetch reads and their weights: filtering and addressing as specified by the CUDA guide.
#
# With linear filtering a coordinate x between texel centres reads floor(x - 0.5) and the next one; the
# fraction that weighs them has eight bits, so that 1.0 is among its values.

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Lanes = npt.NDArray[np.bool_]

_WEIGHT_STEPS = 256.0
_FARTHEST = 2.0**40
"""Coordinates beyond this are clamped to it, so that positions fit into integers."""


@dataclass(frozen=True)
class Tap:
    """One texel per lane: its number in its layer, its weight, and whether it lies inside the texture."""

    place: Index
    weight: Floats
    inside: Lanes


def taps(texture: Texture, coordinates: Sequence[Any], linear: bool) -> list[Tap]:
    """The texels that lanes read at floating-point coordinates (x, y, z), and their weights."""
    sizes = texture.sizes
    per_dimension = []
    for coordinate, size in zip(coordinates, sizes, strict=True):
        place = np.nan_to_num(np.asarray(coordinate, np.float64), nan=0.0, posinf=_FARTHEST, neginf=-_FARTHEST)
        place = np.clip(place * size if texture.normalized else place, -_FARTHEST, _FARTHEST)
        if linear:
            place = place - 0.5
        low = np.floor(place)
        first = low.astype(np.int64)
        if not linear:
            per_dimension.append([(first, np.ones_like(place))])
            continue
        weight = np.floor((place - low) * _WEIGHT_STEPS + 0.5) / _WEIGHT_STEPS
        per_dimension.append([(first, 1 - weight), (first + 1, weight)])
    return _combine(texture, per_dimension)


def texels_at(texture: Texture, coordinates: Sequence[Any]) -> Tap:
    """The texel that lanes read at integer coordinates; none outside the texture."""
    unit = np.ones(np.shape(coordinates[0]))
    places = [np.asarray(c).view(np.int32).astype(np.int64) for c in coordinates]
    number, inside = _numbered(
        texture, places, [(p >= 0) & (p < s) for p, s in zip(places, texture.sizes, strict=True)]
    )
    return Tap(number, unit, inside)


def gathered(texture: Texture, coordinates: Sequence[Any]) -> list[Tap]:
    """The four texels that linear filtering would read, from the lower left one counter-clockwise."""
    four = taps(texture, coordinates, linear=True)
    # `taps` has y outermost: (x0, y0), (x1, y0), (x0, y1), (x1, y1).
    return [four[2], four[3], four[1], four[0]]


def _combine(texture: Texture, per_dimension: list[list[tuple[Index, Floats]]]) -> list[Tap]:
    found = []
    # The last dimension outermost, so that x runs fastest.
    for choice in itertools.product(*reversed(per_dimension)):
        places, insides = [], []
        weight: Any = 1.0
        for (spot, part), size in zip(reversed(choice), texture.sizes, strict=True):
            addressed, inside = _addressed(spot, size, _mode(texture))
            places.append(addressed)
            insides.append(inside)
            weight = weight * part
        number, inside = _numbered(texture, places, insides)
        found.append(Tap(number, weight, inside))
    return found


def _mode(texture: Texture) -> str:
    """The address mode in effect: wrap and mirror are clamp where coordinates are not normalized."""
    if texture.cube or (texture.address in ("wrap", "mirror") and not texture.normalized):
        return "clamp"
    return texture.address


def _addressed(place: Index, size: int, mode: str) -> tuple[Index, Lanes]:
    inside = (place >= 0) & (place < size)
    if mode == "border":
        return place, inside
    everywhere = np.ones_like(inside)
    if mode == "wrap":
        return place % size, everywhere
    if mode == "mirror":
        turned = place % (2 * size)
        return np.minimum(turned, 2 * size - 1 - turned), everywhere
    return np.clip(place, 0, size - 1), everywhere


def _numbered(texture: Texture, places: Sequence[Index], insides: Sequence[Lanes]) -> tuple[Index, Lanes]:
    """Number of a texel within its layer, and whether all its coordinates lie inside."""
    number: Any = np.int64(0)
    inside: Any = np.bool_(True)
    for spot, valid, span in reversed(list(zip(places, insides, texture.spans, strict=True))):
        number = number * span + spot
        inside = inside & valid
    return np.where(inside, number, 0), np.asarray(inside)


def cube_face(x: Any, y: Any, z: Any) -> tuple[Index, Floats, Floats]:
    """Face of a direction, and the coordinates 0 to 1 on it: by the guide's table of faces.

    The coordinate of largest magnitude chooses; if equal, x precedes y and y precedes z.
    """
    x, y, z = (np.asarray(c, np.float64) for c in (x, y, z))
    along_x = (np.abs(x) >= np.abs(y)) & (np.abs(x) >= np.abs(z))
    along_y = ~along_x & (np.abs(y) >= np.abs(z))
    major = np.where(along_x, x, np.where(along_y, y, z))
    back = major < 0
    face = np.where(along_x, 0, np.where(along_y, 2, 4)) + back
    s = np.where(along_x, np.where(back, z, -z), np.where(along_y, x, np.where(back, -x, x)))
    t = np.where(along_y, np.where(back, -z, z), -y)
    size = np.abs(major)
    size = np.where(size == 0, 1.0, size)
    return face.astype(np.int64), (s / size + 1) / 2, (t / size + 1) / 2


# The texels of one fetch: read from device memory, recorded as accesses, filtered.

_SECTOR = 32
"""The unit of bytes that caches of all GPUs move: an access need not request again what another has read in it."""
_NOWHERE = np.iinfo(np.int64).max
Bits = npt.NDArray[np.uint32]


class Texels:
    """What the lanes of a fetch read of one texture, a tap at a time. `layer` counts layers and faces."""

    def __init__(self, bound: BoundTexture, layer: Any, taps: Sequence[Tap]) -> None:
        self._bound = bound
        self._taps = taps
        texture = bound.texture
        per_layer = 1
        for size in texture.sizes:
            per_layer *= size
        self._offsets = [(layer * per_layer + tap.place) * texture.texel_bytes for tap in taps]

    def record(self, f: Frame, lanes: npt.NDArray[np.bool_], instruction: int, recorder: Recorder) -> Texels:
        """Record the accesses of `lanes`: every texel once per warp, however many lanes and taps need it."""
        texels = [(o, lanes & tap.inside) for o, tap in zip(self._offsets, self._taps, strict=True)]
        start = self._bound.region.start
        for offsets, reads in _distinct(texels) if len(texels) > 1 else texels:
            if not reads.any():
                continue
            self._bound.memory.prepare(self._bound.region, offsets[reads].astype(np.uint64))
            saved = f.narrow(reads)
            try:
                recorder.access(f, instruction, np.broadcast_to(offsets, reads.shape) + np.int64(start), SPACE_GLOBAL)
            finally:
                f.restore(saved)
        return self

    def _elements(self, tap: int, channel: int) -> npt.NDArray[Any]:
        """One channel of one tap as the texture's elements."""
        texture, region = self._bound.texture, self._bound.region
        dtype = numpy_dtype(texture.buffer.dtype)
        view = self._bound.memory.views[dtype.itemsize]
        at = (self._offsets[tap] + (region.start - self._bound.memory.start)) // dtype.itemsize + channel
        elements: npt.NDArray[Any] = np.asarray(view.take(at)).view(dtype)
        return elements

    def _numbers(self, tap: int, channel: int) -> npt.NDArray[np.float64]:
        """The same as floating-point numbers, with border values inserted."""
        texture = self._bound.texture
        name = texture.buffer.dtype
        values = self._elements(tap, channel).astype(np.float64)
        if texture.normalized_float:
            bits = 8 * DTYPES[name][1]
            # The smallest signed number and the next one are both -1.
            values = np.maximum(values / float((1 << bits - (name[0] == "i")) - 1), -1.0)
        return np.where(self._taps[tap].inside, values, texture.border)

    def filtered(self, channel: int) -> Bits:
        """The bits that a register receives: the taps' weighted sum, or the element where it is an integer."""
        texture = self._bound.texture
        if channel >= texture.channels:
            return np.zeros((1, LANES), np.uint32)
        if not texture.floating:
            return self._integers(0, channel)
        total: Any = 0.0
        for tap, part in enumerate(self._taps):
            total = total + part.weight * self._numbers(tap, channel)
        return np.asarray(total, np.float64).astype(np.float32).view(np.uint32)

    def channel(self, tap: int, channel: int) -> Bits:
        """One channel of one tap as a register receives it."""
        texture = self._bound.texture
        if channel >= texture.channels:
            return np.zeros((1, LANES), np.uint32)
        if not texture.floating:
            return self._integers(tap, channel)
        return self._numbers(tap, channel).astype(np.float32).view(np.uint32)

    def _integers(self, tap: int, channel: int) -> Bits:
        values = self._elements(tap, channel)
        wide = values.astype(np.int32).view(np.uint32) if values.dtype.kind == "i" else values.astype(np.uint32)
        outside = np.uint32(int(self._bound.texture.border) & 0xFFFFFFFF)
        return np.where(self._taps[tap].inside, wide, outside)


def _distinct(texels: list[tuple[Any, npt.NDArray[np.bool_]]]) -> list[tuple[Any, npt.NDArray[np.bool_]]]:
    """The distinct texels of each warp in ascending order, up to 32 to an access, no sector in two of them."""
    reads = np.concatenate([lanes for _, lanes in texels], axis=1)
    offsets = np.concatenate([np.broadcast_to(o, lanes.shape) for o, lanes in texels], axis=1)
    ordered = np.sort(np.where(reads, offsets, _NOWHERE), axis=1)
    ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = _NOWHERE
    ordered.sort(axis=1)
    count = (ordered != _NOWHERE).sum(axis=1)
    columns = np.arange(ordered.shape[1])
    sector = ordered // _SECTOR
    begins = np.ones(ordered.shape, np.bool_)
    begins[:, 1:] = sector[:, 1:] != sector[:, :-1]
    # The column at which the sector of each column begins, and one past the end.
    sector_start = np.maximum.accumulate(np.where(begins, columns, 0), axis=1)
    sector_start = np.concatenate([sector_start, np.full((len(ordered), 1), ordered.shape[1])], axis=1)
    parts = []
    start = np.zeros(len(ordered), np.int64)
    while (start < count).any():
        full = np.minimum(start + LANES, ordered.shape[1])
        end = np.minimum(sector_start[np.arange(len(ordered)), full], count)
        place = start[:, None] + np.arange(LANES)
        valid = place < end[:, None]
        parts.append((np.take_along_axis(ordered, np.where(valid, place, 0), axis=1), valid))
        start = end
    return [(np.where(valid, part, 0), valid) for part, valid in parts]
