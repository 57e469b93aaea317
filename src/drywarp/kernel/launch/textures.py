"""User syntax for tensor maps, textures and surfaces.

Tensor maps, as far as the driver accepts them (`cuTensorMapEncodeTiled` and `…Im2col`):

tensormap(box=128x64,swizzle=128):f16[4096,4096]:random
tensormap(box=64x64):C          another view of the buffer of argument C
tensormap(box=128x64,lower=-1x-1,upper=-1x-1):f16[8,56,56,64]          im2col: 128 pixels of 64 channels
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import UsageError
from ..kernel import Parameter
from .launch import (
    ADDRESS_MODES,
    CHANNELS,
    CUBE_FACES,
    DTYPES,
    MAP_BYTES,
    SWIZZLES,
    Buffer,
    TensorMap,
    Texture,
    TextureTable,
    array_buffer,
)
from .values import as_buffer

EXAMPLE = "tensormap(box=64x64,swizzle=128):f16[4096,4096]:random"
MAP_TYPES = ("CUtensorMap", "CUtensorMap_st")
_TEXT = re.compile(r"^tensormap\(([^()]*)\):(.+)$", re.S)
_NAME = re.compile(r"^[A-Za-z_]\w*(?:(?:\[\d+\])?\.[A-Za-z_]\w*)*$")
"""An argument, or a field of one."""
_EXTENTS = {"box": "box", "shape": "shape", "strides": "strides", "step": "element_strides"}
_CORNERS = ("lower", "upper")
"""Fields of `TensorMap` for the options that list extents."""
_MOST_DIMENSIONS, _LARGEST_BOX, _LARGEST_STEP = 5, 256, 8
_PIECE = 16
"""Alignment in bytes of a row of a box, and of the distance between rows in memory."""
_MOST_PIXELS = 1024
_FARTHEST = {3: 1 << 15, 4: 1 << 7, 5: 1 << 4}
"""How far below zero a corner of an im2col map of so many dimensions may lie; above zero, one less."""


def tensor_map(
    tensor: Any,
    *,
    box: Sequence[int],
    swizzle: int = 0,
    shape: Sequence[int] = (),
    strides: Sequence[int] = (),
    step: Sequence[int] = (),
    nan: bool = False,
    lower: Sequence[int] = (),
    upper: Sequence[int] = (),
) -> TensorMap:
    """Create a tensor map over a NumPy array, or over the buffer of another argument, given by name.

    Extents are in NumPy order, the fastest dimension last. `shape` and `strides` (in elements, of all dimensions but
    the last) view the buffer as a different tensor; `step` is the element strides of a box. `lower` and `upper`
    make it an im2col map (see `TensorMap`). Raises UsageError for anything that the driver would reject; a map of
    another argument is checked when the launch is created.
    """
    buffer = array_buffer(tensor) if isinstance(tensor, np.ndarray) else tensor if isinstance(tensor, Buffer) else None
    name = tensor if isinstance(tensor, str) and _NAME.match(tensor) else ""
    if buffer is None and not name:
        raise UsageError(f"tensor map: got {tensor!r}, expected an array or the name of another argument")
    made = TensorMap(buffer, name, tuple(box), tuple(shape), tuple(strides), tuple(step), int(swizzle), bool(nan))
    made = replace(made, lower=tuple(lower), upper=tuple(upper))
    return made if buffer is None else completed(made, buffer, "tensor map")


def given_map(
    parameter: Parameter, value: Any, place: str, buffer_of: Callable[[Any, str], Buffer | None]
) -> TensorMap | None:
    """The value as a tensor map; None if it is something else that the parameter may take.

    `buffer_of` parses a buffer. Raises UsageError naming `place`.
    """
    given = value if isinstance(value, TensorMap) else None
    if isinstance(value, str):
        given = _parsed(value.strip(), place, buffer_of)
    wanted = parameter.type.split("::")[-1] in MAP_TYPES and not parameter.pointer
    if given is None:
        if wanted:
            raise UsageError(f"{place}: got {value!r}, expected a tensor map, as in {EXAMPLE}")
        return None
    if parameter.pointer or parameter.size != MAP_BYTES:
        raise UsageError(f"{place}: got a tensor map, which is {MAP_BYTES} bytes passed by value")
    return given


def _parsed(text: str, place: str, buffer_of: Callable[[Any, str], Buffer | None]) -> TensorMap | None:
    match = _TEXT.match(text)
    if match is None:
        if re.match(r"^tensormap\b", text):
            raise UsageError(f"{place}: {text!r}: expected {EXAMPLE}")
        return None
    said: dict[str, Any] = {}
    for option in filter(None, (part.strip() for part in match[1].split(","))):
        name, equals, number = option.partition("=")
        if name == "nan" and not equals:
            said["nan"] = True
        elif name == "swizzle" and number.isdecimal():
            said[name] = int(number)
        elif name in _EXTENTS and re.fullmatch(r"\d+(x\d+)*", number):
            said[_EXTENTS[name]] = tuple(int(part) for part in number.split("x"))
        elif name in _CORNERS and re.fullmatch(r"-?\d+(x-?\d+)*", number):
            said[name] = tuple(int(part) for part in number.split("x"))
        else:
            raise UsageError(
                f"{place}: tensor map option {option!r}: expected box=64x64 or step=1x1 (in elements), swizzle=128 "
                "(in bytes, default 0), shape=4096x4096 or strides=4096 (in elements, default: the buffer's), nan, "
                "or for im2col lower=-1x-1 and upper=-1x-1 (in pixels)"
            )
    if "box" not in said:
        raise UsageError(f"{place}: {text!r}: no box; expected {EXAMPLE}")
    name = match[2].strip()
    if _NAME.match(name):
        return TensorMap(None, name, **said)
    buffer = buffer_of(name, place)
    if buffer is None:
        raise UsageError(f"{place}: {text!r}: expected a buffer or the name of an argument, as in {EXAMPLE}")
    return completed(TensorMap(buffer, "", **said), buffer, place)


def completed(made: TensorMap, buffer: Buffer, place: str) -> TensorMap:
    """The map with its defaults filled in from the buffer. Raises UsageError for anything that the driver rejects."""
    shape = made.shape or buffer.shape
    rank, width = len(shape), DTYPES[buffer.dtype][1]

    def need(holds: bool, expected: str) -> None:
        if not holds:
            raise UsageError(f"{place}: {expected}")

    def listed(extents: tuple[int, ...]) -> str:
        return "x".join(map(str, extents))

    need(1 <= rank <= _MOST_DIMENSIONS, f"a tensor of {rank} dimensions: expected 1 to {_MOST_DIMENSIONS}")
    need(min(shape) >= 1 and max(shape) <= 1 << 32, f"shape {listed(shape)}: expected extents of 1 to 2³²")
    if made.lower or made.upper:
        _check_columns(made, rank, need)
    else:
        need(len(made.box) == rank, f"box {listed(made.box)}: expected {rank} extents, as the tensor has")
        box_fits = all(1 <= extent <= _LARGEST_BOX for extent in made.box)
        need(box_fits, f"box {listed(made.box)}: expected extents of 1 to {_LARGEST_BOX}")
    row = made.box[-1] * width
    need(row % _PIECE == 0, f"box {listed(made.box)}: {row} bytes in a row, expected a multiple of {_PIECE}")
    need(made.swizzle in SWIZZLES, f"swizzle {made.swizzle}: expected one of {', '.join(map(str, SWIZZLES))}")
    need(
        not made.swizzle or row <= made.swizzle,
        f"box {listed(made.box)}: {row} bytes in a row, expected at most the swizzle's {made.swizzle}",
    )
    steps = made.element_strides or (1,) * rank
    step_fits = len(steps) == rank and all(1 <= step <= _LARGEST_STEP for step in steps)
    need(step_fits, f"step {listed(steps)}: expected {rank} numbers of elements, 1 to {_LARGEST_STEP}")
    strides = made.strides or tuple(int(np.prod(shape[axis + 1 :])) for axis in range(rank - 1))
    need(len(strides) == rank - 1, f"strides {listed(strides)}: expected {rank - 1} in elements, all but the last")
    apart = tuple(stride * width for stride in strides)
    need(all(gap % _PIECE == 0 for gap in apart), f"rows {listed(apart)} bytes apart: expected multiples of {_PIECE}")
    need(max(apart, default=0) < 1 << 40, f"rows {listed(apart)} bytes apart: expected less than 2⁴⁰")
    last = sum((extent - 1) * stride for extent, stride in zip(shape, (*strides, 1), strict=True)) + 1
    need(last <= buffer.count, f"the tensor needs {last} elements, but its buffer has {buffer.count}")
    need(not made.nan or buffer.dtype in ("f16", "bf16", "f32", "f64"), f"nan: {buffer.dtype} has no NaN")
    return replace(made, shape=shape, strides=strides, element_strides=steps, dtype=buffer.dtype)


def _check_columns(made: TensorMap, rank: int, need: Callable[[bool, str], None]) -> None:
    """What the driver asks of an im2col map (CUDA driver API 13, `cuTensorMapEncodeIm2col`)."""
    box = "x".join(map(str, made.box))
    need(rank in _FARTHEST, f"an im2col map of {rank} dimensions: expected 3 to 5")
    fits = len(made.box) == 2 and 1 <= made.box[0] <= _MOST_PIXELS and 1 <= made.box[1] <= _LARGEST_BOX
    need(fits, f"box {box}: expected 1 to {_MOST_PIXELS} pixels x 1 to {_LARGEST_BOX} channels, as in box=128x64")
    for name, corner in made.corners:
        most = _FARTHEST[rank]
        near = len(corner) == rank - 2 and all(-most <= part < most for part in corner)
        text = "x".join(map(str, corner)) or "missing"
        need(near, f"{name} {text}: expected {rank - 2} numbers of pixels, {-most} to {most - 1}")


# Texture and surface objects, in the combinations that CUDA supports.
#
# texture:f32[1024,1024]:random
# texture(linear,clamp,normalized):f32x4[512,512]:random
# surface:u8x4[480,640]

TEXTURE_TYPES = ("cudaTextureObject_t", "CUtexObject")
SURFACE_TYPES = ("cudaSurfaceObject_t", "CUsurfObject")
"""Declared types of parameters that take an object."""

_OBJECT_TEXT = re.compile(r"^(texture|surface)(?:\(([^()]*)\))?:(.+)$", re.S)
_TEXELS = re.compile(r"^(\w+?)(?:x(\d+))?\[([^\]]*)\](:.+)?$", re.S)
_ELEMENTS = ("f16", "f32", "i8", "i16", "i32", "u8", "u16", "u32")
_FLAGS = ("normalized", "normalized_float", "layered", "cube")
_FILTERS = ("point", "linear")


def parse_texture(text: str, place: str, buffer_of: Callable[[Any, str], Buffer | None]) -> Texture | None:
    """Parse a texture or surface; None if the text does not start like one.

    `buffer_of` parses a buffer. Raises UsageError naming `place`.
    """
    match = _OBJECT_TEXT.match(text.strip())
    if match is None:
        if re.match(r"^(texture|surface)\b", text.strip()):
            raise UsageError(f"{place}: {text!r}: expected {_example(text)}")
        return None
    kind, options, rest = match[1], [o.strip() for o in (match[2] or "").split(",") if o.strip()], match[3]
    border = 0.0
    for option in list(options):
        if option.startswith("border="):
            options[options.index(option)] = "border"
            border = _border(option, place)
    texels = _TEXELS.match(rest)
    if texels is None:
        buffer = buffer_of(rest, place)
        channels = 1
    else:
        channels = int(texels[2] or 1)
        extents = texels[3] + (f",{channels}" if channels > 1 else "")
        buffer = buffer_of(f"{texels[1]}[{extents}]{texels[4] or ''}", place)
    if buffer is None:
        raise UsageError(f"{place}: {text!r}: expected {_example(text)}")
    return make_object(kind, options, buffer, channels, place, border)


def _example(text: str) -> str:
    return "surface:f32[1024,1024]" if text.startswith("surface") else "texture(linear,clamp):f32[1024,1024]:random"


def _border(option: str, place: str) -> float:
    try:
        return float(option.partition("=")[2])
    except ValueError:
        raise UsageError(f"{place}: {option!r}: expected border=NUMBER") from None


def make_object(
    kind: str, options: Sequence[str], buffer: Buffer, channels: int, place: str, border: float = 0.0
) -> Texture:
    """Create a ``texture`` or ``surface`` over a buffer; with several channels, they are the buffer's last extent.

    `options` are words as in the user syntax. Raises UsageError naming `place` for anything that CUDA rejects.
    """
    known = {*_FLAGS, *_FILTERS, *ADDRESS_MODES} if kind == "texture" else {"layered", "cube"}
    for option in options:
        if option not in known:
            raise UsageError(f"{place}: unknown {kind} option {option!r}; expected {', '.join(sorted(known))}")
    modes = [o for o in options if o in ADDRESS_MODES]
    if len(modes) > 1 or len(set(options) & set(_FILTERS)) > 1:
        raise UsageError(f"{place}: {', '.join(options)}: expected one address mode and one filter")
    if buffer.dtype not in _ELEMENTS:
        raise UsageError(f"{place}: {kind} of {buffer.dtype}: expected elements of {', '.join(_ELEMENTS)}")
    if channels not in CHANNELS:
        raise UsageError(f"{place}: {channels} channels: expected 1, 2 or 4")
    extents = buffer.shape
    if channels > 1:
        if buffer.shape[-1] != channels or len(buffer.shape) < 2:
            raise UsageError(
                f"{place}: an array of shape {buffer.shape}: expected its last extent to be {channels} channels"
            )
        extents = extents[:-1]
    made = Texture(
        buffer,
        extents,
        channels,
        surface=kind == "surface",
        linear="linear" in options,
        address=modes[0] if modes else "wrap",
        normalized="normalized" in options or ("cube" in options and kind == "texture"),
        normalized_float="normalized_float" in options,
        layered="layered" in options,
        cube="cube" in options,
        border=border,
    )
    _check(made, place)
    return made


def _check(made: Texture, place: str) -> None:
    """Raise UsageError for anything that CUDA rejects when the object is created."""
    extents = ",".join(map(str, made.extents))
    if made.cube:
        *_, height, width = (0, 0, *made.extents)
        faces_fit = made.extents[0] % CUBE_FACES == 0 if made.layered else made.extents[0] == CUBE_FACES
        if len(made.extents) != 3 or height != width or not faces_fit:
            raise UsageError(f"{place}: cube map of [{extents}]: expected [6,size,size], or a multiple of 6 if layered")
    elif not 1 <= len(made.extents) - made.layered <= 3 - made.layered:
        raise UsageError(f"{place}: {len(made.extents)} extents [{extents}]: expected 1 to 3, or 2 to 3 if layered")
    wide = made.buffer.dtype[1:] == "32"
    if made.normalized_float and (wide or made.buffer.dtype[0] == "f"):
        raise UsageError(f"{place}: normalized_float of {made.buffer.dtype}: expected 8-bit or 16-bit integers")
    if made.linear and not made.floating:
        raise UsageError(
            f"{place}: linear filtering of {made.buffer.dtype}: expected f16 or f32, or integers with normalized_float"
        )


def texture_table(
    value: Any, kind: str, place: str, buffer_of: Callable[[Any, str], Buffer | None]
) -> TextureTable | None:
    """Parse an array of objects: a list of objects or texts, or `[texture:…; texture:…]`; None for anything else.

    `kind` is the required kind of the elements. Raises UsageError naming `place`.
    """
    if isinstance(value, str) and value.strip().startswith("["):
        value = [part for part in value.strip().removeprefix("[").removesuffix("]").split(";") if part.strip()]
    elif isinstance(value, str) and parse_texture(value, place, buffer_of) is not None:
        raise UsageError(f"{place}: got one {kind}, expected several, as in [{kind}:f32[8,8]; {kind}:f32[8,8]]")
    if not isinstance(value, list | tuple):
        return None
    objects = []
    for number, part in enumerate(value):
        made = part if isinstance(part, Texture) else parse_texture(str(part), f"{place}[{number}]", buffer_of)
        if made is None or made.surface != (kind == "surface"):
            raise UsageError(f"{place}[{number}]: got {part!r}, expected a {kind}, as in {kind}:f32[1024,1024]")
        objects.append(made)
    if not objects:
        raise UsageError(f"{place}: an empty list, expected at least one {kind}")
    return TextureTable(tuple(objects))


def same_kind(made: Texture, type_name: str) -> bool:
    """Whether a parameter of this type takes the object; a parameter of unknown type takes both kinds."""
    if type_name in TEXTURE_TYPES:
        return not made.surface
    return made.surface if type_name in SURFACE_TYPES else True


# Texture and surface objects from Python: `drywarp.texture(array, filter="linear")`.


def texture(
    data: Any,
    *,
    filter: str = "point",
    address: str = "wrap",
    normalized: bool = False,
    normalized_float: bool = False,
    layered: bool = False,
    cube: bool = False,
    channels: int = 1,
    border: float = 0.0,
) -> Texture:
    """Create a texture object over a NumPy array, or over a text such as ``"f32[512,512]:random"``.

    Extents are those of the array, width last; with 2 or 4 `channels`, the array's last extent is the channels. Terms
    and defaults are those of CUDA's `cudaTextureDesc`. Raises UsageError for a combination that CUDA does not support.
    """
    flags = {"normalized": normalized, "normalized_float": normalized_float, "layered": layered, "cube": cube}
    options = [filter, address, *(name for name, said in flags.items() if said)]
    return make_object("texture", options, _buffer(data), channels, "texture", border)


def surface(data: Any, *, layered: bool = False, cube: bool = False, channels: int = 1) -> Texture:
    """Create a surface object over a NumPy array or a text; see `texture`."""
    options = [name for name, said in (("layered", layered), ("cube", cube)) if said]
    return make_object("surface", options, _buffer(data), channels, "surface")


def _buffer(data: Any) -> Buffer:
    buffer = as_buffer(data, "texture")
    if buffer is None:
        raise UsageError(f"texture: got {data!r}, expected an array or a buffer's text, as in f32[512,512]:random")
    return buffer
