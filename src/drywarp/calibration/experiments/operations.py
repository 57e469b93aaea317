"""The chains of `kernels/chain.cu`: which instruction class each is about, and what its machine code must be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operation:
    """A macro of ``chain.cu`` and what one step of it is to become.

    `opcodes` are counts by opcode (``A|B``: either). `count` is how many instructions of the class a step has;
    `oldest` the first architecture that has it, `newest` the last on which it is of this class. Where other
    instructions of the step share the chain, `pure` is false: its λ alone can be told, and only if they run elsewhere.
    `others` is how many there may be that are not counted.
    """

    macro: str
    class_: str
    opcodes: tuple[tuple[str, int], ...]
    count: int = 1
    oldest: int = 75
    newest: int = 999
    pure: bool = True
    others: int = 0


OPERATIONS = (
    Operation("OP_FFMA", "fp32", (("FFMA", 1),)),
    Operation("OP_FMNMX", "fp32_compare", (("FMNMX", 2),), 2),
    Operation("OP_HALF", "fp16", (("HADD2|HFMA2", 1),)),
    Operation("OP_DFMA", "fp64", (("DFMA", 1),)),
    Operation("OP_INT", "int", (("LOP3", 1), ("IMNMX|VIMNMX", 1)), 2),
    Operation("OP_IMAD", "imad", (("IMAD", 1),)),
    Operation("OP_IMAD_HI", "imad_wide", (("IMAD", 1),)),
    Operation("OP_SHF", "shift", (("SHF", 1),)),
    Operation("OP_POPC", "bit", (("POPC", 1),)),
    Operation("OP_MUFU", "sfu", (("MUFU", 1),)),
    Operation("OP_FRND", "convert", (("FRND", 1),)),
    Operation("OP_F2FP", "convert_fast", (("F2FP", 1),), oldest=80),
    Operation("OP_SHFL", "shuffle", (("SHFL", 1),)),
    Operation("OP_REDUX", "reduce", (("REDUX", 1), ("MOV|IMAD", 1)), oldest=80, pure=False),
    Operation("OP_S2R", "special_register", (("S2R|S2UR", 1),), pure=False, others=1),
    Operation("OP_LDC", "constant_load", (("LDC", 1),)),
    Operation("OP_MEMBAR_CTA", "fence", (("MEMBAR", 1),), pure=False),
)
"""One for each class that a chain of arithmetic or of one lane's values can show."""


def for_architecture(arch: str) -> list[Operation]:
    """Those that an architecture such as ``sm_86`` has."""
    number = int("".join(c for c in arch if c.isdigit()))
    return [op for op in OPERATIONS if op.oldest <= number <= op.newest]
