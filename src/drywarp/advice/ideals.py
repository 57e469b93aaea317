"""The least that the accesses of an instruction could cost for the bytes that they move."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernel.profile import SPACE_GLOBAL, SPACE_SHARED
from .setting import Setting


@dataclass(frozen=True, slots=True)
class Ideal:
    """Per execution: `units` as they are, `least` as they could be (sectors, or wavefronts of shared memory)."""

    units: float
    least: float

    @property
    def ratio(self) -> float:
        """How many times the least it costs."""
        return self.units / self.least if self.least else 1.0


def ideal_units(setting: Setting, space: int) -> dict[int, Ideal]:
    """By instruction that accesses global (or shared) memory; scaled to what the behaviour says of it."""
    table, count = setting.requests, len(setting.instructions)
    if not len(table.instruction):
        return {}
    weights = np.array([sample.weight for sample in setting.profile.blocks])[table.sample]
    weights = weights * (table.space == space)
    units = np.bincount(table.instruction, table.units * weights, minlength=count)
    least = np.bincount(table.instruction, table.ideal * weights, minlength=count)
    found = {}
    for index, behaviour in setting.behaviour.accesses.items():
        if behaviour.space == space and units[index] > 0:
            found[index] = Ideal(behaviour.units, behaviour.units * float(least[index] / units[index]))
    return found


__all__ = ["SPACE_GLOBAL", "SPACE_SHARED", "Ideal", "ideal_units"]
