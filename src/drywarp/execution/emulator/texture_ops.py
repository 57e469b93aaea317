"""Texture fetches (TEX, TLD, TXD, TLD4), and surface loads and stores (SULD, SUST)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import EmulationError, UnsupportedInstructionError
from ...kernel.instruction import PT, Instruction, Predicate
from ...kernel.isa.nvidia.texture_operands import TextureOperands, surface_operands, texture_operands
from ...kernel.launch.launch import CUBE_FACES
from ...kernel.profile import SPACE_GLOBAL
from .decode import Decoder, Step, opcode, place
from .frame import Frame
from .memory_ops import gather_words, put_elements, scatter_words, width_of
from .operands import Fetch
from .texture_filter import BoundTexture, Tap, Texels, cube_face, gathered, of_each_object, taps, texels_at

_HINTS = " NODEP"
_FETCHED = ("TEX", "TXD")
_COMPONENTS = ("R", "G", "B", "A")
Bits = npt.NDArray[np.uint32]


@opcode("TEX", "SCR B LL LZ LB" + _HINTS)
def _sample(d: Decoder, i: Instruction) -> Step:
    return _fetch(d, i, _filtered)


@opcode("TXD", "B" + _HINTS)
def _sample_with_derivatives(d: Decoder, i: Instruction) -> Step:
    """Derivatives choose a level of detail, and there is one level."""
    return _fetch(d, i, _filtered)


@opcode("TLD", "SCR B LZ LL" + _HINTS)
def _load(d: Decoder, i: Instruction) -> Step:
    return _fetch(d, i, lambda bound, places: [texels_at(bound.texture, places)])


@opcode("TLD4", "SCR R G B A" + _HINTS)
def _gather(d: Decoder, i: Instruction) -> Step:
    # The component comes before a .B that says that the object is in a register.
    component = _COMPONENTS.index(next((m for m in i.modifiers if m in _COMPONENTS), "R"))
    known = _operands(i)
    puts = [d.put(register) for register in known.results]

    def read(f: Frame, bound: BoundTexture, lanes: Any, layer: Any, places: list[Any]) -> list[Bits]:
        found = Texels(bound, layer, gathered(bound.texture, places)).record(f, lanes, number, d.recorder)
        return [found.channel(tap, component) for tap in known.channels]

    number = i.pc // 16
    return _step(d, i, known, puts, read)


def _filtered(bound: BoundTexture, places: list[Any]) -> list[Tap]:
    return taps(bound.texture, places, bound.texture.linear)


def _operands(i: Instruction) -> TextureOperands:
    known = texture_operands(i)
    if known is None:
        raise UnsupportedInstructionError("a form of texture instruction that CUDA C++ does not make")
    return known


def _fetch(d: Decoder, i: Instruction, texels: Callable[[BoundTexture, list[Any]], list[Tap]]) -> Step:
    known = _operands(i)
    puts = [d.put(register) for register in known.results]
    number = i.pc // 16

    def read(f: Frame, bound: BoundTexture, lanes: Any, layer: Any, places: list[Any]) -> list[Bits]:
        found = Texels(bound, layer, texels(bound, places)).record(f, lanes, number, d.recorder)
        return [found.filtered(channel) for channel in known.channels]

    return _step(d, i, known, puts, read)


def _step(
    d: Decoder, i: Instruction, known: TextureOperands, puts: Sequence[Any],
    read: Callable[[Frame, BoundTexture, Any, Any, list[Any]], list[Bits]],
) -> Step:  # fmt: skip
    """A step that finds each lane's texture and writes what `read` returns for its coordinates."""
    handle = d.word(known.handle)
    coordinates = [d.word(register) for register in known.coordinates]
    layer: Fetch | None = d.word(known.layer) if known.layer is not None else None
    absent = d.put_predicate(known.absent or Predicate(PT))
    integers = i.opcode == "TLD"

    def step(f: Frame) -> None:
        raw = [f.spread(c(f)) for c in coordinates]
        wanted = f.spread(layer(f)).astype(np.int64) if layer is not None else None
        values = [np.zeros(raw[0].shape, np.uint32) for _ in puts]
        for bound, lanes in of_each_object(d, i, f, handle):
            places = _within(bound, known.shape, d, i, raw if integers else [c.view(np.float32) for c in raw])
            number, places = _layer_of(bound, wanted, places)
            for value, new in zip(values, read(f, bound, lanes, number, places), strict=True):
                np.copyto(value, new, where=lanes)
        for put, value in zip(puts, values, strict=True):
            put(f, value)
        absent(f, np.bool_(False))

    return step


def _within(bound: BoundTexture, shape: str, d: Decoder, i: Instruction, places: list[Any]) -> list[Any]:
    """The coordinates of the texture. `tex1D` is a two-dimensional fetch whose second coordinate is 0."""
    texture = bound.texture
    if shape == "2D" and texture.shape == "1D" and i.opcode in _FETCHED:
        return places[:1]
    if shape != texture.shape:
        bound.refuse(d, i, f"is read as {shape}")
    return places


def _layer_of(bound: BoundTexture, wanted: Any, places: list[Any]) -> tuple[Any, list[Any]]:
    """The layer of each lane, kept inside the texture, and the coordinates within it."""
    texture = bound.texture
    layers = texture.layers
    if not texture.cube:
        return (np.minimum(wanted, layers - 1) if wanted is not None else np.int64(0)), places
    face, s, t = cube_face(*places)
    cubes = layers // CUBE_FACES
    first = np.minimum(wanted, cubes - 1) * CUBE_FACES if wanted is not None else np.int64(0)
    size = texture.sizes[0]
    return first + face, [s, t] if texture.normalized else [s * size, t * size]


# Surface loads and stores: SULD and SUST in bytes, on surfaces that lie row by row in device memory.

_MODIFIERS = "D BA 1D 2D 3D 1D_ARRAY 2D_ARRAY TRAP IGN STRONG WEAK CTA SM GPU SYS U8 U16 64 128 CONSTANT EF EL LU NA"
Index = npt.NDArray[np.int64]
Lanes = npt.NDArray[np.bool_]


class _Access:
    """One surface instruction: where its lanes' coordinates lead."""

    def __init__(self, d: Decoder, i: Instruction) -> None:
        known = surface_operands(i)
        if known is None or "P" in i.modifiers:
            raise UnsupportedInstructionError("a form of surface instruction that CUDA C++ does not make")
        self.known: TextureOperands = known
        self.width = width_of(i)
        self.handle = d.word(known.handle)
        self._coordinates = [d.word(register) for register in known.coordinates]
        self._layer = d.word(known.layer) if known.layer is not None else None
        self._decoder, self._instruction = d, i
        self._traps = "TRAP" in i.modifiers
        self._ignores = "IGN" in i.modifiers
        self.view = d.memory.views[self.width]

    def places(self, f: Frame, bound: BoundTexture, lanes: Lanes) -> tuple[Index, Lanes]:
        """Indices into `view`, and the lanes that lie inside the surface; recorded as accesses."""
        d, i, texture = self._decoder, self._instruction, bound.texture
        if self.known.shape != texture.shape and not (texture.cube and self.known.shape == "ARRAY_2D"):
            bound.refuse(d, i, f"is accessed as {self.known.shape}")
        places = [f.spread(c(f)).view(np.int32).astype(np.int64) for c in self._coordinates]
        sizes = [texture.sizes[0] * texture.texel_bytes, *texture.sizes[1:]]
        if (places[0][lanes] % self.width).any():
            self._fail(
                f, bound, lanes & (places[0] % self.width != 0), places, "is not a multiple of the access's width"
            )
        ends = [sizes[0] - self.width, *(size - 1 for size in sizes[1:])]
        if self._layer is not None:
            places.append(f.spread(self._layer(f)).view(np.int32).astype(np.int64))
            sizes, ends = [*sizes, texture.layers], [*ends, texture.layers - 1]
        inside = lanes.copy()
        for at, end in zip(places, ends, strict=True):
            inside &= (at >= 0) & (at <= end)
        if self._traps and (lanes & ~inside).any():
            self._fail(f, bound, lanes & ~inside, places, "is outside")
        if not self._ignores:
            inside = lanes
        offset: Any = np.int64(0)
        for at, end, size in reversed(list(zip(places, ends, sizes, strict=True))):
            offset = offset * size + np.clip(at, 0, end)
        self._record(f, bound, inside, offset)
        return (offset + (bound.region.start - bound.memory.start)) // self.width, inside

    def _record(self, f: Frame, bound: BoundTexture, inside: Lanes, offset: Index) -> None:
        if not inside.any():
            return
        bound.memory.prepare(bound.region, offset[inside].astype(np.uint64))
        saved = f.narrow(inside)
        try:
            start = np.int64(bound.region.start)
            self._decoder.recorder.access(f, self._instruction.pc // 16, offset + start, SPACE_GLOBAL)
        finally:
            f.restore(saved)

    def _fail(self, f: Frame, bound: BoundTexture, wrong: Lanes, places: list[Index], what: str) -> None:
        row, lane = (int(x[0]) for x in np.nonzero(wrong))
        where = ", ".join(str(int(at[row, lane])) for at in places)
        extents = ",".join(map(str, bound.texture.extents))
        raise EmulationError(
            f"{place(self._decoder.kernel, self._instruction)}: surface {bound.region.name} of [{extents}] texels of"
            f" {bound.texture.texel_bytes} bytes: ({where}), x in bytes, {what},"
            f" {f.machine.thread_name(int(f.warps[row]), lane)}"
        )


@opcode("SULD", _MODIFIERS)
def _surface_ops_load(d: Decoder, i: Instruction) -> Step:
    access = _Access(d, i)
    puts = [d.put(register) for register in access.known.results]
    absent = [d.put_predicate(o) for o in i.operands[:1] if isinstance(o, Predicate)]

    def load(f: Frame) -> None:
        values = np.zeros((f.rows, 32), access.view.dtype)
        for bound, lanes in of_each_object(d, i, f, access.handle, surface=True):
            index, inside = access.places(f, bound, lanes)
            values[inside] = access.view[index[inside]]
        if access.width >= 4:
            scatter_words(f, puts, values, None)
        else:
            puts[0](f, values.astype(np.uint32))
        for put in absent:
            put(f, np.bool_(False))

    return load


@opcode("SUST", _MODIFIERS)
def _store(d: Decoder, i: Instruction) -> Step:
    access = _Access(d, i)
    sources = [d.word(register) for register in access.known.others]

    def store(f: Frame) -> None:
        values = gather_words(f, sources, access.width)
        for bound, lanes in of_each_object(d, i, f, access.handle, surface=True):
            index, inside = access.places(f, bound, lanes)
            saved = f.narrow(inside)
            try:
                put_elements(f, access.view, index, values)
            finally:
                f.restore(saved)

    return store
