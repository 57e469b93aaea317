"""One SM's share, simulated: prepares the tables, runs the core's loops."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property

import numpy as np

from ..errors import UsageError
from ..workload.cost import TICKS_PER_CYCLE, CostedWorkload
from .blocks import Share, type_order
from .columns import BLOCK_SLOT, ISSUED, LAUNCHED, LIMIT, NEVER, NEXT_BLOCK, NO_ROWS, SPELLS
from .engine_dataflow import Dataflow, Graph, check_size, unroll_paths
from .engine_inorder import InOrder, Runner
from .program import alone, flatten
from .reasons import policy_named
from .result import ExecutionProfile, Recurrence, SimulationResult, Ticks
from .state import State, Steady

LARGEST_PROFILE = 20_000_000
"""Most warp instructions for which an execution profile is recorded."""


def instructions_per_block(workload: CostedWorkload) -> list[int]:
    """Dynamic warp instructions of one block of each type."""
    lengths = [path.length for path in workload.paths]
    return [sum(lengths[path] for path in kind.paths) for kind in workload.block_types]


class Program:
    """A workload in the form that the loops read: the same for all its shares and occupancies."""

    def __init__(self, workload: CostedWorkload, long_loop: int = Steady().long_loop) -> None:
        """Loops with at least `long_loop` iterations are watched for a steady state."""
        self.workload = workload
        self.tables = workload.once(("tables", long_loop), lambda: flatten(workload, long_loop))
        self.longest = max((path.length for path in workload.paths), default=0)

    def of_kind(self, kind: int) -> Program:
        """The same for blocks of one type alone."""
        only = copy(self)
        only.workload = replace(self.workload, block_types=(self.workload.block_types[kind],))
        tables = self.tables
        only.tables = replace(tables, block_paths=tables.block_paths[[kind]], needed=tables.needed[[kind]])
        return only

    def alone(self, workload: CostedWorkload, paths: Sequence[int]) -> Program:
        """`workload` prepared, with these paths of this one, each as the only warp of its own machine."""
        other = copy(self)
        other.workload = workload
        other.tables = alone(self.tables, self.workload, paths)
        return other

    def under(self, policy: str) -> Program:
        """The same with another scheduler policy."""
        other = copy(self)
        other.workload = replace(self.workload, policy=policy)
        return other

    @cached_property
    def graph(self) -> Graph:
        """The unrolled graphs, for warps that issue out of order."""
        return unroll_paths(self.workload, self.tables)

    def nodes(self, resident: int) -> int:
        """Unrolled nodes of the warps of this many blocks in total."""
        return resident * self.workload.warps_per_block * self.longest


def run_share(
    workload: CostedWorkload,
    share: Share,
    profile: bool = False,
    stalls: bool = True,
    *,
    steady: Steady | None = None,
    program: Program | None = None,
    cycle: int = TICKS_PER_CYCLE,
    spells: int = SPELLS,
) -> SimulationResult:
    """Simulate the whole `share`, instruction by instruction, or with jumps if a `steady` state recurs.

    Both give the same result, to the tick. Without `stalls` the warps' time is not divided by reason, which is faster.
    `program` is the prepared workload, if available. `cycle` is the number of ticks for which an issuing warp counts as
    ``selected``, `spells` the number of notes kept per subsystem: arguments for tests, which use few ticks. Raises
    UsageError if the time exceeds the range of ticks.
    """
    result = try_share(workload, share, profile, stalls, steady=steady, program=program, cycle=cycle, spells=spells)
    assert result is not None, "a run without a limit reaches its end"
    return result


def try_share(
    workload: CostedWorkload,
    share: Share,
    profile: bool = False,
    stalls: bool = True,
    *,
    steady: Steady | None = None,
    program: Program | None = None,
    cycle: int = TICKS_PER_CYCLE,
    spells: int = SPELLS,
) -> SimulationResult | None:
    """As `run_share`; None if the limit of `steady` is reached before the end."""
    program = program or Program(workload, steady.long_loop if steady else Steady().long_loop)
    tables = program.tables
    each = instructions_per_block(workload)
    if len(each) == 1:  # however many blocks there are
        kinds, per_kind = np.zeros(1, dtype=np.int64), [share.blocks]
    else:
        kinds = type_order([kind.weight for kind in workload.block_types], share.blocks, each)
        per_kind = np.bincount(kinds, minlength=len(each)).tolist()
    total = sum(blocks * count for blocks, count in zip(per_kind, each, strict=True))
    events = sum(blocks * count for blocks, count in zip(per_kind, workload.issue_events, strict=True))
    if profile and total > LARGEST_PROFILE:
        raise UsageError(
            f"an execution profile of {total} warp instructions is too large: expected at most {LARGEST_PROFILE}"
        )
    if workload.synchronises and not workload.in_order:
        raise UsageError("warps that wait for only some warps of their block cannot issue out of program order")
    # The state description includes neither phases nor what has issued out of order.
    steady = None if profile or workload.synchronises or not workload.in_order else steady
    state = State.fresh(workload, tables, share, total if profile else 0, stalls, cycle, spells, steady)
    engine = engine_of(program, kinds, state)
    if isinstance(engine, InOrder):
        if not Runner(engine, state, kinds, steady).run():
            return None
    else:
        _run(engine, state)
    issued = int(state.clock[ISSUED]) + state.jumped
    if issued != total and workload.synchronises:
        raise UsageError("deadlock: a barrier phase never completes because the paths of the warps do not match")
    if issued != total:
        raise UsageError(f"the simulated time exceeds the range of {NEVER} ticks; check the latencies")
    ran = int(state.clock[NEXT_BLOCK])
    ends, starts = state.warp_ends[: ran * workload.warps_per_block], state.blocks[:ran, LAUNCHED]
    warp_ticks = _total(ends) - _total(starts) * workload.warps_per_block
    last = int(ends.max(initial=0))
    for part in state.recurrences:
        again = _total(ends[part.warps]) - _total(starts[part.blocks]) * workload.warps_per_block
        warp_ticks += part.times * again
        last = max(last, int(ends[part.warps].max(initial=0)) + part.times * part.period)
    return SimulationResult(
        total_ticks=last,
        issued=issued,
        blocks=share.blocks,
        busy_ticks=per_instance(workload, state.busy_until(last)),
        issue_busy_ticks=max(0, events * workload.issue_ticks - state.valves_after(last)) / workload.partitions,
        warp_ticks=warp_ticks,
        stall_ticks=state.stalls,
        nodes=tables.paths_nodes,
        partitions=workload.partitions,
        simulated_ticks=last,
        tail_ticks=_tail(starts, ends.reshape(ran, -1), state.recurrences),
        warp_ends=ends,
        block_starts=starts,
        block_slots=state.blocks[:ran, BLOCK_SLOT],
        recurrences=tuple(state.recurrences),
        jumped=state.jumped,
        marks=tuple(state.marks),
        profile=ExecutionProfile(state.table, tables.paths_nodes) if profile else None,
    )


def _tail(starts: Ticks, ends: Ticks, recurrences: Sequence[Recurrence]) -> int:
    """From the first end of a block after the last has started, to the last end. `ends` has a row per block."""
    if not ends.size:
        return 0
    last = ends.argmax(axis=1) + np.arange(len(ends)) * ends.shape[1]
    started, ended = [starts], [ends.max(axis=1)]
    for part in recurrences:  # what follows the last start is in the last repetition, or comes after it
        over = part.times * part.period
        started.append(starts[part.blocks] + over)
        ended.append(ends.ravel()[part.warps[np.isin(part.warps, last)]] + over)
    every = np.concatenate(ended)
    return int(every.max() - every.min(where=every > np.concatenate(started).max(), initial=every.max()))


def _total(ticks: Ticks) -> int:
    """The sum, which may need more than 64 bits."""
    return (int((ticks >> 32).sum()) << 32) + int((ticks & 0xFFFFFFFF).sum())


def engine_of(program: Program, kinds: Ticks, state: State) -> InOrder | Dataflow:
    """The compiled loop for this workload, in or out of program order, before its first tick."""
    workload = program.workload
    policy = policy_named(workload.policy)
    if workload.in_order:
        return InOrder(workload, program.tables, kinds, policy, state)
    check_size(program.nodes(len(state.slots)), program.longest)
    return Dataflow(workload, program.tables, program.graph, kinds, policy, state)


def _run(engine: InOrder | Dataflow, state: State) -> None:
    """Run without jumps, to the end or to the limit."""
    while engine.run() == NO_ROWS:
        state.make_rows()


def per_instance(workload: CostedWorkload, busy: Ticks) -> tuple[float, ...]:
    """Busy ticks of each subsystem from those of all its instances (see `SimulationResult.busy_ticks`)."""
    rows = busy.reshape(-1, workload.partitions)[: len(workload.subsystems)]
    return tuple(
        float(row.mean()) if subsystem.scope == "partition" else float(row.sum())
        for row, subsystem in zip(rows, workload.subsystems, strict=True)
    )


def first_issues(workload: CostedWorkload, share: Share, most: int) -> ExecutionProfile:
    """The first `most` warp instructions that issue when `share` runs: the start of a full profile, exact to the tick.

    Nothing after them is simulated. The completion of a barrier that has not opened by then is its issue. If each SM
    has a single block, it is one of the longest type. Raises UsageError if the graph of warps that issue out of order
    is too large.
    """
    program = Program(workload)
    each = instructions_per_block(workload)
    if share.blocks == 1 and len(each) > 1:
        likely = [kind for kind in range(len(each)) if workload.block_types[kind].weight > 0]
        program = program.of_kind(max(likely, key=each.__getitem__))
        workload, each = program.workload, instructions_per_block(program.workload)
    kinds, total = np.zeros(1, dtype=np.int64), share.blocks * each[0]
    if len(each) > 1:
        kinds = type_order([kind.weight for kind in workload.block_types], share.blocks, each)
        total = int(np.bincount(kinds, minlength=len(each)) @ np.array(each, dtype=np.int64))
    rows = min(most, total)
    state = State.fresh(workload, program.tables, share, rows, False, TICKS_PER_CYCLE, SPELLS, None)
    state.clock[LIMIT] = rows
    _run(engine_of(program, kinds, state), state)
    return ExecutionProfile(state.table[: state.clock[ISSUED]], program.tables.paths_nodes)
