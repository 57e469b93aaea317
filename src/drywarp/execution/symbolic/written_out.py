"""A record expanded into the form of a profile: one row per access, and the distinct paths of warps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ...kernel.profile import AccessLog, WarpPath
from .report import Access, Addresses, Issue, Item, Record, Repetition, accesses

MOST_ACCESSES = 1_000_000
"""Most rows of an access log; of repetitions beyond that, only the first ones are expanded."""
MOST_STEPS = 8_000_000
"""Most blocks on all paths together, likewise."""
FAR = 1 << 62

Ints = npt.NDArray[np.int64]
_BASE, _SHIFT = 4, 5


def _columns(items: Sequence[Item], outer: Sequence[Sequence[Addresses]], most: int) -> Ints:
    """Expand items, at most `most` iterations of each repetition; `outer` holds the enclosing ones' shifts.

    A column per access: instruction, warp, pattern, space, base, and the shifts of enclosing repetitions, outer last.
    """
    parts: list[Ints] = [np.zeros((_SHIFT + len(outer), 0), np.int64)]
    at = 0
    for item in items:
        if isinstance(item, Access):
            instruction, space = (np.full(len(item.warps), n, np.int64) for n in (item.instruction, item.space))
            moves = (shifts[at] for shifts in outer)
            parts.append(np.stack([instruction, item.warps, item.patterns, space, item.base, *moves]))
            at += 1
        elif isinstance(item, Repetition):
            inside = sum(1 for _ in accesses(item.items))
            round_ = [shifts[at : at + inside] for shifts in outer]
            one = _columns(item.items, [item.shifts, *round_], most)
            parts.append(_repeated(one, min(item.count, most)))
            at += inside
    return np.concatenate(parts, axis=1)


def _repeated(one: Ints, count: int) -> Ints:
    """Columns of `count` iterations, from those of one, with the innermost shifts applied."""
    repeated = np.tile(np.delete(one, _SHIFT, axis=0), count)
    iteration = np.arange(count, dtype=np.int64)[:, None]
    repeated[_BASE] = (one[_BASE] + iteration * one[_SHIFT]).reshape(-1)
    return repeated


def _requests(items: Sequence[Item], most: int) -> int:
    """Rows that items take, with at most `most` iterations of each repetition."""
    total = 0
    for item in items:
        if isinstance(item, Access):
            total += len(item.warps)
        elif isinstance(item, Repetition):
            total += min(item.count, most) * _requests(item.items, most)
    return total


def by_instruction(items: Sequence[Item], instructions: int, most: int | None = None) -> npt.NDArray[np.float64]:
    """Accesses of each instruction, all of them or with at most `most` iterations of each repetition."""
    total = np.zeros(instructions)
    for item in items:
        if isinstance(item, Access):
            total[item.instruction] += len(item.warps)
        elif isinstance(item, Repetition):
            times = item.count if most is None else min(item.count, most)
            total += times * by_instruction(item.items, instructions, most)
    return total


def _fitting(size_at: Callable[[int], int], limit: int, items: Sequence[Item] | Sequence[_PathItem]) -> int:
    """The largest number of iterations of each repetition that keeps a size within a limit."""
    low, high = 1, max(_longest(items), 1)
    if size_at(high) <= limit:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if size_at(middle) <= limit:
            low = middle
        else:
            high = middle
    return low


def _longest(items: Sequence[Item] | Sequence[_PathItem]) -> int:
    """The largest count of any repetition among items."""
    return max(
        (max(i.count, _longest(i.items)) for i in items if isinstance(i, Repetition | _PathRepetition)), default=1
    )


def access_log(
    record: Record, instructions: int, limit: int = MOST_ACCESSES
) -> tuple[AccessLog, npt.NDArray[np.float64] | None]:
    """All accesses, ordered by warp and as issued; and the logged fraction of each instruction's (None: all)."""
    items = record.items
    most = _fitting(lambda m: _requests(items, m), limit, items)
    columns = _columns(items, (), most)
    instruction, warp, pattern, space, base = columns[:, np.argsort(columns[1], kind="stable")]
    log = AccessLog(
        instruction=instruction.astype(np.int32),
        warp=warp.astype(np.int32),
        base=base.copy(),
        pattern=pattern.astype(np.int32),
        space=space.astype(np.int8),
        offsets=np.array(record.offsets, np.int64).reshape(-1, record.lanes),
        masks=np.array(record.masks, np.uint32 if record.lanes <= 32 else np.uint64),
    )
    all_of = by_instruction(items, instructions)
    held = by_instruction(items, instructions, most)
    if np.array_equal(all_of, held):
        return log, None
    return log, np.divide(held, all_of, out=np.ones(instructions), where=all_of > 0)


def lane_counts(record: Record, warps: int, blocks: int) -> Ints:
    """Active lanes summed over the executions of each block, shape (warps, blocks)."""
    total = np.zeros((warps, blocks), np.int64)
    _add_lanes(record.items, total, 1)
    return total


def _add_lanes(items: Sequence[Item], total: Ints, times: int) -> None:
    for item in items:
        if isinstance(item, Issue):
            total[item.warps, item.block] += times * item.active.astype(np.int64)
        elif isinstance(item, Repetition):
            _add_lanes(item.items, total, times * item.count)


# Paths --------------------------------------------------------------------------------------------


def paths(record: Record, warps: int) -> tuple[tuple[WarpPath, ...], list[int], float]:
    """Distinct paths, the path number of each warp, and the fraction of all their steps that is expanded."""
    marks = np.zeros(warps, np.uint64)
    _mark(record.items, marks, np.random.Generator(np.random.Philox(1)))
    _, first, numbers = np.unique(marks, return_index=True, return_inverse=True)
    # Paths are numbered as their first warps are.
    numbers = np.argsort(np.argsort(first))[numbers]
    items = _by_path(record.items, numbers)
    most = _fitting(lambda m: _steps(items, m), MOST_STEPS, items)
    blocks, path, lanes = _issues(items, most)
    order = np.argsort(path, kind="stable")
    blocks, lanes = blocks[order], lanes[order]
    bounds = np.searchsorted(path[order], np.arange(len(first) + 1))
    found = tuple(WarpPath(blocks[a:b].copy(), lanes[a:b].copy()) for a, b in pairwise(bounds.tolist()))
    return found, numbers.tolist(), _steps(items, most) / max(_steps(items, FAR), 1)


def _mark(items: Sequence[Item], marks: npt.NDArray[np.uint64], draw: np.random.Generator) -> None:
    """Add a number for each step to the marks of its warps: warps with equal marks took the same steps."""
    for item in items:
        if isinstance(item, Issue):
            marks[item.warps] += draw.integers(1, 1 << 63, dtype=np.uint64)
        elif isinstance(item, Repetition):
            _mark(item.items, marks, draw)


@dataclass(frozen=True, slots=True, eq=False)
class _PathIssue:
    """A block on paths, instead of warps, with the mean of active lanes over the warps of each."""

    block: int
    paths: npt.NDArray[np.int32]
    lanes: npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class _PathRepetition:
    count: int
    items: tuple[_PathItem, ...]


_PathItem = _PathIssue | _PathRepetition


def _by_path(items: Sequence[Item], numbers: npt.NDArray[np.int64]) -> tuple[_PathItem, ...]:
    """The steps of paths instead of those of warps."""
    found: list[_PathItem] = []
    for item in items:
        if isinstance(item, Issue):
            mine = numbers[item.warps]
            count = np.bincount(mine)
            here = np.flatnonzero(count)
            mean = np.bincount(mine, item.active)[here] / count[here]
            found.append(_PathIssue(item.block, here.astype(np.int32), mean.astype(np.float32)))
        elif isinstance(item, Repetition):
            found.append(_PathRepetition(item.count, _by_path(item.items, numbers)))
    return tuple(found)


def _steps(items: Sequence[_PathItem], most: int) -> int:
    """Blocks on all paths, with at most `most` iterations of each repetition."""
    return sum(len(i.paths) if isinstance(i, _PathIssue) else min(i.count, most) * _steps(i.items, most) for i in items)


_Issues = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.float32]]


def _issues(items: Sequence[_PathItem], most: int) -> _Issues:
    """Block, path and active lanes of every step."""
    parts: list[_Issues] = [(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32))]
    run: list[_PathIssue] = []

    def flush() -> None:
        if run:
            blocks = np.repeat(np.array([i.block for i in run], np.int32), [len(i.paths) for i in run])
            parts.append((blocks, np.concatenate([i.paths for i in run]), np.concatenate([i.lanes for i in run])))
            run.clear()

    for item in items:
        if isinstance(item, _PathIssue):
            run.append(item)
        else:
            flush()
            (block, path, active), times = _issues(item.items, most), min(item.count, most)
            parts.append((np.tile(block, times), np.tile(path, times), np.tile(active, times)))
    flush()
    block, path, active = (np.concatenate(column) for column in zip(*parts, strict=True))
    return block, path, active
