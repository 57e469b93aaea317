"""User syntax for texture and surface objects, and the combinations that CUDA supports.

texture:f32[1024,1024]:random
texture(linear,clamp,normalized):f32x4[512,512]:random
surface:u8x4[480,640]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import UsageError
from .launch import ADDRESS_MODES, CHANNELS, CUBE_FACES, Buffer, Texture, TextureTable
from .values import as_buffer

TEXTURE_TYPES = ("cudaTextureObject_t", "CUtexObject")
SURFACE_TYPES = ("cudaSurfaceObject_t", "CUsurfObject")
"""Declared types of parameters that take an object."""

_TEXT = re.compile(r"^(texture|surface)(?:\(([^()]*)\))?:(.+)$", re.S)
_TEXELS = re.compile(r"^(\w+?)(?:x(\d+))?\[([^\]]*)\](:.+)?$", re.S)
_ELEMENTS = ("f16", "f32", "i8", "i16", "i32", "u8", "u16", "u32")
_FLAGS = ("normalized", "normalized_float", "layered", "cube")
_FILTERS = ("point", "linear")


def parse_texture(text: str, place: str, buffer_of: Callable[[Any, str], Buffer | None]) -> Texture | None:
    """Parse a texture or surface; None if the text does not start like one.

    `buffer_of` parses a buffer. Raises UsageError naming `place`.
    """
    match = _TEXT.match(text.strip())
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
