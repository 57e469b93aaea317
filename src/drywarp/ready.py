"""What an analysis has in hand before any model is asked: what was asked for, and the kernel bound to a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .bound import BoundWorkload
from .emulator import Limits
from .emulator.sampling import Blocks
from .hardware import Gpu, Occupancy
from .kernel.kernel import Kernel
from .kernel.launch import Launch
from .kernel.measured import MeasuredKernel
from .kernel.profile import Profile
from .memory.behaviour import MemoryBehaviour
from .result import Analysis
from .static import StaticReport
from .workload import Workload

DEFAULT_MODELS = ("pipeline", "volkov", "roofline")
"""Models of an analysis; the first is the one that is believed."""


@dataclass(frozen=True)
class Options:
    """What an analysis takes besides the kernel, the GPU and the launch.

    `clock_mhz` None is the GPU file's boost clock; `scheduler` None its own policy; `blocks` None samples (see
    `drywarp.emulator`), and `confidence` says how closely where blocks differ. `occupancies` None spreads the curve
    over all that are possible. `on_stage` is told what is being done, for a display of progress. `occupancy_trace`
    asks for the number of active warps over time. `profile` is a profiler's export whose figures take the place of
    emulated ones; `memory` the mapper of accesses (see `drywarp.measured`), None: averaged where there is a
    profile, else emulated. `static` follows the code without running it (docs/static.md): what the launch leaves
    out is assumed; `trips` (turns by loop), `taken` (share by line) and `access` (pattern by line) steer that.
    `full_simulation` simulates every instruction of the share: no jumps over steady states, which change no number,
    and no extrapolation. `trace` keeps what every warp of one SM issued when, as so many events at most
    (`Analysis.trace`). `full_emulation` runs long loops to their ends (see `drywarp.long_loops`). `advise` adds
    advice to a finished answer (see `drywarp.advice`), with `advice` all of it, compiled again where need be, and
    predicted on `other_gpus`.
    `detail` asks for what a report shows beyond the figures (`drywarp.detail`), with so many events of the execution
    profile.
    """

    clock_mhz: float | None = None
    scheduler: str | None = None
    warm_l2: bool = False
    blocks: Blocks = None
    occupancies: Sequence[int] | None = None
    models: Sequence[str] = DEFAULT_MODELS
    limits: Limits = field(default_factory=Limits)
    on_stage: Callable[[str], None] = lambda stage: None
    occupancy_trace: bool = False
    profile: Path | None = None
    memory: str | None = None
    static: bool = False
    trips: Mapping[str, int] = field(default_factory=dict)
    taken: Mapping[str, float] = field(default_factory=dict)
    access: Mapping[str, str] = field(default_factory=dict)
    full_simulation: bool = False
    full_emulation: bool = False
    confidence: float | None = None
    trace: int | None = None
    advise: Callable[[BoundKernel, Analysis, Options], Analysis] | None = None
    advice: bool = False
    other_gpus: Sequence[str] = ()
    detail: int | None = None


@dataclass(frozen=True)
class BoundKernel:
    """A kernel with its launch, emulated, its memory accesses judged, and bound to a GPU: ready for models.

    `source` is the source text where it lies in no file; the times are seconds of wall time. `static` is
    what was assumed where nothing was emulated, `measured` what a profile says of this launch, where one was given.
    `notes` say what was decided before any model was asked; `tools` are versions of compilers besides drywarp's own.
    `again` binds the same kernel anew, with other values for some arguments of `api.bind_kernel`, and more `includes`.
    """

    kernel: Kernel
    launch: Launch
    gpu: Gpu
    fits: Occupancy
    profile: Profile
    workload: Workload
    behaviour: MemoryBehaviour
    bound: BoundWorkload
    source: str
    compile_s: float
    emulate_s: float
    memory_s: float
    static: StaticReport | None = None
    measured: MeasuredKernel | None = None
    notes: tuple[str, ...] = ()
    tools: Mapping[str, str] = field(default_factory=dict)
    again: Callable[..., BoundKernel] | None = None
