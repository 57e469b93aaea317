"""Create texture and surface objects from Python: `drywarp.texture(array, filter="linear")`."""

from __future__ import annotations

from typing import Any

from ...errors import UsageError
from .arguments import buffer_of
from .launch import Buffer, Texture
from .textures import make_object


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
    buffer = buffer_of(data, "texture")
    if buffer is None:
        raise UsageError(f"texture: got {data!r}, expected an array or a buffer's text, as in f32[512,512]:random")
    return buffer
