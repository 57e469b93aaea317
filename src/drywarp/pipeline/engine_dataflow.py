"""Warps that issue out of program order: an instruction dependence graph, unrolled.

The papers' GPUs take an abstract graph whose only edges are dependences; a warp may issue any node whose producers have
completed. A barrier separates the nodes before it from those after it in the program: it issues when all before it have
issued, and those after it wait until it opens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import UsageError
from ..workload.cost import BoundWorkload
from .columns import COUNTED, DATAFLOW_COLUMNS, DONE, EARLIEST, GAP, ISSUED_AT, NEVER, NOW, READ_AT, RESULT_AT, SEQUENCE
from .program import Tables
from .result import Policy, Ticks
from .state import State

MOST_NODES = 8_000_000
"""Most unrolled nodes of all concurrent warps in total."""


@dataclass(frozen=True)
class Graph:
    """The unrolled graphs of all paths; nodes of a path count from 0, edges lie by producer."""

    node: Ticks
    mark: Ticks
    """The level at which each node begins another iteration of a loop that is watched for a steady state (0: none)."""
    producers: Ticks
    """Number of edges into each node."""
    edge_from: Ticks
    edges: Ticks
    """Per edge: the consumer within its path, and what it needs (`program.RESULT` and the others)."""
    path_from: Ticks


def check_size(nodes: int, longest: int) -> None:
    """Raises UsageError if all warps together have too many nodes."""
    if nodes > MOST_NODES:
        raise UsageError(
            f"{nodes // longest} concurrent warps of {longest} instructions are too many for out-of-order issue:"
            f" expected at most {MOST_NODES} instructions in total; shorten the loops"
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
    from .program import unroll

    first, end = tables.path_from[number], tables.path_from[number + 1]
    walk = (first, end, tables.positions, tables.loops, tables.nodes, tables.waits)
    node, mark, producers, consumers = (np.zeros(length, dtype=np.int64) for _ in range(4))
    edges = np.zeros((0, 3), dtype=np.int64)
    for _ in range(2):  # the first pass counts the edges
        consumers[:] = 0
        counters, writer = np.zeros(tables.depth, dtype=np.int64), np.full(tables.slots, -1, dtype=np.int64)
        count = unroll(*walk, counters, writer, node, mark, producers, consumers, edges)
        edges = edges if len(edges) else np.zeros((count, 3), dtype=np.int64)
    by_producer = np.argsort(edges[:, 0], kind="stable")
    return node, mark, producers, consumers, edges[by_producer, 1:]


# Warps that issue out of program order: their state, the compiled loop over it, and how far they may jump.


@dataclass(frozen=True)
class Before:
    """The warps at an earlier moment, and the machine state that hides when a node is ready."""

    now: int
    sequence: Ticks
    warps: Ticks
    missing: npt.NDArray[np.int32]
    ready: Ticks
    reasons: npt.NDArray[np.int8]
    parts: Ticks
    free: Ticks


class Dataflow:
    """See `recurrence.Engine`."""

    settles = False

    def __init__(
        self, workload: BoundWorkload, tables: Tables, graph: Graph, kinds: Ticks, policy: Policy, state: State
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
        self.words = np.zeros(warps * 6 + state.words if len(state.watch) else 0, dtype=np.int64)
        self.touched = np.zeros(warps, dtype=np.int64)

    def run(self) -> int:
        """Resume; returns why the loop stopped."""
        from .dataflow_loop import run_dataflow

        workload, tables, graph, state = self.workload, self.tables, self.graph, self.state
        return int(
            run_dataflow(
                workload.partitions,
                workload.issue_ticks,
                workload.launch_ticks,
                workload.warps_per_block,
                self.policy.greedy,
                self.policy.order,
                state.cycle,
                tables.nodes,
                tables.levels,
                graph.node,
                graph.mark,
                graph.producers,
                graph.edge_from,
                graph.edges,
                graph.path_from,
                tables.block_paths,
                self.kinds,
                self.warps,
                state.rank,
                state.at_rank,
                self.age,
                self.todo,
                self.missing,
                self.ready,
                self.reasons,
                self.listed,
                self.written,
                state.slots,
                state.parts,
                state.free,
                state.busy,
                state.changed,
                state.pending,
                state.pending_from,
                state.warp_ends,
                state.blocks,
                state.stalls,
                state.spells,
                state.newest,
                state.table,
                state.clock,
                state.watch,
                state.seen,
                self.words,
            )
        )

    def copy(self) -> Before:
        """All warp state that the words do not capture."""
        state = self.state
        accounting = len(state.stalls) > 0
        return Before(
            now=int(state.clock[NOW]),
            sequence=state.slots[:, SEQUENCE].copy(),
            warps=self.warps.copy(),
            missing=self.missing.copy(),
            ready=self.ready.copy(),
            reasons=self.reasons.copy() if accounting else self.reasons[:0],
            parts=state.parts.copy(),
            free=state.free.copy(),
        )

    def periods(self, before: Before, same: Ticks) -> int:
        """Number of periods until a warp comes within sight of the end of its loop."""
        from .jump_dataflow import periods

        state, graph = self.state, self.graph
        return int(
            periods(
                self.workload.partitions,
                self.workload.warps_per_block,
                len(state.stalls) > 0,
                before.now,
                int(state.clock[NOW]),
                before.sequence,
                before.warps,
                before.missing,
                before.ready,
                before.reasons,
                before.parts,
                before.free,
                state.slots,
                self.warps,
                self.missing,
                self.ready,
                self.reasons,
                state.parts,
                state.free,
                self.tables.nodes,
                graph.node,
                graph.edge_from,
                graph.edges,
                self.touched,
            )
        )

    def advance(self, before: Before, same: Ticks, times: int, ticks: int) -> None:
        """Advance by this many periods, `ticks` later."""
        from .jump_dataflow import advance

        advance(
            times,
            ticks,
            self.workload.warps_per_block,
            self.state.slots,
            before.warps,
            self.warps,
            self.missing,
            self.ready,
            self.reasons,
            self.listed,
            self.written,
            self.touched,
        )
        self.warps[:, [DONE, GAP, COUNTED]] += ticks
        for column in (EARLIEST, RESULT_AT, READ_AT, ISSUED_AT):
            known = self.warps[:, column]
            known[known < NEVER] += ticks
