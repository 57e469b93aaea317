"""Whether the paths of a kernel's blocks can differ at all, judged from its code alone."""

from __future__ import annotations

from ..kernel.cfg import ControlFlowGraph, ends_block
from ..kernel.dataflow import Dataflow
from ..kernel.instruction import Instruction
from ..kernel.operand import Constant, Register, Special

_MOST_INSTRUCTIONS = 4000
"""Instructions of a kernel that is looked at: following definitions through more takes longer than it is worth."""
_ENDS = frozenset({"BRA", "EXIT", "KILL", "BSYNC", "WARPSYNC", "BAR", "BREAK", "YIELD", "NANOSLEEP"})
_COMPUTING = frozenset(
    "fp32 fp32_compare fp16 fp64 int imad shift move bit sfu convert convert_fast predicate vote shuffle reduce uniform"
    " constant_load special_register".split()
)
"""Classes of instructions that give a function of what they read."""
_SAME_FOR_ALL = ("SR_TID", "SR_LANEID", "SR_LTMASK", "SR_LEMASK", "SR_EQMASK", "SR_GTMASK", "SR_GEMASK", "SRZ")


def all_alike(instructions: tuple[Instruction, ...], cfg: ControlFlowGraph) -> bool:
    """Whether it is certain that every block takes the same paths.

    So it is where nothing that ends a basic block depends, through whatever it is computed from, on the
    block index, on what was loaded from memory, or on a clock; calls and jumps by address are not followed.
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
    """Whether an instruction gives the same in all blocks where it reads the same."""
    if instruction.class_ not in _COMPUTING or instruction.opcode in ("LEPC", "QSPC", "USETMAXREG"):
        return False
    for operand in instruction.operands:
        special = isinstance(operand, Special) and operand.name.startswith("SR")
        if isinstance(operand, Special) and special and not operand.name.startswith(_SAME_FOR_ALL):
            return False
        if isinstance(operand, Constant) and isinstance(operand.bank_register, Register):
            return False
    return True
