"""The instruction set of a kernel, and what the static mode requires of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...errors import UsageError
from ...kernel.cfg import ControlFlowGraph, build_cfg
from ...kernel.kernel import Kernel
from . import amd, nvidia
from .words import Architecture, ControlWords, Walked


@dataclass(frozen=True)
class InstructionSet:
    """What a family of GPUs has in common.

    `graph` gives the blocks of a kernel, including calls and returns; `words` the elements of its control flow;
    `dimensions` in how many dimensions it numbers its threads; `pointers` the offsets within the parameters of 64-bit
    words that the code uses as addresses; `architecture` the kernel's code for a walk.
    """

    graph: Callable[[Kernel], ControlFlowGraph]
    words: Callable[[Kernel], ControlWords]
    dimensions: Callable[[Kernel], int]
    pointers: Callable[[Kernel], frozenset[int]]
    architecture: Callable[[Walked], Architecture]


INSTRUCTION_SETS = {
    "sm_": InstructionSet(
        lambda kernel: build_cfg(kernel.instructions, kernel.code_entries),
        lambda kernel: nvidia.NvidiaWords(kernel.instructions),
        nvidia.dimensions,
        nvidia.pointers,
        nvidia.Nvidia,
    ),
    "gfx": InstructionSet(
        lambda kernel: build_cfg(kernel.instructions),
        lambda kernel: amd.AmdWords(),
        amd.dimensions,
        lambda kernel: frozenset(p.offset for p in kernel.parameters if p.pointer),
        amd.Amd,
    ),
}
"""Instruction sets by prefix of the architecture name; a new one is one more entry."""


def instruction_set(kernel: Kernel) -> InstructionSet:
    """The instruction set of a kernel. Raises UsageError if the static mode does not support it."""
    for prefix, found in INSTRUCTION_SETS.items():
        if kernel.arch.startswith(prefix):
            return found
    known = ", ".join(f"{prefix}…" for prefix in INSTRUCTION_SETS)
    raise UsageError(f"{kernel.name}: no static mode for architecture {kernel.arch} (expected {known})")
