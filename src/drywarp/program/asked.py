"""A launch as a running program asks for it, what is to be done with it, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..analysis.request import Options
from ..analysis.result import Analysis
from ..errors import EmulationError
from ..execution.emulator.control import DeviceLaunch
from ..execution.emulator.watch import Problem
from ..frontends.binary.kept import scalars
from ..kernel.kernel import Kernel
from ..kernel.launch.arguments import cluster_for
from ..kernel.launch.launch import Dim3, Launch
from .estimates import PREDICTIONS, Choice, Estimate
from .heap import Allocation, Heap
from .keep import Keeper

LAUNCH_STEPS, TOTAL_STEPS = 1_000_000_000, 5_000_000_000
"""Maximum warp instructions to run per launch and per program: one and five to ten minutes on two cores."""
_ALIGNED = 256
"""Bytes of memory in a row that a GPU looks up or moves at once, at most: further alignment makes no difference."""
OVERLAPS = LETS, WAITS = "PREEXIT", "ACQBULK"
"""Opcodes of `griddepcontrol.launch_dependents` and `.wait`."""
_POINTER_BYTES = 8


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


def shape_of(asked: Asked) -> tuple[object, ...]:
    """What two launches must share to be predicted alike."""
    return id(asked.code), asked.grid, asked.block, asked.cluster, asked.shared


def quiet_options(**chosen: object) -> Options:
    """Options of an analysis for its figures only."""
    return replace(Options(), models=("pipeline",), occupancies=range(0), findings=False, brief=True, **chosen)  # type: ignore[arg-type]


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


def places_of(asked: Asked, heap: Heap) -> list[tuple[int, ...]]:
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


def launch_of(asked: Asked, heap: Heap) -> Launch:
    """The launch with the program's memory, its allocations named after the parameters that point there."""
    kernel, data = asked.kernel, asked.parameters
    names: dict[int, str] = {}
    for ordinal, (held, _) in pointers(asked, heap).items():
        names.setdefault(held.start, f"{kernel.parameters[ordinal].name or f'arg{ordinal}'} ({held.name})")
    image = heap.image(asked.variables, names, asked.reach)
    cluster = cluster_for(kernel, asked.grid, None if asked.cluster == (1, 1, 1) else asked.cluster)
    return Launch(asked.grid, asked.block, scalars(kernel, data), asked.shared, memory=image, cluster=cluster)
