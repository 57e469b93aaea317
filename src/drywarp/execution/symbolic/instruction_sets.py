"""The instruction set of a kernel, and what the static mode requires of one."""

from __future__ import annotations

from typing import Protocol

from ...errors import UsageError
from ...kernel.cfg import ControlFlowGraph, build_cfg
from ...kernel.kernel import Kernel
from . import amd, nvidia
from .words import Architecture, ControlWords, Walked


class InstructionSet(Protocol):
    """What a family of GPUs has in common."""

    def graph(self, kernel: Kernel) -> ControlFlowGraph:
        """The blocks of a kernel, including calls and returns."""

    def words(self, kernel: Kernel) -> ControlWords:
        """The elements of the kernel's control flow."""

    def dimensions(self, kernel: Kernel) -> int:
        """In how many dimensions the kernel numbers its threads."""

    def pointers(self, kernel: Kernel) -> frozenset[int]:
        """Offsets within the parameters of 64-bit words that the code uses as addresses."""

    def architecture(self, walked: Walked) -> Architecture:
        """The kernel's code for a walk."""


class _Nvidia:
    def graph(self, kernel: Kernel) -> ControlFlowGraph:
        entries = [symbol.offset for symbol in kernel.symbols.values() if symbol.space == "code"]
        return build_cfg(kernel.instructions, entries)

    def words(self, kernel: Kernel) -> ControlWords:
        return nvidia.NvidiaWords(kernel.instructions)

    def dimensions(self, kernel: Kernel) -> int:
        return nvidia.dimensions(kernel)

    def pointers(self, kernel: Kernel) -> frozenset[int]:
        return nvidia.pointers(kernel)

    architecture = staticmethod(nvidia.Nvidia)


class _Amd:
    def graph(self, kernel: Kernel) -> ControlFlowGraph:
        return build_cfg(kernel.instructions)

    def words(self, kernel: Kernel) -> ControlWords:
        return amd.AmdWords()

    def dimensions(self, kernel: Kernel) -> int:
        return amd.dimensions(kernel)

    def pointers(self, kernel: Kernel) -> frozenset[int]:
        return frozenset(p.offset for p in kernel.parameters if p.pointer)

    architecture = staticmethod(amd.Amd)


INSTRUCTION_SETS: dict[str, InstructionSet] = {"sm_": _Nvidia(), "gfx": _Amd()}
"""Instruction sets by prefix of the architecture name; a new one is one more entry."""


def instruction_set(kernel: Kernel) -> InstructionSet:
    """The instruction set of a kernel. Raises UsageError if the static mode does not support it."""
    for prefix, found in INSTRUCTION_SETS.items():
        if kernel.arch.startswith(prefix):
            return found
    known = ", ".join(f"{prefix}…" for prefix in INSTRUCTION_SETS)
    raise UsageError(f"{kernel.name}: no static mode for architecture {kernel.arch} (expected {known})")
