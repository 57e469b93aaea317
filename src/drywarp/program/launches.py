"""One launch of a running program: what it computes, and how long it would take."""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ..analysis.emulation_cache import CacheEntry
from ..analysis.fits import occupancy_of
from ..analysis.prepare import LoadedKernel, cost, execute, serve_memory
from ..analysis.request import Options
from ..analysis.result import Analysis
from ..analysis.stages import answer_prepared
from ..errors import DrywarpError, EmulationError, UnsupportedInstructionError, UsageError
from ..execution.emulator.control import DeviceLaunch
from ..execution.emulator.run import WholeRun, run_whole
from ..execution.emulator.skim import follows_data
from ..execution.emulator.watch import Problem, Uses, Watch
from ..frontends.binary.kept import scalars
from ..hardware import Gpu
from ..kernel.cfg import ControlFlowGraph, build_cfg
from ..kernel.kernel import Kernel
from ..kernel.launch.arguments import cluster_for
from ..kernel.launch.launch import Dim3, Launch
from .heap import Allocation, Change, Heap
from .keep import PREDICTIONS, Alike, Choice, Estimate, Estimates, Keeper

LAUNCH_STEPS, TOTAL_STEPS = 1_000_000_000, 5_000_000_000
"""Maximum warp instructions to run per launch and per program: one and five to ten minutes on two cores."""
LAUNCH_COST = 50_000
"""Warp instructions that take as long as what a launch takes besides its own, some milliseconds."""
OVERLAPS = LETS, WAITS = "PREEXIT", "ACQBULK"
"""Opcodes of `griddepcontrol.launch_dependents` and `.wait`."""
_POINTER_BYTES = 8
_ALIGNED = 256
"""Bytes of memory in a row that a GPU looks up or moves at once, at most: further alignment makes no difference."""
_MOST_HELD = 256 << 20
"""Maximum bytes of results that are kept for launches that repeat earlier ones."""


@dataclass(frozen=True)
class Asked:
    """A launch as a program asks for it; `parameters` are the bytes of all arguments, as the kernel reads them.

    `number` counts all launches. `kernel` holds the constants of the moment, `code` is the same kernel as it was
    loaded, from `image`. `cluster` is the launch attribute, (1, 1, 1) without one. `reach` are the devices whose memory
    the kernel reaches, its own among them, where `variables` lie.
    """

    number: int
    image: bytes
    kernel: Kernel
    code: Kernel
    grid: Dim3
    block: Dim3
    cluster: Dim3
    shared: int
    parameters: bytes
    variables: int
    reach: frozenset[int] = frozenset((0,))


@dataclass(frozen=True)
class Outcome:
    """The outcome of a launch.

    `analysis` predicts it, for this launch or for an earlier one that did the same (`same`); None where `failed` says
    why not, and where it was `left_out` by the user's choice. `computed` says whether its results are in memory;
    `fault` is the kernel's error, as on a GPU; `kept` is the file that holds it, `printed` what
    device code printed. `problems` is what a check found, if it was `checked`. A launch that `waits` is computed when
    the host reads what it may have written. `launched` are the launches that the kernel asked for. With an `estimate`,
    `analysis` is that of the launch that stands for it.
    """

    analysis: Analysis | None
    computed: bool
    warp_instructions: int = 0
    same: bool = False
    failed: str = ""
    fault: EmulationError | None = None
    printed: str = ""
    kept: str = ""
    left_out: bool = False
    problems: tuple[Problem, ...] = ()
    checked: bool = False
    waits: bool = False
    launched: tuple[DeviceLaunch, ...] = ()
    estimate: Estimate | None = None

    @property
    def time_s(self) -> float | None:
        """How long the launch takes; None if that is not known."""
        return self.estimate.time_s if self.estimate else self.analysis.time_s if self.analysis else None

    @property
    def expected(self) -> float | None:
        """The warp instructions that a launch like this one is expected to run, if that is known."""
        if self.estimate:
            return self.estimate.instructions
        return self.analysis.warp_instructions if self.analysis else None


@dataclass(frozen=True)
class Plan:
    """What is done with the launches of each process: how much of them is computed, and which are predicted and kept.

    `most_each` and `most` are warp instructions of a launch and of all. With `behind`, the longest launch of each
    kernel is analysed with these options too. `check` looks for faults that a GPU would not show. A process sees
    `devices` equal GPUs. If `sampled`, only those launches are computed whose results the host reads. After the first
    `predictions` different launches of a kernel some are estimated (0: none).
    """

    options: Options
    most_each: int = LAUNCH_STEPS
    most: int = TOTAL_STEPS
    choice: Choice = field(default_factory=Choice)
    keeper: Keeper | None = None
    behind: Options | None = None
    check: bool = False
    devices: int = 1
    sampled: bool = False
    predictions: int = PREDICTIONS


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
        again = (*_shape(asked), asked.parameters, asked.variables, asked.reach, chosen, state)
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
            return Outcome(None, False, left_out=True, waits=True), _launch_of(asked, heap)
        if _shape(asked) not in self._first:
            if follows_data(asked.code, self._graph(asked.code)):
                settled()
            launch = _launch_of(asked, heap)
            occupancy_of(asked.kernel, launch, self._gpu)
            found = self._predicted(asked, launch)
            if found.analysis is not None:
                self._first[_shape(asked)] = self._kept(found, asked, launch, heap, None)
            else:
                settled()
        known = self._first.get(_shape(asked))
        if known is None or known.analysis is None:
            return self._new(asked, heap, chosen)[0], None
        return replace(known, waits=True), _launch_of(asked, heap)

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
        launch, shape, blocks = _launch_of(asked, heap), _shape(asked), math.prod(asked.grid)
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
            key = hashlib.sha256(f"{shape} {done.digest} {_places(asked, heap)}".encode()).hexdigest()
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
        code, _, *rest = _shape(asked)
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


def _shape(asked: Asked) -> tuple[object, ...]:
    """What two launches must share to be predicted alike."""
    return id(asked.code), asked.grid, asked.block, asked.cluster, asked.shared


def quiet_options(models: tuple[str, ...] = ("pipeline",), **chosen: object) -> Options:
    """Options of an analysis for its figures only."""
    return replace(Options(), models=models, occupancies=range(0), findings=False, brief=True, **chosen)  # type: ignore[arg-type]


def pointers(asked: Asked, heap: Heap) -> dict[int, tuple[Allocation, int]]:
    """The allocations that a launch was given: by ordinal of the parameter, with the place where it points."""
    found = {}
    for parameter in asked.kernel.parameters:
        address = int.from_bytes(asked.parameters[parameter.offset :][: parameter.size], "little")
        if parameter.size == _POINTER_BYTES and (held := heap.at(address)):
            found[parameter.ordinal] = held, address - held.start
        elif parameter.size == _POINTER_BYTES and (held := heap.object_at(address)):
            found[parameter.ordinal] = held, 0
    return found


def _places(asked: Asked, heap: Heap) -> list[tuple[int, ...]]:
    """Where the pointers of a launch lie, as far as its time may depend on that.

    These are the sizes of their allocations, how they are aligned, and the distances between those in one allocation.
    """
    firsts: dict[int, int] = {}
    found: list[tuple[int, ...]] = []
    for ordinal, (held, offset) in pointers(asked, heap).items():
        first = firsts.setdefault(held.number, offset)
        own = [*firsts].index(held.number), int(held.kind == "pinned")
        found.append((ordinal, *own, held.size, offset % _ALIGNED, offset - first))
    return found


def _launch_of(asked: Asked, heap: Heap) -> Launch:
    """The launch with the program's memory, its allocations named after the parameters that point there."""
    kernel, data = asked.kernel, asked.parameters
    names: dict[int, str] = {}
    for ordinal, (held, _) in pointers(asked, heap).items():
        names.setdefault(held.start, f"{kernel.parameters[ordinal].name or f'arg{ordinal}'} ({held.name})")
    image = heap.image(asked.variables, names, asked.reach)
    cluster = cluster_for(kernel, asked.grid, None if asked.cluster == (1, 1, 1) else asked.cluster)
    return Launch(asked.grid, asked.block, scalars(kernel, data), asked.shared, memory=image, cluster=cluster)
