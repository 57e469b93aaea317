"""What the calls of a program share: replies, the device's state, and the table of requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from ..hardware import Gpu
from ..kernel.kernel import Kernel
from ..support.folders import packaged_rows
from . import properties as cuda
from .asked import Outcome, Plan
from .deferred import Deferred, Step
from .heap import Allocation, Heap
from .launches import Launches
from .result import Fault, LaunchDone, ProcessRun
from .timeline import Timeline

Numbers = tuple[int, ...]
_PRINTF_BYTES = 1
"""`cudaLimitPrintfFifoSize`."""


@dataclass(frozen=True)
class Answer:
    """The reply to one request: an error code of CUDA's, numbers, and bytes."""

    status: int = cuda.SUCCESS
    values: Numbers = ()
    data: bytes = b""


@dataclass
class Module:
    """A fat binary that the program registered; its kernels are read when one is first needed."""

    number: int
    data: bytes
    kernels: dict[str, Kernel] | None = None
    globals: dict[int, Allocation] = field(default_factory=dict)
    constants: dict[int, Allocation] = field(default_factory=dict)
    """Its variables on each device where it is used."""


@dataclass
class Function:
    """A kernel as the program knows it, by its own address; `dynamic_shared` is the most that it may ask for."""

    module: Module
    name: str
    dynamic_shared: int = 0


@dataclass
class Graph:
    """The requests that a stream captured, with their numbers and bytes, in order."""

    steps: list[tuple[str, Numbers, bytes]] = field(default_factory=list)
    handle: int = 0


class State:
    """The devices of one process. `origin` names the program in messages; `said` collects what the answer reports."""

    def __init__(self, gpu: Gpu, plan: Plan, origin: str) -> None:
        self.gpu, self.origin = gpu, origin
        self.heap = Heap(cuda.memory_bytes(gpu), plan.check, plan.devices)
        self.timeline = Timeline(gpu, plan.devices)
        self.peers: set[tuple[int, int]] = set()
        """Pairs of devices: kernels of the first may access the memory of the second."""
        self.said = ProcessRun(self.timeline, checks=plan.check)
        self.launches = Launches(gpu, plan, self.said.notes)
        self.deferred = Deferred(self.heap, self.launches, self._computed) if plan.sampled else None
        self.said.behind = self.launches.behind
        self.modules: list[Module] = []
        self.functions: dict[int, Function] = {}
        self.variables: dict[int, tuple[Module, str, int]] = {}
        self.graphs: dict[int, Graph] = {}
        self.capturing: dict[int, Graph] = {}
        self.limits = {0: 1024, 1: 1 << 20, 2: 8 << 20}
        """`cudaDeviceGetLimit`: stack size, and bytes for printf and malloc; CUDA's defaults at first."""
        self.failed: dict[int, int] = {}
        """By device, the error of a failed launch: the next synchronizing call and all later ones return it."""
        self.objects_made = 0
        self.printed = ""
        """Output of device code since the host last synchronized: as much of its end as the device keeps."""

    def _computed(self, step: Step, outcome: Outcome) -> None:
        """A deferred launch has been computed."""
        done = self.said.launches[step.place]
        self.said.launches[step.place] = replace(done, outcome=outcome)
        self._printed(outcome.printed)
        self._failed(done, outcome)

    def _printed(self, text: str) -> None:
        self.printed = (self.printed + text)[-self.limits[_PRINTF_BYTES] :]

    def _failed(self, done: LaunchDone, outcome: Outcome) -> None:
        """Record the error of a launch, if it had one."""
        if outcome.fault is not None:
            self.failed[done.device] = cuda.code_of(str(outcome.fault))
            self.said.faults.append(Fault(done.number, done.kernel, str(outcome.fault)))

    @property
    def device(self) -> int:
        """The device of the calling thread."""
        return self.timeline.device


Call = TypeVar("Call", bound=Callable[..., Answer])
REQUESTS: dict[str, str] = {}
"""The method that answers each request, by the request's name."""


def request(method: Call) -> Call:
    """Mark a method as the handler of the request with its name, without the underscore."""
    REQUESTS[method.__name__[1:]] = method.__name__
    return method


@cache
def _errors() -> dict[int, tuple[str, str]]:
    rows = packaged_rows(Path(__file__).with_name("errors.csv"))
    return {int(row["code"]): (row["name"], row["text"]) for row in rows}


def error_text(code: int) -> tuple[str, str]:
    """CUDA's name and description of an error code."""
    return _errors().get(code, (f"cudaError {code}", "unrecognized error code"))
