"""The texels of one fetch: read from device memory, recorded as accesses, filtered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..kernel.launch import DTYPES
from ..kernel.profile import SPACE_GLOBAL
from .bits import LANES
from .content import numpy_dtype
from .frame import Frame
from .memory import ARENA_START
from .recorder import Recorder
from .texture_filter import Tap
from .textures import BoundTexture

_SECTOR = 32
"""Bytes that caches of all GPUs move at once: what one access reads of them another need not ask for again."""
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
        """Note the accesses of `lanes`: every texel once per warp, however many lanes and taps want it."""
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
        at = (self._offsets[tap] + (region.start - ARENA_START)) // dtype.itemsize + channel
        elements: npt.NDArray[Any] = np.asarray(view.take(at)).view(dtype)
        return elements

    def _numbers(self, tap: int, channel: int) -> npt.NDArray[np.float64]:
        """The same as floating-point numbers, border values put in."""
        texture = self._bound.texture
        name = texture.buffer.dtype
        values = self._elements(tap, channel).astype(np.float64)
        if texture.normalized_float:
            bits = 8 * DTYPES[name][1]
            # The least signed number and the one after it both are -1.
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
    # The column at which the sector of each column begins; one more, for the end.
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
