"""Which texels a fetch reads and how much each counts: filtering and addressing as the CUDA guide states them.

With linear filtering a coordinate x between texel centres reads floor(x - 0.5) and the next one; the
fraction that weighs them has eight bits, so that 1.0 is among its values.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..kernel.texture import Texture

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Lanes = npt.NDArray[np.bool_]

_WEIGHT_STEPS = 256.0
_FARTHEST = 2.0**40
"""Coordinates beyond this are taken as this, so that their places fit into integers."""


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
    """The texel that lanes read at integer coordinates; outside the texture there is none."""
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
        for (place, part), size in zip(reversed(choice), texture.sizes, strict=True):
            addressed, inside = _addressed(place, size, _mode(texture))
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
    for place, valid, size in reversed(list(zip(places, insides, texture.sizes, strict=True))):
        number = number * size + place
        inside = inside & valid
    return np.where(inside, number, 0), np.asarray(inside)


def cube_face(x: Any, y: Any, z: Any) -> tuple[Index, Floats, Floats]:
    """Face of a direction, and the coordinates 0 to 1 on it: by the guide's table of faces.

    The coordinate of largest magnitude chooses; of equal ones x goes before y and y before z.
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
