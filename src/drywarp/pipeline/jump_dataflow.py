"""Compiled: how far warps that issue out of program order may jump, and the jump."""

from __future__ import annotations

from typing import Any

from .columns import COUNT, COUNTED, FIRST, GAP, LEFT, LOW, NODES, SEQUENCE, TOLD, WAITING, loop, part
from .observe_dataflow import hidden
from .recurrence import ANY


@loop
def periods(
    partitions: int, per_block: int, accounting: bool, now_0: int, now: int, slots_0: Any, warps_0: Any,
    missing_0: Any, ready_0: Any, reasons_0: Any, parts_0: Any, free_0: Any, slots: Any, warps: Any, missing: Any,
    ready: Any, reasons: Any, parts: Any, free: Any, nodes: Any, graph: Any, edge_from: Any, edges: Any, touched: Any,
) -> int:  # fmt: skip
    """Number of periods until a warp comes within sight of its loop's end; arrays with _0 are of the earlier moment.

    With accounts, each warp must have issued since then: the accounting at an issue reaches back to the warp's previous
    issue. Fills `touched` (`_ahead`).
    """
    times = ANY
    for w in range(len(warps)):
        b = w // per_block
        if slots[b, SEQUENCE] < 0 or (warps[w, LEFT] == 0 and warps[w, WAITING] < 0):
            continue
        same = slots[b, SEQUENCE] == slots_0[b]
        if warps[w, FIRST] != warps_0[w, FIRST] or warps[w, LOW] < warps_0[w, LOW]:
            return 0
        if same and accounting and warps[w, COUNTED] == warps_0[w, COUNTED]:
            return 0
        if not same and warps[w, LOW] != warps_0[w, LOW]:
            return 0
        most = _ahead(
            w, w % partitions, accounting, now_0, now, warps_0, missing_0, ready_0, reasons_0, parts_0, free_0, warps,
            missing, ready, reasons, parts, free, nodes, graph, edge_from, edges, touched,
        )  # fmt: skip
        times = min(times, most)
        if times == 0:
            return 0
    return times


@part
def _ahead(
    w: int, q: int, accounting: bool, now_0: int, now: int, warps_0: Any, missing_0: Any, ready_0: Any,
    reasons_0: Any, parts_0: Any, free_0: Any, warps: Any, missing: Any, ready: Any, reasons: Any, parts: Any,
    free: Any, nodes: Any, graph: Any, edge_from: Any, edges: Any, touched: Any,
) -> int:  # fmt: skip
    """How often warp `w` can repeat what it has done since the earlier moment.

    Suppose it advanced by Δ nodes. Each node must be in the state in which the node Δ before it was then, with the same
    edges, up to some node M (where the loop's end comes into sight). No node from T, `touched`, onwards has been
    notified or is a candidate. Then the same events repeat, Δ nodes further each time, until T would pass M.
    """
    first, length, low_0 = warps[w, FIRST], warps[w, NODES], warps_0[w, LOW]
    ahead = warps[w, LOW] - low_0
    touched[w] = warps[w, LOW]
    for d in range(low_0, length):
        if missing_0[w, d] != missing[w, d] or missing_0[w, d] == 0 or missing[w, d] == 0:
            touched[w] = d + 1
    alike = low_0
    while alike + ahead < length:
        d, later = alike, alike + ahead
        node = graph[first + d]
        if missing_0[w, d] != missing[w, later] or node != graph[first + later]:
            break
        if missing[w, later] >= 0:
            since_0, since = now_0, now
            if not accounting:
                since_0 = hidden(now_0, q, node, warps_0[w, GAP], nodes, parts_0, free_0)
                since = hidden(now, q, node, warps[w, GAP], nodes, parts, free)
            tick = max(since, ready[w, later])
            if max(since_0, ready_0[w, d]) - now_0 != tick - now:
                break
            if accounting and tick > now and reasons_0[w, d] != reasons[w, later]:
                break
        if ahead > 0 and not _edges_alike(first + d, first + later, ahead, edge_from, edges):
            break
        alike += 1
    if ahead == 0:
        return ANY if alike == length else 0
    times: int = max(0, alike - touched[w]) // ahead
    return times


@part
def _edges_alike(one: int, other: int, ahead: int, edge_from: Any, edges: Any) -> bool:
    count = edge_from[one + 1] - edge_from[one]
    if count != edge_from[other + 1] - edge_from[other]:
        return False
    for edge in range(count):
        a, b = edge_from[one] + edge, edge_from[other] + edge
        if edges[a, 0] + ahead != edges[b, 0] or edges[a, 1] != edges[b, 1]:
            return False
    return True


@loop
def advance(
    times: int, ticks: int, per_block: int, slots: Any, warps_0: Any, warps: Any, missing: Any, ready: Any,
    reasons: Any, listed: Any, written: Any, touched: Any,
) -> None:  # fmt: skip
    """Move the known state of the nodes this many periods ahead, `ticks` later."""
    for w in range(len(warps)):
        if slots[w // per_block, SEQUENCE] < 0 or (warps[w, LEFT] == 0 and warps[w, WAITING] < 0):
            continue
        low = warps[w, LOW]
        ahead = times * (low - warps_0[w, LOW])
        # Nodes beyond the touched ones are unaffected by anything since.
        for d in range(touched[w] if ahead > 0 else warps[w, NODES]):
            ready[w, d] += ticks
        if ahead == 0:
            continue
        for d in range(touched[w] + ahead - 1, low + ahead - 1, -1):
            missing[w, d] = missing[w, d - ahead]
            ready[w, d] = ready[w, d - ahead]
            reasons[w, d] = reasons[w, d - ahead]
            written[w, d] = written[w, d - ahead]
        for d in range(low, low + ahead):
            missing[w, d] = -1
        for k in range(warps[w, COUNT]):
            listed[w, k] += ahead
        warps[w, LOW] += ahead
        warps[w, LEFT] -= times * (warps_0[w, LEFT] - warps[w, LEFT])
        if warps[w, WAITING] >= 0:
            warps[w, WAITING] += ahead
            warps[w, TOLD] += ahead
