"""A device to measure on: it runs our kernels and reports how long each took, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from ...errors import DrywarpError
from ...kernel.cfg import build_cfg
from ...kernel.instruction import Instruction
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


# Checks that the compiler produced the intended code, and what its schedule adds to a chain of loads.

SPARE = 12
"""Instructions that a loop may need for itself: counting, comparing, constants."""


class WrongCodeError(DrywarpError):
    """A micro-benchmark was not compiled to the intended machine code."""


def loop_of(kernel: Kernel) -> list[Instruction]:
    """The instructions of the largest loop that holds no other, in order."""
    graph = build_cfg(kernel.instructions)
    outer = {loop.parent for loop in graph.loops}
    loops = [
        [kernel.instructions[i] for b in sorted(loop.blocks) for i in range(graph.blocks[b].start, graph.blocks[b].end)]
        for index, loop in enumerate(graph.loops)
        if index not in outer
    ]
    return max(loops, key=len, default=[])


def check_loop(kernel: Kernel, program: Program, wanted: Mapping[str, int], at_most: int | None = None) -> None:
    """Check that the loop has the wanted count of each opcode (``A|B``: of either) and little else.

    Raises WrongCodeError with the kernel, the architecture, what was expected and what was found. `at_most` is the most
    other instructions that the loop may have; None: what a loop needs for itself.
    """
    loop = loop_of(kernel)
    found = Counter(instruction.opcode for instruction in loop)
    rest = len(loop)
    for names, count in wanted.items():
        there = sum(found[name] for name in names.split("|"))
        # The loop's own counting may use the same opcode.
        if not count <= there <= count + SPARE // 4:
            seen = ", ".join(f"{number} {name}" for name, number in found.most_common(6)) or "no loop"
            raise WrongCodeError(
                f"{program} on {kernel.arch}: expected {count} {names.replace('|', ' or ')} in the loop, got {seen}"
            )
        rest -= there
    spare = SPARE if at_most is None else at_most
    if rest > spare:
        seen = ", ".join(f"{number} {name}" for name, number in found.most_common(6))
        raise WrongCodeError(f"{program} on {kernel.arch}: {rest} extra instructions in the loop: {seen}")


def waits_for_result(kernel: Kernel, opcodes: str) -> bool:
    """Whether these opcodes (``A|B``) in the loop set a scoreboard; otherwise their Λ is a scheduled distance."""
    chain = [i for i in loop_of(kernel) if i.opcode in opcodes.split("|")]
    return any(i.control.write_barrier is not None for i in chain)


def cycles_between_loads(kernel: Kernel, opcode: str) -> float:
    """Mean cycles from the wait for a load's result to the next load, by the compiler's schedule.

    In a chain where each load waits for the previous one, a step takes this much longer than Λ.
    """
    loop = loop_of(kernel)
    loads = [index for index, instruction in enumerate(loop) if instruction.opcode == opcode]
    gaps = [_gap(loop, a, b) for a, b in pairwise(loads)]
    return sum(gaps) / len(gaps)


def _gap(loop: Sequence[Instruction], load: int, following: int) -> int:
    slot = loop[load].control.write_barrier
    for index in range(load + 1, following + 1):
        if slot is not None and loop[index].control.wait_mask >> slot & 1:
            return sum(max(loop[i].control.stall, 1) for i in range(index, following))
    raise WrongCodeError(f"{loop[load].text}: no instruction before the next load waits for it")
