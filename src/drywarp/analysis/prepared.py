"""A prepared launch: executed, its accesses served, its nodes given their costs on a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..execution.symbolic import StaticReport
from ..hardware import Gpu, Occupancy
from ..kernel.kernel import Kernel
from ..kernel.launch.launch import Launch
from ..kernel.profile import MeasuredKernel, Profile
from ..memory.behaviour import MemoryBehaviour
from ..workload.build import Workload
from ..workload.cost import CostedWorkload
from .request import LaunchRequest


@dataclass(frozen=True)
class Prepared:
    """What `prepare.cost` returns: the starting point of every model, band, detail and what-if.

    `source` is the source text if it is not in a file; times are wall time in seconds. `static` holds the assumptions
    if nothing was emulated, `measured` the profile of this launch, if one was given. `notes` state what was decided
    before any model ran; `tools` are the versions of further compilers; `compiled` is whether the machine code was
    compiled from CUDA C++ here. `request` is what it was made from; None for existing machine code.
    """

    kernel: Kernel
    launch: Launch
    gpu: Gpu
    fits: Occupancy
    profile: Profile
    workload: Workload
    behaviour: MemoryBehaviour
    costed: CostedWorkload
    source: str
    compile_s: float
    emulate_s: float
    memory_s: float
    static: StaticReport | None = None
    measured: MeasuredKernel | None = None
    notes: tuple[str, ...] = ()
    tools: Mapping[str, str] = field(default_factory=dict)
    compiled: bool = False
    request: LaunchRequest | None = None
