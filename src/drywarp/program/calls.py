"""What the calls of a program share: replies, the device's state, and the table of requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TypeVar

from ..hardware import Gpu
from ..kernel.kernel import Kernel
from ..support.records import dataclass
from . import properties as cuda
from .heap import Allocation, Heap
from .launches import Launches, Plan
from .result import ProcessRun
from .timeline import Timeline

Numbers = tuple[int, ...]


@dataclass(frozen=True)
class Answer:
    """The reply to one request: an error code of CUDA's, numbers, and bytes."""

    status: int = cuda.SUCCESS
    values: Numbers = ()
    data: bytes = b""


@dataclass
class Module:
    """A fat binary that the program registered; its kernels are read when the first of them is needed."""

    number: int
    data: bytes
    kernels: dict[str, Kernel] | None = None
    globals: Allocation | None = None
    constants: Allocation | None = None


@dataclass
class Function:
    """A kernel as the program knows it, by an address of its own; `dynamic_shared` is what it may ask for at most."""

    module: Module
    name: str
    dynamic_shared: int = 0


@dataclass
class Graph:
    """What a stream captured: requests with their numbers and bytes, in order."""

    steps: list[tuple[str, Numbers, bytes]] = field(default_factory=list)


class State:
    """The device of one process. `origin` names the program in messages; `said` collects what the answer reports."""

    def __init__(self, gpu: Gpu, plan: Plan, origin: str) -> None:
        self.gpu, self.origin = gpu, origin
        self.heap = Heap(cuda.memory_bytes(gpu), plan.check)
        self.timeline = Timeline(gpu)
        self.said = ProcessRun(self.timeline, checks=plan.check)
        self.launches = Launches(gpu, plan, self.said.notes)
        self.said.behind = self.launches.behind
        self.modules: list[Module] = []
        self.functions: dict[int, Function] = {}
        self.variables: dict[int, tuple[Module, str, int]] = {}
        self.graphs: dict[int, Graph] = {}
        self.capturing: dict[int, Graph] = {}
        self.limits = {0: 1024, 1: 1 << 20, 2: 8 << 20}
        """`cudaDeviceGetLimit`: stack size, and bytes for printf and malloc, as CUDA begins with."""
        self.pending = cuda.SUCCESS
        """The error of a launch that failed: the next call that waits for the device returns it, and all later ones."""
        self.objects_made = 0
        self.printed = ""
        """What device code has printed since the host last waited, as much of its end as the device keeps."""


Call = TypeVar("Call", bound=Callable[..., Answer])
REQUESTS: dict[str, str] = {}
"""The method that answers each request, by the request's name."""


def request(method: Call) -> Call:
    """Mark a method as the one that answers the request of its name, without the underscore."""
    REQUESTS[method.__name__[1:]] = method.__name__
    return method
