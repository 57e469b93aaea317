"""Operands of a machine instruction, as plain data.

An operand never carries its width: that follows from the opcode (a 64-bit source printed as `R4`
is the pair R4, R5).
"""

from __future__ import annotations

from dataclasses import dataclass

RZ = 255
"""Index of the register that reads as zero and drops writes."""
URZ = 255
"""Index that we give to the uniform zero register, whatever number the architecture uses."""
PT = 7
"""Index of the predicate that is always true."""


@dataclass(frozen=True, slots=True)
class Register:
    """`R7`, `-R7`, `|R7|`, `~R7`, `R7.H1_H1`, `UR4`; index 255 is the zero register."""

    index: int
    uniform: bool = False
    negate: bool = False
    absolute: bool = False
    invert: bool = False
    select: str = ""
    """Part selector or other suffix but `.reuse`: `H0_H0`, `B1`, `SIGN`, `F32`, or ``""``."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """`P0`, `!P0`, `UP3`, `PT`; index 7 is the true predicate. `PR`, all of them, has index -1."""

    index: int
    uniform: bool = False
    negate: bool = False


@dataclass(frozen=True, slots=True)
class Immediate:
    """A number in the instruction. `value` is an int for hexadecimal text, else a float.

    Two numbers printed for a packed half immediate become two operands. `text` keeps the spelling
    (`+INF`, `-QNAN`), from which float opcodes take the exact bits.
    """

    value: int | float
    text: str


@dataclass(frozen=True, slots=True)
class Constant:
    """`c[bank][offset]`, `c[bank][R4+offset]`, `c[bank][UR4+offset]`, `cx[UR4][offset]`.

    `bank_register` is the uniform register of a bindless bank, else None.
    """

    bank: int
    offset: int
    register: Register | None = None
    bank_register: Register | None = None
    negate: bool = False
    absolute: bool = False
    invert: bool = False
    select: str = ""


@dataclass(frozen=True, slots=True)
class Address:
    """A memory operand: `[R2.64+UR4+0x10]`, `[R0.X4+0x100]`, `desc[UR4][R2.64]`, `gdesc[UR8].tnspB`.

    The address is base·scale + uniform + offset. `base_wide` and `uniform_wide` say that the text
    marks a 64-bit pair; `base_unsigned32` that a 32-bit base is zero-extended. `symbol` names a
    relocation whose value belongs into the offset. `marks` are the suffixes of a matrix descriptor.
    """

    base: Register | None = None
    base_wide: bool = False
    base_unsigned32: bool = False
    scale: int = 1
    uniform: Register | None = None
    uniform_wide: bool = False
    offset: int = 0
    descriptor: Register | None = None
    symbol: str = ""
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Label:
    """A place in the code: `target` is the byte offset in the kernel's section, -1 if not known."""

    name: str
    target: int


@dataclass(frozen=True, slots=True)
class Special:
    """Any other name: `SR_TID.X`, `B0` (convergence barrier), `SB0` (scoreboard), `{4,3}`."""

    name: str


@dataclass(frozen=True, slots=True)
class RegisterRange:
    """Registers of an AMD GPU: `v7`, `s[4:5]`, `a[0:15]`, `vcc`, `exec_lo`, `-v3`, `|v3|`.

    `file` is ``v``, ``s``, ``a`` or a special register's name without ``_lo`` and ``_hi`` (``vcc``, ``exec``,
    ``m0``, ``scc``, ``flat_scratch`` …); `count` registers from `index` on.
    """

    file: str
    index: int
    count: int = 1
    negate: bool = False
    absolute: bool = False


Operand = Register | Predicate | Immediate | Constant | Address | Label | Special | RegisterRange
