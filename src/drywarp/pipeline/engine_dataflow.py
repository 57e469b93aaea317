"""Warps that issue out of program order: an instruction dependence graph, unrolled.

The papers' GPUs take an abstract graph whose only edges are dependences; a warp may issue any node whose producers have
completed. A barrier separates the nodes before it from those after it in the program: it issues when all before it have
issued, and those after it wait until it opens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.library import Function, record
from ..errors import UsageError
from ..workload.cost import CostedWorkload
from .columns import DATAFLOW_COLUMNS
from .program import Tables
from .reasons import Policy
from .result import Ticks
from .state import MACHINE, State

_OF_WARPS = ("age", "todo", "warps", "missing", "reasons", "ready", "listed", "written")
DATAFLOW = (
    *MACHINE,
    *("warp_count", "longest", "graph", "producers", "edge_from", "path_from", "edges"),
    *("warps", "missing", "reasons", "ready", "listed", "written"),
)
"""The fields of `Dataflow` in core/native/dataflow.c."""

_run_dataflow, _unroll = Function("run_dataflow", "a"), Function("unroll", "nnaaaaaaaaaan")

MOST_NODES = 8_000_000
"""Most unrolled nodes of all concurrent warps in total."""


@dataclass(frozen=True)
class Graph:
    """The unrolled graphs of all paths; nodes of a path count from 0, edges lie by producer."""

    node: Ticks
    producers: Ticks
    """Number of edges into each node."""
    edge_from: Ticks
    edges: Ticks
    """Per edge: the consumer within its path, and what it needs: its result (0), its operands read (1), or only that it
    has issued (2)."""
    path_from: Ticks


def check_size(nodes: int, longest: int) -> None:
    """Raises UsageError if all warps together have too many nodes."""
    if nodes > MOST_NODES:
        raise UsageError(
            f"{nodes // longest} concurrent warps of {longest} instructions are too many for out-of-order issue:"
            f" expected at most {MOST_NODES} instructions in total; shorten the loops"
        )


def unroll_paths(workload: CostedWorkload, tables: Tables) -> Graph:
    """The graphs of all paths one after another."""
    parts = [_unroll_path(tables, number, path.length) for number, path in enumerate(workload.paths)]
    path_from = np.cumsum([0, *(len(part[0]) for part in parts)], dtype=np.int64)
    node, producers, consumers, edges = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Graph(
        node=node,
        producers=producers,
        edge_from=np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(consumers)]),
        edges=np.ascontiguousarray(edges),
        path_from=path_from,
    )


def _unroll_path(tables: Tables, number: int, length: int) -> tuple[Ticks, Ticks, Ticks, Ticks]:
    first, end = tables.path_from[number : number + 2].tolist()
    walk = (first, end, tables.positions, tables.loops, tables.nodes, tables.waits)
    node, producers, consumers = (np.zeros(length, dtype=np.int64) for _ in range(3))
    edges = np.zeros((0, 3), dtype=np.int64)
    for _ in range(2):  # the first pass counts the edges
        consumers[:] = 0
        counters, writer = np.zeros(tables.depth, dtype=np.int64), np.full(tables.slots, -1, dtype=np.int64)
        count = _unroll(*walk, counters, writer, node, producers, consumers, edges, len(edges))
        edges = edges if len(edges) else np.zeros((count, 3), dtype=np.int64)
    by_producer = np.argsort(edges[:, 0], kind="stable")
    return node, producers, consumers, edges[by_producer, 1:]


class Dataflow:
    """The state of all warps, and the core's loop over it."""

    def __init__(
        self, workload: CostedWorkload, tables: Tables, graph: Graph, kinds: Ticks, policy: Policy, state: State
    ) -> None:
        self.workload, self.tables, self.graph = workload, tables, graph
        self.kinds, self.policy, self.state = kinds, policy, state
        warps = len(state.slots) * workload.warps_per_block
        longest = max((1, *(path.length for path in workload.paths)))
        self.warps = np.full((warps, DATAFLOW_COLUMNS), -1, dtype=np.int64)
        self.age = np.zeros(warps, dtype=np.int64)
        self.todo = np.zeros(workload.warps_per_block, dtype=np.int64)
        self.ready, self.listed, self.written = (np.zeros((warps, longest), dtype=np.int64) for _ in range(3))
        self.missing = np.zeros((warps, longest), dtype=np.int32)
        self.reasons = np.zeros((warps, longest), dtype=np.int8)

    def run(self) -> int:
        """Resume; returns why the loop stopped."""
        graph = self.graph
        values = {
            **self.state.machine(self.workload, self.tables, self.policy, self.kinds),
            **{name: getattr(self, name) for name in _OF_WARPS},
            **{name: getattr(graph, name) for name in ("producers", "edge_from", "edges", "path_from")},
            "graph": graph.node,
            "warp_count": len(self.warps),
            "longest": self.ready.shape[1],
        }
        return _run_dataflow(record(DATAFLOW, values))
