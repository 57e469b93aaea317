"""Which of Nsight Compute's pipes an instruction counts on: `smsp__inst_executed_pipe_*`.

Its class says so, as the GPU file assigns classes to pipes, but for reads of special registers: by published counters
of an RTX 2080 Ti those of the thread's own index count on the LSU pipe and those of the block's do not. Which pipe the
latter take is not known; they are left out, and so are the other registers that are alike in a whole warp.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..kernel.instruction import Instruction

PER_LANE = ("SR_TID", "SR_LANEID", "SR_LANEMASK", "SR_EQMASK", "SR_LTMASK", "SR_LEMASK", "SR_GTMASK", "SR_GEMASK")
"""Special registers that differ between the lanes of a warp. Counters settle SR_TID; the rest is taken to be alike."""


def pipe_of(instruction: Instruction, pipes: Mapping[str, str]) -> str | None:
    """The pipe of an instruction; None where it counts on none. `pipes` maps instruction class to pipe."""
    pipe = pipes.get(instruction.class_)
    if instruction.class_ == "special_register" and not (
        instruction.opcode == "S2R" and any(name in instruction.text for name in PER_LANE)
    ):
        return None
    return pipe
