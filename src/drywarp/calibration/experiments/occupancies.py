"""Which occupancies are measured."""

from __future__ import annotations


def occupancies(most: int) -> list[int]:
    """Warps per SM from 1 to `most`, closer together where the bend of a boat hull may lie."""
    return [n for n in (1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64) if n <= most]
