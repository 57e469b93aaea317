"""What is measured on: a device runs kernels of ours and says how long each took; it tells nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..kernel.kernel import Kernel

TEMPLATES = Path(__file__).parent / "kernels"
ENTRY = "bench"
CLOCK_WORDS = 3
"""Words that each warp leaves in the buffer `clocks`: SM, first and last clock."""


@dataclass(frozen=True, slots=True)
class Zeros:
    """A buffer of so many bytes of zeros."""

    nbytes: int


Value = int | Zeros | None
"""What a kernel's parameter may be given; None is a null pointer."""


@dataclass(frozen=True, slots=True)
class Program:
    """One of our kernels: a template of `kernels/` with its macros."""

    template: str
    defines: tuple[tuple[str, str], ...] = ()

    @property
    def path(self) -> Path:
        """Where the template lies."""
        return TEMPLATES / f"{self.template}.cu"

    def __str__(self) -> str:
        macros = ", ".join(f"{name}={value}" if value else name for name, value in self.defines)
        return f"{self.template}.cu" + (f" ({macros})" if macros else "")


@dataclass(frozen=True)
class Run:
    """A launch of one program: blocks, threads of a block, arguments by name, dynamic shared memory in bytes.

    The buffer `clocks` of every kernel is the device's to give.
    """

    program: Program
    grid: int
    block: int
    arguments: Mapping[str, Value]
    shared: int = 0

    @property
    def clock_bytes(self) -> int:
        """Bytes of the buffer in which the warps leave their clocks."""
        return 8 * CLOCK_WORDS * self.grid * (self.block // 32)


@dataclass(frozen=True, slots=True)
class Timing:
    """One launch: cycles of the SM that took longest, nanoseconds of the kernel, and the SM clock meanwhile in MHz."""

    cycles: float
    ns: float
    sm_mhz: float


@dataclass(frozen=True)
class Attributes:
    """What a driver states of a device: its name and its limits. Bytes and MHz; `arch` is what it takes code for."""

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
    """What the experiments see of a card or of a simulation."""

    attributes: Attributes

    def code(self, program: Program) -> Kernel:
        """The machine code of a program on this device. Raises CompileError."""
        ...

    def time(self, run: Run, repeats: int) -> Sequence[Timing]:
        """Launch `repeats` times, each with nothing of its data in the L2."""
        ...
