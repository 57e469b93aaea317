"""Runs a wave with the loop of the core, and handles whatever needs Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ....core.library import Function, level
from ....support.folders import Progress, tell_progress
from ..convergence import MOVED, Finish, build_finish
from ..decode import Step
from ..frame import Frame
from ..machine import Machine
from ..operands import Touched
from ..program import Program
from ..recorder import Recorder
from ..scheduler import WAITS, Budget, Scheduler
from . import encode_float, encode_integer
from . import layout as core
from .encode import encode
from .layout import BLOCK_ACCESSES, BLOCK_COLUMNS, BLOCK_END, BLOCK_NUMBER, BLOCK_SPINS, COLUMNS, LANES, PLACES, Log

ENCODERS = (encode_float, encode_integer)
"""Modules whose import registers the encoders of the opcodes."""
_ACCESSES = 2
"""Most accesses that one memory instruction records: a copy reads and writes."""


@dataclass(frozen=True, slots=True)
class HandledStep:
    """An instruction inside a block that is left to its handler."""

    step: Step
    touched: Touched

    def run(self, frame: Frame) -> None:
        """Execute it for a frame."""
        if frame.gathered:
            self.touched.gather(frame)
        self.step(frame)
        if frame.gathered:
            self.touched.scatter(frame)


@dataclass(frozen=True, slots=True)
class HandledEnd:
    """An instruction that ends a block and is left to its handler."""

    finish: Finish
    touched: Touched

    def run(self, scheduler: Scheduler, frame: Frame) -> int:
        """Execute it for a frame: the next PC, or MOVED."""
        if frame.gathered:
            self.touched.gather(frame)
        pc = self.finish(scheduler, frame)
        if frame.gathered:
            self.touched.scatter(frame)
        return pc


class Table:
    """Rows of instructions (`code`) and of blocks by their first instruction (`entries`; see `layout`)."""

    def __init__(self, program: Program) -> None:
        count = len(program.instructions)
        self.program = program
        self.code: npt.NDArray[np.int64] = np.zeros((count, COLUMNS), np.int64)
        self.entries: npt.NDArray[np.int64] = np.full((count, BLOCK_COLUMNS), -1, np.int64)
        self.places: npt.NDArray[np.int64] = np.zeros(PLACES, np.int64)
        """Addresses of the arrays of a run, and those of the record that were `located` there."""
        self.located: Log | None = None
        self._encoded = np.zeros(count, np.bool_)
        self._steps: dict[int, HandledStep] = {}
        self._ends: dict[int, HandledEnd] = {}

    def enter(self, pc: int) -> None:
        """Decode the block that begins at a byte offset. Raises EmulationError past the end of the code."""
        program = self.program
        index, block = pc // 16, program.basic_block(pc)
        banks = program.decoder.banks
        for k in range(index, block.end):
            if not self._encoded[k]:
                self.code[k] = encode(banks, program.instructions[k])
                self._encoded[k] = True
        touching = sum(i.memory is not None for i in program.instructions[index : block.end])
        row = self.entries[index]
        row[BLOCK_NUMBER], row[BLOCK_END] = block.index, block.end
        row[BLOCK_SPINS], row[BLOCK_ACCESSES] = block.index in program.spinning, touching * _ACCESSES

    def step(self, k: int) -> HandledStep:
        """The handler of instruction `k` inside a block."""
        if k not in self._steps:
            decoder = self.program.decoder
            touched = decoder.touched = Touched()
            self._steps[k] = HandledStep(decoder.decode(self.program.instructions[k]), touched)
        return self._steps[k]

    def end(self, k: int) -> HandledEnd:
        """The handler of instruction `k` at the end of a block."""
        if k not in self._ends:
            decoder = self.program.decoder
            touched = decoder.touched = Touched()
            self._ends[k] = HandledEnd(build_finish(decoder, self.program.instructions[k]), touched)
        return self._ends[k]


# The run of a wave.

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
        for column in (core.MODE, core.PC, core.STEP, core.LIVE_VERSION, core.REDUCES):
            state[column] = 0
        state[core.MODE] = core.CHOOSE
        state[core.CLOCK] = machine.clock
        state[core.WARPS], state[core.PER_BLOCK] = machine.warps, machine.warps_per_block
        state[core.UNIFORM_BASE], state[core.UNIFORM_FLAGS] = machine.uniform_base, machine.uniform_flags
        state[core.SPECIAL_BASE] = machine.special_base
        state[core.SHARED_BYTES], state[core.LOCAL_BYTES] = machine.shared_bytes, machine.local_bytes
        state[core.INSTRUCTIONS] = len(program.instructions)
        state[core.SLOTS] = state[core.WAITED] = 0
        state[core.SINCE], state[core.LOOK_AFTER], state[core.LOOKED] = 0, self._watch.after, -1
        state[core.MISSING], state[core.TURNED] = -1, 0
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
        before = int(state[core.WARP_STEPS]), int(state[core.LANE_STEPS])
        state[core.LANE_LIMIT] = before[1] + self.budget.lane_steps_left()
        self._pause()
        places, processor = self._locate(), level()
        with np.errstate(all="ignore"):
            while True:
                why = _advance(places, processor)
                if why == core.DONE:
                    break
                if why == core.NEEDS_SLOTS:
                    self.groups.grow()
                    places = self._locate()
                elif why == core.NEEDS_CONTENT:
                    self._fill()
                elif why in (core.PAUSED, core.OVER_LIMIT):
                    self._check(over=why == core.OVER_LIMIT)
                    self._pause()
                else:
                    self._serve(why)
                    # Arrays that have grown meanwhile have moved.
                    places = self._locate()
        if state[core.WAITED]:
            self.machine.notes.add(WAITS)
        self.budget.warp_steps += int(state[core.WARP_STEPS]) - before[0]
        self.budget.lane_steps += int(state[core.LANE_STEPS]) - before[1]
        self.budget.checked(self.recorder)

    def _serve(self, why: int) -> None:
        """Handle what the loop cannot."""
        state = self.state
        if why == core.NEEDS_DECODING:
            self.table.enter(int(state[core.PC]))
        elif why == core.NEEDS_ROOM:
            members = int(state[core.MEMBERS])
            passing = int(state[core.WARPS]) if self.recorder.watched else 0
            accesses = members * int(self.table.entries[state[core.PC] // 16, core.BLOCK_ACCESSES])
            self.recorder.make_room(members, accesses + passing)
        elif why == core.NEEDS_STEP:
            step = self.table.step(int(state[core.AT]))
            frame = self._begin()
            step.run(frame)
            self.release_phases(moved=False)
            self._end()
            state[core.AT] += 1
        elif why == core.NEEDS_END:
            end = self.table.end(int(state[core.AT]))
            frame = self._begin()
            pc = end.run(self, frame)
            self.release_phases(moved=pc == MOVED)
            self._end()
            state[core.PC], state[core.MODE] = (state[core.PC], core.CHOOSE) if pc == MOVED else (pc, core.NEXT)
        elif why == core.NEEDS_RELEASE:
            self._begin()
            self.groups.release_barriers(self.warps)
            self._end()
        elif why == core.NEEDS_LOOK:
            self._look()
        elif why == core.STUCK:
            self._begin()
            self._unlock()
        else:
            raise AssertionError(why)

    def _fill(self) -> None:
        """Generate the content of buffers that the current instruction is the first to reach."""
        self.program.decoder.memory.fill(int(self.state[core.MISSING]))
        self.state[core.MISSING] = -1

    def _look(self) -> None:
        """Check whether spinning threads are deadlocked."""
        state, watch = self.state, self._watch
        self._begin()
        if state[core.SINCE] > watch.since:
            watch.progress(int(state[core.SINCE]))
        state[core.LOOKED] = state[core.STEP]
        if watch.certain(int(state[core.STEP])):
            self._get_going(int(state[core.PC]))
            state[core.MODE] = core.CHOOSE
        state[core.SINCE], state[core.LOOK_AFTER] = watch.since, watch.after
        self._end()

    def _begin(self) -> Frame:
        """Make the current batch available to the NumPy handlers."""
        state, members = self.state, int(self.state[core.MEMBERS])
        self.warps, self.slots = self._batch[:members].copy(), self._slots[:members].copy()
        self.others_wait, self._next_other = bool(state[core.OTHERS_WAIT]), int(state[core.NEXT_OTHER])
        self._step, self.machine.clock = int(state[core.STEP]), int(state[core.CLOCK])
        self.groups.live_version = int(state[core.LIVE_VERSION])
        self._handled += 1
        if self._handled % _PAUSE_HANDLED == 0:
            self._check(over=False)
        return self.frames.frame(self._active, self.groups.live_version)

    def _end(self) -> None:
        """Take over the handlers' changes."""
        state = self.state
        state[core.OTHERS_WAIT], state[core.NEXT_OTHER] = self.others_wait, self._next_other
        state[core.LIVE_VERSION] = self.groups.live_version
        state[core.REDUCES] = any(self.groups.reduction)

    def _pause(self) -> None:
        self.state[core.PAUSE_AT] = self.state[core.LANE_STEPS] + _PAUSE_LANE_STEPS
        self.state[core.PAUSE_STEP] = self.state[core.STEP] + _PAUSE_STEPS

    def _check(self, over: bool) -> None:
        """Raise EmulationLimitError past a limit."""
        budget = self.budget
        reached = budget.lane_limit() if over else self.recorder.exceeded(budget.limits)
        self._stop_past(reached, int(self.state[core.PC]))
        done = budget.checked(self.recorder)
        tell_progress(Progress(done, budget.limits.lane_steps, at_most=True, stage="emulating"))

    def _locate(self) -> npt.NDArray[np.int64]:
        """Addresses of all arrays; their lengths go into the state."""
        machine, groups, log, memory = self.machine, self.groups, self.recorder.log, self.program.decoder.memory
        if self._located is log and self.state[core.SLOTS] == len(groups.pc):
            return self._places
        self._located = log
        self.state[core.SLOTS], self.state[core.REGIONS] = len(groups.pc), len(memory.table)
        arrays: dict[int, npt.NDArray[Any]] = {
            core.STATE: self.state,
            core.CODE: self.table.code,
            core.ENTRIES: self.table.entries,
            core.REGISTER_WORDS: machine.words,
            core.FLAGS: machine.flags,
            core.BATCH: self._batch,
            core.ACTIVE: self._active,
            core.GUARDED: machine.guarded,
            core.GUARDS: machine.guards,
            core.SCRATCH: self._scratch,
            core.ARENA: memory.views[1],
            core.REGION_TABLE: memory.table,
            core.PENDING: memory.pending,
            core.ORIGIN: self._origin,
            core.SHARED_MEMORY: machine.shared[1],
            core.SHARED_BASE: machine.shared_base,
            core.SHARED_FIRST: machine.shared_first,
            core.LOCAL_MEMORY: machine.local,
            core.ADDRESSES: self._addresses,
            core.LANE_SETS: self._lane_sets,
            core.GROUP_PC: groups.pc,
            core.GROUP_MASK: groups.mask,
            core.GROUP_STATE: groups.state,
            core.GROUP_ARGUMENT: groups.argument,
            core.GROUP_STAMP: groups.stamp,
            core.LIVE: machine.live,
            core.BARRIERS: machine.barriers,
            core.YIELDED: machine.yielded,
            core.ARRIVED: groups.arrived,
            core.EARLIER: groups.earlier,
            core.VOTES: groups.votes,
            core.GROUP_SLOTS: self._slots,
        }
        for place, array in arrays.items():
            assert array.flags.c_contiguous
            self._places[place] = array.ctypes.data
        if self.table.located is not log:
            self.recorder.locate(self._places)
            self.table.located = log
        return self._places
