"""Addresses as affine functions of the block index, where sampled blocks show that they are.

If block (x, y, z) makes the same requests as a reference block, each shifted by cx·Δx + cy·Δy + cz·Δz
bytes, then the requests of every block of the grid are known without running it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ..kernel.launch.launch import Dim3, Launch
from ..kernel.profile import SPACE_GLOBAL, Profile
from .requests import Ints
from .table import distinct_rows

MOST_DEPARTURE = 0.25
"""The largest departure, as a fraction, of the grid's requests from those the reference block implies.

Blocks at an edge do slightly less. If the work itself differs between blocks, no block is a reference for the others.
"""


class Alike(Protocol):
    """Blocks that do what a reference block does, with each request shifted by some bytes."""

    @property
    def reference(self) -> int:
        """The sample that the other blocks match."""

    @property
    def rows(self) -> npt.NDArray[np.intp]:
        """Log rows of the reference block's global accesses, in issue order."""

    @property
    def mover(self) -> Ints:
        """For each row, the number of the group that it moves with, shape (rows,)."""

    def moves(self, linear: Ints) -> Ints:
        """Bytes from the reference's requests to those of some blocks, shape (blocks, movers)."""


@dataclass(frozen=True)
class AffineBlocks:
    """Requests of a reference block and how they move with the block index.

    `rows` are the log rows of the reference block's global accesses, in issue order; `coefficients` are bytes per step
    of the block index in x, y, z, shape (rows, 3). `checked` is the number of further sampled blocks on which the fit
    was exact, `share` the fraction of the grid that the agreeing samples represent, and `departure` how far all
    requests depart from those the reference block implies.
    """

    reference: int
    rows: npt.NDArray[np.intp]
    coefficients: Ints
    checked: int
    share: float
    departure: float
    launch: Launch
    origin: Dim3

    @cached_property
    def _unique(self) -> tuple[Ints, Ints]:
        return distinct_rows(self.coefficients)

    @property
    def mover(self) -> Ints:
        """Rows with equal coefficients move together: see `Alike`."""
        return self._unique[1]

    def moves(self, linear: Ints) -> Ints:
        """See `Alike`."""
        coordinates = np.stack(self.launch.coordinates(linear), axis=1)
        moved: Ints = (coordinates - np.array(self.origin)) @ self._unique[0].T
        return moved


def rows_of(profile: Profile, sample: int) -> npt.NDArray[np.intp]:
    """Log rows of one sampled block, warp by warp."""
    log, warps = profile.accesses, profile.launch.warps_per_block
    ends = np.array([sample * warps, (sample + 1) * warps], log.warp.dtype)
    return np.arange(*np.searchsorted(log.warp, ends))


def global_rows(profile: Profile, sample: int) -> npt.NDArray[np.intp]:
    """Log rows of one sampled block's global accesses, by (order, warp): warps interleaved."""
    log, rows = profile.accesses, rows_of(profile, sample)
    rows = rows[log.space[rows] == SPACE_GLOBAL]
    issued: npt.NDArray[np.intp] = rows[np.lexsort((log.warp[rows], log.order[rows]))]
    return issued


def fit_affine(profile: Profile) -> AffineBlocks | None:
    """Fit the largest group of sampled blocks that make the same requests; None if no fit can be shown.

    The fit must be exact to the byte on every block of the group. The group must determine the step in every dimension
    in which the grid extends, and hold one block more than that requires, unless every block of the grid was sampled.
    All blocks together must make about as many requests as if each belonged to the group.
    """
    log, launch = profile.accesses, profile.launch
    warps = launch.warps_per_block
    groups: dict[bytes, list[int]] = {}
    rows = [global_rows(profile, sample) for sample in range(len(profile.blocks))]
    for sample, mine in enumerate(rows):
        key = np.stack(
            [log.instruction[mine].astype(np.int64), log.pattern[mine], log.warp[mine] - sample * warps], axis=0
        )
        groups.setdefault(key.tobytes(), []).append(sample)
    weight = {key: sum(profile.blocks[s].weight for s in members) for key, members in groups.items()}
    best = max(groups, key=lambda key: (weight[key], -groups[key][0]))
    members = groups[best]
    reference = members[0]
    requests = sum(sample.weight * len(mine) for sample, mine in zip(profile.blocks, rows, strict=True))
    alike = len(rows[reference]) * launch.blocks
    departure = abs(requests - alike) / max(alike, 1)
    if departure > MOST_DEPARTURE:
        return None
    origin = np.array(profile.blocks[reference].coordinates)
    steps = np.array([profile.blocks[s].coordinates for s in members[1:]]).reshape(-1, 3) - origin
    needed = [d for d, extent in enumerate(launch.reach) if extent > 1]
    bases = np.stack([log.base[rows[s]] for s in members])
    complete = len(members) == launch.blocks
    rank = int(np.linalg.matrix_rank(steps)) if len(steps) else 0
    if rank < len(needed) and not complete:
        return None
    moves = bases[1:] - bases[0]
    if not len(rows[reference]):
        coefficients = np.zeros((0, 3), np.int64)
    elif len(steps):
        solved = np.linalg.lstsq(steps.astype(float), moves.astype(float), rcond=None)[0]
        coefficients = np.rint(solved).astype(np.int64).T
    else:
        coefficients = np.zeros((len(rows[reference]), 3), np.int64)
    if len(steps) and not np.array_equal(steps @ coefficients.T, moves):
        return None
    checked = len(steps) - rank
    if checked < 1 and not complete:
        return None
    share, place = weight[best] / launch.blocks, profile.blocks[reference].coordinates
    return AffineBlocks(reference, rows[reference], coefficients, checked, share, departure, launch, place)
