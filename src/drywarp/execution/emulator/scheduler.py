"""The loop that runs a wave: pick a PC, run its basic block for every warp at that PC.

The lowest PC goes first, so groups of lanes and warps that have fallen behind catch up and all continue together. In
code that may wait for other threads, the group that has waited longest goes first instead; otherwise a thread that
holds a lock further down would never get to release it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import EmulationError, EmulationLimitError, StarvationError
from .bits import LANES
from .convergence import MOVED
from .deadlock import DeadlockWatch
from .decode import place
from .frame import Frame, Lanes, Rows
from .groups import AT_PHASE, EMPTY, FAR, RUN, WAITS_FOR, Groups, PhaseWait
from .machine import PREDICATES, U32, Machine
from .program import DecodedBlock, Program
from .recorder import Recorder
from .sampling import Limits, Reached

LANE_OPTION = "--lane-steps"
_CHECK_EVERY = 64
_ROTATE_EVERY = 512
"""Steps after which the group that has waited longest runs, at any PC, if any group waits."""

CIRCLE = "lanes waited for each other at convergence barriers and were released separately, so counts are not exact"
WAITS = "threads spin in a loop until others act, so counts depend on timing and are not exact"
_MOST_TIMEOUTS = 64
"""How often all phase waits may time out without any phase completing in between."""
_TIMED_OUT = "mbarrier waits timed out while nothing else could run; counts are not exact"


class Budget:
    """The remaining limits, over all waves of a launch."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.lane_steps = 0
        self.warp_steps = 0

    def lane_steps_left(self) -> int:
        """Lane steps before the limit."""
        return self.limits.lane_steps - self.lane_steps

    def lane_limit(self) -> Reached:
        """The lane-step limit."""
        return Reached(f"{self.limits.lane_steps:,} lane steps", LANE_OPTION)

    def checked(self, recorder: Recorder) -> int:
        """Called whenever limits are checked, since waves may run in several threads; returns all lane steps so far."""
        return recorder.lane_steps

    def exceeded(self) -> Reached | None:
        """The limit that was exceeded."""
        return self.lane_limit() if self.lane_steps_left() < 0 else None


class Scheduler:
    """Runs one wave to its end.

    `warps` and `slots` identify the warps and groups of the current batch; `others_wait` says whether any group waits
    elsewhere.
    """

    def __init__(self, machine: Machine, program: Program, recorder: Recorder, budget: Budget) -> None:
        self.machine = machine
        self.program = program
        self.recorder = recorder
        self.budget = budget
        self.groups = Groups(machine)
        if recorder.watched:
            self.groups.passed = recorder.passed
        self.frames = FrameCache(machine)
        self.warps: npt.NDArray[np.int64] = self.groups.every
        self.slots: npt.NDArray[np.int64] = np.zeros(machine.warps, np.int64)
        self.others_wait = False
        self._next_other = int(FAR)
        self._step = 0
        self._turned = 0
        self._timeouts = 0
        self._watch = DeadlockWatch(machine, self.groups)
        self._active = machine.live.copy()
        self._frame: Frame

    def run(self) -> None:
        """Run until every lane has exited. Raises EmulationError on a deadlock or a faulty access."""
        with np.errstate(all="ignore"):
            while True:
                pc = self._choose()
                if pc < 0:
                    return
                self._run_batch(pc)

    def _choose(self) -> int:
        """Form the next batch; returns its PC, or -1 when all lanes have exited."""
        groups = self.groups
        runnable = groups.state == RUN
        places = np.where(runnable, groups.pc, FAR)
        pc = int(places.min())
        if pc == FAR:
            if (groups.state == EMPTY).all():
                return -1
            self._unlock()
            return self._choose()
        turn = self._turn_due()
        if turn:
            self._turned = self._step
        if turn or self.program.block_at(pc).spins:
            stamps = np.where(runnable, groups.stamp, FAR)
            oldest = int(groups.pc.reshape(-1)[stamps.argmin()])
            if oldest != pc and self.program.block_at(pc).spins:
                self.machine.notes.add(WAITS)
            pc = oldest
        here = places == pc
        if len(here) == 1:
            present = here[0]
            self.slots = np.zeros(int(np.count_nonzero(present)), np.int64)
        else:
            present = here.any(axis=0)
            self.slots = here.argmax(axis=0)[present]
        self.warps = np.flatnonzero(present)
        active = np.zeros(self.machine.warps, np.uint32)
        active[self.warps] = groups.mask[self.slots, self.warps]
        self._frame = self.frames.frame(active, groups.live_version)
        self._active = active
        places[self.slots, self.warps] = FAR
        self._next_other = int(places.min())
        self.others_wait = bool((groups.state > RUN).any())
        return pc

    def _turn_due(self) -> bool:
        return self._step - self._turned >= _ROTATE_EVERY

    def _unlock(self) -> None:
        """Resume lanes that wait for each other; raises EmulationError if there is no way out."""
        if self.machine.complete_clusters():
            # The last thread that others of its cluster waited for has exited.
            self.release_phases(moved=True)
        elif self._timeouts < _MOST_TIMEOUTS and self.groups.time_out_phases():
            self._timeouts += 1
            self.machine.notes.add(_TIMED_OUT)
        elif self.groups.break_convergence():
            self.machine.notes.add(CIRCLE)
        else:
            raise EmulationError(self._deadlock())

    def refresh(self) -> None:
        """Update the positions of the other groups after some of them were released."""
        groups = self.groups
        places = np.where(groups.state == RUN, groups.pc, FAR)
        places[self.slots, self.warps] = FAR
        self._next_other = int(places.min())
        self.others_wait = bool((groups.state > RUN).any())

    def _run_batch(self, pc: int) -> None:
        """Run blocks as long as the batch stays together and no other group is at or before its PC."""
        frame, budget, record = self._frame, self.budget, self.recorder.block
        members = len(self.warps)
        while True:
            block = self.program.block_at(pc)
            if not block.spins:
                self._watch.progress(self._step)
            elif self._step % _CHECK_EVERY == 0 and self._watch.certain(self._step):
                self._get_going(pc)
                return
            self._step += 1
            budget.warp_steps += block.length * members
            budget.lane_steps += block.length * frame.total
            self.machine.clock += block.length
            record(block.index, frame)
            if self._step % _CHECK_EVERY == 0:
                self._stop_past(budget.exceeded() or self.recorder.exceeded(budget.limits), pc)
            if frame.gathered:
                pc = self._run_gathered(block, frame)
            else:
                for step in block.steps:
                    step(frame)
                pc = block.finish(self, frame)
            self.release_phases(pc == MOVED)
            if pc == MOVED:
                return
            if pc >= self._next_other or (
                self._next_other < FAR and (self._turn_due() or self.program.block_at(pc).spins)
            ):
                self.groups.pc[self.slots, self.warps] = pc
                self.groups.stamp[self.slots, self.warps] = self._step
                return

    def release_phases(self, moved: bool) -> None:
        """Resume the groups whose phase has completed; `moved`: the batch no longer exists."""
        if not self.machine.phase_completed:
            return
        self.machine.phase_completed = False
        self._timeouts = 0
        if self.groups.phase_waits:
            self.groups.release_phases()
            if not moved:
                self.refresh()

    def _run_gathered(self, block: DecodedBlock, frame: Frame) -> int:
        block.touched.gather(frame)
        for step in block.steps:
            step(frame)
        pc = block.finish(self, frame)
        block.touched.scatter(frame)
        return pc

    # What finishes call ---------------------------------------------------------------------------

    def split(self, taken: U32, target: int, fall: int, keep_taken: bool = True) -> None:
        """Send the `taken` lanes, a word per warp of the batch, to `target` and the others to `fall`.

        With `keep_taken` false the taken lanes vanish.
        """
        warps, slots = self.warps, self.slots
        active = self._active[warps]
        rest = active & ~taken
        if not keep_taken:
            self.groups.set(warps, slots, fall, rest)
            self.groups.stamp[slots, warps] = self._step
            return
        stays = rest != 0
        self.groups.set(warps, slots, np.where(stays, fall, target), np.where(stays, rest, taken))
        self.groups.stamp[slots, warps] = self._step
        both = stays & (taken != 0)
        if both.any():
            self.groups.add(warps[both], target, taken[both])

    def scatter(self, parts: list[tuple[int, U32]]) -> None:
        """Send lanes, a word per warp of the batch, to several PCs; every lane is in one part."""
        warps, slots = self.warps, self.slots
        self.groups.set(warps, slots, 0, np.zeros(len(warps), np.uint32))
        for pc, words in parts:
            some = words != 0
            self.groups.add(warps[some], pc, words[some])

    def park(self, words: U32, pc: int, state: int, argument: Any) -> None:
        """Make lanes, a word per warp of the batch, wait, to resume at `pc`; the others continue there at once."""
        warps, slots = self.warps, self.slots
        rest = self._active[warps] & ~words
        self.groups.set(warps, slots, pc, words, state, argument)
        self.groups.stamp[slots, warps] = self._step
        some = rest != 0
        if some.any():
            self.groups.add(warps[some], pc, rest[some])

    def park_for_phases(self, words: U32, pc: int, waits: Sequence[PhaseWait | None]) -> int:
        """Make lanes wait for phases of barriers in shared memory, a word and a wait per warp of the batch."""
        self.park(words, pc, AT_PHASE, 0)
        for slot, warp, wait in zip(self.slots.tolist(), self.warps.tolist(), waits, strict=True):
            if wait is not None:
                self.groups.phase_waits[slot, warp] = wait
        return MOVED

    def place(self, pc: int, words: U32, parts: Sequence[tuple[U32, int, Any]]) -> None:
        """Send the batch to `pc` in groups: `words` and the lanes of no part together, each part separately.

        A part is its lanes, a word per warp, its state, and what it waits for.
        """
        warps, slots = self.warps, self.slots
        active = self._active[warps]
        for lanes, _, _ in parts:
            active = active & ~lanes
        self.groups.set(warps, slots, pc, active | words)
        self.groups.stamp[slots, warps] = self._step
        for lanes, state, argument in parts:
            some = lanes != 0
            if some.any():
                self.groups.add(warps[some], pc, lanes[some], state, np.broadcast_to(argument, lanes.shape)[some])

    def whole_blocks(self, frame: Frame) -> bool:
        """Whether the batch holds every live lane of every block of which it has warps."""
        version = self.groups.live_version
        if frame.whole[0] != version:
            per_block = self.machine.warps_per_block
            missing = (self.machine.live & ~self._active).reshape(-1, per_block).any(axis=1)
            present = self._active.reshape(-1, per_block).any(axis=1)
            frame.whole = (version, not (missing & present).any())
        return frame.whole[1]

    # Messages -------------------------------------------------------------------------------------

    def _stop_past(self, reached: Reached | None, pc: int) -> None:
        """Raise EmulationLimitError if a limit was reached."""
        if reached is None:
            return
        here = place(self.machine.kernel, self.program.instructions[pc // 16])
        loop = self._loop_at(pc)
        where = f" in {loop}" if loop else ", outside any loop"
        spins = self.program.spins_at(pc)
        wait = spins and len(self.machine.blocks) < self.machine.launch.blocks
        several = len(self.machine.blocks) > 1 or self.recorder.first_warp > 0
        raise EmulationLimitError(
            f"{here}: emulation stopped after {reached.limit}{where};"
            + (f" it may wait for {self._others()};" if wait else "")
            + f" {reached.option} raises the limit"
            + (", --blocks 1 emulates a single block" if several else "")
            + ", --static analyses the code without running it",
            reached.limit,
            reached.option,
            spins,
        )

    def _loop_at(self, pc: int) -> str:
        """The innermost loop around the block at a PC, in words; empty if there is none."""
        program = self.program
        loop = program.cfg.innermost_loop(program.basic_block(pc).index)
        if loop is None:
            return ""
        body = [i for b in loop.blocks for i in program.instructions[_span(program, b)]]
        lines = sorted({i.source.line for i in body if i.source})
        header = program.instructions[program.cfg.blocks[loop.header].start]
        source = header.source or next((i.source for i in body if i.source), None)
        span = f"lines {lines[0]}-{lines[-1]} of {source.file}" if source and lines else "no source lines known"
        return f"the loop that starts at {header.pc:#06x} ({span})"

    def _get_going(self, pc: int) -> None:
        """Every runnable thread spins forever: release the lanes that wait for them at convergence barriers.

        Raises if no lane waits there.
        """
        machine = self.machine
        if self.groups.break_convergence():
            machine.notes.add(CIRCLE)
            self.groups.pc[self.slots, self.warps] = pc
            self._watch.progress(self._step)
            return
        here = place(machine.kernel, self.program.instructions[pc // 16])
        waits = int((self.groups.state == RUN).any(axis=0).sum())
        text = f"{here}: {waits} warps spin in {self._loop_at(pc)} on a condition that no emulated thread will satisfy"
        if len(machine.blocks) == machine.launch.blocks:
            raise EmulationError(f"{text}: deadlock, also on a GPU")
        raise StarvationError(f"{text}: they wait for {self._others()}")

    def _others(self) -> str:
        together, all_blocks = len(self.machine.blocks), self.machine.launch.blocks
        return (
            f"one of the {all_blocks - together} blocks (of {all_blocks}) that were not run with these: emulate"
            " them all (--blocks all), or launch fewer"
        )

    def _deadlock(self) -> str:
        groups, program = self.groups, self.program
        reasons = []
        for state, reason in WAITS_FOR.items():
            for pc in np.unique(groups.pc[groups.state == state]).tolist()[:3]:
                waits = (groups.state == state) & (groups.pc == pc)
                where = program.instructions[pc // 16 - 1]
                source = f" ({where.source})" if where.source else ""
                reasons.append(f"{int(waits.any(axis=0).sum())} warps wait at {where.pc:#06x}{source} {reason}")
        return f"{self.machine.kernel.name}: deadlock, no warp can run: {'; '.join(reasons)}"


def _span(program: Program, block: int) -> slice:
    return slice(program.cfg.blocks[block].start, program.cfg.blocks[block].end)


_SPAN_ALWAYS = 32


_SPAN_FACTOR = 3


_CACHED_FRAMES = 2048


class FrameCache:
    """Makes frames and caches them: the same warps with the same lanes recur in every loop."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._frames: dict[bytes, Frame] = {}
        self._slices: dict[tuple[int, int], Rows] = {}
        self._scratch_rows: dict[int, Rows] = {}
        self._scratch: tuple[U32, Lanes, U32, Lanes] | None = None

    def frame(self, active: U32, live_version: int) -> Frame:
        """The frame for `active`, a word of lanes for every warp of the machine."""
        key = active.tobytes()
        frame = self._frames.get(key)
        if frame is None:
            if len(self._frames) >= _CACHED_FRAMES:
                self._frames.clear()
            frame = self._frames[key] = self._make(active)
        if frame.live_version != live_version:
            frame.forget_dead_lanes(self._machine.live)
            frame.live_version = live_version
        return frame

    def _make(self, active: U32) -> Frame:
        members = np.flatnonzero(active)
        low, high = int(members[0]), int(members[-1]) + 1
        if high - low > max(_SPAN_ALWAYS, _SPAN_FACTOR * len(members)):
            return Frame(self._machine, self._gathered_rows(len(members)), members, active[members], True)
        rows = self._slices.get((low, high))
        if rows is None:
            m = self._machine
            rows = Rows(
                m.registers[:, low:high],
                m.predicates[:, low:high],
                m.uniform[:, low:high],
                m.uniform_predicates[:, low:high],
            )
            self._slices[low, high] = rows
        return Frame(self._machine, rows, slice(low, high), active[low:high].copy(), False)

    def _gathered_rows(self, count: int) -> Rows:
        if self._scratch is None:
            m = self._machine
            self._scratch = (
                np.empty(m.registers.size, np.uint32),
                np.empty(m.predicates.size, np.bool_),
                np.empty(m.uniform.size, np.uint32),
                np.empty(m.uniform_predicates.size, np.bool_),
            )
        rows = self._scratch_rows.get(count)
        if rows is None:
            words, lanes, uniform, uniform_lanes = self._scratch
            registers, uniform_registers = len(self._machine.registers), len(self._machine.uniform)
            rows = Rows(
                words[: registers * count * LANES].reshape(registers, count, LANES),
                lanes[: PREDICATES * count * LANES].reshape(PREDICATES, count, LANES),
                uniform[: uniform_registers * count].reshape(uniform_registers, count, 1),
                uniform_lanes[: PREDICATES * count].reshape(PREDICATES, count, 1),
            )
            self._scratch_rows[count] = rows
        return rows
