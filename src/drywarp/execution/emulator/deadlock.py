"""Deadlocks of spinning threads, detected by a state that recurs, and which kernels' blocks can differ at all.

The state is examined only while nothing but such loops runs, in bursts with growing distances, so a long loop that does
make progress costs little.
"""

from __future__ import annotations

import hashlib

from ...kernel.cfg import ControlFlowGraph, ends_block
from ...kernel.dataflow import Dataflow
from ...kernel.instruction import Constant, Instruction, Register, Special
from ...kernel.kernel import Kernel
from .constants import uses_grid_barrier
from .control import launches_kernels, needs_heap
from .groups import Groups
from .machine import Machine

PATIENCE = 2048
"""Steps inside spin loops before the first examination."""
_LOOKS = 256
"""Examinations per burst."""
_LATER = 8
"""Growth factor of the distance between bursts."""


class DeadlockWatch:
    """Watches one wave. A state that recurs will recur forever: it contains no clock.

    `since` is the step since which only such loops have run, `after` how many more steps pass before the state is
    examined.
    """

    def __init__(self, machine: Machine, groups: Groups) -> None:
        self._machine, self._groups = machine, groups
        self.since = 0
        self.after = PATIENCE
        self._seen: set[bytes] = set()

    def progress(self, step: int) -> None:
        """Note that code outside such a loop ran."""
        self.since = step
        if self._seen or self.after > PATIENCE:
            self.after = PATIENCE
            self._seen.clear()

    def certain(self, step: int) -> bool:
        """Whether no thread can make progress; to be called now and then."""
        if step - self.since < self.after:
            return False
        state = self._state()
        if state in self._seen:
            return True
        self._seen.add(state)
        if len(self._seen) == _LOOKS:
            self._seen.clear()
            self.after = _LATER * (step - self.since)
        return False

    def _state(self) -> bytes:
        machine, groups = self._machine, self._groups
        digest = hashlib.blake2b(digest_size=16)
        for array in (
            machine.registers, machine.uniform, machine.predicates, machine.uniform_predicates, machine.barriers,
            machine.live, machine.yielded, groups.pc, groups.mask, groups.state,
        ):  # fmt: skip
            digest.update(array.data)
        return digest.digest()


# Whether the paths of a kernel's blocks can differ at all, determined from its code alone.

_MOST_INSTRUCTIONS = 4000
"""Most instructions of a kernel that is analysed: following definitions through more does not pay."""
_ENDS = frozenset({"BRA", "EXIT", "KILL", "BSYNC", "WARPSYNC", "BAR", "BREAK", "YIELD", "NANOSLEEP"})
_COMPUTING = frozenset(
    "fp32 fp32_compare fp16 fp64 int imad shift move bit sfu convert convert_fast predicate vote shuffle reduce uniform"
    " constant_load special_register".split()
)
"""Classes of instructions whose result is a function of what they read."""
_SAME_FOR_ALL = ("SR_TID", "SR_LANEID", "SR_LTMASK", "SR_LEMASK", "SR_EQMASK", "SR_GTMASK", "SR_GEMASK", "SRZ")


def all_alike(instructions: tuple[Instruction, ...], cfg: ControlFlowGraph) -> bool:
    """Whether it is certain that every block takes the same paths.

    That is so if nothing that ends a basic block depends, directly or through what it is computed from, on the block
    index, on data loaded from memory, or on a clock. Indirect calls and jumps are not followed.
    """
    ends = [k for k, i in enumerate(instructions) if ends_block(i)]
    if len(instructions) > _MOST_INSTRUCTIONS or any(instructions[k].opcode not in _ENDS for k in ends):
        return False
    flow = Dataflow(instructions, cfg)
    pending = ends
    seen = set(pending)
    while pending:
        k = pending.pop()
        if instructions[k].opcode not in _ENDS and not _alike(instructions[k]):
            return False
        new = [producer for producer in flow.producers_of(k) if producer not in seen]
        seen.update(new)
        pending += new
    return True


def _alike(instruction: Instruction) -> bool:
    """Whether an instruction gives the same result in all blocks if it reads the same values."""
    if instruction.class_ not in _COMPUTING or instruction.opcode in ("LEPC", "QSPC", "USETMAXREG"):
        return False
    for operand in instruction.operands:
        special = isinstance(operand, Special) and operand.name.startswith("SR")
        if isinstance(operand, Special) and special and not operand.name.startswith(_SAME_FOR_ALL):
            return False
        if isinstance(operand, Constant) and isinstance(operand.bank_register, Register):
            return False
    return True


_PLAIN = ("load", "store", "copy")


def may_run_apart(kernel: Kernel) -> bool:
    """Whether blocks can only influence each other by plain loads and stores of global memory."""
    if needs_heap(kernel) or uses_grid_barrier(kernel) or launches_kernels(kernel):
        return False
    return all(_harmless(instruction) for instruction in kernel.instructions)


def _harmless(instruction: Instruction) -> bool:
    access = instruction.memory
    if access is None:
        return True
    if access.space in ("global", "generic"):
        return access.kind in _PLAIN
    return access.space in ("shared", "local", "constant") and not access.kind.startswith("bulk")
