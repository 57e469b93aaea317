"""Fewer iterations of the same loops, and two lengths that predict the whole run.

A line through two runs predicts a third one if what the third has beyond the second is the same mix of loops that the
second has beyond the first. So the longer run lies on the way from the short run to the whole one: each loop has the
same share more of the iterations that the short run leaves out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..workload.cost import CostedNode, CostedWorkload, Item, Level, Repeat
from .blocks import Share
from .result import SimulationResult, Ticks

FEWEST_ITERATIONS = 16
"""Fewest iterations that a shortened loop keeps: its first ones fill the pipelines."""

FEWEST_OF_TWO = 4
"""The same where two lengths are compared: filling the pipelines is in both, and the nearer the counts of all loops are
to one scale, the more alike are the runs. With 4, errors of random workloads are half as large as with 16."""

MIX = 0.01
"""How far the mix of loops between two lengths may be from that of the rest before another share is tried."""

SHARES = 1.1 ** np.arange(13)
"""The shares that are tried, relative to the smallest: iterations are whole numbers, so a larger one may fit better."""

WORST = 0.2
"""The same, beyond which a line predicts nothing."""

Floats = npt.NDArray[np.float64]


def shorten(workload: CostedWorkload, scale: float, fewest: int = FEWEST_ITERATIONS) -> CostedWorkload:
    """The workload with its loops' trip counts scaled down, outer loops first, to at least `fewest`."""
    paths = tuple(replace(path, program=_shorten(path.program, scale, fewest)) for path in workload.paths)
    return replace(workload, paths=paths)


def _shorten(program: tuple[Item, ...], scale: float, fewest: int) -> tuple[Item, ...]:
    return tuple(_shorten_loop(item, scale, fewest) if isinstance(item, Repeat) else item for item in program)


def _shorten_loop(loop: Repeat, scale: float, fewest: int) -> Repeat:
    count = min(loop.count, max(fewest, round(loop.count * scale)))
    inside = min(1.0, scale * loop.count / max(1, count))
    return Repeat(count, _shorten(loop.body, inside, fewest) if inside < 1.0 else loop.body)


def lengthen(short: CostedWorkload, whole: CostedWorkload, share: float) -> CostedWorkload:
    """`short`, a shortened `whole`, with this share of the left out iterations of each loop put back.

    What an outer loop does not take, since the share is no whole number of its iterations, its inner loops take.
    """
    paths = tuple(
        replace(path, program=_lengthen(path.program, its.program, share, (1, 1, 1)))
        for path, its in zip(short.paths, whole.paths, strict=True)
    )
    return replace(short, paths=paths)


def _lengthen(
    short: tuple[Item, ...], whole: tuple[Item, ...], share: float, times: tuple[int, int, int]
) -> tuple[Item, ...]:
    """`times` is how often this body runs in the short run, in the longer one and in the whole one."""
    few, more, most = times
    items: list[Item] = []
    for item, its in zip(short, whole, strict=True):
        if not (isinstance(item, Repeat) and isinstance(its, Repeat)):
            items.append(item)
            continue
        first, last = few * item.count, most * its.count
        count = min(its.count, max(item.count, round((first + share * (last - first)) / max(1, more))))
        items.append(Repeat(count, _lengthen(item.body, its.body, share, (first, more * count, last))))
    return tuple(items)


def two_lengths(workload: CostedWorkload, scale: float) -> tuple[CostedWorkload, CostedWorkload] | None:
    """The workload at about this scale, and two to four times as long; None if the whole is not much longer.

    How much longer is what first leaves the mix of loops within MIX, after rounding to whole iterations; else the best.
    """
    short = shorten(workload, scale, FEWEST_OF_TWO)
    weights = workload.once("straight parts", lambda: _straight_parts(workload))
    few, whole = _runs(short), _runs(workload)
    first, total = few @ weights[:, 0], whole @ weights[:, 0]
    if 3 * first > total:
        return None
    found: tuple[float, CostedWorkload] | None = None
    for share in SHARES[SHARES * first < total - first] * first / (total - first):
        longer = lengthen(short, workload, float(share))
        off = _off(few, _runs(longer), whole, weights)
        if found is None or off < found[0]:
            found = off, longer
        if off <= MIX:
            break
    return None if found is None or found[0] > WORST else (short, found[1])


def off_alone(short: CostedWorkload, workload: CostedWorkload) -> float:
    """How far the mix of loops of a shortened workload is from that of the whole: what it alone would be off."""
    weights, nothing = _straight_parts(workload), np.zeros(1)
    return _off(nothing, _runs(short), _runs(workload), weights)


def _off(few: Floats, more: Floats, whole: Floats, weights: Floats) -> float:
    """How far the line through two lengths is off at the whole one: the largest by instructions, by λ and by Λ."""
    span, ahead, totals = more - few, whole - more, whole @ weights
    instructions = weights[:, 0]
    if span @ instructions <= 0:
        return float("inf")
    wrong = span * ((ahead @ instructions) / (span @ instructions)) - ahead
    return float(np.max(np.abs(wrong) @ weights / np.where(totals > 0, totals, 1.0)))


def _runs(workload: CostedWorkload) -> Floats:
    """How often each straight part of each path runs, in the order of `_straight_parts`."""
    return np.array([times for path in workload.paths for times, _ in _parts(path.program, 1)], dtype=np.float64)


def _straight_parts(workload: CostedWorkload) -> Floats:
    """Of one run of each straight part of each path, by how many warps there are on it: instructions, Σλ and ΣΛ."""
    warps = _warps_by_path(workload)
    rows: list[tuple[float, float, float]] = []
    for path, many in zip(workload.paths, warps, strict=True):
        each = np.array([(1, _lambda(its), its.latency_ticks) for its in path.nodes], dtype=np.int64).reshape(-1, 3)
        for _, part in _parts(path.program, 1):
            count, lambda_, latency = each[part].sum(axis=0).tolist()
            rows.append((many * count, many * lambda_, many * latency))
    return np.array(rows, dtype=np.float64).reshape(-1, 3)


def _parts(program: tuple[Item, ...], times: int) -> Iterator[tuple[int, list[int]]]:
    """Each body of the program: how often it runs, and the nodes that are its own."""
    yield times, [item for item in program if not isinstance(item, Repeat)]
    for item in program:
        if isinstance(item, Repeat):
            yield from _parts(item.body, times * item.count)


def _warps_by_path(workload: CostedWorkload) -> list[float]:
    warps = [0.0] * len(workload.paths)
    for kind in workload.block_types:
        for path in kind.paths:
            warps[path] += kind.weight
    return warps


def _lambda(node: CostedNode) -> int:
    return max([node.lambda_ticks, *(level.lambda_ticks for level in node.levels)])


def along_the_line(few: SimulationResult, more: SimulationResult, total: int, blocks: int) -> SimulationResult:
    """The line through two runs, at `total` instructions."""
    span, ahead = more.issued - few.issued, total - more.issued

    def line(first: float, second: float) -> float:
        return second + (second - first) * ahead / span

    def whole_line(first: int, second: int) -> int:
        return second + ((second - first) * ahead + span // 2) // span

    warp_ticks = whole_line(few.warp_ticks, more.warp_ticks)
    longer = more.total_ticks - few.total_ticks

    def busy_line(first: float, second: float) -> float:
        """No subsystem is busy for longer than the time that the further instructions take."""
        return line(second - min(second - first, longer), second)

    stalls = more.stall_ticks + (more.stall_ticks - few.stall_ticks) * (ahead / span)
    return replace(
        more,
        total_ticks=whole_line(few.total_ticks, more.total_ticks),
        issued=total,
        blocks=blocks,
        busy_ticks=tuple(busy_line(a, b) for a, b in zip(few.busy_ticks, more.busy_ticks, strict=True)),
        issue_busy_ticks=busy_line(few.issue_busy_ticks, more.issue_busy_ticks),
        tail_ticks=max(0, whole_line(few.tail_ticks, more.tail_ticks)),
        warp_ticks=warp_ticks,
        stall_ticks=apportion(stalls, warp_ticks),
        extrapolated=True,
    )


def apportion(parts: npt.NDArray[np.float64], total: int) -> Ticks:
    """Whole numbers in proportion to `parts` that sum to `total`; parts below zero count as zero.

    A decreasing line drops below zero if a reason becomes rarer the longer a run is. Rounding uses the largest
    remainders (ties go to the first).
    """
    parts = np.maximum(parts, 0.0)
    known = parts.sum()
    if known <= 0 or total <= 0:
        return np.zeros(parts.shape, dtype=np.int64)
    shares = (parts * (total / known)).ravel()
    whole = np.floor(shares).astype(np.int64)
    # Beyond 2⁵³ ticks the sum of the shares may be off by more than one per part.
    missing = total - int(whole.sum())
    each, rest = divmod(missing, len(whole))
    order = np.argsort(whole - shares, kind="stable")
    whole += each
    whole[order[:rest]] += 1
    result: Ticks = whole.reshape(parts.shape)
    return result


def roof_ticks(workload: CostedWorkload, share: Share, blocks: Floats) -> int:
    """The least time of a run with this many blocks of each type: what its busiest subsystem takes, and the valve.

    A block of the tail may have the tail's λ for some visits, so a run with a tail has the shorter λ throughout.
    """
    tail = share.blocks > share.full
    busy, slack, events = workload.once(("busy of a block", tail), lambda: _busy(workload, tail))
    last = max((node.issues for path in workload.paths for node in path.nodes), default=0)
    issue = (float(blocks @ events) / workload.partitions - last) * workload.issue_ticks
    return int(max(float((blocks @ busy + slack).max(initial=0.0)), issue))


def _busy(workload: CostedWorkload, tail: bool) -> tuple[Floats, Floats, Floats]:
    """Of a block of each type Σλ on an instance of each subsystem, and its issue events.

    In between by subsystem, zero or less: by how much its last instruction may be over before its λ is. That is so if
    its Λ is shorter, and a store is over when it is accepted.
    """
    size = len(workload.subsystems)
    busy, slack = np.zeros((len(workload.paths), size)), np.zeros(size)
    for number, path in enumerate(workload.paths):
        for node, count in zip(path.nodes, path.counts(), strict=True):
            latency = 0 if node.async_result else node.latency_ticks
            visits = [(level.subsystem, _visit(level, tail)) for level in node.levels if level.queues]
            for subsystem, lambda_ in ((node.subsystem, node.lambda_ticks), *visits):
                busy[number, subsystem] += count * lambda_
                slack[subsystem] = min(slack[subsystem], latency - lambda_)
    busy /= [workload.partitions if its.scope == "partition" else 1 for its in workload.subsystems]
    kinds = [list(kind.paths) for kind in workload.block_types]
    return busy[kinds].sum(axis=1), slack, np.array(workload.issue_events, dtype=np.float64)


def _visit(level: Level, tail: bool) -> int:
    return min(level.lambda_ticks, level.tail_ticks) if tail else level.lambda_ticks
