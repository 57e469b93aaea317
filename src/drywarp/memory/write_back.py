"""What a kernel wrote and the L2 still holds when it ends: a write-back cache, which nothing empties at the end."""

from __future__ import annotations

from .geometry import MemoryGeometry


def dirty_at_the_end(read: float, written: float, waves: float, geometry: MemoryGeometry) -> float:
    """Sectors that were written and have not gone to DRAM, for a kernel whose waves read and write so many each.

    The L2 holds what was used last: the writes of the last wave, what that wave read, the writes of the wave before,
    and so on until it is full. No more of it can be dirty than `geometry.dirty_share`.
    """
    capacity = geometry.l2_bytes / geometry.sector_bytes
    if written <= 0:
        return 0.0
    whole = min(waves, capacity // (read + written))
    room = capacity - whole * (read + written)
    dirty = whole * written + min((min(waves, whole + 1) - whole) * written, room)
    return min(dirty, geometry.dirty_share * capacity)
