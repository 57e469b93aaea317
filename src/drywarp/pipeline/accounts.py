"""Compiled steps that divide the warps' time among reasons; `reasons.py` says how.

What needs thought is for how long a subsystem took nothing while an instruction could have issued: other
warps may have found it free in between. So each subsystem's busy spells are noted, spells without a
gap as one, with the sum of those before. The last one, `newest`, ends when the subsystem is free next. The
notes are bounded: when they are full, what is needed of them is written down for each instruction
that waits, and they begin anew.

These steps avoid branches, which would be mispredicted. As for `steps.py`: after a change here touch
`inorder.py` and `dataflow_loop.py`.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from .columns import SPELL_BEFORE, SPELL_START


@njit(inline="always")
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
    before: int = spells[resource, low, SPELL_BEFORE]
    last = low == newest[resource]
    lasts = free[resource] - begins if last else spells[resource, low + 1, SPELL_BEFORE] - before
    return before + min(tick - begins, lasts)


@njit(inline="always")
def busy_since(resource: int, tick: int, written: int, free: Any, spells: Any, newest: Any) -> int:
    """Ticks from `tick` until now, when it is free, in which the subsystem was busy.

    `written` is `busy_before` of `tick` where the notes no longer reach back so far.
    """
    last = newest[resource]
    begins = spells[resource, last, SPELL_START]
    ticks: int = max(0, free[resource] - max(tick, begins))
    if tick < begins:
        ticks += spells[resource, last, SPELL_BEFORE]
        if tick < spells[resource, 0, SPELL_START]:
            ticks -= written
        else:
            ticks -= busy_before(resource, tick, free, spells, newest)
    return ticks


@njit(inline="always")
def note_spell(resource: int, tick: int, free: Any, spells: Any, newest: Any) -> None:
    """Note that the subsystem, free until now, is busy from `tick`; full notes begin anew."""
    last = newest[resource]
    begins, before = spells[resource, last, SPELL_START], spells[resource, last, SPELL_BEFORE]
    gap = tick > free[resource]
    last = last + 1 if gap else last
    if last == spells.shape[1]:
        last = 0
    spells[resource, last, SPELL_START] = tick if gap else begins
    spells[resource, last, SPELL_BEFORE] = before + free[resource] - begins if gap else before
    newest[resource] = last


@njit(inline="always")
def notes_full(resource: int, tick: int, free: Any, spells: Any, newest: Any) -> bool:
    """Whether noting a spell that begins at `tick` makes the notes begin anew."""
    full: bool = newest[resource] == spells.shape[1] - 1 and tick > free[resource]
    return full
