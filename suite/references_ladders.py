"""What NumPy says that the rungs of the ladders compute."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]

CHECKED_BOXES = 8
"""Boxes of the near field that are worked out; the others are not compared."""


def reduce(given: Arrays) -> Arrays:
    """Each block's sum; a block of K3 and K4 has two elements a thread, one of K5 and K6 goes on over the grid."""
    n, blocks, share = given["n"], len(given["out"]), 256 * given["turns"]
    padded = np.zeros(-(-n // (blocks * share)) * blocks * share, np.int64)
    padded[:n] = given["in"][:n]
    return {"out": padded.reshape(-1, blocks, share).sum(axis=(0, 2))}


def sgemm(given: Arrays) -> Arrays:
    return {"C": given["A"].astype(np.float64) @ given["B"].astype(np.float64)}


def near_field(given: Arrays) -> Arrays:
    count, held, side = given["count"], given["POINTS"], given["side"]
    points = given["points"].astype(np.float64)
    boxes = (points if given.get("PACKED") else points.T).reshape(side, side, side, held, 4)
    potentials = np.full((side, side, side, held), np.nan)
    for number in np.linspace(0, side**3 - 1, min(CHECKED_BOXES, side**3)).astype(int):
        z, y, x = np.unravel_index(number, (side, side, side))
        own = boxes[z, y, x]
        total = np.zeros(held)
        for dz, dy, dx in np.ndindex(3, 3, 3):
            near = boxes[(z + dz - 1) % side, (y + dy - 1) % side, (x + dx - 1) % side]
            square = ((own[:, None, :3] - near[:, :3]) ** 2).sum(axis=-1) + np.float32(1e-3)
            total += (near[:, 3] / np.sqrt(square)).sum(axis=-1)
        potentials[z, y, x] = total
    return {"potentials": potentials.reshape(count)}
