"""The launches of a running program: what each computes, and how long it would take."""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from ..analysis.emulation_cache import CacheEntry
from ..analysis.fits import occupancy_of
from ..analysis.prepare import LoadedKernel, cost, execute, serve_memory
from ..analysis.result import Analysis
from ..analysis.stages import answer_prepared
from ..errors import DrywarpError, EmulationError, UnsupportedInstructionError, UsageError
from ..execution.emulator.run import WholeRun, run_whole
from ..execution.emulator.skim import follows_data
from ..execution.emulator.watch import Uses, Watch
from ..hardware import Gpu
from ..kernel.cfg import ControlFlowGraph, build_cfg
from ..kernel.kernel import Kernel
from ..kernel.launch.launch import Launch
from .alike import Alike, Estimates
from .asked import OVERLAPS, Asked, Outcome, Plan, launch_of, places_of, pointers, shape_of
from .estimates import Estimate
from .heap import Change, Heap

LAUNCH_COST = 50_000
"""Warp instructions that take as long as what a launch takes besides its own, some milliseconds."""
_MOST_HELD = 256 << 20
"""Maximum bytes of results that are kept for launches that repeat earlier ones."""


class Launches:
    """Runs and predicts the launches of one process, within a program's limits; `notes` collects what to report."""

    def __init__(self, gpu: Gpu, plan: Plan, notes: list[str]) -> None:
        self._gpu, self._plan, self._notes = gpu, plan, notes
        self._left, self._choice = plan.most, plan.choice.anew()
        self.behind: dict[str, Analysis] = {}
        """The longest launch of each kernel, if asked for."""
        self._first: dict[tuple[object, ...], Outcome] = {}
        self._known: dict[str, Outcome] = {}
        self._rests: dict[tuple[object, ...], Outcome] = {}
        self._repeats: OrderedDict[tuple[object, ...], tuple[Outcome, list[Change]]] = OrderedDict()
        self._graphs: dict[int, ControlFlowGraph] = {}
        self._uses: dict[int, Uses] = {}
        self._held = 0
        self._estimates = Estimates(plan.predictions)

    def run(self, asked: Asked, heap: Heap) -> Outcome:
        """Compute the launch's results, if the limits allow it, and predict its time.

        A launch that repeats an earlier one, and finds the same memory, leaves what that one left. Raises UsageError
        if it does not fit the kernel or the GPU.
        """
        chosen, state = self._choice.takes(asked.kernel.name), heap.state()
        again = (*shape_of(asked), asked.parameters, asked.variables, asked.reach, chosen, state)
        if state is not None and again in self._repeats:
            outcome, changes = self._repeats[again]
            heap.repeat(changes)
            return outcome
        outcome, changed = self._new(asked, heap, chosen)
        size = _held_bytes(outcome, changed or [])
        if outcome.computed and state is not None and changed is not None and size <= _MOST_HELD:
            self._repeats[again] = replace(outcome, same=True), changed
            self._held += size
            while self._held > _MOST_HELD:
                _, oldest = self._repeats.popitem(last=False)
                self._held -= _held_bytes(*oldest)
        return outcome

    def later(self, asked: Asked, heap: Heap, settled: Callable[[], None]) -> tuple[Outcome, Launch | None]:
        """Predict a launch that may be computed later, by `compute` with this Launch; None if it was computed at once.

        `settled` computes what the launch may read. That is asked for only where it decides on the kernel's time.
        Raises UsageError if it does not fit the kernel or the GPU.
        """
        chosen = self._choice.takes(asked.kernel.name)
        if not chosen:
            return Outcome(None, False, left_out=True, waits=True), launch_of(asked, heap)
        if shape_of(asked) not in self._first:
            if follows_data(asked.code, self._graph(asked.code)):
                settled()
            launch = launch_of(asked, heap)
            occupancy_of(asked.kernel, launch, self._gpu)
            found = self._predicted(asked, launch)
            if found.analysis is not None:
                self._first[shape_of(asked)] = self._kept(found, asked, launch, heap, None)
            else:
                settled()
        known = self._first.get(shape_of(asked))
        if known is None or known.analysis is None:
            return self._new(asked, heap, chosen)[0], None
        return replace(known, waits=True), launch_of(asked, heap)

    def compute(self, asked: Asked, launch: Launch, heap: Heap, known: Outcome) -> Outcome:
        """The outcome of a deferred launch that is computed now."""
        try:
            done = self._run(asked, launch, None)
        except UnsupportedInstructionError as error:
            return replace(known, waits=False, failed=str(error))
        except EmulationError as error:
            return replace(known, waits=False, fault=error)
        self._spend(done)
        if done is None:
            return replace(known, waits=False)
        heap.take_over(done.memory, 0)
        steps, printed = done.warp_instructions, done.printed
        return replace(known, computed=True, warp_instructions=steps, printed=printed, waits=False)

    def _new(self, asked: Asked, heap: Heap, chosen: bool) -> tuple[Outcome, list[Change] | None]:
        """The outcome of a launch, and what it changed; None if that is too much to be held."""
        launch, shape, blocks = launch_of(asked, heap), shape_of(asked), math.prod(asked.grid)
        occupancy_of(asked.kernel, launch, self._gpu)
        alike, every = self._alike(asked, heap)
        new, own = chosen and shape not in self._first, False
        if new:
            self._first[shape] = _estimated(None if alike.due() else alike.estimate(blocks)) or self._predicted(
                asked, launch
            )
            own = self._first[shape].estimate is None
        found = self._first[shape] if chosen else Outcome(None, False, left_out=True)
        done = watch = None
        if (found.expected or 0) <= min(self._plan.most_each, self._left):
            watch = self._watch_for(asked, heap)
            try:
                done = self._run(asked, launch, watch)
            except UnsupportedInstructionError as error:
                found = replace(found, failed=found.failed or str(error))
            except EmulationError as error:
                found = replace(found, fault=error)
            else:
                self._spend(done)
        checked = bool(watch and (done or found.fault))
        problems = tuple(watch.problems()) if watch and checked else ()
        if watch and checked and watch.unclear:
            self._notes.append(f"{asked.kernel.name} was not checked for races: {watch.unclear}")
        if done is None:
            found = replace(found, problems=problems, checked=checked)
            if own:
                if found.analysis:
                    alike.predicted(blocks, found.analysis.warp_instructions, found.analysis)
                found = self._kept(found, asked, launch, heap, None)
                self._first[shape] = replace(self._first[shape], kept=found.kept)
            elif not (found.fault or found.failed):
                found = self._rest(shape, alike.mean(shape, blocks) or every.mean(shape, blocks)) or found
            return found, []
        ran = done.warp_instructions
        if chosen:
            key = hashlib.sha256(f"{shape} {done.digest} {places_of(asked, heap)}".encode()).hexdigest()
            same = key in self._known
            if not same:
                if not own:
                    estimate = None if not new and alike.due() else alike.estimate(blocks, ran)
                    found = _estimated(estimate) or self._predicted(asked, launch)
                if not found.estimate:
                    found = self._kept(found, asked, launch, heap, done)
                if found.analysis and not found.estimate:
                    alike.predicted(blocks, ran, found.analysis)
                    every.predicted(blocks, ran, found.analysis)
                self._known[key] = found
            found = replace(self._known[key], same=same)
            if found.time_s is not None:
                alike.computed(shape, found.time_s, ran)
                every.computed(shape, found.time_s, ran)
        found = replace(found, problems=problems, checked=checked)
        changes = heap.take_over(done.memory, _MOST_HELD)
        found = replace(found, computed=True, printed=done.printed, launched=done.launched)
        return replace(found, warp_instructions=ran), changes

    def _alike(self, asked: Asked, heap: Heap) -> tuple[Alike, Alike]:
        """The launches that may stand for this one, and all of its kernel."""
        code, _, *rest = shape_of(asked)
        numbers = tuple(held.number for held, _ in pointers(asked, heap).values())
        return self._estimates.of((code, *rest), numbers), self._estimates.every((code, *rest))

    def _rest(self, shape: tuple[object, ...], estimate: Estimate | None) -> Outcome | None:
        """The outcome of a launch that is not computed: one object as long as it stays the same."""
        if estimate is None:
            return None
        known = self._rests.get(shape)
        if known is None or known.estimate is not estimate:
            known = self._rests[shape] = Outcome(estimate.like.analysis, False, estimate=estimate)
        return known

    def _spend(self, done: WholeRun | None) -> None:
        """Account for a launch that was run, or that ran until a limit stopped it (None)."""
        steps = min(self._plan.most_each, self._left) if done is None else done.warp_instructions
        self._left = max(0, self._left - steps - LAUNCH_COST)

    def _run(self, asked: Asked, launch: Launch, watch: Watch | None) -> WholeRun | None:
        return run_whole(asked.kernel, launch, min(self._plan.most_each, self._left), self._graph(asked.code), watch)

    def _graph(self, code: Kernel) -> ControlFlowGraph:
        if id(code) not in self._graphs:
            self._graphs[id(code)] = build_cfg(code.instructions, code.code_entries)
        return self._graphs[id(code)]

    def _watch_for(self, asked: Asked, heap: Heap) -> Watch | None:
        """The checker of a launch, if faults are looked for."""
        if heap.written is None:
            return None
        code = asked.code
        uses = self._uses.setdefault(id(code), self._uses.get(id(code)) or Uses(code, self._graph(code)))
        return Watch(uses, heap.written, [(one.start, one.end) for one in heap.allocations if one.kind == "device"])

    def _kept(self, found: Outcome, asked: Asked, launch: Launch, heap: Heap, done: WholeRun | None) -> Outcome:
        """The outcome with the file that holds the launch, if launches are kept."""
        keeper, seen = self._plan.keeper, done.memory if done else None
        if keeper is None:
            return found
        try:
            name = keeper.keep(asked.number, asked.image, asked.kernel, launch, asked.parameters, heap, seen)
        except UsageError as error:
            self._notes.append(f"launch {asked.number} ({asked.kernel.name}) is not kept: {error}")
            return found
        return replace(found, kept=name)

    def _predicted(self, asked: Asked, launch: Launch) -> Outcome:
        """The prediction from a sample of blocks, or why there is none."""
        kernel, options, behind = asked.kernel, self._plan.options, self._plan.behind
        try:
            if any(i.opcode in OVERLAPS for i in kernel.instructions):
                options = replace(options, brief=False)  # where in a block's time these stand
            loaded = LoadedKernel(kernel, launch, self._gpu, CacheEntry("", kernel, launch))
            prepared = cost(serve_memory(execute(loaded, options), options))
            answer = answer_prepared(prepared, options)
            longest = self.behind.get(kernel.name)
            if behind is not None and (longest is None or answer.time_s > longest.time_s):
                self.behind[kernel.name] = answer_prepared(prepared, behind)
            return Outcome(answer, False)
        except DrywarpError as error:
            return Outcome(None, False, failed=str(error))


def _held_bytes(outcome: Outcome, changes: list[Change]) -> int:
    """Bytes needed to hold the results of a launch, what it printed, and what it launched."""
    launched = sum(len(one.parameters) for one in outcome.launched)
    return sum(change.size for change in changes) + len(outcome.printed) + launched


def _estimated(estimate: Estimate | None) -> Outcome | None:
    return Outcome(estimate.like.analysis, False, estimate=estimate) if estimate else None
