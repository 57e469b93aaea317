"""One machine instruction: its opcode, its operands, and the compiler's schedule for it."""

from __future__ import annotations

from dataclasses import dataclass

# Operands of a machine instruction, as plain data.
#
# An operand does not carry its width, which follows from the opcode (a 64-bit source printed as `R4` is the pair
# R4, R5).

RZ = 255
"""Index of the register that reads as zero and discards writes."""
URZ = 255
"""drywarp's index of the uniform zero register, whatever number the architecture uses."""
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
    """Part selector or other suffix except `.reuse`: `H0_H0`, `B1`, `SIGN`, `F32`, or ``""``."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """`P0`, `!P0`, `UP3`, `PT`; index 7 is the true predicate. `PR`, all of them, has index -1."""

    index: int
    uniform: bool = False
    negate: bool = False


@dataclass(frozen=True, slots=True)
class Immediate:
    """A number in the instruction. `value` is an int for hexadecimal text, else a float.

    The two numbers printed for a packed half immediate become two operands. `text` keeps the spelling (`+INF`,
    `-QNAN`), which gives float opcodes the exact bits.
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

    The address is base·scale + uniform + offset. `base_wide` and `uniform_wide` are set if the text marks a 64-bit
    pair, `base_unsigned32` if a 32-bit base is zero-extended. `symbol` names a relocation whose value is added to the
    offset. `marks` are the suffixes of a matrix descriptor.
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
    """A code label: `target` is the byte offset in the kernel's section, -1 if unknown."""

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


CONTROL_SHIFT = 105
"""Position of the control bits in a 128-bit encoding; above them are only reserved bits."""


@dataclass(frozen=True, slots=True)
class ControlBits:
    """The compiler's scheduling bits in a 128-bit instruction (sm_70 and later).

    The warp's next instruction may issue after `stall` cycles. `write_barrier` (0..5, or None) is the scoreboard that
    is released when the result is available, `read_barrier` the one released when the operands have been read.
    `wait_mask` has bit b set if the instruction waits for scoreboard b. `yield_hint` is the raw bit; `reuse` are the
    operand-cache bits.
    """

    stall: int
    yield_hint: bool
    write_barrier: int | None
    read_barrier: int | None
    wait_mask: int
    reuse: int

    @classmethod
    def decode(cls, encoding: int) -> ControlBits:
        """Extract the control bits from a 128-bit encoding (bits 105 to 125)."""
        write, read = (encoding >> 110) & 7, (encoding >> 113) & 7
        return cls(
            stall=(encoding >> 105) & 15,
            yield_hint=bool((encoding >> 109) & 1),
            write_barrier=None if write == 7 else write,
            read_barrier=None if read == 7 else read,
            wait_mask=(encoding >> 116) & 63,
            reuse=(encoding >> 122) & 15,
        )


@dataclass(frozen=True, slots=True)
class Counting:
    """The effect of an AMD instruction on its warp's waitcnt counters of outstanding accesses.

    `raises` names the counters (``vmcnt``, ``lgkmcnt``, …) that include the instruction until its result is available;
    `waits` are pairs (counter, n): the warp continues once at most n accesses are outstanding.
    """

    raises: tuple[str, ...] = ()
    waits: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A source location; `line` counts from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """How an instruction accesses memory.

    `space` is one of ``global``, ``shared``, ``local``, ``generic``, ``constant``, ``texture``. `kind` is one of
    ``load``, ``store``, ``atomic``, ``reduction`` (an atomic without a result) or ``copy`` (global to shared), or
    ``bulk_load``, ``bulk_store`` or ``bulk_reduction`` if the copy engine moves a whole box of data between shared and
    global memory. `width` is bytes per lane; in a bulk copy's record, per column.
    """

    space: str
    kind: str
    width: int


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a kernel's section.

    `pc` is its byte offset, `opcode` the base name, `modifiers` the dotted suffixes in order (`LDG.E.64` is opcode
    ``LDG`` with modifiers ``("E", "64")``), and `guard` its predicate. `class_` is its instruction class (see
    `drywarp.kernel.isa.nvidia.opcodes`).

    AMD instructions have no control bits: `control` then holds the issue slots that the ISA requires before the warp's
    next instruction, and `counting` its effect on the waitcnt counters. The opcode is the mnemonic without the encoding
    suffix; the modifiers are that suffix and everything after the operands.
    """

    pc: int
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Predicate | None
    class_: str
    memory: MemoryAccess | None
    control: ControlBits
    source: SourceLine | None
    text: str
    encoding: int = 0
    counting: Counting | None = None

    @property
    def full_opcode(self) -> str:
        """The opcode with its modifiers, as a disassembler prints it."""
        return ".".join((self.opcode, *self.modifiers))

    def __str__(self) -> str:
        return f"{self.pc:#06x} {self.text}"
