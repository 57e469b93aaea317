"""Compiled steps for warps that wait for others of their block: for all at a barrier, or for some.

A phase of a block's barriers is complete when nothing is missing of the signals that the paths of its
warps hold. Who awaits one has issued, and goes on Λ after that. The entries of a warp's list of events are read
one after the other: how many phases are signalled, these, and the one that is awaited.
"""

from __future__ import annotations

from typing import Any

from ..bound import SYNC_AT_END, SYNC_AWAITS
from .columns import (
    AFTER,
    AFTER_SLOT,
    AT_PHASE,
    COMPLETE_AT,
    COUNTED,
    DONE,
    END,
    EVENT,
    MISSING,
    PLACE,
    REASON,
    RECORD,
    SETS,
    SYNC,
    WAIT,
    WAITING,
)
from .compiled import step


@step
def begin_phases(
    b: int, kind: int, per_block: int, block_paths: Any, events_from: Any, needed: Any, meetings: Any, phases: Any
) -> None:
    """A block of a kind begins in slot `b`: all signals are missing."""
    for i in range(per_block):
        w = b * per_block + i
        meetings[w, EVENT] = events_from[block_paths[kind, i]]
        meetings[w, AT_PHASE] = -1
    for phase in range(phases.shape[1]):
        phases[b, phase, MISSING] = needed[kind, phase]
        phases[b, phase, COMPLETE_AT] = 0


@step
def signal(
    w: int, b: int, node: int, tick: int, completion: int, nodes: Any, slot_ready: Any, events: Any, meetings: Any,
    phases: Any,
) -> bool:  # fmt: skip
    """The node signals its phases and comes to await one; whether some warp may go on that awaits one."""
    at = tick
    if nodes[node, SYNC] & SYNC_AT_END:
        at = completion
        if nodes[node, AFTER_SLOT] >= 0:
            at = max(at, slot_ready[w, nodes[node, AFTER_SLOT]])
    event = meetings[w, EVENT]
    opened = False
    for k in range(event + 1, event + 1 + events[event]):
        phase = events[k]
        phases[b, phase, MISSING] -= 1
        phases[b, phase, COMPLETE_AT] = max(phases[b, phase, COMPLETE_AT], at)
        if phases[b, phase, MISSING] == 0:
            opened = True
    event += 1 + events[event]
    if nodes[node, SYNC] & SYNC_AWAITS:
        meetings[w, AT_PHASE] = events[event]
        event += 1
        if meetings[w, AT_PHASE] >= 0:
            opened = True
    meetings[w, EVENT] = event
    return opened


@step
def resume(
    w: int, tick: int, code: int, following: bool, record: bool, nodes: Any, positions: Any, warps: Any,
    slot_ready: Any, slot_reason: Any, stalls: Any, table: Any,
) -> None:  # fmt: skip
    """A warp that stood at node WAITING goes on at `tick`; the time until then has the reason `code`.

    With `following` it is time of the next instruction, where there is one, else of this one.
    """
    node = warps[w, WAITING]
    warps[w, WAITING] = -1
    slot = nodes[node, SETS]
    if slot >= 0 and tick > slot_ready[w, slot]:
        slot_ready[w, slot] = tick
        slot_reason[w, slot] = code
    warps[w, DONE] = max(warps[w, DONE], tick)
    if record:
        table[warps[w, RECORD], 5] = tick
    if len(stalls) > 0:
        counted = warps[w, COUNTED]
        if warps[w, PLACE] < warps[w, END]:
            its = positions[warps[w, PLACE], 0]
            counted = max(counted, warps[w, AFTER])
            stalls[its, WAIT] += counted - warps[w, COUNTED]
            node = its if following else node
        stalls[node, code] += max(0, tick - counted)
        warps[w, COUNTED] = max(tick, counted)
    if tick >= warps[w, AFTER]:
        warps[w, AFTER] = tick
        warps[w, REASON] = code
