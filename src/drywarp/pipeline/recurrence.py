"""Exact jumps: where the state recurs, all that happens in between happens again and again.

The loops report when they meet a description of the state that they met before (`observe.py`). Then the
state is copied; when it is met once more, and no warp has left or begun a loop differently, what has
happened since is a period: k of them make every tick k periods later, every sum k times as much
more, every loop's counter k times as many turns further, and leave out k times as many of the waiting
blocks. k is so small that no counter and no number of waiting blocks crosses its end. What comes out is what
simulating every instruction gives, to the tick.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ..errors import UsageError
from .columns import (
    AGO,
    AWAITED,
    DONE_ALL,
    FULL,
    FULL_LEFT,
    ISSUED,
    LEVEL,
    LIMIT,
    MUTE,
    NEVER,
    NEXT_BLOCK,
    NO_ROWS,
    NOTICED,
    NOW,
    PATIENCE,
    SEQUENCE,
    SKIPPED,
    STOPPED,
    TOTAL,
    WORDS,
)
from .result import Mark, Recurrence, Ticks
from .state import State, Steady

ANY = 1 << 62
"""As many periods as one likes."""

MOST_PATIENCE = 6
"""How often the time without a report is doubled, where recurrences are of no use."""


class Engine(Protocol):
    """A compiled loop with the warps' state."""

    words: Ticks
    settles: bool
    """Whether all of the warps' time until the moment is accounted for when the state is described."""

    def run(self) -> int:
        """Go on; returns why it came back."""
        ...

    def copy(self) -> Any:
        """What of the warps' state `periods` compares and the words do not tell."""
        ...

    def periods(self, before: Any, same: Ticks) -> int:
        """How often what happened since `before` happens again as far as the warps' loops go.

        `same` are the block slots that still run the block that they ran then.
        """
        ...

    def advance(self, before: Any, same: Ticks, times: int, ticks: int) -> None:
        """Be so many periods further, `ticks` later."""
        ...


@dataclass(frozen=True)
class Moment:
    """A state that may recur."""

    tick: int
    key: int
    issued: int
    """Instructions, those of jumps among them."""
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
    """Whether this is the second time that this state is met."""


class Runner:
    """Runs a share to its end, or to the limit."""

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
        """Note where the run is."""
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
            # What is accounted for in the first period may go back to before it; the second is like all others.
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
        # The rest of this steady state is shorter than a period; where there was none to use, wait longer each time.
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
        """How many periods there are to jump."""
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
            raise UsageError(f"the simulated time leaves the range of {NEVER} ticks; check the latencies")
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
            # Other copied moments count blocks that are now left out.
            self.moments.clear()
            state.forget()
        state.jumped += times * (int(clock[ISSUED]) + state.jumped - before.issued)
        state.stalls += times * (state.stalls - before.stalls)
        state.busy += times * (state.busy - before.busy)
        self.engine.advance(before.warps, same, times, times * period)
        state.shift(times * period)
