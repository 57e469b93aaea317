"""What the rules about occupancy share: the blocks that would fit if one resource were no limit."""

from __future__ import annotations

from ...hardware import Occupancy
from ..case import Case
from .hiding import can_be_hidden

WAITING = ("long_scoreboard", "short_scoreboard", "wait", "barrier")
"""Reasons of time that more warps could fill."""


def without_limit(fits: Occupancy, resource: str) -> int:
    """Blocks per SM that the other resources allow."""
    return min(blocks for name, blocks in fits.limits.items() if name != resource and blocks is not None)


def lone_limit(case: Case, resource: str) -> int | None:
    """Blocks per SM without this resource, where it alone limits and the kernel could use more warps."""
    fits = case.setting.fits
    if fits.limiting != (resource,) or not can_be_hidden(case):
        return None
    target = without_limit(fits, resource)
    waiting = -(-case.setting.bound.blocks // case.setting.bound.sm_count)
    target = min(target, waiting)
    return target if target > fits.blocks_per_sm else None
