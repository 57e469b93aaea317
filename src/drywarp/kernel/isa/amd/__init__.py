"""The instruction set of AMD's GCN and CDNA GPUs, as far as package `kernel` needs it.

AMD instructions are recognised by their lower-case opcodes (``v_add_f32``).
"""


def is_amd(opcode: str) -> bool:
    """Whether an opcode is one of AMD's."""
    return opcode[:1].islower()
