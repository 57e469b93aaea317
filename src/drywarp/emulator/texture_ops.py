"""Texture fetches: TEX, TLD, TXD and TLD4 on textures that lie row by row in device memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import UnsupportedInstructionError
from ..kernel.instruction import Instruction
from ..kernel.operand import PT, Predicate
from ..kernel.texture import CUBE_FACES
from ..kernel.texture_operands import TextureOperands, texture_operands
from .decode import Decoder, Step, opcode
from .frame import Frame
from .operands import Fetch
from .texels import Texels
from .texture_filter import Tap, cube_face, gathered, taps, texels_at
from .textures import BoundTexture, of_each_object

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
    """A step that finds the texture of every lane and writes what `read` makes of its coordinates."""
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
    """The coordinates that the texture has. `tex1D` is a fetch in two dimensions whose second one is 0."""
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
