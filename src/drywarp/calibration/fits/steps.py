"""Curves with steps: where a footprint leaves a cache, values of two kinds, when more warps bring nothing."""

from __future__ import annotations

from collections.abc import Sequence


def plateaus(xs: Sequence[float], ys: Sequence[float], tolerance: float = 0.08) -> list[tuple[float, float, float]]:
    """Runs of at least two neighbouring points that lie within `tolerance` of their mean: first x, last x, mean y."""
    found: list[tuple[float, float, float]] = []
    start = 0
    for end in range(1, len(ys) + 1):
        part = ys[start:end]
        level = sum(part) / len(part)
        if end < len(ys) and abs(ys[end] / level - 1) <= tolerance:
            continue
        if end - start >= 2:
            found.append((xs[start], xs[end - 1], level))
        start = end
    return found


def two_kinds(values: Sequence[float], gap: float = 0.05) -> tuple[float, float]:
    """The means of a lower and an upper kind, split at the widest gap; both the mean of all where none is that wide.

    `gap` is relative to the mean of all. Half-way L2 latencies of a GPU with two L2 partitions are of two kinds.
    """
    ordered = sorted(values)
    middle = sum(ordered) / len(ordered)
    widest = max(range(1, len(ordered)), key=lambda i: ordered[i] - ordered[i - 1], default=0)
    if not widest or ordered[widest] - ordered[widest - 1] < gap * middle:
        return middle, middle
    low, high = ordered[:widest], ordered[widest:]
    return sum(low) / len(low), sum(high) / len(high)


def in_flight(throughput: Sequence[float], latency: Sequence[float]) -> list[float]:
    """Little's law: accesses under way at each point, of throughput (accesses a cycle) and latency (cycles)."""
    return [x * y for x, y in zip(throughput, latency, strict=True)]


def limit_of(asked: Sequence[float], reached: Sequence[float], tolerance: float = 0.05) -> float | None:
    """The number under way that is not exceeded however many are asked for; None where it goes on rising.

    A limit shows where at least three last points ask for twice as many as the first of them and all reach the same.
    """
    tail = list(zip(asked, reached, strict=True))[-3:]
    if len(tail) < 3 or tail[-1][0] < 2 * tail[0][0]:
        return None
    level = sum(y for _, y in tail) / 3
    if all(abs(y / level - 1) <= tolerance for _, y in tail) and level < tail[0][0] * (1 - tolerance):
        return level
    return None
