"""A bound workload as flat integer tables: what the compiled loops read.

The nodes of all paths lie in one table, a column per property. Loops stay loops: `positions` lists
every place of a path's program once, and a place that closes loops points to a chain of loop ends,
innermost first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..bound import BoundNode, BoundPath, BoundWorkload, Item, Repeat
from ..errors import UsageError
from .columns import LEVEL_COLUMNS, LOOP_COLUMNS, LOOP_OUTER, NODE_COLUMNS
from .reasons import REASONS, busy_reason, dependent_reason
from .result import Ticks


@dataclass(frozen=True)
class Tables:
    """The flat form of a workload; a subsystem's resources are ``index · partitions + partition``."""

    nodes: Ticks
    waits: Ticks
    levels: Ticks
    positions: Ticks
    """Per place: its node, and the loop end it closes (-1: none)."""
    loops: Ticks
    path_from: Ticks
    """First place of each path, and one past the last."""
    block_paths: Ticks
    """Per block type: the path of each warp."""
    depth: int
    slots: int
    paths_nodes: tuple[tuple[int, int], ...]


def flatten(workload: BoundWorkload) -> Tables:
    """The tables of `workload`. Raises UsageError where the workload contradicts itself."""
    rows: list[list[int]] = []
    waits: list[int] = []
    levels: list[list[int]] = []
    places: list[list[int]] = []
    loops: list[list[int]] = []
    path_from = [0]
    names: list[tuple[int, int]] = []
    depth = 0
    for number, path in enumerate(workload.paths):
        first = len(rows)
        for index, node in enumerate(path.nodes):
            _check(node, path, len(workload.subsystems))
            rows.append(_row(node, workload, waits, levels))
            names.append((number, index))
        depth = max(depth, _place(path.program, first, places, loops, 0))
        path_from.append(len(places))
    block_paths = [list(kind.paths) for kind in workload.block_types]
    if any(len(paths) != workload.warps_per_block for paths in block_paths):
        raise UsageError(f"every block type needs one path for each of its {workload.warps_per_block} warps")
    return Tables(
        nodes=_table(rows, NODE_COLUMNS),
        waits=np.array(waits, dtype=np.int64),
        levels=_table(levels, LEVEL_COLUMNS),
        positions=_table(places, 2),
        loops=_table(loops, LOOP_COLUMNS),
        path_from=np.array(path_from, dtype=np.int64),
        block_paths=_table(block_paths, workload.warps_per_block),
        depth=depth,
        slots=max((path.slots for path in workload.paths), default=0),
        paths_nodes=tuple(names),
    )


def _table(rows: list[list[int]], columns: int) -> Ticks:
    return np.array(rows, dtype=np.int64).reshape(len(rows), columns)


def _check(node: BoundNode, path: BoundPath, subsystems: int) -> None:
    slots = (*node.waits, node.sets, node.sets_read)
    if any(slot >= path.slots for slot in slots) or any(slot < 0 for slot in node.waits):
        raise UsageError(f"instruction {node.instruction}: a dependence slot outside 0..{path.slots - 1}")
    if any(not 0 <= index < subsystems for index in (node.subsystem, *(level.subsystem for level in node.levels))):
        raise UsageError(f"instruction {node.instruction}: a subsystem outside 0..{subsystems - 1}")
    if node.barrier and (node.levels or node.async_result):
        raise UsageError(f"instruction {node.instruction}: a barrier visits no memory level and is not asynchronous")


def _row(node: BoundNode, workload: BoundWorkload, waits: list[int], levels: list[list[int]]) -> list[int]:
    wait_from, level_from = len(waits), len(levels)
    waits.extend(dict.fromkeys(node.waits))
    for level in node.levels:
        inside = int(workload.subsystems[level.subsystem].scope == "partition")
        levels.append([level.subsystem * workload.partitions, level.lambda_ticks, level.tail_ticks, inside])
    return [
        node.subsystem * workload.partitions,
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
        REASONS.index(dependent_reason(node)),
        REASONS.index(busy_reason(node)),
    ]


def _place(program: Sequence[Item], first: int, places: list[list[int]], loops: list[list[int]], depth: int) -> int:
    """Append the places of `program`; returns the deepest nesting of loops found."""
    deepest = depth
    for item in program:
        if not isinstance(item, Repeat):
            places.append([first + item, -1])
            continue
        start = len(places)
        if item.count > 0:
            deepest = max(deepest, _place(item.body, first, places, loops, depth + 1))
        if len(places) == start:
            continue  # no turns, or nothing inside
        # This loop closes after those inside that end at the same place: it goes to the chain's end.
        loops.append([start, item.count, depth, -1])
        inner = places[-1][1]
        if inner < 0:
            places[-1][1] = len(loops) - 1
            continue
        while loops[inner][LOOP_OUTER] >= 0:
            inner = loops[inner][LOOP_OUTER]
        loops[inner][LOOP_OUTER] = len(loops) - 1
    return deepest
