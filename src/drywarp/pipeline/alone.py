"""The tables of some paths, each alone on its own machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from ..workload.cost import CostedWorkload
from .columns import (
    ISSUE_TICKS,
    LEVEL_LAMBDA,
    LEVEL_PER_PARTITION,
    LEVEL_QUEUES,
    LEVEL_RESOURCE,
    LEVEL_TAIL,
    LOOP_OUTER,
    LOOP_START,
    PER_PARTITION,
    RESOURCE,
)
from .program import Tables
from .result import Ticks


def alone(tables: Tables, workload: CostedWorkload, paths: Sequence[int]) -> Tables:
    """The result of `flatten` for these paths as the warps of one block, with as many partitions that each have all
    subsystems, and with no issue limit and no time for visits to memory levels. `tables` are those of `workload`.

    Waits and levels are unchanged, including rows that no node of these paths references.
    """
    node_from = np.cumsum([0, *(len(path.nodes) for path in workload.paths)])
    nodes, places = (_slices(bounds, paths) for bounds in (node_from, tables.path_from))
    loops = [_loops_of(tables, int(tables.path_from[path]), int(tables.path_from[path + 1])) for path in paths]
    rows = tables.nodes[nodes]
    rows[:, RESOURCE] = rows[:, RESOURCE] // workload.partitions * len(paths)
    rows[:, PER_PARTITION] = 1
    rows[:, ISSUE_TICKS] = 0
    levels = tables.levels.copy()
    levels[:, LEVEL_RESOURCE] = levels[:, LEVEL_RESOURCE] // workload.partitions * len(paths)
    levels[:, [LEVEL_LAMBDA, LEVEL_TAIL]] = 0
    levels[:, [LEVEL_PER_PARTITION, LEVEL_QUEUES]] = 1
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
            ends[ends[:, LOOP_OUTER] >= 0, LOOP_OUTER] += loop_at - first
            ends[:, LOOP_START] += place_at - int(tables.path_from[path])
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
    starts = tables.loops[:, LOOP_START]
    return np.flatnonzero((starts >= first) & (starts < last)).astype(np.int64)
