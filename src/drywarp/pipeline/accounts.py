"""Compiled steps that divide the warps' time among reasons; `reasons.py` says how.

What needs thought is for how long a subsystem took nothing while an instruction could have issued: other
warps may have found it free in between. So each subsystem's busy spells are noted, spells without a
gap as one, with the sum of those before. The last one, `newest`, ends when the subsystem is free next. The
notes are bounded: when they are full, what is needed of them is written down for each instruction
that waits, and they begin anew.
"""

from __future__ import annotations

from typing import Any

from .columns import BEFORE, BUSY_REASON, COUNTED, NOT_SELECTED, SELECTED, SPELL_BEFORE, SPELL_START
from .compiled import step


@step
def busy_before(resource: int, tick: int, free: Any, spells: Any, newest: Any) -> int:
    """Ticks before `tick` in which the subsystem was busy; `tick` is not before the first noted spell."""
    low, high = 0, newest[resource]
    while low < high:
        middle = (low + high + 1) // 2
        if spells[resource, middle, SPELL_START] <= tick:
            low = middle
        else:
            high = middle - 1
    begins = spells[resource, low, SPELL_START]
    before = spells[resource, low, SPELL_BEFORE]
    last = low == newest[resource]
    lasts = free[resource] - begins if last else spells[resource, low + 1, SPELL_BEFORE] - before
    ticks: int = before + min(tick - begins, lasts)
    return ticks


@step
def busy_since(resource: int, tick: int, written: int, free: Any, spells: Any, newest: Any) -> int:
    """Ticks from `tick` until now in which the subsystem was busy; it became free after `tick`.

    `written` is `busy_before` of `tick` where the notes no longer reach back so far.
    """
    last = newest[resource]
    begins = spells[resource, last, SPELL_START]
    ticks: int = free[resource] - max(tick, begins)
    if tick < begins:
        ticks += spells[resource, last, SPELL_BEFORE]
        if tick < spells[resource, 0, SPELL_START]:
            ticks -= written
        else:
            ticks -= busy_before(resource, tick, free, spells, newest)
    return ticks


@step
def note_spell(resource: int, tick: int, free: Any, spells: Any, newest: Any) -> None:
    """Note that a spell begins at `tick`, after the subsystem was free for a while; full notes begin anew."""
    last = newest[resource]
    before = spells[resource, last, SPELL_BEFORE] + free[resource] - spells[resource, last, SPELL_START]
    last = last + 1 if last + 1 < spells.shape[1] else 0
    spells[resource, last, SPELL_START] = tick
    spells[resource, last, SPELL_BEFORE] = before
    newest[resource] = last


@step
def count_issue(
    w: int, node: int, own: int, tick: int, counted: int, written: int, cycle: int, nodes: Any, warps: Any,
    stalls: Any, free: Any, spells: Any, newest: Any,
) -> None:  # fmt: skip
    """Account for the time from `counted`, when the instruction could issue as far as its warp goes, to its issue."""
    if tick < warps[w, COUNTED]:  # sooner than a cycle after the last
        stalls[warps[w, BEFORE], SELECTED] -= warps[w, COUNTED] - tick
    elif tick > counted:
        if free[own] > counted:
            throttled = busy_since(own, counted, written, free, spells, newest)
            stalls[node, nodes[node, BUSY_REASON]] += throttled
            counted += throttled
        stalls[node, NOT_SELECTED] += tick - counted
    warps[w, BEFORE] = node
    warps[w, COUNTED] = tick + cycle
    stalls[node, SELECTED] += cycle
