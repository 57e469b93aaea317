"""A device to measure on: it runs our kernels and reports how long each took, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ...kernel.kernel import Kernel

TEMPLATES = Path(__file__).parent / "kernels"
ENTRY = "bench"
CLOCK_WORDS = 3
"""Words that each warp writes to the buffer `clocks`: SM, first and last clock."""


LATENCIES = "latencies"
"""The argument that receives the cycles of single accesses, as words of 32 bits; zeros are none."""


@dataclass(frozen=True, slots=True)
class Zeros:
    """A zeroed buffer of `nbytes` bytes."""

    nbytes: int


Value = int | Zeros | None
"""The value of a kernel parameter; None is a null pointer."""


@dataclass(frozen=True, slots=True)
class Program:
    """One of our kernels: a template of `kernels/` with its macros."""

    template: str
    defines: tuple[tuple[str, str], ...] = ()

    @property
    def path(self) -> Path:
        """The template's path."""
        return TEMPLATES / f"{self.template}.cu"

    def __str__(self) -> str:
        macros = ", ".join(f"{name}={value}" if value else name for name, value in self.defines)
        return f"{self.template}.cu" + (f" ({macros})" if macros else "")


@dataclass(frozen=True)
class Run:
    """A launch of one program: blocks, threads per block, arguments by name, dynamic shared memory in bytes.

    The device supplies the buffer `clocks` of every kernel.
    """

    program: Program
    grid: int
    block: int
    arguments: Mapping[str, Value]
    shared: int = 0

    @property
    def clock_bytes(self) -> int:
        """Bytes of the buffer to which the warps write their clocks."""
        return 8 * CLOCK_WORDS * self.grid * (self.block // 32)


@dataclass(frozen=True, slots=True)
class Timing:
    """One launch: cycles of the slowest SM, nanoseconds of the kernel, and the SM clock during the run in MHz."""

    cycles: float
    ns: float
    sm_mhz: float


@dataclass(frozen=True, slots=True)
class Watched:
    """One launch, warp by warp: the first and the last clock of each warp of one SM, counted from the first start.

    `latencies` are the cycles of the single accesses that the kernel timed, ascending (empty: it timed none).
    """

    warps: tuple[tuple[float, float], ...]
    latencies: tuple[float, ...] = ()


@dataclass(frozen=True)
class Attributes:
    """What a driver reports about a device: its name and limits, in bytes and MHz; `arch` is the compilation target."""

    name: str
    driver: str
    simulated: bool
    compute_capability: str
    arch: str
    sm_count: int
    max_warps_per_sm: int
    max_threads_per_block: int
    shared_bytes_per_block_optin: int
    shared_bytes_per_block_default: int
    l2_bytes: int
    clock_mhz: float
    memory_peak_gbs: float


class Device(Protocol):
    """What the experiments see of a real or simulated GPU."""

    attributes: Attributes

    def code(self, program: Program) -> Kernel:
        """The machine code of a program on this device. Raises CompileError."""
        ...

    def time(self, run: Run, repeats: int) -> Sequence[Timing]:
        """Launch `repeats` times, each with none of its data in the L2."""
        ...

    def watch(self, run: Run) -> Watched:
        """Launch once, with none of its data in the L2; an argument `latencies` receives the accesses' cycles."""
        ...
