"""Runs a wave with the loop of the core, and handles whatever needs Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ....core.library import Function, level
from ....support.folders import Progress, tell_progress
from ..finish import MOVED
from ..frame import Frame
from ..machine import Machine
from ..program import Program
from ..recorder import Recorder
from ..scheduler import WAITS, Budget, Scheduler
from .layout import (
    ACTIVE,
    ADDRESSES,
    ARENA,
    ARRIVED,
    AT,
    BARRIERS,
    BATCH,
    BLOCK_ACCESSES,
    CHOOSE,
    CLOCK,
    CODE,
    DONE,
    EARLIER,
    ENTRIES,
    FLAGS,
    GROUP_ARGUMENT,
    GROUP_MASK,
    GROUP_PC,
    GROUP_SLOTS,
    GROUP_STAMP,
    GROUP_STATE,
    GUARDED,
    GUARDS,
    INSTRUCTIONS,
    LANE_LIMIT,
    LANE_SETS,
    LANE_STEPS,
    LANES,
    LIVE,
    LIVE_VERSION,
    LOCAL_BYTES,
    LOCAL_MEMORY,
    LOOK_AFTER,
    LOOKED,
    MEMBERS,
    MISSING,
    MODE,
    NEEDS_CONTENT,
    NEEDS_DECODING,
    NEEDS_END,
    NEEDS_LOOK,
    NEEDS_RELEASE,
    NEEDS_ROOM,
    NEEDS_SLOTS,
    NEEDS_STEP,
    NEXT,
    NEXT_OTHER,
    ORIGIN,
    OTHERS_WAIT,
    OVER_LIMIT,
    PAUSE_AT,
    PAUSE_STEP,
    PAUSED,
    PC,
    PENDING,
    PER_BLOCK,
    REDUCES,
    REGION_TABLE,
    REGIONS,
    REGISTER_WORDS,
    SCRATCH,
    SHARED_BASE,
    SHARED_BYTES,
    SHARED_FIRST,
    SHARED_MEMORY,
    SINCE,
    SLOTS,
    SPECIAL_BASE,
    STATE,
    STEP,
    STUCK,
    TURNED,
    UNIFORM_BASE,
    UNIFORM_FLAGS,
    VOTES,
    WAITED,
    WARP_STEPS,
    WARPS,
    YIELDED,
    Log,
)
from .table import Table

_PAUSE_LANE_STEPS, _PAUSE_STEPS, _PAUSE_HANDLED = 30_000_000, 100_000, 64
"""Lane steps, blocks and handled instructions between checks of the limits: about a tenth of a second."""
_SCRATCH_WORDS = 4 * LANES
_advance = Function("advance", "an")


class CompiledScheduler(Scheduler):
    """Runs one wave to its end, mostly in the core. The record and the state of the run are the recorder's."""

    def __init__(self, machine: Machine, program: Program, table: Table, recorder: Recorder, budget: Budget) -> None:
        super().__init__(machine, program, recorder, budget)
        self.table = table
        state = self.state = recorder.state
        for column in (MODE, PC, STEP, LIVE_VERSION, REDUCES):
            state[column] = 0
        state[MODE] = CHOOSE
        state[CLOCK] = machine.clock
        state[WARPS], state[PER_BLOCK] = machine.warps, machine.warps_per_block
        state[UNIFORM_BASE], state[UNIFORM_FLAGS] = machine.uniform_base, machine.uniform_flags
        state[SPECIAL_BASE] = machine.special_base
        state[SHARED_BYTES], state[LOCAL_BYTES] = machine.shared_bytes, machine.local_bytes
        state[INSTRUCTIONS] = len(program.instructions)
        state[SLOTS] = state[WAITED] = 0
        state[SINCE], state[LOOK_AFTER], state[LOOKED] = 0, self._watch.after, -1
        state[MISSING], state[TURNED] = -1, 0
        self._batch = np.zeros(machine.warps, np.int64)
        self._slots = np.zeros(machine.warps, np.int64)
        self._scratch = np.zeros(_SCRATCH_WORDS, np.uint32)
        # A copy has two addresses.
        self._addresses = machine.store.zeros("addresses", 2 * machine.warps * LANES, np.int64, True)
        self._lane_sets = np.zeros(2 * machine.warps, np.int64)
        self._origin = np.array([program.decoder.memory.start], np.int64)
        self._places = table.places
        self._handled = 0
        self._located: Log | None = None

    def run(self) -> None:
        """Run until every lane has exited. Raises EmulationError on a deadlock or a faulty access."""
        state = self.state
        before = int(state[WARP_STEPS]), int(state[LANE_STEPS])
        state[LANE_LIMIT] = before[1] + self.budget.lane_steps_left()
        self._pause()
        places, processor = self._locate(), level()
        with np.errstate(all="ignore"):
            while True:
                why = _advance(places, processor)
                if why == DONE:
                    break
                if why == NEEDS_SLOTS:
                    self.groups.grow()
                    places = self._locate()
                elif why == NEEDS_CONTENT:
                    self._fill()
                elif why in (PAUSED, OVER_LIMIT):
                    self._check(over=why == OVER_LIMIT)
                    self._pause()
                else:
                    self._serve(why)
                    # Arrays that have grown meanwhile have moved.
                    places = self._locate()
        if state[WAITED]:
            self.machine.notes.add(WAITS)
        self.budget.warp_steps += int(state[WARP_STEPS]) - before[0]
        self.budget.lane_steps += int(state[LANE_STEPS]) - before[1]
        self.budget.checked(self.recorder)

    def _serve(self, why: int) -> None:
        """Handle what the loop cannot."""
        state = self.state
        if why == NEEDS_DECODING:
            self.table.enter(int(state[PC]))
        elif why == NEEDS_ROOM:
            members = int(state[MEMBERS])
            passing = int(state[WARPS]) if self.recorder.watched else 0
            accesses = members * int(self.table.entries[state[PC] // 16, BLOCK_ACCESSES])
            self.recorder.make_room(members, accesses + passing)
        elif why == NEEDS_STEP:
            step = self.table.step(int(state[AT]))
            frame = self._begin()
            step.run(frame)
            self.release_phases(moved=False)
            self._end()
            state[AT] += 1
        elif why == NEEDS_END:
            end = self.table.end(int(state[AT]))
            frame = self._begin()
            pc = end.run(self, frame)
            self.release_phases(moved=pc == MOVED)
            self._end()
            state[PC], state[MODE] = (state[PC], CHOOSE) if pc == MOVED else (pc, NEXT)
        elif why == NEEDS_RELEASE:
            self._begin()
            self.groups.release_barriers(self.warps)
            self._end()
        elif why == NEEDS_LOOK:
            self._look()
        elif why == STUCK:
            self._begin()
            self._unlock()
        else:
            raise AssertionError(why)

    def _fill(self) -> None:
        """Generate the content of buffers that the current instruction is the first to reach."""
        self.program.decoder.memory.fill(int(self.state[MISSING]))
        self.state[MISSING] = -1

    def _look(self) -> None:
        """Check whether spinning threads are deadlocked."""
        state, watch = self.state, self._watch
        self._begin()
        if state[SINCE] > watch.since:
            watch.progress(int(state[SINCE]))
        state[LOOKED] = state[STEP]
        if watch.certain(int(state[STEP])):
            self._get_going(int(state[PC]))
            state[MODE] = CHOOSE
        state[SINCE], state[LOOK_AFTER] = watch.since, watch.after
        self._end()

    def _begin(self) -> Frame:
        """Make the current batch available to the NumPy handlers."""
        state, members = self.state, int(self.state[MEMBERS])
        self.warps, self.slots = self._batch[:members].copy(), self._slots[:members].copy()
        self.others_wait, self._next_other = bool(state[OTHERS_WAIT]), int(state[NEXT_OTHER])
        self._step, self.machine.clock = int(state[STEP]), int(state[CLOCK])
        self.groups.live_version = int(state[LIVE_VERSION])
        self._handled += 1
        if self._handled % _PAUSE_HANDLED == 0:
            self._check(over=False)
        return self.frames.frame(self._active, self.groups.live_version)

    def _end(self) -> None:
        """Take over the handlers' changes."""
        state = self.state
        state[OTHERS_WAIT], state[NEXT_OTHER] = self.others_wait, self._next_other
        state[LIVE_VERSION] = self.groups.live_version
        state[REDUCES] = any(self.groups.reduction)

    def _pause(self) -> None:
        self.state[PAUSE_AT] = self.state[LANE_STEPS] + _PAUSE_LANE_STEPS
        self.state[PAUSE_STEP] = self.state[STEP] + _PAUSE_STEPS

    def _check(self, over: bool) -> None:
        """Raise EmulationLimitError past a limit."""
        budget = self.budget
        reached = budget.lane_limit() if over else self.recorder.exceeded(budget.limits)
        self._stop_past(reached, int(self.state[PC]))
        done = budget.checked(self.recorder)
        tell_progress(Progress(done, budget.limits.lane_steps, at_most=True, stage="emulating"))

    def _locate(self) -> npt.NDArray[np.int64]:
        """Addresses of all arrays; their lengths go into the state."""
        machine, groups, log, memory = self.machine, self.groups, self.recorder.log, self.program.decoder.memory
        if self._located is log and self.state[SLOTS] == len(groups.pc):
            return self._places
        self._located = log
        self.state[SLOTS], self.state[REGIONS] = len(groups.pc), len(memory.table)
        arrays: dict[int, npt.NDArray[Any]] = {
            STATE: self.state,
            CODE: self.table.code,
            ENTRIES: self.table.entries,
            REGISTER_WORDS: machine.words,
            FLAGS: machine.flags,
            BATCH: self._batch,
            ACTIVE: self._active,
            GUARDED: machine.guarded,
            GUARDS: machine.guards,
            SCRATCH: self._scratch,
            ARENA: memory.views[1],
            REGION_TABLE: memory.table,
            PENDING: memory.pending,
            ORIGIN: self._origin,
            SHARED_MEMORY: machine.shared[1],
            SHARED_BASE: machine.shared_base,
            SHARED_FIRST: machine.shared_first,
            LOCAL_MEMORY: machine.local,
            ADDRESSES: self._addresses,
            LANE_SETS: self._lane_sets,
            GROUP_PC: groups.pc,
            GROUP_MASK: groups.mask,
            GROUP_STATE: groups.state,
            GROUP_ARGUMENT: groups.argument,
            GROUP_STAMP: groups.stamp,
            LIVE: machine.live,
            BARRIERS: machine.barriers,
            YIELDED: machine.yielded,
            ARRIVED: groups.arrived,
            EARLIER: groups.earlier,
            VOTES: groups.votes,
            GROUP_SLOTS: self._slots,
        }
        for place, array in arrays.items():
            assert array.flags.c_contiguous
            self._places[place] = array.ctypes.data
        if self.table.located is not log:
            self.recorder.locate(self._places)
            self.table.located = log
        return self._places
