"""An execution with the kernel's words: what each instruction is called, where it stands, and which pipe it takes."""

from __future__ import annotations

from dataclasses import dataclass

from .bound import BoundWorkload, Subsystem
from .kernel.instruction import Instruction
from .kernel.kernel import Kernel
from .pipeline.execution import Execution, execution

DEFAULT_EVENTS = 500_000
"""Events of a trace unless told otherwise: some 60 MB of JSON."""


@dataclass(frozen=True, slots=True)
class TracedInstruction:
    """An instruction's opcode with modifiers, its text, and its source line (empty file and 0: none)."""

    opcode: str
    text: str
    file: str
    line: int


@dataclass(frozen=True)
class ExecutionTrace:
    """An execution; `instructions` has the words of each of its nodes, `notes` what was left out."""

    execution: Execution
    instructions: tuple[TracedInstruction, ...]
    subsystems: tuple[Subsystem, ...]
    notes: tuple[str, ...]


def trace_execution(kernel: Kernel, workload: BoundWorkload, most_events: int) -> ExecutionTrace:
    """Simulate a launch once more and keep what its warps did, no more than `most_events`."""
    found = execution(workload, most_events)
    words = tuple(_words(kernel.instructions[node.instruction]) for node in found.nodes)
    return ExecutionTrace(found, words, workload.subsystems, tuple(_notes(found)))


def _words(instruction: Instruction) -> TracedInstruction:
    place = instruction.source
    file, line = (place.file, place.line) if place else ("", 0)
    return TracedInstruction(instruction.full_opcode, instruction.text, file, line)


def _notes(found: Execution) -> list[str]:
    notes = []
    if found.blocks < found.of:
        notes.append(f"the trace is that of the SM's first {found.blocks} of {found.of} blocks, simulated alone")
    kept = len(found.issue)
    if kept < found.issued:
        notes.append(
            f"the trace ends after {kept:,} of {found.issued:,} warp instructions, {found.end / found.total:.0%} "
            "of the time (--events allows more)"
        )
    return notes
