"""Warps that issue in program order: their state, the core's loop over it, and exact jumps over steady states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.library import Function, record
from ..errors import UsageError
from ..workload.cost import CostedWorkload
from . import columns as col
from .columns import NEVER
from .program import Tables
from .reasons import Policy
from .result import Mark, Recurrence, Ticks
from .state import MACHINE, State, Steady

ANY = 1 << 62
"""Any number of periods."""

_OF_TABLES = ("depth", "waits", "positions", "loops", "nest", "path_from", "events", "events_from", "needed")
_OF_WARPS = (
    *("age", "todo", "warps", "ready", "resource", "counters", "slot_ready", "slot_reason"),
    *("phase_states", "phases", "words", "waiting", "users", "due", "places", "at_place", "needs"),
)
IN_ORDER = (
    *MACHINE,
    *("warp_count", "operand_count", "depth", "phase_count", "watch_levels", "hash_count"),
    *("waits", "positions", "loops", "nest", "path_from", "events", "events_from", "needed"),
    *("warps", "ready", "resource", "counters", "slot_ready", "slot_reason", "phase_states", "phases"),
    *("watch", "seen", "words", "waiting", "users", "due", "places", "at_place", "needs"),
)
"""The fields of `InOrder` in core/native/inorder.c."""

_run_in_order, _describe = Function("run_in_order", "a"), Function("describe", "a")


class InOrder:
    """The state of all warps, and the core's loop over it."""

    def __init__(self, workload: CostedWorkload, tables: Tables, kinds: Ticks, policy: Policy, state: State) -> None:
        self.workload, self.tables, self.kinds, self.policy, self.state = workload, tables, kinds, policy, state
        warps = len(state.slots) * workload.warps_per_block
        self.warps = np.full((warps, col.IN_ORDER_COLUMNS), -1, dtype=np.int64)
        self.ready = np.full_like(state.rank, NEVER)
        self.resource = np.zeros_like(state.rank)
        self.age = np.zeros(warps, dtype=np.int64)
        self.counters = np.zeros((warps, tables.depth), dtype=np.int64)
        self.todo = np.zeros(workload.warps_per_block, dtype=np.int64)
        self.slot_ready = np.zeros((warps, tables.slots), dtype=np.int64)
        self.slot_reason = np.zeros((warps, tables.slots), dtype=np.int64)
        self.phase_states = np.zeros((warps, col.PHASE_STATE_COLUMNS), dtype=np.int64)
        self.phases = np.zeros((len(state.slots), tables.needed.shape[1], 2), dtype=np.int64)
        described = warps * (6 + tables.slots + tables.depth) + state.words if len(state.watch) else 0
        self.words = np.zeros(described, dtype=np.int64)
        partitions = len(state.rank)
        self.waiting = np.zeros((partitions, col.WAITING_COLUMNS), dtype=np.int64)
        self.users = np.zeros((partitions, len(state.free)), dtype=np.uint64)
        self.due, self.at_place, self.needs = np.zeros((3, partitions, col.MOST_BITS), dtype=np.int64)
        self.places = np.zeros(warps, dtype=np.int64)

    def run(self) -> int:
        """Resume; returns why the loop stopped."""
        return _run_in_order(self._record())

    def described(self) -> Ticks:
        """The words that describe the state now: everything that decides how it goes on, except loop counters."""
        return self.words[: _describe(self._record())].copy()

    def _record(self) -> Ticks:
        tables, state = self.tables, self.state
        values = {
            **state.machine(self.workload, tables, self.policy, self.kinds),
            **{name: getattr(tables, name) for name in _OF_TABLES},
            **{name: getattr(self, name) for name in _OF_WARPS},
            "warp_count": len(self.warps),
            "operand_count": tables.slots,
            "phase_count": tables.needed.shape[1],
            "watch_levels": len(state.watch),
            "hash_count": state.seen.shape[1],
            "watch": state.watch,
            "seen": state.seen,
        }
        return record(IN_ORDER, values)

    def periods(self, before: Ticks, same: Ticks) -> int:
        """How often the events since the loops' counters were `before` can repeat, until a loop of some warp ends.

        `same` are the block slots that still run the same block. A warp is at the same place as before. If it completed
        iterations of one loop and is in the same iteration of all inner loops, it did not exit that loop: otherwise an
        outer loop would have advanced.
        """
        (moved,) = (self.counters != before).any(axis=1).nonzero()
        if len(moved) == 0:
            return ANY
        iterations = self.counters[moved] - before[moved]
        if (np.count_nonzero(iterations, axis=1) != 1).any() or (iterations < 0).any():
            return 0
        if not np.isin(moved // self.workload.warps_per_block, same).all():
            return 0
        depth = iterations.argmax(axis=1)
        left = self.tables.trips[self.warps[moved, col.PLACE], depth] - 1 - self.counters[moved, depth]
        return int((left // iterations.max(axis=1)).min())

    def advance(self, before: Ticks, times: int, ticks: int) -> None:
        """Advance by this many periods since the counters were `before`, `ticks` later."""
        self.counters += times * (self.counters - before)
        self.warps[:, [col.DONE, col.AFTER, col.COUNTED]] += ticks
        self.ready[self.ready < NEVER] += ticks
        self.slot_ready += ticks


# Exact jumps: if the state recurs, everything in between recurs.
#
# The loop reports when a description of the state recurs: words that do not depend on the tick. Two moments with
# equal words evolve identically, with every tick shifted by the time between them, as long as no loop of a warp ends
# and each launched block is like the one launched before. So a tick in the past counts as now, and a tick hidden
# behind a certain later event as that event; loop counters are checked here. Hashes of the words are stored, and one
# that was stored before is reported. Then the state is copied. When it recurs once more, and no warp has exited or
# entered a loop differently, the events since then form a period. A jump of k periods advances every tick by k
# periods, every sum by k times its increase, every loop counter by k times its iterations, and skips k times as many
# pending blocks. k is small enough that no counter and no number of pending blocks passes its end. The result equals
# that of simulating every instruction, to the tick.

MOST_PATIENCE = 6
"""How often the time without a report is doubled if recurrences are of no use."""


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
    counters: Ticks
    """Of the warps' loops."""


class Runner:
    """Runs a share to its end or to the limit."""

    def __init__(self, engine: InOrder, state: State, kinds: Ticks, steady: Steady | None) -> None:
        self.engine, self.state, self.kinds = engine, state, kinds
        self.least_gain = steady.least_gain if steady else 0
        self.limit, self.mark = (steady.limit, steady.mark) if steady else (NEVER, 0)
        self.moments: dict[int, Moment] = {}
        self.failed: dict[int, int] = {}

    def run(self) -> bool:
        """Whether the end was reached."""
        while True:
            code = self.engine.run()
            if code == col.NO_ROWS:
                self.state.make_rows()
            elif code == col.NOTICED:
                self._noticed(int(self.state.clock[col.LEVEL]))
            elif code == col.STOPPED and self.state.clock[col.ISSUED] < self.limit:
                self._mark()
            else:
                return bool(code == col.DONE_ALL)

    def _mark(self) -> None:
        """Record the progress of the run."""
        state = self.state
        issued = int(state.clock[col.ISSUED])
        now = int(state.clock[col.NOW])
        state.marks.append(Mark(issued + state.jumped, now, state.busy_until(now), state.stalls.copy()))
        state.clock[col.LIMIT] = min(self.limit, issued + self.mark)

    def _noticed(self, level: int) -> None:
        watch, state = self.state.watch[level], self.state
        before = self.moments.get(level)
        if before is None or before.key != watch[col.AWAITED]:
            self.moments[level] = self._moment(int(watch[col.AWAITED]))
            watch[col.PATIENCE] = 2 * watch[col.AGO] + 2
            return
        period = int(state.clock[col.ISSUED]) + state.jumped - before.issued
        same = np.flatnonzero((before.sequence == state.slots[:, col.SEQUENCE]) & (before.sequence >= 0))
        times = self._periods(before, same)
        del self.moments[level]
        watch[col.AWAITED] = 0
        if times * period >= max(1, self.least_gain):
            self._jump(before, times)
            self.failed[level] = 0
        else:
            self.failed[level] = self.failed.get(level, 0) + 1
        # The rest of this steady state is shorter than a period; if none was usable, wait longer each time.
        since = int(state.clock[col.ISSUED]) - before.simulated
        watch[col.MUTE] = state.clock[col.ISSUED] + (since << min(MOST_PATIENCE, self.failed[level]))

    def _moment(self, key: int) -> Moment:
        state = self.state
        clock = state.clock
        return Moment(
            tick=int(clock[col.NOW]),
            key=key,
            issued=int(clock[col.ISSUED]) + state.jumped,
            simulated=int(clock[col.ISSUED]),
            next_block=int(clock[col.NEXT_BLOCK]),
            words=self.engine.words[: clock[col.WORDS]].copy(),
            sequence=state.slots[:, col.SEQUENCE].copy(),
            stalls=state.stalls.copy(),
            busy=state.busy.copy(),
            running=self._running(),
            counters=self.engine.counters.copy(),
        )

    def _running(self) -> Ticks:
        state = self.state
        blocks = state.slots[state.slots[:, col.SEQUENCE] >= 0, col.SEQUENCE]
        warps = (blocks[:, None] * state.per_block + np.arange(state.per_block)).ravel()
        running: Ticks = warps[state.warp_ends[warps] < 0]
        return running

    def _periods(self, before: Moment, same: Ticks) -> int:
        """The number of periods to jump."""
        state = self.state
        clock = state.clock
        if not np.array_equal(before.words, self.engine.words[: clock[col.WORDS]]):
            return 0
        times = self.engine.periods(before.counters, same)
        launched = int(clock[col.NEXT_BLOCK]) - before.next_block
        if launched and times:
            waiting = int(clock[col.TOTAL] - clock[col.NEXT_BLOCK])
            if before.next_block < clock[col.FULL]:  # one full block is to be left: the tail does not begin
                waiting = int(clock[col.FULL] - clock[col.NEXT_BLOCK]) - 1
            times = min(times, max(0, waiting) // launched)
            if len(self.kinds) > 1:
                first = before.next_block + int(clock[col.SKIPPED])
                there = self.kinds[first : first + times * launched]
                differ = np.flatnonzero(there != self.kinds[first + launched :][: len(there)])
                times = min(times, int(differ[0]) // launched if len(differ) else times)
        return times

    def _jump(self, before: Moment, times: int) -> None:
        state = self.state
        clock = state.clock
        period = int(clock[col.NOW]) - before.tick
        if int(clock[col.NOW]) + times * period >= NEVER:
            raise UsageError(f"the simulated time exceeds the range of {NEVER} ticks; check the latencies")
        launched = int(clock[col.NEXT_BLOCK]) - before.next_block
        if launched:
            first, end = before.next_block, int(clock[col.NEXT_BLOCK])
            started = np.arange(first * state.per_block, end * state.per_block)
            running = self._running()
            ended = np.setdiff1d(np.concatenate([before.running, started]), running, assume_unique=True)
            blocks = np.arange(first, end)
            state.recurrences.append(Recurrence(times, period, int(clock[col.NOW]), blocks, ended, running))
            if before.next_block < clock[col.FULL]:
                clock[[col.FULL, col.FULL_LEFT]] -= times * launched
            clock[col.TOTAL] -= times * launched
            clock[col.SKIPPED] += times * launched
            # Other copied moments include blocks that are now skipped.
            self.moments.clear()
            state.forget()
        state.jumped += times * (int(clock[col.ISSUED]) + state.jumped - before.issued)
        state.stalls += times * (state.stalls - before.stalls)
        state.busy += times * (state.busy - before.busy)
        self.engine.advance(before.counters, times, times * period)
        state.shift(times * period)
