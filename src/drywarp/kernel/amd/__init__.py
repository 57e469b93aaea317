"""The instruction set of AMD's GCN and CDNA GPUs, as far as the words of `kernel` go.

An AMD instruction is told by its opcode, which is written in lower case (``v_add_f32``).
"""


def is_amd(opcode: str) -> bool:
    """Whether an opcode is one of AMD's."""
    return opcode[:1].islower()
