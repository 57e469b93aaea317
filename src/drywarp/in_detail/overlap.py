"""How much of the time several subsystems are busy at once."""

from __future__ import annotations

import numpy as np

from ..detail import Events, Overlap


def overlap_of(events: Events) -> Overlap | None:
    """Shares of the time from the first to the last issue; None where that is no time.

    A subsystem is busy from an issue for λ, in whichever partition.
    """
    begin, end = int(events.issue[0]), int(events.issue[-1])
    if end <= begin:
        return None
    lane = np.array([node.lane for node in events.nodes], dtype=np.int64)[events.node]
    cost = np.array([node.lambda_ticks for node in events.nodes], dtype=np.int64)[events.node]
    moments, changes, whose = [], [], []
    for number in range(len(events.lanes)):
        rows = np.flatnonzero((lane == number) & (cost > 0))
        starts = events.issue[rows]
        ends = np.minimum(np.maximum.accumulate(starts + cost[rows]), end)
        first = np.ones(len(rows), dtype=np.bool_)
        first[1:] = starts[1:] > ends[:-1]
        last = np.append(first[1:], True)[: len(rows)]
        for at, up in ((starts[first], 1), (ends[last], -1)):
            moments.append(at)
            changes.append(np.full(len(at), up))
            whose.append(np.full(len(at), number))
    ticks, change, owner = (np.concatenate(parts) for parts in (moments, changes, whose))
    order = np.argsort(ticks, kind="stable")
    ticks, change, owner = ticks[order], change[order], owner[order]
    spans = np.diff(np.append(ticks, end))
    busy = np.zeros((len(events.lanes), len(ticks)), dtype=np.int64)
    busy[owner, np.arange(len(ticks))] = change
    busy = np.cumsum(busy, axis=1)
    count = busy.sum(axis=0)
    length = end - begin
    at_once = np.bincount(count, spans, minlength=1) / length
    at_once[0] = max(0.0, 1.0 - float(at_once[1:].sum()))
    names = [each.name for each in events.lanes]
    return Overlap(
        at_once=tuple(at_once.tolist()),
        busy=dict(zip(names, ((busy > 0) @ spans / length).tolist(), strict=True)),
        alone=dict(zip(names, (((busy > 0) & (count == 1)) @ spans / length).tolist(), strict=True)),
    )
