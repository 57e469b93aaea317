"""One launch of a running program: what it computes, and how long it would take."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, replace

from ..analysis.emulation_cache import CacheEntry
from ..analysis.prepare import LoadedKernel, cost, execute, serve_memory
from ..analysis.prepared import occupancy_of
from ..analysis.request import Options
from ..analysis.result import Analysis
from ..analysis.stages import answer_prepared
from ..errors import DrywarpError, EmulationError, UnsupportedInstructionError
from ..execution.emulator.whole import run_whole
from ..hardware import Gpu
from ..kernel.cfg import ControlFlowGraph, build_cfg
from ..kernel.kernel import Kernel
from ..kernel.launch.arguments import cluster_for
from ..kernel.launch.launch import Dim3, Launch, Scalar
from .heap import Allocation, Change, Heap

LAUNCH_STEPS, TOTAL_STEPS = 1_000_000_000, 10_000_000_000
"""Most warp instructions that are run of a launch, and of a program: about a minute and ten minutes on two cores."""
_POINTER_BYTES = 8
_MOST_HELD = 256 << 20
"""Bytes of results that are held for launches that repeat earlier ones."""


@dataclass(frozen=True)
class Asked:
    """A launch as a program asks for it; `parameters` are the bytes of all arguments, as the kernel reads them.

    `kernel` holds the constants of the moment, `code` is the same kernel as it was loaded. `cluster` is the launch
    attribute, (1, 1, 1) without one.
    """

    kernel: Kernel
    code: Kernel
    grid: Dim3
    block: Dim3
    cluster: Dim3
    shared: int
    parameters: bytes
    variables: int


@dataclass(frozen=True)
class Outcome:
    """What became of a launch.

    `analysis` predicts it, for this launch or for an earlier one that did the same (`same`); None where `failed` says
    why not. `computed` says whether its results are in memory; `fault` is what went wrong in the kernel, as it would on
    a GPU, and `printed` what device code printed.
    """

    analysis: Analysis | None
    computed: bool
    warp_instructions: int = 0
    same: bool = False
    failed: str = ""
    fault: EmulationError | None = None
    printed: str = ""


class Launches:
    """Runs and predicts the launches of one process, within the limits of a program."""

    def __init__(self, gpu: Gpu, options: Options, most_each: int, most: int) -> None:
        self._gpu, self._options = gpu, options
        self._most_each, self._left = most_each, most
        self._first: dict[tuple[object, ...], tuple[Analysis | None, str]] = {}
        self._known: dict[str, tuple[Analysis | None, str]] = {}
        self._repeats: OrderedDict[tuple[object, ...], tuple[Outcome, list[Change]]] = OrderedDict()
        self._graphs: dict[int, ControlFlowGraph] = {}
        self._held = 0

    def run(self, asked: Asked, heap: Heap) -> Outcome:
        """Compute the launch's results, if there is room for it, and predict its time.

        A launch that an earlier one was, and that finds the same memory, leaves what that one left. Raises UsageError
        if it does not fit the kernel or the GPU.
        """
        state = heap.state()
        again = (id(asked.code), asked.grid, asked.block, asked.cluster, asked.shared, asked.parameters, state)
        if state is not None and again in self._repeats:
            outcome, changes = self._repeats[again]
            heap.repeat(changes)
            return outcome
        outcome, changes = self._new(asked, heap)
        size = sum(change.size for change in changes)
        if outcome.computed and state is not None and size <= _MOST_HELD:
            self._repeats[again] = replace(outcome, same=True), changes
            self._held += size
            while self._held > _MOST_HELD:
                _, (_, oldest) = self._repeats.popitem(last=False)
                self._held -= sum(change.size for change in oldest)
        return outcome

    def _new(self, asked: Asked, heap: Heap) -> tuple[Outcome, list[Change]]:
        """The outcome of a launch, and what it changed."""
        launch = _launch_of(asked, heap)
        occupancy_of(asked.kernel, launch, self._gpu)
        shape = (id(asked.code), asked.grid, asked.block, asked.cluster, asked.shared)
        new = shape not in self._first
        if new:
            self._first[shape] = self._predicted(asked.kernel, launch)
        predicted, failed = self._first[shape]
        most = min(self._most_each, self._left)
        done = None
        if predicted is None or predicted.warp_instructions <= most:
            try:
                graph = self._graphs.get(id(asked.code))
                if graph is None:
                    graph = build_cfg(asked.code.instructions, asked.code.code_entries)
                    self._graphs[id(asked.code)] = graph
                done = run_whole(asked.kernel, launch, most, graph)
            except UnsupportedInstructionError as error:
                return Outcome(predicted, False, failed=failed or str(error)), []
            except EmulationError as error:
                return Outcome(predicted, False, failed=failed, fault=error), []
        if done is None:
            return Outcome(predicted, False, failed=failed), []
        self._left -= done.warp_instructions
        key = hashlib.sha256(f"{shape} {done.digest} {_places(asked, heap)}".encode()).hexdigest()
        same = key in self._known
        if not same:
            self._known[key] = (predicted, failed) if new else self._predicted(asked.kernel, launch)
        changes = heap.take_over(done.memory)
        predicted, failed = self._known[key]
        return Outcome(predicted, True, done.warp_instructions, same, failed, printed=done.printed), changes

    def _predicted(self, kernel: Kernel, launch: Launch) -> tuple[Analysis | None, str]:
        """The prediction from a sample of blocks, or why there is none."""
        try:
            loaded = LoadedKernel(kernel, launch, self._gpu, CacheEntry("", kernel, launch))
            prepared = cost(serve_memory(execute(loaded, self._options), self._options))
            return answer_prepared(prepared, self._options), ""
        except DrywarpError as error:
            return None, str(error)


def quiet_options(models: tuple[str, ...] = ("pipeline",), **chosen: object) -> Options:
    """Options of an analysis for its figures only."""
    return replace(Options(), models=models, occupancies=range(0), findings=False, **chosen)  # type: ignore[arg-type]


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


def _places(asked: Asked, heap: Heap) -> list[tuple[int, int, int]]:
    return [(ordinal, held.size, offset) for ordinal, (held, offset) in pointers(asked, heap).items()]


def _launch_of(asked: Asked, heap: Heap) -> Launch:
    """The launch with the program's memory, its allocations named after the parameters that point there."""
    kernel, data = asked.kernel, asked.parameters
    names: dict[int, str] = {}
    for ordinal, (held, _) in pointers(asked, heap).items():
        names.setdefault(held.start, f"{kernel.parameters[ordinal].name or f'arg{ordinal}'} ({held.name})")
    parts = [data[parameter.offset : parameter.offset + parameter.size] for parameter in kernel.parameters]
    arguments = tuple(Scalar(part, f"0x{part[::-1].hex()}") for part in parts)
    image = heap.image(asked.variables, names)
    cluster = cluster_for(kernel, asked.grid, None if asked.cluster == (1, 1, 1) else asked.cluster)
    return Launch(asked.grid, asked.block, arguments, asked.shared, memory=image, cluster=cluster)
