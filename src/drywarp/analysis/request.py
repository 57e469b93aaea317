"""What a user asks for: a launch of a kernel on a GPU, and how to execute, simulate and report it.

Defined once: the command line, the Python functions, rows, sweeps, the page and the tuners build these values and pass
them on unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..execution.emulator.sampling import Blocks, Limits
from ..frontends.cuda import CudaOptions
from ..hardware import Gpu, load_gpu
from .settle import Block, Grid, evaluated

DEFAULT_MODELS = ("pipeline", "volkov", "roofline")
"""Models of an analysis; the first is the primary one."""

COMPILER = ("defines", "includes", "std", "max_registers", "compiler_options")
"""Keywords that concern compilation."""


@dataclass(frozen=True)
class LaunchRequest:
    """One launch of one kernel on one GPU.

    `source` is a path to a file with a kernel, source text (any string with a line break or a brace), or a kernel as a
    Python object (docs/inputs.md). The file's launch comment supplies fields that are None. `args` and `constants` map
    names to NumPy arrays, numbers, texts such as ``"f32[1024]:random"``, or functions that return one of these from the
    mapping of the other arguments; `shared` is dynamic shared memory in bytes; `cluster` is the thread block cluster in
    blocks; `config` selects a configuration of an autotuned kernel: a number, ``"best"``, or ``"best:N"`` of N evenly
    spaced ones.
    """

    source: object
    gpu: str | Path | Gpu = "a100"
    entry: str | None = None
    grid: Grid = None
    block: Block = None
    args: Mapping[str, Any] | None = None
    shared: int | None = None
    cluster: Block = None
    constants: Mapping[str, Any] | None = None
    config: int | str | None = None
    compiler: CudaOptions = field(default_factory=CudaOptions)

    @classmethod
    def of(cls, source: object, **stated: Any) -> LaunchRequest:
        """A request from the keywords that `drywarp.analyze` takes. Raises UsageError for any other."""
        known = {one.name for one in fields(cls)} - {"source", "compiler"}
        if unknown := sorted(set(stated) - known - set(COMPILER)):
            raise UsageError(f"unknown argument {unknown[0]!r} (expected {', '.join([*sorted(known), *COMPILER])})")
        compiler = {name: stated.pop(name) for name in COMPILER if name in stated}
        for name in ("includes", "compiler_options"):
            compiler[name] = tuple(compiler.get(name) or ())
        stated |= {name: evaluated(stated.get(name)) for name in ("args", "constants")}
        return cls(source, compiler=CudaOptions(**compiler), **stated)

    def changed(self, **changes: Any) -> LaunchRequest:
        """The request with some keywords changed; `includes` and `compiler_options` are appended."""
        compiler = {name: changes.pop(name) for name in COMPILER if name in changes}
        for name in {"includes", "compiler_options"} & compiler.keys():
            compiler[name] = (*getattr(self.compiler, name), *compiler[name])
        return replace(self, compiler=replace(self.compiler, **compiler), **changes)

    @property
    def machine(self) -> Gpu:
        """The GPU. Raises UsageError or InputFileError if there is no such GPU or its file is unusable."""
        return self.gpu if isinstance(self.gpu, Gpu) else load_gpu(str(self.gpu))


@dataclass(frozen=True)
class Options:
    """All options of an analysis.

    The state of the GPU: `clock_mhz` of the SMs is in MHz, or ``"base"``, ``"boost"`` or ``"highest"`` of its file
    (None: boost), `scheduler` a policy (None: its own); `warm_l2` is whether a run warmed the L2.

    How much is executed: `blocks` None samples blocks (see `drywarp.execution.emulator`); `confidence` sets how closely
    if blocks differ. `full_emulation` runs long loops to the end (see `drywarp.execution.long_loops`). `fall_back`
    permits an answer without data past the limits (see `may_be_followed`). `static` follows the code without running it
    (docs/static.md), and assumes what the launch omits; `trips` (iterations by loop), `taken` (share by line) and
    `access` (pattern by line) are hints.

    What is measured: `profile` is a profiler's export whose values override emulated ones. `memory` is how accesses are
    modelled (see `drywarp.analysis.measured`); None: averaged if there is a profile.

    Which `models` run, the primary one first, and at which `occupancies` (None: spread over all possible ones).
    `full_simulation` simulates every instruction of the SM's share: no skipping of steady states (which changes no
    number) and no extrapolation. `occupancy_trace` requests the number of active warps over time.

    What an answer includes beyond its figures. `findings`: what costs time, and the gain of fixing it. `advice`: all
    what-ifs, with kernels recompiled where necessary and predicted on `other_gpus`. `trace` records what every warp of
    one SM issued when, up to this many events. `detail` is what the HTML report shows, with this many events of the
    execution profile. `compare_to` names GPUs on which the same launch is predicted beside it, each at its own boost
    clock. `brief` leaves out the confidence interval, and what warps wait for.

    `on_stage` is called with the name of each stage, to display progress.
    """

    clock_mhz: float | str | None = None
    scheduler: str | None = None
    warm_l2: bool = False

    blocks: Blocks = None
    confidence: float | None = None
    limits: Limits = field(default_factory=Limits)
    full_emulation: bool = False
    fall_back: bool = True
    static: bool = False
    trips: Mapping[str, int] = field(default_factory=dict)
    taken: Mapping[str, float] = field(default_factory=dict)
    access: Mapping[str, str] = field(default_factory=dict)

    profile: Path | None = None
    memory: str | None = None

    models: Sequence[str] = DEFAULT_MODELS
    occupancies: Sequence[int] | None = None
    full_simulation: bool = False
    occupancy_trace: bool = False

    findings: bool = True
    advice: bool = False
    other_gpus: Sequence[str] = ()
    trace: int | None = None
    detail: int | None = None
    compare_to: Sequence[str | Path | Gpu] = ()
    brief: bool = False

    on_stage: Callable[[str], None] = lambda stage: None
