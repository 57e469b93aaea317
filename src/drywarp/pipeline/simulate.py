"""Run one SM's share of a bound workload through the compiled loops.

The loops, and Numba with them, are imported when the first simulation runs: importing drywarp
stays quick.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..bound import TICKS_PER_CYCLE, BoundWorkload
from ..errors import UsageError
from .blocks import Share, type_order
from .columns import (
    BLOCK_COLUMNS,
    BLOCK_SLOT,
    CANDIDATE,
    GREEDY,
    LAST,
    LAUNCHED,
    NEVER,
    NEXT,
    PARTITION_COLUMNS,
    PRIORITY_BITS,
    SEQUENCE,
    SLOT_COLUMNS,
    SPELL_COLUMNS,
    SPELLS,
)
from .policies import Policy, policy_named
from .program import Tables, flatten
from .reasons import REASONS
from .result import PROFILE_COLUMNS, ExecutionProfile, SimulationResult, Ticks

LARGEST_PROFILE = 20_000_000
"""Most warp instructions that an execution profile is kept for."""


def instructions_per_block(workload: BoundWorkload) -> list[int]:
    """Dynamic warp instructions of one block of each type."""
    lengths = [path.length for path in workload.paths]
    return [sum(lengths[path] for path in kind.paths) for kind in workload.block_types]


def run_share(
    workload: BoundWorkload,
    share: Share,
    profile: bool = False,
    stalls: bool = True,
    *,
    cycle: int = TICKS_PER_CYCLE,
    spells: int = SPELLS,
) -> SimulationResult:
    """Simulate the whole of `share`, instruction by instruction.

    Without `stalls` the warps' time is not divided by reason, which is quicker. `cycle` is for how many
    ticks an issuing warp counts as ``selected``, `spells` how many notes on a subsystem are kept at
    once: arguments for tests, which count in few ticks.
    """
    tables = flatten(workload)
    kinds = type_order([kind.weight for kind in workload.block_types], share.blocks)
    per_kind = np.bincount(kinds, minlength=len(workload.block_types))
    total = int(sum(int(n) * count for n, count in zip(per_kind, instructions_per_block(workload), strict=True)))
    if profile and total > LARGEST_PROFILE:
        raise UsageError(
            f"an execution profile of {total} warp instructions is too large; the most is {LARGEST_PROFILE}"
        )
    state = State.fresh(workload, tables, share, total if profile else 0, stalls, cycle, spells)
    policy = policy_named(workload.policy)
    if workload.in_order:
        issued = _in_order(workload, tables, share, kinds, policy, state)
    else:
        from .dataflow import run as run_dataflow

        issued = run_dataflow(workload, tables, share, kinds, policy, state)
    if issued != total:
        raise UsageError(f"the simulated time leaves the range of {NEVER} ticks; check the latencies")
    end = int(state.warp_ends.max(initial=0))
    return SimulationResult(
        total_ticks=end,
        issued=issued,
        blocks=share.blocks,
        busy_ticks=_per_instance(workload, state.busy),
        issue_busy_ticks=issued * workload.issue_ticks / workload.partitions,
        warp_ticks=int(state.warp_ends.sum()) - int(state.blocks[:, LAUNCHED].sum()) * workload.warps_per_block,
        stall_ticks=state.stalls,
        nodes=tables.paths_nodes,
        partitions=workload.partitions,
        simulated_ticks=end,
        warp_ends=state.warp_ends,
        block_starts=state.blocks[:, LAUNCHED],
        block_slots=state.blocks[:, BLOCK_SLOT],
        profile=ExecutionProfile(state.table, tables.paths_nodes) if profile else None,
    )


@dataclass(frozen=True)
class State:
    """What both loops change: subsystems, block slots, and what they write down."""

    free: Ticks
    busy: Ticks
    changed: Ticks
    pending: Ticks
    pending_from: Ticks
    slots: Ticks
    parts: Ticks
    rank: Ticks
    at_rank: Ticks
    cycle: int
    warp_ends: Ticks
    blocks: Ticks
    stalls: Ticks
    spells: Ticks
    newest: Ticks
    table: Ticks

    @classmethod
    def fresh(
        cls, workload: BoundWorkload, tables: Tables, share: Share, rows: int, stalls: bool, cycle: int, spells: int
    ) -> State:
        """The state before the first tick; `rows` is how many issues to write down."""
        resources = len(workload.subsystems) * workload.partitions
        limits = [s.outstanding for s in workload.subsystems for _ in range(workload.partitions)]
        warps = min(share.resident, share.blocks) * workload.warps_per_block
        if warps > (1 << PRIORITY_BITS):
            raise UsageError(f"{warps} concurrent warps on one SM; the most is {(1 << PRIORITY_BITS)}")
        slots = np.zeros((min(share.resident, share.blocks), SLOT_COLUMNS), dtype=np.int64)
        slots[:, SEQUENCE] = -1
        parts = np.zeros((workload.partitions, PARTITION_COLUMNS), dtype=np.int64)
        parts[:, NEXT] = NEVER
        parts[:, [CANDIDATE, LAST, GREEDY]] = -1
        return cls(
            free=np.zeros(resources, dtype=np.int64),
            busy=np.zeros(resources, dtype=np.int64),
            changed=np.zeros(resources, dtype=np.int64),
            pending=np.zeros(sum(limits), dtype=np.int64),
            pending_from=np.cumsum([0, *limits], dtype=np.int64),
            slots=slots,
            parts=parts,
            rank=np.zeros((workload.partitions, -(-warps // workload.partitions)), dtype=np.int64),
            at_rank=np.zeros(warps, dtype=np.int64),
            cycle=cycle,
            warp_ends=np.zeros(share.blocks * workload.warps_per_block, dtype=np.int64),
            blocks=np.zeros((share.blocks, BLOCK_COLUMNS), dtype=np.int64),
            stalls=np.zeros((len(tables.nodes) if stalls else 0, len(REASONS)), dtype=np.int64),
            spells=np.zeros((resources, spells, SPELL_COLUMNS), dtype=np.int64),
            newest=np.zeros(resources, dtype=np.int64),
            table=np.zeros((rows, len(PROFILE_COLUMNS)), dtype=np.int64),
        )


def _in_order(workload: BoundWorkload, tables: Tables, share: Share, kinds: Ticks, policy: Policy, state: State) -> int:
    from .inorder import WARP_COLUMNS, run_in_order

    warps = len(state.slots) * workload.warps_per_block
    return int(
        run_in_order(
            workload.partitions,
            workload.issue_ticks,
            workload.launch_ticks,
            workload.warps_per_block,
            share.full,
            policy.greedy,
            policy.order,
            state.cycle,
            tables.nodes,
            tables.waits,
            tables.levels,
            tables.positions,
            tables.loops,
            tables.path_from,
            tables.block_paths,
            kinds,
            np.full((warps, WARP_COLUMNS), -1, dtype=np.int64),
            np.full_like(state.rank, NEVER),
            np.zeros_like(state.rank),
            state.rank,
            state.at_rank,
            np.zeros(warps, dtype=np.int64),
            np.zeros((warps, tables.depth), dtype=np.int64),
            np.zeros(workload.warps_per_block, dtype=np.int64),
            np.zeros((warps, tables.slots), dtype=np.int64),
            np.zeros((warps, tables.slots), dtype=np.int64),
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
        )
    )


def _per_instance(workload: BoundWorkload, busy: Ticks) -> tuple[float, ...]:
    rows = busy.reshape(len(workload.subsystems), workload.partitions)
    return tuple(
        float(row.mean()) if subsystem.scope == "partition" else float(row.sum())
        for row, subsystem in zip(rows, workload.subsystems, strict=True)
    )
