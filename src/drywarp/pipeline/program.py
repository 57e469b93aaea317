"""A workload with its costs as flat integer tables: the input of the core's loops.

The nodes of all paths form one table, a column per property. Loops stay loops: `positions` lists every place of a
path's program once, and a place that closes loops points to a chain of loop ends, innermost first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise, repeat

import numpy as np

from ..errors import UsageError
from ..workload.cost import SYNC_AWAITS, CostedNode, CostedPath, CostedWorkload, Item, Repeat
from . import columns as col
from .reasons import REASONS, await_reason, busy_reason, dependent_reason
from .result import Ticks

_Nest = tuple[tuple[int, int], ...]
"""The loops around a place: the level and trip count of each."""


@dataclass(frozen=True)
class Tables:
    """The flat form of a workload; a subsystem's resources are ``index · partitions + partition``.

    Instructions that queue for their subsystem issue to one more index, after those of all subsystems.
    """

    resources: int
    """Indices: the subsystems, and the one more if some instruction needs it."""

    nodes: Ticks
    waits: Ticks
    levels: Ticks
    positions: Ticks
    """Per place: its node, and the loop end it closes (-1: none)."""
    loops: Ticks
    nest: Ticks
    """Per place and depth: the level at which that loop's iterations are watched for a steady state, 0: not at all."""
    trips: Ticks
    """Per place and depth: the loop's trip count, 0 if there is none."""
    path_from: Ticks
    """First place of each path, and one past the last."""
    block_paths: Ticks
    """Per block type: the path of each warp."""
    depth: int
    loop_levels: int
    """The highest level of a loop: how deeply long loops are nested."""
    slots: int
    events: Ticks
    events_from: Ticks
    """Where each path's events begin."""
    needed: Ticks
    """Per block type and phase: the signals that complete it."""
    paths_nodes: tuple[tuple[int, int], ...]


def flatten(workload: CostedWorkload, long_loop: int = 8) -> Tables:
    """The tables of `workload`; loops with at least `long_loop` iterations are watched for a steady state.

    Raises UsageError if the workload is inconsistent.
    """
    rows: list[list[int]] = []
    waits: list[int] = []
    levels: list[list[int]] = []
    places = _Places(long_loop)
    path_from = [0]
    which: list[int] = []
    names: list[tuple[int, int]] = []
    # Paths share most of their nodes; identical objects need only one row.
    by_slots: dict[int, dict[int, int]] = {}
    for number, path in enumerate(workload.paths):
        known = by_slots.setdefault(path.slots, {})
        for node in path.nodes:
            if id(node) not in known:
                _check(node, path, workload)
                known[id(node)] = len(rows)
                rows.append(_row(node, workload, waits, levels))
        places.add(path.program, len(which))
        which += [known[id(node)] for node in path.nodes]
        names += zip(repeat(number), range(len(path.nodes)))
        path_from.append(places.count)
    block_paths = [list(kind.paths) for kind in workload.block_types]
    if any(len(paths) != workload.warps_per_block for paths in block_paths):
        raise UsageError(f"every block type needs one path for each of its {workload.warps_per_block} warps")
    depth = max(map(len, places.nests), default=0)
    return Tables(
        resources=len(workload.subsystems) + any(node.queued for path in workload.paths for node in path.nodes),
        nodes=_table(rows, col.NODE_COLUMNS)[np.array(which, dtype=np.int64)],
        waits=np.array(waits, dtype=np.int64),
        levels=_table(levels, col.LEVEL_COLUMNS),
        positions=places.positions(),
        loops=_table(places.loops, col.LOOP_COLUMNS),
        nest=places.nest(depth, 0),
        trips=places.nest(depth, 1),
        path_from=np.array(path_from, dtype=np.int64),
        block_paths=_table(block_paths, workload.warps_per_block),
        depth=depth,
        loop_levels=max((level for nest in places.nests for level, _ in nest), default=0),
        slots=max((path.slots for path in workload.paths), default=0),
        events=np.array([e for path in workload.paths for e in path.events], dtype=np.int64),
        events_from=np.cumsum([0, *(len(path.events) for path in workload.paths)], dtype=np.int64),
        needed=_needed(workload),
        paths_nodes=tuple(names),
    )


def _needed(workload: CostedWorkload) -> Ticks:
    """Signals of each phase by block type: those of all its warps' paths in total."""
    phases = max((len(path.signals) for path in workload.paths), default=0)
    table = np.zeros((len(workload.block_types), phases), dtype=np.int64)
    for row, kind in zip(table, workload.block_types, strict=True):
        for path in kind.paths:
            signals = workload.paths[path].signals
            row[: len(signals)] += np.array(signals, dtype=np.int64)
    return table


def _table(rows: list[list[int]], columns: int) -> Ticks:
    return np.array(rows, dtype=np.int64).reshape(len(rows), columns)


def _check(node: CostedNode, path: CostedPath, workload: CostedWorkload) -> None:
    waits, most, subsystems = node.waits, path.slots, len(workload.subsystems)
    outside = node.sets >= most or node.sets_read >= most or node.after >= most
    if outside or (waits and (max(waits) >= most or min(waits) < 0)):
        raise UsageError(f"instruction {node.instruction}: a dependence slot outside 0..{most - 1}")
    if not 0 <= node.subsystem < subsystems or any(not 0 <= level.subsystem < subsystems for level in node.levels):
        raise UsageError(f"instruction {node.instruction}: a subsystem outside 0..{subsystems - 1}")
    if (node.barrier or node.sync & SYNC_AWAITS) and (node.levels or node.async_result):
        raise UsageError(f"instruction {node.instruction}: a barrier cannot visit a memory level or be asynchronous")
    if node.queued and (node.lambda_ticks or workload.subsystems[node.subsystem].outstanding):
        raise UsageError(
            f"instruction {node.instruction}: expected no λ of its own and no limit of outstanding instructions at the"
            " subsystem that it queues for"
        )


def _row(node: CostedNode, workload: CostedWorkload, waits: list[int], levels: list[list[int]]) -> list[int]:
    wait_from, level_from = len(waits), len(levels)
    waits.extend(dict.fromkeys(node.waits))
    for level in node.levels:
        inside = int(workload.subsystems[level.subsystem].scope == "partition")
        where = level.subsystem * workload.partitions
        levels.append([where, level.lambda_ticks, level.tail_ticks, inside, int(level.queues)])
    # One that queues issues whatever its subsystem is doing: to a resource of its own that is always free.
    at = len(workload.subsystems) if node.queued else node.subsystem
    return [
        at * workload.partitions,
        node.lambda_ticks,
        node.latency_ticks,
        node.stall_ticks,
        wait_from,
        len(waits),
        node.sets,
        node.sets_read,
        node.read_ticks,
        int(node.barrier),
        int(node.async_result),
        level_from,
        len(levels),
        int(workload.subsystems[node.subsystem].scope == "partition"),
        *_reasons(node.class_, node.goes_on)[:2],
        node.sync,
        node.after,
        _reasons(node.class_, node.goes_on)[2],
        *node.register_ticks,
        workload.read_window_ticks,
        int(node.stays),
        workload.issue_ticks * node.issues + node.held_ticks,
        *_beside(node, workload),
        node.miss_ticks,
    ]


def _beside(node: CostedNode, workload: CostedWorkload) -> tuple[int, int, int]:
    """The resource that takes its share of the register file's banks, and how much longer reads take beside it."""
    if workload.bank_rival < 0 or not any(node.register_ticks):
        return -1, 0, 0
    even, odd = (round(ticks * workload.beside_rival) for ticks in node.register_ticks)
    return workload.bank_rival * workload.partitions, even, odd


@cache
def _reasons(class_: str, levels: bool) -> tuple[int, int, int]:
    """Numbers of the reasons to wait for a result, for the subsystem, and for other warps at the node."""
    return (
        REASONS.index(dependent_reason(class_, levels)),
        REASONS.index(busy_reason(class_)),
        REASONS.index(await_reason(class_, levels)),
    )


class _Places:
    """The places of all paths' programs, in order, and the loops around them."""

    def __init__(self, long_loop: int) -> None:
        self.long_loop = long_loop
        self.loops: list[list[int]] = []
        self.nests: dict[_Nest, int] = {}
        """Each distinct nest of loops, outer first, with its number."""
        self.count = 0
        self._nodes: list[int] = []
        self._first: list[tuple[int, int]] = []
        self._closes: dict[int, int] = {}
        self._spans: list[tuple[int, int]] = []

    def add(self, program: Sequence[Item], first: int) -> None:
        """Append the places of a path whose nodes begin at `first`."""
        before = self.count
        self._place(program, ())
        self._first.append((first, self.count - before))

    def positions(self) -> Ticks:
        """`Tables.positions`."""
        table = np.full((self.count, 2), -1, dtype=np.int64)
        table[:, 0] = np.array(self._nodes, dtype=np.int64)
        table[:, 0] += np.repeat(*np.array(self._first, dtype=np.int64).reshape(-1, 2).T)
        for place, closed in self._closes.items():
            table[place, 1] = closed
        return table

    def nest(self, depth: int, column: int) -> Ticks:
        """`Tables.nest` or `Tables.trips`: a column for each loop around each place."""
        different = _table([[loop[column] for loop in nest] + [0] * (depth - len(nest)) for nest in self.nests], depth)
        which: Ticks = np.repeat(*np.array(self._spans, dtype=np.int64).reshape(-1, 2).T)
        return different[which]

    def _place(self, program: Sequence[Item], nest: _Nest) -> None:
        start = 0
        for number, item in enumerate(program):
            if isinstance(item, Repeat):
                self._straight(program[start:number], nest)
                self._loop(item, nest)
                start = number + 1
        self._straight(program[start:], nest)

    def _straight(self, nodes: Sequence[Item], nest: _Nest) -> None:
        if nodes:
            self._nodes += nodes  # type: ignore[arg-type]
            self._spans.append((self.nests.setdefault(nest, len(self.nests)), len(nodes)))
            self.count += len(nodes)

    def _loop(self, loop: Repeat, nest: _Nest) -> None:
        start, loops = self.count, self.loops
        level = max((outer for outer, _ in nest), default=0) + 1 if loop.count >= self.long_loop else 0
        if loop.count > 0:
            self._place(loop.body, (*nest, (level, loop.count)))
        if self.count == start:
            return  # no iterations, or an empty body
        # This loop closes after inner loops that end at the same place: it goes to the end of the chain.
        loops.append([start, loop.count, len(nest), -1, level])
        inner = self._closes.get(self.count - 1, -1)
        if inner < 0:
            self._closes[self.count - 1] = len(loops) - 1
            return
        while loops[inner][col.LOOP_OUTER] >= 0:
            inner = loops[inner][col.LOOP_OUTER]
        loops[inner][col.LOOP_OUTER] = len(loops) - 1


# Some paths, each alone on its own machine.


def alone(tables: Tables, workload: CostedWorkload, paths: Sequence[int]) -> Tables:
    """The result of `flatten` for these paths as the warps of one block, with as many partitions that each have all
    subsystems, and with no issue limit and no time for visits to memory levels. `tables` are those of `workload`.

    Waits and levels are unchanged, including rows that no node of these paths references.
    """
    node_from = np.cumsum([0, *(len(path.nodes) for path in workload.paths)])
    nodes, places = (_slices(bounds, paths) for bounds in (node_from, tables.path_from))
    loops = [_loops_of(tables, int(tables.path_from[path]), int(tables.path_from[path + 1])) for path in paths]
    rows = tables.nodes[nodes]
    rows[:, col.RESOURCE] = rows[:, col.RESOURCE] // workload.partitions * len(paths)
    rows[:, col.RIVAL] = np.where(rows[:, col.RIVAL] < 0, -1, rows[:, col.RIVAL] // workload.partitions * len(paths))
    rows[:, col.PER_PARTITION] = 1
    rows[:, col.ISSUE_TICKS] = 0
    levels = tables.levels.copy()
    levels[:, col.LEVEL_RESOURCE] = levels[:, col.LEVEL_RESOURCE] // workload.partitions * len(paths)
    levels[:, [col.LEVEL_LAMBDA, col.LEVEL_TAIL]] = 0
    levels[:, [col.LEVEL_PER_PARTITION, col.LEVEL_QUEUES]] = 1
    positions, trips = tables.positions[places], tables.trips[places]
    kept = tables.loops[np.concatenate(loops)]
    node_at = place_at = loop_at = 0
    path_from, names = [0], []
    for number, (path, held) in enumerate(zip(paths, loops, strict=True)):
        length = int(tables.path_from[path + 1] - tables.path_from[path])
        own, ends = positions[place_at : place_at + length], kept[loop_at : loop_at + len(held)]
        own[:, 0] += node_at - int(node_from[path])
        if len(held):
            first = int(held[0])
            own[own[:, 1] >= 0, 1] += loop_at - first
            ends[ends[:, col.LOOP_OUTER] >= 0, col.LOOP_OUTER] += loop_at - first
            ends[:, col.LOOP_START] += place_at - int(tables.path_from[path])
        count = int(node_from[path + 1] - node_from[path])
        names += [(number, index) for index in range(count)]
        node_at, place_at, loop_at = node_at + count, place_at + length, loop_at + len(held)
        path_from.append(place_at)
    depth = int(np.count_nonzero(trips, axis=1).max(initial=0))
    nest = np.ascontiguousarray(tables.nest[places][:, :depth])
    phases = max((len(workload.paths[path].signals) for path in paths), default=0)
    needed = np.zeros((1, phases), dtype=np.int64)
    for path in paths:
        signals = workload.paths[path].signals
        needed[0, : len(signals)] += np.array(signals, dtype=np.int64)
    return replace(
        tables,
        nodes=rows,
        levels=levels,
        positions=positions,
        loops=kept,
        nest=nest,
        trips=np.ascontiguousarray(trips[:, :depth]),
        path_from=np.array(path_from, dtype=np.int64),
        block_paths=np.arange(len(paths), dtype=np.int64).reshape(1, -1),
        depth=depth,
        loop_levels=int(nest.max(initial=0)),
        slots=max((workload.paths[path].slots for path in paths), default=0),
        events=np.array([e for path in paths for e in workload.paths[path].events], dtype=np.int64),
        events_from=np.cumsum([0, *(len(workload.paths[path].events) for path in paths)], dtype=np.int64),
        needed=needed,
        paths_nodes=tuple(names),
    )


def _slices(bounds: Ticks, paths: Sequence[int]) -> Ticks:
    """The indices from `bounds[path]` to `bounds[path + 1]` of each path."""
    spans = list(pairwise(bounds.tolist()))
    return np.concatenate([np.arange(*spans[path], dtype=np.int64) for path in paths])


def _loops_of(tables: Tables, first: int, last: int) -> Ticks:
    """The loops of the places from `first` up to `last`: they are contiguous."""
    starts = tables.loops[:, col.LOOP_START]
    return np.flatnonzero((starts >= first) & (starts < last)).astype(np.int64)
