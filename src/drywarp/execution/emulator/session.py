"""Emulation of blocks of one launch, some at first and more later, in one device memory."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.library import mode
from ...errors import EmulationError, EmulationLimitError, UsageError
from ...kernel.cfg import ControlFlowGraph, build_cfg
from ...kernel.kernel import Kernel
from ...kernel.launch.launch import Launch
from ...kernel.profile import Profile, SampledBlock, Sampling
from ...support.folders import thread_count
from .apart import PARTS, SharedBudget, StoppedError, Strand, in_parts, ran_alone
from .brief import Brief, check_reads
from .constants import WHOLE_GRID_NOTE, ConstantBanks
from .deadlock import may_run_apart
from .decode import Decoder
from .launch_memory import device_memory, local_bytes
from .machine import Machine, Needs, Store, register_counts
from .memory import DeviceMemory
from .program import Program
from .recorder import RECORD_OPTION, Recorder
from .sampling import Limits, Signature
from .scheduler import LANE_OPTION, Budget, Scheduler
from .tally import Tally
from .watch import Watch

WAVE_WARPS = 512
"""Warps emulated in parallel: enough to amortise the cost of a step, few enough for the caches."""
_MOST_UNCOUNTED = 1 << 16
"""Rows of a record above which it is counted and dropped."""


@dataclass(frozen=True)
class Emulation:
    """A finished emulation: the profile, and the device memory as the sampled blocks left it.

    `left` is whether clusters ended before they were told that no other is left to take over (see `Launch.starts`), so
    that more of them than assumed start.
    """

    profile: Profile
    constants: ConstantBanks
    memory: DeviceMemory
    left: bool = False

    def buffer(self, which: str | int) -> npt.NDArray[Any]:
        """A copy of a buffer after the run, by parameter name or argument ordinal.

        In the buffer's shape and type; bf16 as its bits in uint16. Raises UsageError for one that is
        no buffer of the launch.
        """
        for region in self.memory.regions:
            if region.buffer is not None and which in (region.name, region.ordinal):
                return self.memory.content(region).copy()
        known = ", ".join(r.name for r in self.memory.regions if r.buffer is not None)
        raise UsageError(f"no buffer {which!r} among the launch's arguments (there are: {known or 'none'})")


class Session:
    """One launch: its memory, and the record of the blocks that were run, which share the limits.

    `compiled` false runs everything in NumPy, which gives the same result. `cfg` is the kernel's control flow, if
    already available. With a `tally`, records are counted there after each wave and dropped, so that nothing is known
    of single blocks. `brief` is code that does the same but for what it computes: all but the blocks of the first `run`
    run that. `watch` looks through the record of each wave. `runs` is the kernel as it is run, if its instructions are
    marked.
    """

    def __init__(
        self,
        kernel: Kernel,
        launch: Launch,
        limits: Limits,
        compiled: bool = True,
        cfg: ControlFlowGraph | None = None,
        tally: Tally | None = None,
        brief: Brief | None = None,
        watch: Watch | None = None,
        *,
        runs: Kernel | None = None,
    ) -> None:
        self._brief, self._watch, self._runs = brief, watch, runs or kernel
        self.kernel, self.launch, self.limits = kernel, launch, limits
        self.cfg = cfg or build_cfg(kernel.instructions, kernel.code_entries)
        self._compiled = compiled and mode() != "reference"
        code = kernel.instructions
        self._needs = Needs.of(code, register_counts(code), local_bytes(kernel))
        self._lengths = np.array([block.end - block.start for block in self.cfg.blocks], np.int64)
        # What is watched runs in order, so that it is found in order.
        self._apart = self._compiled and watch is None and may_run_apart(kernel)
        self._done: list[tuple[Sequence[int], bool]] = []
        self._tally = tally
        self._begin()

    def _begin(self) -> None:
        """Nothing has been run: device memory as the launch finds it, and an empty record."""
        self.memory, self.banks = device_memory(self.kernel, self.launch, self.limits.strict)
        if self._watch:
            self._watch.begin(self.kernel, self.launch, self.memory, self.banks)
        self.budget = Budget(self.limits)
        self._code, self._in_full = self._runs, 0
        self._strand = self._new_strand(self.budget)
        self._recorder = self._strand.recorder
        self._position: dict[int, int] = {}
        self._steps: dict[int, int] = {}
        self._signatures: dict[int, Signature] = {}
        self._guarded: list[npt.NDArray[np.int64]] = []
        self._notes: set[str] = set()
        self._columns = 0
        self._told_none: set[int] = set()
        self._first = 0
        self._wave: Sequence[int] = ()
        self._idle: list[Strand] = []
        self._stores: list[Store] = []
        self._before = self._recorder.mark()

    def _new_strand(self, budget: Budget) -> Strand:
        """A record, and the code that writes it."""
        recorder = Recorder(watched=self._watch is not None)
        program = Program(Decoder(self._code, self.banks, self.memory, recorder), self.cfg)
        prints: list[str] | None = [] if self._tally else None
        return Strand(recorder, program, budget, _compiled(program) if self._compiled else Scheduler, prints)

    def _strand_for(self, budget: Budget) -> Strand:
        """A strand that ran before and is empty, else a new one."""
        return replace(self._idle.pop(), budget=budget) if self._idle else self._new_strand(budget)

    def stay_together(self) -> None:
        """From now on run one wave after the other: it takes less time where warps are short."""
        self._apart = False

    @contextmanager
    def _store_for(self, strand: Strand) -> Iterator[Strand]:
        """The strand with arrays that no other one uses meanwhile: few of them, as they stay in the caches."""
        store = self._stores.pop() if self._stores else Store()
        try:
            yield replace(strand, store=store)
        finally:
            self._stores.append(store)

    def run(self, blocks: Sequence[int], whole: bool = False) -> None:
        """Run those of these blocks, given as linear indices, that have not been run; `whole`: all at once.

        With each block its whole cluster is run.
        Waves of blocks run in `support.folders.thread_count` threads if that changes nothing (see `apart`). Raises
        EmulationError for a faulty access, a deadlock or a trap, UnsupportedInstructionError for an unsupported
        instruction, EmulationLimitError past the limits.
        """
        launch = self.launch
        new = [*dict.fromkeys(block for block in blocks if block not in self._position)]
        if launch.cluster_blocks > 1:
            clusters = dict.fromkeys(map(launch.cluster_of, new))
            new = [block for cluster in clusters for block in launch.members(cluster)]
        if self._brief and self._position and self._code is self._runs:
            self._code, self._in_full = replace(self._runs, instructions=self._brief.code), len(self._position)
            program = Program(Decoder(self._code, self.banks, self.memory, self._recorder), self.cfg)
            schedule = _compiled(program) if self._compiled else Scheduler
            self._strand = replace(self._strand, program=program, schedule=schedule)
        self._first = new[0] if new and not self._position else self._first
        per_block, together = launch.warps_per_block, launch.cluster_blocks
        size = len(new) if whole else max(WAVE_WARPS // per_block // together, 1) * together
        if whole:
            self._notes.add(WHOLE_GRID_NOTE)
        waves = [new[start : start + size] for start in range(0, len(new), size)]
        apart = self._apart and len(waves) > 1 and thread_count() > 1
        if apart and not self._run_apart(waves):
            self._start_over()
            return self.run(blocks, whole)
        if not apart:
            for wave in waves:
                self._recorder.first_warp = len(self._position) * per_block
                self._wave, self._before = wave, self._recorder.mark()
                first = self._recorder.steps
                machine = self._run_wave(self._strand, wave)
                self._notes |= machine.notes
                if self._tally:
                    if wave is waves[-1] or self._recorder.steps + self._recorder.accesses > _MOST_UNCOUNTED:
                        self._tally.take(self._strand)
                    continue
                self._guarded.append(self._counts(machine))
                self._note_steps(wave, first)
        if self._apart:
            self._done.append((new, whole))
        return None

    def _start_over(self) -> None:
        """Run everything so far once more, one wave after the other, as all that follows."""
        self._apart = False
        if self._tally:
            self._tally.clear()
        self._begin()
        for blocks, whole in self._done:
            self.run(blocks, whole)

    def _run_wave(self, strand: Strand, wave: Sequence[int]) -> Machine:
        machine = Machine(self.kernel, self.launch, wave, self._needs, strand.store, strand.prints)
        first, row = strand.recorder.accesses, strand.recorder.logged
        try:
            strand.schedule(machine, strand.program, strand.recorder, strand.budget).run()
            if self._brief and self._brief.watched:
                check_reads(strand.recorder, machine, row, self._brief)
        finally:
            if self._watch:
                self._watch.look(strand.recorder, machine, first)
        self._columns = max(self._columns, machine.tensor.most)
        self._told_none |= machine.told_none
        return machine

    def _run_apart(self, waves: list[list[int]]) -> bool:
        """Run waves in threads; whether their results are those of one wave after the other, within the limits."""
        shared = SharedBudget(self.budget, self._recorder)
        try:
            return self._run_in_threads(waves, shared)
        finally:
            shared.end()

    def _run_in_threads(self, waves: list[list[int]], shared: SharedBudget) -> bool:
        per_block = self.launch.warps_per_block
        parts = in_parts(waves, PARTS * thread_count())
        firsts = np.cumsum([len(self._position), *(sum(map(len, part)) for part in parts)]).tolist()

        def run_part(first: int, part: list[list[int]]) -> tuple[Strand, list[npt.NDArray[np.int64]], set[str]]:
            counts, notes = [], set()
            with shared.stopping(), self._store_for(self._strand_for(shared.part())) as strand:
                for wave in part:
                    strand.recorder.first_warp = first * per_block
                    machine = self._run_wave(strand, wave)
                    notes |= machine.notes
                    first += len(wave)
                    if not self._tally:
                        counts.append(self._counts(machine))
            return strand, counts, notes

        with ThreadPoolExecutor(thread_count()) as pool:
            running = [pool.submit(run_part, first, part) for first, part in zip(firsts, parts, strict=False)]
            try:
                done = [one.result() for one in running]
            except (EmulationError, StoppedError):
                if self._tally and shared.exceeded():
                    raise EmulationLimitError("all blocks together are past a limit") from None
                return False
            finally:
                shared.stop()
            recorders = [strand.recorder for strand, _, _ in done]
            if shared.exceeded() or not ran_alone(self.kernel.instructions, self.memory, recorders, pool):
                return False
            self.budget.lane_steps, self.budget.warp_steps = shared.lane_steps, shared.warp_steps
            if self._tally:
                for strand, _, notes in done:
                    self._tally.take(strand)
                    self._idle.append(strand)
                    self._notes |= notes
                return True
            first = self._recorder.steps
            self._recorder.absorb(recorders, pool)
        for _, counts, notes in done:
            self._guarded += counts
            self._notes |= notes
        self._wave, self._before = [], self._recorder.mark()
        self._note_steps([block for wave in waves for block in wave], first)
        return True

    def _counts(self, machine: Machine) -> npt.NDArray[np.int64]:
        """Lanes that executed each instruction under a guard, by block of a wave."""
        shape = len(machine.guarded), len(machine.blocks), self.launch.warps_per_block
        counts: npt.NDArray[np.int64] = machine.guarded.reshape(shape).sum(axis=2).T
        return counts

    def seen(self) -> Profile:
        """The behaviour of the first block run so far, even if incomplete: its paths and accesses, without totals."""
        per_block = self.launch.warps_per_block
        places = np.full(per_block * self.launch.cluster_blocks, -1, np.int32)
        places[:per_block] = np.arange(per_block)
        paths, numbers = self._recorder.paths(per_block, places)
        return Profile(
            kernel=self.kernel,
            launch=self.launch,
            cfg=self.cfg,
            blocks=(SampledBlock(self._first, self.launch.coordinates(self._first), 1.0, tuple(numbers)),),
            paths=paths,
            accesses=self._recorder.access_log(places),
            thread_instructions=np.zeros((1, len(self.kernel.instructions)), np.int64),
            allocations={region.name: (region.start, region.size) for region in self.memory.regions},
        )

    def _note_steps(self, wave: Sequence[int], first: int) -> None:
        """Count the warp instructions of the blocks that were just run."""
        warps, blocks = self._recorder.steps_since(first)
        position = warps // self.launch.warps_per_block - len(self._position)
        counts = np.bincount(position, self._lengths[blocks], minlength=len(wave))
        for block, count in zip(wave, counts.tolist(), strict=True):
            self._position[block] = len(self._position)
            self._steps[block] = int(count)

    def steps(self, blocks: Sequence[int]) -> dict[int, float]:
        """Warp instructions of some blocks, which are run if they have not been."""
        self.run(blocks)
        return {block: float(self._steps[block]) for block in blocks}

    def signatures(self, blocks: Sequence[int]) -> dict[int, Signature]:
        """The behaviour of some blocks, a digest of each warp's path; they are run if they have not been."""
        self.run(blocks)
        missing = [block for block in blocks if block not in self._signatures]
        if missing:
            paths, numbers = self._recorder.paths(len(missing) * self.launch.warps_per_block, self._places(missing))
            digests = [hashlib.blake2b(path.blocks.tobytes(), digest_size=12).digest() for path in paths]
            per_block = self.launch.warps_per_block
            for number, block in enumerate(missing):
                mine = numbers[number * per_block : (number + 1) * per_block]
                self._signatures[block] = tuple(digests[path] for path in mine)
        return {block: self._signatures[block] for block in blocks}

    def room(self, share: float) -> int:
        """How many more blocks like the previous ones fit into this fraction of the limits."""
        done = len(self._position)
        return int(min(max(0.0, most * share - used) * done / max(used, 1e-9) for most, used, _ in self._used()))

    def scarce(self) -> str:
        """The option that raises the limit which leaves the least room."""
        return max(self._used(), key=lambda one: one[1] / one[0])[2]

    def _used(self) -> tuple[tuple[int, int, str], ...]:
        """Each limit, how much of it is used, and the option that raises it."""
        limits, recorder = self.limits, self._recorder
        return (
            (limits.lane_steps, self.budget.lane_steps, LANE_OPTION),
            (limits.accesses, recorder.accesses, RECORD_OPTION),
            (limits.basic_blocks, recorder.steps, RECORD_OPTION),
        )

    @property
    def completed(self) -> list[int]:
        """The blocks that have run to their ends, in that order."""
        return list(self._position)

    def abandon(self) -> float:
        """Forget the blocks that a limit has stopped; returns how many warp instructions each had run on average."""
        _, blocks = self._recorder.steps_since(self._before[0])
        ran = float(self._lengths[blocks].sum()) / max(len(self._wave), 1)
        self._recorder.back_to(self._before)
        return ran

    def iterations(self) -> dict[int, int]:
        """Iterations of each loop by its first basic block: per entry, the most of any warp so far."""
        warps = int(self._recorder.steps_since(0)[0].max(initial=-1)) + 1
        blocks, bounds = self._recorder.steps_by_warp(warps)
        found: dict[int, int] = {}
        for loop in self.cfg.loops:
            inside = np.zeros(len(self.cfg.blocks) + 1, np.bool_)
            inside[list(loop.blocks)] = True
            header = np.flatnonzero(blocks == loop.header)
            # Block -1, outside every loop, precedes the first step of a warp.
            before = np.where(np.isin(header, bounds), -1, blocks[header - 1])
            entered = header[~inside[before]]
            times, entries = (np.diff(np.searchsorted(rows, bounds)) for rows in (header, entered))
            if len(entered):
                found[loop.header] = int((-(-times // np.maximum(entries, 1)))[entries > 0].max())
        return found

    def finish(
        self,
        weights: Mapping[int, float],
        basis: str,
        half: float | None = None,
        note: str = "",
        *,
        doubt: str = "",
        unfinished: float | None = None,
        lanes: bool = True,
    ) -> Emulation:
        """The profile of some blocks that were run, each with the number of blocks that it represents.

        `basis` gives the quality of the sample (see `Sampling`), `half` is the half-width of its interval. `doubt` is a
        reason not to trust it, `unfinished` what `abandon` returned. Without `lanes`, none are counted in the profile.
        """
        launch, recorder = self.launch, self._recorder
        chosen = sorted(weights)
        per_block = launch.warps_per_block
        places = self._places(chosen)
        paths, numbers = recorder.paths(len(chosen) * per_block, places)
        sampled = tuple(
            SampledBlock(
                linear, launch.coordinates(linear), weights[linear], tuple(numbers[n * per_block : (n + 1) * per_block])
            )
            for n, linear in enumerate(chosen)
        )
        total = sum(weights[block] * self._steps[block] for block in chosen)
        sampling = Sampling(
            blocks=len(chosen),
            of=launch.blocks,
            estimate=total,
            low=None if half is None else max(0.0, total - half),
            high=None if half is None else total + half,
            basis=basis,
            spread=self._spread(chosen, unfinished) if basis == "limited" else (1.0, 1.0),
        )
        notes, doubts = self.memory.served_notes()
        products, several = recorder.usual_products()
        profile = Profile(
            kernel=self.kernel.with_tensor_use(products, self._columns),
            launch=launch,
            cfg=self.cfg,
            blocks=sampled,
            paths=paths,
            accesses=recorder.access_log(places),
            thread_instructions=self._thread_instructions(chosen if lanes else ()),
            allocations={region.name: (region.start, region.size) for region in self.memory.regions},
            steps=sum(self._steps[block] for block in chosen),
            notes=tuple(sorted({*self._notes, *notes, *([note] if note else [])})),
            doubts=(*([doubt] if doubt else []), *several, *doubts),
            sampling=sampling,
            syncs=recorder.syncs(places),
            products=products,
            constant_addresses=recorder.constant_addresses(),
            constants=recorder.asked_constants(),
        )
        left = launch.starts > 0 and not self._told_none.issuperset(map(launch.cluster_of, chosen))
        return Emulation(profile, self.banks, self.memory, left)

    def _spread(self, chosen: Sequence[int], unfinished: float | None) -> tuple[float, float]:
        """How short and how long the mean block may be, relative to the mean of those that were run.

        At most as short as the shortest, but no farther than three standard errors; as long as the longest, which may
        not have ended.
        """
        steps = np.array([self._steps[block] for block in chosen], np.float64)
        if not (mean := float(steps.mean())):
            return 1.0, 1.0
        error = float(steps.std()) / mean / math.sqrt(len(steps))
        shortest, longest = float(steps.min()), max(float(steps.max()), unfinished or 0.0)
        return max(shortest / mean, 1 / (1 + 3 * error)), longest / mean

    def _places(self, chosen: Sequence[int]) -> npt.NDArray[np.int32] | None:
        """The number of each recorded warp among those of the chosen blocks, -1 for others; None if nothing changes."""
        positions = [self._position[block] for block in chosen]
        if positions == list(range(len(self._position))):
            return None
        per_block = self.launch.warps_per_block
        places = np.full((len(self._position), per_block), -1, np.int32)
        places[positions] = np.arange(len(positions) * per_block, dtype=np.int32).reshape(-1, per_block)
        return places.reshape(-1)

    def _thread_instructions(self, chosen: Sequence[int]) -> npt.NDArray[np.int64]:
        """Lanes that executed each instruction with its guard true, shape (chosen blocks, instructions)."""
        rows = [self._position[block] for block in chosen]
        if not rows:
            return np.zeros((0, len(self.kernel.instructions)), np.int64)
        per_block, guards = self.launch.warps_per_block, self._needs.guards
        per_warp = self._recorder.lane_counts(len(self._position) * per_block, len(self.cfg.blocks))
        of_blocks = per_warp.reshape(len(self._position), per_block, -1)[rows].sum(axis=1)
        counts: npt.NDArray[np.int64] = np.zeros((len(rows), len(guards)), np.int64)
        for block in self.cfg.blocks:
            counts[:, block.start : block.end] = of_blocks[:, block.index, None]
        guarded = np.concatenate(self._guarded)
        counts[:, guards >= 0] = guarded[rows]
        if self._brief and self._in_full:
            # Where the brief code has nothing to count, as large a share of the lanes as in the blocks run in full.
            briefly = np.array(rows) >= self._in_full
            in_full = per_warp[: self._in_full * per_block].sum(axis=0)
            for i in self._brief.uncounted:
                around = self.cfg.block_of[i]
                share = guarded[: self._in_full, guards[i]].sum() / max(in_full[around], 1)
                counts[briefly, i] = np.rint(of_blocks[briefly, around] * share)
        return counts


def _compiled(program: Program) -> Any:
    """The engine of a wave, mostly in the core; imported here because not every run needs it."""
    from .compiled.engine import CompiledScheduler, Table

    table = Table(program)

    def schedule(machine: Machine, program: Program, recorder: Recorder, budget: Budget) -> CompiledScheduler:
        return CompiledScheduler(machine, program, table, recorder, budget)

    return schedule
