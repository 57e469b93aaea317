"""Warps that issue out of program order: an instruction dependence graph, unrolled.

The papers' GPUs take an abstract graph whose edges are dependences only; a warp may issue any node
whose producers are done. A barrier stands between what is before it and after it in the program:
it issues when all before it have issued, and what is after it waits until it opens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..bound import BoundWorkload
from ..errors import UsageError
from .program import Tables
from .result import Ticks

MOST_NODES = 8_000_000
"""Most unrolled nodes of all concurrent warps together."""


@dataclass(frozen=True)
class Graph:
    """The unrolled graphs of all paths; nodes of a path count from 0, edges lie by producer."""

    node: Ticks
    mark: Ticks
    """At which level each node begins another turn of a loop that is watched for a steady state, 0: of none."""
    producers: Ticks
    """How many edges lead to each node."""
    edge_from: Ticks
    edges: Ticks
    """Per edge: the consumer within its path, and what it needs (`unroll.RESULT` and the others)."""
    path_from: Ticks


def check_size(nodes: int, longest: int) -> None:
    """Raises UsageError where the nodes of all warps together are too many."""
    if nodes > MOST_NODES:
        raise UsageError(
            f"{nodes // longest} concurrent warps of {longest} instructions are too many to issue out of order:"
            f" the most is {MOST_NODES} instructions together; shorten the loops"
        )


def unroll_paths(workload: BoundWorkload, tables: Tables) -> Graph:
    """The graphs of all paths one after another."""
    parts = [_unroll_path(tables, number, path.length) for number, path in enumerate(workload.paths)]
    path_from = np.cumsum([0, *(len(part[0]) for part in parts)], dtype=np.int64)
    node, mark, producers, consumers, edges = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Graph(
        node=node,
        mark=mark,
        producers=producers,
        edge_from=np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(consumers)]),
        edges=edges,
        path_from=path_from,
    )


def _unroll_path(tables: Tables, number: int, length: int) -> tuple[Ticks, Ticks, Ticks, Ticks, Ticks]:
    from .unroll import unroll

    first, end = tables.path_from[number], tables.path_from[number + 1]
    walk = (first, end, tables.positions, tables.loops, tables.nodes, tables.waits)
    node, mark, producers, consumers = (np.zeros(length, dtype=np.int64) for _ in range(4))
    edges = np.zeros((0, 3), dtype=np.int64)
    for _ in range(2):  # first to count the edges
        consumers[:] = 0
        counters, writer = np.zeros(tables.depth, dtype=np.int64), np.full(tables.slots, -1, dtype=np.int64)
        count = unroll(*walk, counters, writer, node, mark, producers, consumers, edges)
        edges = edges if len(edges) else np.zeros((count, 3), dtype=np.int64)
    by_producer = np.argsort(edges[:, 0], kind="stable")
    return node, mark, producers, consumers, edges[by_producer, 1:]
