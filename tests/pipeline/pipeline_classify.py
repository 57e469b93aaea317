"""Where the warps' time goes, found out afterwards from the reference's histories, tick by tick.

Nothing is added up or cut into parts here: for each tick of each warp one reason is found by asking in turn.
"""

from __future__ import annotations

from collections import Counter

from pipeline_reference import Reference, Warp

from drywarp.pipeline.reasons import await_reason, busy_reason, dependent_reason

Account = Counter[tuple[int, int, str]]
"""Ticks by (path, node within the path, reason)."""


def classify(reference: Reference, cycle: int) -> Account:
    total: Account = Counter()
    for warps in reference.blocks.values():
        for warp in warps:
            _warp(reference, warp, cycle, total)
    return total


def _warp(reference: Reference, warp: Warp, cycle: int, total: Account) -> None:
    path = next(i for i, path in enumerate(reference.w.paths) if path is warp.path)
    order = list(warp.issued_at)  # in the order of issue
    end = warp.end()
    assert end is not None
    producers = [_producers(reference, warp, position) for position in range(len(warp.program))]
    for tick in range(warp.launched, end):
        issued = [position for position in order if warp.issued_at[position] <= tick]
        before = issued[-1] if issued else -1
        after = order[len(issued)] if len(issued) < len(order) else -1
        reason = _reason(reference, warp, before, after, tick, cycle, producers[after] if after >= 0 else [])
        its_own = reason == "selected" or after < 0 or _awaits(warp, before, tick, cycle)
        node = warp.program[before if its_own else after]
        total[path, node, reason] += 1


def _awaits(warp: Warp, before: int, tick: int, cycle: int) -> bool:
    """Whether the warp stands at the instruction for a phase, its cycle and its stall count being over."""
    if before not in warp.awaited or before < 0 or tick < warp.issued_at[before] + cycle:
        return False
    last = len(warp.issued_at) == len(warp.program) and before == list(warp.issued_at)[-1]
    return tick < warp.done_at[before] and (last or tick >= warp.issued_at[before] + warp.node(before).stall_ticks)


def _reason(
    reference: Reference, warp: Warp, before: int, after: int, tick: int, cycle: int, producers: list[tuple[int, str]]
) -> str:
    at_barrier = False
    if before >= 0:
        last = warp.node(before)
        if tick < warp.issued_at[before] + cycle:
            return "selected"
        if after >= 0 and tick < warp.issued_at[before] + last.stall_ticks:
            return "wait"
        at_barrier = last.barrier and tick < warp.done_at[before]
    if _awaits(warp, before, tick, cycle):
        return await_reason(warp.node(before).class_, warp.node(before).goes_on)
    if at_barrier:
        return "barrier"
    if after < 0:
        return "drain"
    latest, why = tick, ""
    for until, reason in producers:
        if until > latest:
            latest, why = until, reason
    if why:
        return why
    node = warp.node(after)
    if reference.w.in_order and tick < _all_else(warp, before, producers) + node.miss_ticks:
        return "imc_miss"
    resource = reference.resource(node.subsystem, warp.slot % reference.w.partitions)
    return busy_reason(node.class_) if tick in reference.taken[resource] else "not_selected"


def _all_else(warp: Warp, before: int, producers: list[tuple[int, str]]) -> int:
    """When all is there that a warp's next instruction needs, but a constant."""
    ready = [warp.launched, *(until for until, _ in producers)]
    if before >= 0:
        ready.append(warp.issued_at[before] + warp.node(before).stall_ticks)
        if warp.node(before).barrier or before in warp.awaited:
            ready.append(warp.done_at[before])
    return max(ready)


def _producers(reference: Reference, warp: Warp, position: int) -> list[tuple[int, str]]:
    """When what the instruction needs is there, and what waiting for it is called, in the order of becoming known."""
    found: list[tuple[int, int, int, str]] = []
    order = list(warp.issued_at)
    node = warp.node(position)
    for number, slot in enumerate(dict.fromkeys(node.waits)):
        writers = [p for p in order[: order.index(position)] if slot in (warp.node(p).sets, warp.node(p).sets_read)]
        if not reference.w.in_order:  # a slot is an edge from its last writer in the program
            writers = [p for p in range(position) if slot in (warp.node(p).sets, warp.node(p).sets_read)][-1:]
        for writer in writers:
            made = warp.node(writer)
            # In order, slots are asked one after another; out of order, producers tell as they issue.
            key = (number, order.index(writer)) if reference.w.in_order else (order.index(writer), 0)
            if made.sets_read == slot:
                found.append((*key, warp.read_at[writer], dependent_reason(made.class_, made.goes_on)))
            if made.sets == slot:
                reason = "barrier" if made.barrier else dependent_reason(made.class_, made.goes_on)
                found.append((*key, warp.done_at[writer], reason))
    return [(until, reason) for _, _, until, reason in sorted(found, key=lambda entry: entry[:2])]
