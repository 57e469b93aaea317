"""Warps that issue out of program order: their state, the compiled loop over it, and how far they may jump."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..bound import BoundWorkload
from .columns import (
    COUNTED,
    DATAFLOW_COLUMNS,
    DONE,
    EARLIEST,
    GAP,
    ISSUED_AT,
    NEVER,
    NOW,
    READ_AT,
    RESULT_AT,
    SEQUENCE,
)
from .dataflow import Graph
from .policies import Policy
from .program import Tables
from .result import Ticks
from .state import State


@dataclass(frozen=True)
class Before:
    """The warps at an earlier moment, and of the machine what hides when a node is ready."""

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
        """Go on; returns why the loop came back."""
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
        """All of the warps that the words do not tell."""
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
        """How many periods until a warp sees the end of its loop."""
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
        """Be so many periods further, `ticks` later."""
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
