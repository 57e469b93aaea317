"""Textures and surfaces: a buffer, and how fetches through an object read or write it.

The words are those of CUDA's `cudaTextureDesc`; what is not said is as in one filled with zeros.
"""

from __future__ import annotations

from dataclasses import dataclass

from .launch import DTYPES, Buffer

ADDRESS_MODES = ("wrap", "clamp", "mirror", "border")
CHANNELS = (1, 2, 4)
CUBE_FACES = 6


@dataclass(frozen=True, slots=True)
class Texture:
    """A texture object, or a surface object where `surface` is set.

    `buffer` holds the elements row by row, the channels of a texel side by side. `extents` are those
    of the texels, width last: (width), (height, width) or (depth, height, width); of layered textures
    and cube maps the first counts layers or faces. `address` is one of `ADDRESS_MODES`. With
    `normalized` coordinates run from 0 to 1; with `normalized_float` integers are read as fractions of
    their range. `border` is the value of each channel outside under the mode ``border``.
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

    @property
    def shape(self) -> str:
        """The shape as machine code names it: ``2D``, ``ARRAY_1D``, ``CUBE``."""
        dimensions = "CUBE" if self.cube else f"{len(self.extents) - self.layered}D"
        return f"ARRAY_{dimensions}" if self.layered else dimensions

    @property
    def sizes(self) -> tuple[int, ...]:
        """Texels along x, y and z, as many as a fetch has coordinates within one layer or face."""
        return self.extents[1:][::-1] if self.layered or self.cube else self.extents[::-1]

    @property
    def layers(self) -> int:
        """Layers, or layers times faces; 1 where there are none."""
        return self.extents[0] if self.layered or self.cube else 1

    @property
    def texel_bytes(self) -> int:
        """Bytes of one texel, all channels."""
        return DTYPES[self.buffer.dtype][1] * self.channels

    @property
    def floating(self) -> bool:
        """Whether fetches give floating-point numbers."""
        return self.normalized_float or self.buffer.dtype in ("f16", "f32")

    @property
    def text(self) -> str:
        """The object as a user writes it."""
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
        """The array as a user writes it."""
        return f"[{'; '.join(o.text for o in self.objects)}]"
