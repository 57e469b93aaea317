"""What NumPy says that the rungs of the ladders compute."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]

CHECKED_BOXES = 8
"""Boxes of the near field that are worked out; the others are not compared."""
CHECKED_POINTS = 64
"""Points of the lattice whose potential is worked out."""


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


def cutcp(given: Arrays) -> Arrays:
    """Atoms nearer than a cutoff, in a periodic box of cells of that length; C0 takes them as fractions of the box."""
    box = np.array([given["x"], given["y"], given["z"]])
    atoms = given["atoms"].astype(np.float64)
    if "count" in given:
        held, charges = atoms[: given["count"], :3] * box, atoms[: given["count"], 3]
    else:
        slots = len(atoms) // box.prod()
        full = np.arange(slots) < given.get("counts", np.full(box.prod(), slots))[:, None]
        cells = np.indices(box[::-1]).reshape(3, -1).T[:, ::-1]  # x is the innermost
        held = (atoms[:, :3].reshape(-1, slots, 3) + cells[:, None])[full]
        charges = atoms[:, 3].reshape(-1, slots)[full]
    extents = 8 * box
    potential = np.full(extents.prod(), np.nan)
    for number in np.linspace(0, len(potential) - 1, CHECKED_POINTS).astype(int):
        z, y, x = np.unravel_index(number, extents[::-1])
        steps = np.array([x, y, z]) / 8 - held
        square = ((steps - np.rint(steps / box) * box) ** 2).sum(axis=1) + 1e-6
        near = square < 1
        potential[number] = (charges[near] / np.sqrt(square[near]) * (1 - square[near]) ** 2).sum()
    return {"map": potential}


def tpacf(given: Arrays) -> Arrays:
    """Pairs by the angle between them; each product is rounded where the kernel rounds it."""
    x, y, z = given["points"]
    edges = np.cos(np.radians(180 * 10 ** ((np.arange(1, 32) - 32) / 10))).astype(np.float32)
    pairs = np.zeros(32, np.int64)
    for own in range(given["count"]):
        last = z[own] * z
        inner = (np.float64(y[own]) * y + last).astype(np.float32)
        cosines = (np.float64(x[own]) * x + inner).astype(np.float32)
        pairs += np.bincount(31 - np.searchsorted(edges[::-1], cosines, side="right"), minlength=32)
    return {"bins": pairs}
