"""`emulate`: run sampled blocks of a launch and hand back the profile and the buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import UsageError
from ..kernel.cfg import build_cfg
from ..kernel.kernel import Kernel
from ..kernel.launch import Buffer, Launch
from ..kernel.profile import Profile, SampledBlock
from .constants import ConstantBanks, build_banks
from .decode import Decoder
from .limits import Limits
from .machine import Machine
from .memory import DeviceMemory
from .program import Program, register_counts
from .recorder import Recorder
from .refine import explains, refine
from .sampling import Blocks, sample_blocks, stratified
from .scheduler import Budget, Scheduler

_WAVE_WARPS = 512
"""Warps that are emulated side by side: enough to fill NumPy's calls, few enough for the caches."""
_DATA_DEPENDENT_SAMPLES = 24
"""Interior blocks that are sampled where blocks differ from neighbour to neighbour."""
_STACK_LIMIT = 1 << 20
_STACK_MARGIN = 4096
"""Bytes of local memory beyond the kernel's own frame, for calls and recursion."""
DEFAULT_LIMITS = Limits()


@dataclass(frozen=True)
class Emulation:
    """A finished emulation: the profile, and the device memory as the sampled blocks left it."""

    profile: Profile
    constants: ConstantBanks
    memory: DeviceMemory

    def buffer(self, which: str | int) -> npt.NDArray[Any]:
        """A copy of a buffer after the run, by parameter name or argument ordinal.

        In the buffer's shape and type; bf16 as its bits in uint16. Raises UsageError for one that is
        no buffer of the launch.
        """
        for region in self.memory.regions:
            if region.buffer is not None and which in (region.name, region.ordinal):
                return self.memory.content(region).copy()
        known = ", ".join(r.name for r in self.memory.regions if r.buffer is not None)
        raise UsageError(f"no buffer {which!r} among the launch's arguments (there are: {known or 'none'})")


def emulate(
    kernel: Kernel,
    launch: Launch,
    *,
    blocks: Blocks = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Emulation:
    """Run a kernel's machine code on the CPU, for some blocks of the grid.

    `blocks` None takes a stratified sample (see `sampling` and `refine`), a number about so many, a list
    those linear indices, "all" the whole grid. Blocks run side by side in waves and share device memory.
    Raises EmulationError for a faulty access, a deadlock or a trap, UnsupportedInstructionError for
    an instruction that is not supported, EmulationLimitError past `limits`, UsageError where the
    launch does not fit the kernel.
    """
    first = _run(kernel, launch, sample_blocks(launch.grid, blocks), limits)
    if blocks is not None:
        return first

    def probe(linear: Sequence[int]) -> Profile:
        return _run(kernel, launch, [(number, 1.0) for number in linear], limits).profile

    cuts = refine(first.profile, probe)
    if cuts is None:
        return first
    if any(cuts):
        second = _run(kernel, launch, stratified(launch.grid, cuts), limits)
        if explains(cuts, second.profile):
            return second
    return _run(kernel, launch, stratified(launch.grid, interior=_DATA_DEPENDENT_SAMPLES), limits)


def _run(kernel: Kernel, launch: Launch, samples: Sequence[tuple[int, float]], limits: Limits) -> Emulation:
    """Run these blocks (linear index and weight) in a fresh memory."""
    memory = DeviceMemory(_buffers(kernel, launch), kernel.global_image, launch.seed)
    local_bytes = _local_bytes(kernel)
    banks = build_banks(kernel, launch, memory, local_bytes)
    recorder = Recorder()
    cfg = build_cfg(kernel.instructions, _indirect_targets(kernel))
    program = Program(Decoder(kernel, banks, memory, recorder), cfg)
    budget = Budget(limits)
    registers = register_counts(kernel.instructions)
    per_block = launch.warps_per_block
    guarded = np.zeros((len(samples), len(kernel.instructions)), np.int64)
    notes: set[str] = set()
    for start, linear in _waves([linear for linear, _ in samples], per_block):
        recorder.first_warp = start * per_block
        machine = Machine(kernel, launch, linear, registers, local_bytes)
        Scheduler(machine, program, recorder, budget).run()
        counts = machine.guarded.reshape(len(kernel.instructions), len(linear), per_block).sum(axis=2)
        guarded[start : start + len(linear)] = counts.T
        notes |= machine.notes
    paths, numbers = recorder.paths(len(samples) * per_block)
    sampled = tuple(
        SampledBlock(linear, launch.coordinates(linear), weight, tuple(numbers[n * per_block : (n + 1) * per_block]))
        for n, (linear, weight) in enumerate(samples)
    )
    profile = Profile(
        kernel=kernel,
        launch=launch,
        cfg=cfg,
        blocks=sampled,
        paths=paths,
        accesses=recorder.access_log(),
        thread_instructions=_thread_instructions(program, recorder, guarded, len(samples), per_block),
        allocations={region.name: (region.start, region.size) for region in memory.regions},
        steps=budget.warp_steps,
        notes=tuple(sorted(notes)),
    )
    return Emulation(profile, banks, memory)


def _local_bytes(kernel: Kernel) -> int:
    """Local memory per thread. A compiler that cannot bound a recursion states a size without meaning."""
    frame = kernel.resources.local_bytes
    return -(-((frame if frame < _STACK_LIMIT else 0) + _STACK_MARGIN) // 16) * 16


def _buffers(kernel: Kernel, launch: Launch) -> list[tuple[str, int, Buffer]]:
    """Name, ordinal and content of the launch's buffers."""
    names = [p.name or f"arg{n}" for n, p in enumerate(kernel.parameters)]
    names += [f"arg{n}" for n in range(len(names), len(launch.arguments))]
    return [(names[n], n, a) for n, a in enumerate(launch.arguments) if isinstance(a, Buffer)]


def _indirect_targets(kernel: Kernel) -> list[int]:
    """Entries of functions in the kernel's section, which computed calls may reach."""
    return [symbol.offset for symbol in kernel.symbols.values() if symbol.space == "code"]


def _waves(blocks: Sequence[int], warps_per_block: int) -> list[tuple[int, Sequence[int]]]:
    size = max(_WAVE_WARPS // warps_per_block, 1)
    return [(start, blocks[start : start + size]) for start in range(0, len(blocks), size)]


def _thread_instructions(
    program: Program, recorder: Recorder, guarded: npt.NDArray[np.int64], samples: int, warps_per_block: int
) -> npt.NDArray[np.int64]:
    """Lanes that executed each instruction with its guard true, shape (samples, instructions)."""
    counts = guarded
    per_warp = recorder.lane_counts(samples * warps_per_block, len(program.cfg.blocks))
    per_sample = per_warp.reshape(samples, warps_per_block, -1).sum(axis=1)
    for block in program.cfg.blocks:
        for index in range(block.start, block.end):
            if program.instructions[index].guard is None:
                counts[:, index] = per_sample[:, block.index]
    return counts
