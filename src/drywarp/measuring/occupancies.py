"""Which dynamic shared memory brings a kernel to which occupancy, as in section 6.3 of the analysis paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

STEP_BYTES = 256
"""Dynamic shared memory is tried in these steps: no GPU deals it out more finely."""


@dataclass(frozen=True)
class Occupied:
    """So much dynamic shared memory, and the blocks that an SM then holds."""

    dynamic_shared: int
    blocks: int


def occupancies(blocks: Callable[[int], int], own: int, most: int, points: int) -> list[Occupied]:
    """The least dynamic shared memory for each of up to `points` occupancies, spread evenly, the highest first.

    `blocks` says how many blocks an SM holds with so many bytes, `own` is what the kernel itself needs and `most` what
    a block may have. Low occupancies for which `most` does not do are left out, and so are those between two that the
    units of allocation allow. Empty where not even one block fits.
    """
    highest = blocks(own)
    if highest < 1:
        return []
    found = [Occupied(own, highest)]
    for wanted in _spread(highest, points)[1:]:
        held = _least(blocks, own, most, wanted)
        if held is not None and 0 < held.blocks < found[-1].blocks:
            found.append(held)
    return found


def _spread(highest: int, points: int) -> list[int]:
    """From `highest` down to 1, at most `points` of them, as even as whole numbers are."""
    count = min(points, highest)
    if count <= 1:
        return [highest]
    return [round(highest - at * (highest - 1) / (count - 1)) for at in range(count)]


def _least(blocks: Callable[[int], int], own: int, most: int, wanted: int) -> Occupied | None:
    """The smallest number of bytes with which an SM holds `wanted` blocks or fewer; blocks fall as bytes grow."""
    low, high = 0, (most - own) // STEP_BYTES
    if high < 0 or blocks(own + high * STEP_BYTES) > wanted:
        return None
    while low < high:
        middle = (low + high) // 2
        if blocks(own + middle * STEP_BYTES) <= wanted:
            high = middle
        else:
            low = middle + 1
    return Occupied(own + low * STEP_BYTES, blocks(own + low * STEP_BYTES))
