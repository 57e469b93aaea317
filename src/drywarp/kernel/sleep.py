"""How long `__nanosleep` makes a warp sleep."""

from __future__ import annotations

from .instruction import Instruction
from .kernel import Kernel
from .launch import Launch, Scalar
from .operand import RZ, Constant, Immediate, Register

_WORD = 4


def sleeps_of(kernel: Kernel, launch: Launch) -> dict[int, float | None]:
    """Nanoseconds that each `__nanosleep` asks for, by instruction; None where neither code nor arguments tell.

    The hardware may take any time up to twice as long, and no time at all (CUDA C++ Programming Guide).
    """
    sleeping = {k: i for k, i in enumerate(kernel.instructions) if i.opcode == "NANOSLEEP" and i.operands}
    return {k: _asked(kernel, launch, i) for k, i in sleeping.items() if "SYNCS" not in i.modifiers}


def _asked(kernel: Kernel, launch: Launch, instruction: Instruction) -> float | None:
    operand = instruction.operands[-1]
    if isinstance(operand, Immediate):
        return float(operand.value)
    if isinstance(operand, Register) and operand.index == RZ:
        return 0.0
    if isinstance(operand, Constant) and operand.bank == 0 and operand.register is None:
        for parameter, value in zip(kernel.parameters, launch.arguments, strict=True):
            there = kernel.parameter_base + parameter.offset == operand.offset
            if there and isinstance(value, Scalar) and len(value.data) == _WORD:
                return float(int.from_bytes(value.data, "little"))
    return None
