"""Warps that issue in program order: their state, the compiled loop over it, and how far their loops may jump."""

from __future__ import annotations

import numpy as np

from ..workload.cost import BoundWorkload
from .columns import AFTER, COUNTED, DONE, IN_ORDER_COLUMNS, MEETING_COLUMNS, NEVER, PLACE
from .program import Tables
from .recurrence import ANY
from .result import Policy, Ticks
from .state import State


class InOrder:
    """See `recurrence.Engine`. A copied moment holds the loops' counters."""

    settles = True

    def __init__(self, workload: BoundWorkload, tables: Tables, kinds: Ticks, policy: Policy, state: State) -> None:
        self.workload, self.tables, self.kinds, self.policy, self.state = workload, tables, kinds, policy, state
        warps = len(state.slots) * workload.warps_per_block
        self.warps = np.full((warps, IN_ORDER_COLUMNS), -1, dtype=np.int64)
        self.ready = np.full_like(state.rank, NEVER)
        self.resource = np.zeros_like(state.rank)
        self.age = np.zeros(warps, dtype=np.int64)
        self.counters = np.zeros((warps, tables.depth), dtype=np.int64)
        self.todo = np.zeros(workload.warps_per_block, dtype=np.int64)
        self.slot_ready = np.zeros((warps, tables.slots), dtype=np.int64)
        self.slot_reason = np.zeros((warps, tables.slots), dtype=np.int64)
        self.meetings = np.zeros((warps, MEETING_COLUMNS), dtype=np.int64)
        self.phases = np.zeros((len(state.slots), tables.needed.shape[1], 2), dtype=np.int64)
        described = warps * (6 + tables.slots + tables.depth) + state.words if len(state.watch) else 0
        self.words = np.zeros(described, dtype=np.int64)

    def run(self) -> int:
        """Resume; returns why the loop stopped."""
        from .inorder import run_in_order

        workload, tables, state = self.workload, self.tables, self.state
        return int(
            run_in_order(
                workload.partitions,
                workload.issue_ticks,
                workload.launch_ticks,
                workload.warps_per_block,
                self.policy.greedy,
                self.policy.order,
                state.cycle,
                tables.nodes,
                tables.waits,
                tables.levels,
                tables.positions,
                tables.loops,
                tables.nest,
                tables.path_from,
                tables.block_paths,
                self.kinds,
                tables.events,
                tables.events_from,
                tables.needed,
                self.warps,
                self.ready,
                self.resource,
                state.rank,
                state.at_rank,
                self.age,
                self.counters,
                self.todo,
                self.slot_ready,
                self.slot_reason,
                self.meetings,
                self.phases,
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

    def copy(self) -> Ticks:
        """The loops' counters."""
        return self.counters.copy()

    def periods(self, before: Ticks, same: Ticks) -> int:
        """Number of periods until a loop of some warp ends.

        The warp is at the same place as before. If it completed iterations of one loop and is in the same iteration of
        all inner loops, it did not exit that loop: otherwise an outer loop would have advanced.
        """
        (moved,) = (self.counters != before).any(axis=1).nonzero()
        if len(moved) == 0:
            return ANY
        turns = self.counters[moved] - before[moved]
        if (np.count_nonzero(turns, axis=1) != 1).any() or (turns < 0).any():
            return 0
        if not np.isin(moved // self.workload.warps_per_block, same).all():
            return 0
        depth = turns.argmax(axis=1)
        left = self.tables.turns[self.warps[moved, PLACE], depth] - 1 - self.counters[moved, depth]
        return int((left // turns.max(axis=1)).min())

    def advance(self, before: Ticks, same: Ticks, times: int, ticks: int) -> None:
        """Advance by this many periods, `ticks` later."""
        self.counters += times * (self.counters - before)
        self.warps[:, [DONE, AFTER, COUNTED]] += ticks
        self.ready[self.ready < NEVER] += ticks
        self.slot_ready += ticks
