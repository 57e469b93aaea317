"""Exact jumps over steady states, and the tables of some paths, each alone on its own machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from ..errors import UsageError
from ..workload.cost import BoundWorkload
from .columns import (
    AGO,
    AWAITED,
    DONE_ALL,
    FULL,
    FULL_LEFT,
    ISSUED,
    LEVEL,
    LEVEL_LAMBDA,
    LEVEL_PER_PARTITION,
    LEVEL_QUEUES,
    LEVEL_RESOURCE,
    LEVEL_TAIL,
    LIMIT,
    LOOP_OUTER,
    LOOP_START,
    MUTE,
    NEVER,
    NEXT_BLOCK,
    NO_ROWS,
    NOTICED,
    NOW,
    PATIENCE,
    PER_PARTITION,
    RESOURCE,
    SEQUENCE,
    SKIPPED,
    STOPPED,
    TOTAL,
    WORDS,
)
from .program import Tables
from .result import Mark, Recurrence, Ticks
from .state import State, Steady


def alone(tables: Tables, workload: BoundWorkload, paths: Sequence[int]) -> Tables:
    """The result of `flatten` for these paths as the warps of one block, with as many partitions that each have all
    subsystems, and with no time for visits to memory levels. `tables` are those of `workload`.

    Waits and levels are unchanged, including rows that no node of these paths references.
    """
    node_from = np.cumsum([0, *(len(path.nodes) for path in workload.paths)])
    nodes, places = (_slices(bounds, paths) for bounds in (node_from, tables.path_from))
    loops = [_loops_of(tables, int(tables.path_from[path]), int(tables.path_from[path + 1])) for path in paths]
    rows = tables.nodes[nodes]
    rows[:, RESOURCE] = rows[:, RESOURCE] // workload.partitions * len(paths)
    rows[:, PER_PARTITION] = 1
    levels = tables.levels.copy()
    levels[:, LEVEL_RESOURCE] = levels[:, LEVEL_RESOURCE] // workload.partitions * len(paths)
    levels[:, [LEVEL_LAMBDA, LEVEL_TAIL]] = 0
    levels[:, [LEVEL_PER_PARTITION, LEVEL_QUEUES]] = 1
    positions, turns = tables.positions[places], tables.turns[places]
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
    depth = int(np.count_nonzero(turns, axis=1).max(initial=0))
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
        turns=np.ascontiguousarray(turns[:, :depth]),
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


# Exact jumps: if the state recurs, everything in between recurs.
#
# The loops report when a state description recurs (`observe.py`). Then the state is copied. When it recurs once more,
# and no warp has exited or entered a loop differently, the events since then form a period. A jump of k periods
# advances every tick by k periods, every sum by k times its increase, every loop counter by k times its iterations, and
# skips k times as many pending blocks. k is small enough that no counter and no number of pending blocks passes its
# end. The result equals that of simulating every instruction, to the tick.

ANY = 1 << 62
"""Any number of periods."""

MOST_PATIENCE = 6
"""How often the time without a report is doubled if recurrences are of no use."""


class Engine(Protocol):
    """A compiled loop with the state of its warps."""

    words: Ticks
    settles: bool
    """Whether all warp time up to the moment is accounted for when the state is described."""

    def run(self) -> int:
        """Resume; returns why the loop stopped."""
        ...

    def copy(self) -> Any:
        """The warp state that `periods` compares and the words do not capture."""
        ...

    def periods(self, before: Any, same: Ticks) -> int:
        """How often the events since `before` can repeat, as far as the warps' loops allow.

        `same` are the block slots that still run the same block.
        """
        ...

    def advance(self, before: Any, same: Ticks, times: int, ticks: int) -> None:
        """Advance by this many periods, `ticks` later."""
        ...


@dataclass(frozen=True)
class Moment:
    """A state that may recur."""

    tick: int
    key: int
    issued: int
    """Instructions, including those skipped by jumps."""
    simulated: int
    next_block: int
    words: Ticks
    sequence: Ticks
    stalls: Ticks
    busy: Ticks
    running: Ticks
    """Numbers of the warps that have not ended."""
    warps: Any
    second: bool = False
    """Whether this state has been met a second time."""


class Runner:
    """Runs a share to its end or to the limit."""

    def __init__(self, engine: Engine, state: State, kinds: Ticks, steady: Steady | None) -> None:
        self.engine, self.state, self.kinds = engine, state, kinds
        self.least_gain = steady.least_gain if steady else 0
        self.limit, self.mark = (steady.limit, steady.mark) if steady else (NEVER, 0)
        self.moments: dict[int, Moment] = {}
        self.failed: dict[int, int] = {}

    def run(self) -> bool:
        """Whether the end was reached."""
        while True:
            code = self.engine.run()
            if code == NO_ROWS:
                self.state.make_rows()
            elif code == NOTICED:
                self._noticed(int(self.state.clock[LEVEL]))
            elif code == STOPPED and self.state.clock[ISSUED] < self.limit:
                self._mark()
            else:
                return bool(code == DONE_ALL)

    def _mark(self) -> None:
        """Record the progress of the run."""
        state = self.state
        issued = int(state.clock[ISSUED])
        state.marks.append(Mark(issued + state.jumped, int(state.clock[NOW]), state.busy.copy(), state.stalls.copy()))
        state.clock[LIMIT] = min(self.limit, issued + self.mark)

    def _noticed(self, level: int) -> None:
        watch, state = self.state.watch[level], self.state
        before = self.moments.get(level)
        if before is None or before.key != watch[AWAITED]:
            self.moments[level] = self._moment(int(watch[AWAITED]))
            watch[PATIENCE] = 2 * watch[AGO] + 2
            return
        period = int(state.clock[ISSUED]) + state.jumped - before.issued
        same = np.flatnonzero((before.sequence == state.slots[:, SEQUENCE]) & (before.sequence >= 0))
        times = self._periods(before, same)
        if times and len(state.stalls) and not self.engine.settles and not before.second:
            # The accounting in the first period may reach back to before it; the second is like all others.
            self.moments[level] = replace(self._moment(before.key), second=True)
            watch[PATIENCE] = 2 * watch[AGO] + 2
            return
        del self.moments[level]
        watch[AWAITED] = 0
        if times * period >= max(1, self.least_gain):
            self._jump(before, same, times)
            self.failed[level] = 0
        else:
            self.failed[level] = self.failed.get(level, 0) + 1
        # The rest of this steady state is shorter than a period; if none was usable, wait longer each time.
        since = int(state.clock[ISSUED]) - before.simulated
        watch[MUTE] = state.clock[ISSUED] + (since << min(MOST_PATIENCE, self.failed[level]))

    def _moment(self, key: int) -> Moment:
        state = self.state
        clock = state.clock
        return Moment(
            tick=int(clock[NOW]),
            key=key,
            issued=int(clock[ISSUED]) + state.jumped,
            simulated=int(clock[ISSUED]),
            next_block=int(clock[NEXT_BLOCK]),
            words=self.engine.words[: clock[WORDS]].copy(),
            sequence=state.slots[:, SEQUENCE].copy(),
            stalls=state.stalls.copy(),
            busy=state.busy.copy(),
            running=self._running(),
            warps=self.engine.copy(),
        )

    def _running(self) -> Ticks:
        state = self.state
        blocks = state.slots[state.slots[:, SEQUENCE] >= 0, SEQUENCE]
        warps = (blocks[:, None] * state.per_block + np.arange(state.per_block)).ravel()
        running: Ticks = warps[state.warp_ends[warps] < 0]
        return running

    def _periods(self, before: Moment, same: Ticks) -> int:
        """The number of periods to jump."""
        state = self.state
        clock = state.clock
        if not np.array_equal(before.words, self.engine.words[: clock[WORDS]]):
            return 0
        times = self.engine.periods(before.warps, same)
        launched = int(clock[NEXT_BLOCK]) - before.next_block
        if launched and times:
            waiting = int(clock[TOTAL] - clock[NEXT_BLOCK])
            if before.next_block < clock[FULL]:  # one full block is to be left: the tail does not begin
                waiting = int(clock[FULL] - clock[NEXT_BLOCK]) - 1
            times = min(times, max(0, waiting) // launched)
            if len(self.kinds) > 1:
                first = before.next_block + int(clock[SKIPPED])
                there = self.kinds[first : first + times * launched]
                differ = np.flatnonzero(there != self.kinds[first + launched :][: len(there)])
                times = min(times, int(differ[0]) // launched if len(differ) else times)
        return times

    def _jump(self, before: Moment, same: Ticks, times: int) -> None:
        state = self.state
        clock = state.clock
        period = int(clock[NOW]) - before.tick
        if int(clock[NOW]) + times * period >= NEVER:
            raise UsageError(f"the simulated time exceeds the range of {NEVER} ticks; check the latencies")
        launched = int(clock[NEXT_BLOCK]) - before.next_block
        if launched:
            first, end = before.next_block, int(clock[NEXT_BLOCK])
            started = np.arange(first * state.per_block, end * state.per_block)
            running = self._running()
            ended = np.setdiff1d(np.concatenate([before.running, started]), running, assume_unique=True)
            blocks = np.arange(first, end)
            state.recurrences.append(Recurrence(times, period, int(clock[NOW]), blocks, ended, running))
            if before.next_block < clock[FULL]:
                clock[[FULL, FULL_LEFT]] -= times * launched
            clock[TOTAL] -= times * launched
            clock[SKIPPED] += times * launched
            # Other copied moments include blocks that are now skipped.
            self.moments.clear()
            state.forget()
        state.jumped += times * (int(clock[ISSUED]) + state.jumped - before.issued)
        state.stalls += times * (state.stalls - before.stalls)
        state.busy += times * (state.busy - before.busy)
        self.engine.advance(before.warps, same, times, times * period)
        state.shift(times * period)
