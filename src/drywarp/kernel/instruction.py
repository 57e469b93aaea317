"""One machine instruction: what it is, what it reads and writes, and the compiler's schedule for it."""

from __future__ import annotations

from dataclasses import dataclass

from .operand import Operand, Predicate

CONTROL_SHIFT = 105
"""Where the control bits begin in a 128-bit encoding; above them only reserved bits stand."""


@dataclass(frozen=True, slots=True)
class ControlBits:
    """The scheduling word that the compiler put into a 128-bit instruction (sm_70 and later).

    `stall` cycles pass before the warp's next instruction may issue. `write_barrier` (0..5, or None)
    is the scoreboard that is released when the result is there, `read_barrier` the one released when
    the operands have been read. `wait_mask` has bit b set where the instruction waits for scoreboard
    b. `yield_hint` is the bit as it stands; `reuse` the operand-cache bits.
    """

    stall: int
    yield_hint: bool
    write_barrier: int | None
    read_barrier: int | None
    wait_mask: int
    reuse: int

    @classmethod
    def decode(cls, encoding: int) -> ControlBits:
        """Take the control bits out of a 128-bit encoding (bits 105 to 125)."""
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
    """What an instruction of an AMD GPU does to its warp's counters of outstanding accesses.

    `raises` names those (``vmcnt``, ``lgkmcnt``, …) that count the instruction until its result is there;
    `waits` are pairs (counter, n): the warp goes on once at most n are outstanding.
    """

    raises: tuple[str, ...] = ()
    waits: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A place in the user's source; `line` counts from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """How an instruction touches memory.

    `space` is one of ``global``, ``shared``, ``local``, ``generic``, ``constant``, ``texture``; `kind` one of
    ``load``, ``store``, ``atomic``, ``reduction`` (an atomic without a result) or ``copy`` (global to
    shared), and ``bulk_load``, ``bulk_store`` or ``bulk_reduction`` where the copy engine does it for a whole
    box of data, between shared and global memory. `width` is bytes per lane; of a bulk copy's record, per column.
    """

    space: str
    kind: str
    width: int


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a kernel's section.

    `pc` is its byte offset, `opcode` the base name, `modifiers` the dotted suffixes in order (so
    `LDG.E.64` is opcode ``LDG`` with modifiers ``("E", "64")``), `guard` the predicate that it runs
    under. `class_` is its instruction class (see `drywarp.kernel.classes`).

    An AMD GPU's instruction has no control bits of its own: `control` then holds the issue slots that the ISA
    keeps between it and the warp's next one, and `counting` what it does to the counters. Its opcode is the
    mnemonic without the suffix of the encoding, its modifiers that suffix and what follows the operands.
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
