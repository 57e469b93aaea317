"""Machine code written by hand: lines of SASS made into a listing, or into instructions."""

from __future__ import annotations

from collections.abc import Sequence

from drywarp.frontends.binary.sass import parse_listing
from drywarp.kernel.instruction import Instruction

NO_BARRIERS = 7 << 110 | 7 << 113
"""Control bits of an instruction that sets no scoreboard."""


def control(stall: int = 1, write: int = 7, read: int = 7, waits: Sequence[int] = (), reuse: int = 0) -> int:
    """The control bits of an encoding."""
    mask = sum(1 << board for board in waits)
    return stall << 105 | write << 110 | read << 113 | mask << 116 | reuse << 122


def listing(*lines: str | tuple[str, int], name: str = "k") -> str:
    """A listing of one section; a line is a label (`.L_x_0:`), a comment (`//## …`), or an instruction.

    An instruction with an encoding of its own is a pair.
    """
    text = [f'\t.section\t.text.{name},"ax",@progbits', f"{name}:"]
    pc = 0
    for line in lines:
        code, encoding = line if isinstance(line, tuple) else (line, NO_BARRIERS)
        if code.endswith(":") or code.startswith("//"):
            text.append(code)
            continue
        low, high = encoding & (1 << 64) - 1, encoding >> 64
        text.append(f"        /*{pc:04x}*/                   {code} ;  /* 0x{low:016x} */")
        text.append(f"                                              /* 0x{high:016x} */")
        pc += 16
    return "\n".join(text)


def code(*lines: str | tuple[str, int]) -> tuple[Instruction, ...]:
    """The instructions of such a listing."""
    return parse_listing(listing(*lines))["k"].instructions
