"""An instruction as a row of numbers for the compiled loop; forms without a row are left to the handlers.

Modules of this folder register an encoder per opcode with `encodes`. An encoder is equivalent to the handler of that
opcode (see `decode`); for a form that it does not cover, it raises `NotEncoded`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from ....errors import EmulationError
from ....kernel.cfg import ends_block
from ....kernel.instruction import PT, RZ, Constant, Immediate, Instruction, Operand, Predicate, Register
from ..constants import ConstantBanks
from ..operands import float_bits, float_or_int_high
from . import layout as core
from .layout import ALWAYS, DST, FULL, GUARD, HIGH, IN0, INDEX, KIND, NEVER, NOWHERE, OP, OUT0, VALUE, A, B, C, D

SIGN = 0x80000000
_EXPONENT = 0x7F800000


class NotEncoded(Exception):  # noqa: N818 - no error: the handler takes over
    """This form of an instruction has no row."""


Encoder = Callable[["Row", Instruction], None]
_ENCODERS: dict[str, tuple[Encoder, frozenset[str] | None]] = {}


def encodes(names: str, modifiers: str | None = "") -> Callable[[Encoder], Encoder]:
    """Register an encoder for space-separated opcodes, with the modifiers that it covers (None: all)."""

    def register(encoder: Encoder) -> Encoder:
        for name in names.split():
            _ENCODERS[name] = (encoder, None if modifiers is None else frozenset(modifiers.split()))
        return encoder

    return register


def encode(banks: ConstantBanks, instruction: Instruction) -> list[int]:
    """The row of an instruction under a launch's constants."""
    row = Row(banks)
    try:
        encoder, covered = _ENCODERS[instruction.opcode]
        if covered is not None and not covered.issuperset(instruction.modifiers):
            raise NotEncoded
        if instruction.guard is not None:
            row.cells[GUARD] = row.predicate(instruction.guard)
        encoder(row, instruction)
    except (KeyError, NotEncoded, EmulationError, StopIteration, ValueError, IndexError):
        # A malformed instruction is reported by its handler when it is reached.
        row = Row(banks)
        row.cells[OP] = core.UNKNOWN_END if ends_block(instruction) else core.UNKNOWN
    return row.cells


def refuse() -> NoReturn:
    """Leave this form to the handler."""
    raise NotEncoded


class Row:
    """The cells of one instruction."""

    def __init__(self, banks: ConstantBanks) -> None:
        self.banks = banks
        self.cells = [0] * core.COLUMNS
        for column in (DST, OUT0, OUT0 + 1, core.REGION, core.PATTERN, core.PATTERN2):
            self.cells[column] = NOWHERE
        for column in (GUARD, IN0, IN0 + 1, IN0 + 2):
            self.cells[column] = ALWAYS
        for column in (A, B, C, D):
            self.cells[column + core.KEEP] = FULL

    def __setitem__(self, column: int, value: int) -> None:
        self.cells[column] = value

    # Destinations ---------------------------------------------------------------------------------

    def put(self, operand: Operand) -> None:
        """The register that the instruction writes, the first of several."""
        if not isinstance(operand, Register) or not 0 <= operand.index <= RZ:
            refuse()
        self.cells[DST] = NOWHERE if operand.index == RZ else operand.index
        self.cells[core.DST_UNIFORM] = int(operand.uniform)

    def put_predicate(self, operand: Operand, which: int = 0) -> None:
        """The predicate that the instruction writes; `which` 1 is the second one."""
        if not isinstance(operand, Predicate) or not 0 <= operand.index <= PT:
            refuse()
        number = operand.index + core.UNIFORM_PREDICATE * operand.uniform
        self.cells[OUT0 + which] = NOWHERE if operand.index == PT else number

    # Predicates -----------------------------------------------------------------------------------

    def predicate(self, operand: Operand) -> int:
        """A predicate source."""
        if not isinstance(operand, Predicate) or not 0 <= operand.index <= PT:
            refuse()
        if operand.index == PT:
            return NEVER if operand.negate else ALWAYS
        return (operand.index + core.UNIFORM_PREDICATE * operand.uniform) * 2 + operand.negate

    def given(self, operand: Operand, which: int = 0) -> None:
        """A predicate that the instruction reads, other than its guard."""
        self.cells[IN0 + which] = self.predicate(operand)

    # Words ----------------------------------------------------------------------------------------

    def constant(self, column: int, value: int, high: int = 0) -> None:
        """A source that is known."""
        self.cells[column + KIND] = core.CONSTANT
        self.cells[column + VALUE], self.cells[column + HIGH] = value & FULL, high & FULL

    def known(self, operand: Operand) -> int | None:
        """The word of a source that is the same for all threads, without modifiers; else None."""
        if isinstance(operand, Immediate):
            return float_bits(operand)
        if isinstance(operand, Register):
            return 0 if operand.index == RZ else None
        if isinstance(operand, Constant) and operand.register is None and operand.bank_register is None:
            return self.banks.word(operand.bank, operand.offset)
        return None

    def raw(self, column: int, operand: Operand) -> None:
        """A source of words, or of pairs of words, without its modifiers."""
        low = self.known(operand)
        if low is not None:
            high = 0
            if isinstance(operand, Immediate):
                high = float_or_int_high(operand)
            elif isinstance(operand, Constant):
                high = self.banks.word(operand.bank, operand.offset + 4)
            self.constant(column, low, high)
            return
        if not isinstance(operand, Register) or operand.index < 0:
            refuse()
        self.cells[column + KIND] = core.UNIFORM if operand.uniform else core.REGISTER
        self.cells[column + INDEX] = operand.index

    def modify(self, column: int, keep: int, flip: int, plus: int, flush: bool = False) -> None:
        """Modifiers of a source: ((word & keep) ^ flip) + plus; of a pair, its upper word's."""
        cells = self.cells
        changed = core.MODIFIED * ((keep, flip, plus) != (FULL, 0, 0)) | core.FLUSHED * flush
        if cells[column + KIND] == core.CONSTANT:
            for part in (VALUE, HIGH):
                word = cells[column + part]
                if flush and not word & _EXPONENT:
                    word &= SIGN
                cells[column + part] = (((word & keep) ^ flip) + plus) & FULL
            return
        cells[column + core.KEEP], cells[column + core.FLIP], cells[column + core.PLUS] = keep, flip, plus
        cells[column + core.CHANGED] = changed

    def word(self, column: int, operand: Operand) -> None:
        """A source of integers, `-` and `~` applied."""
        self.raw(column, operand)
        if isinstance(operand, Register | Constant):
            if operand.select not in ("", "U32") or operand.absolute:
                refuse()
            if operand.negate:
                self.modify(column, FULL, FULL, 1)
            elif operand.invert:
                self.modify(column, FULL, FULL, 0)

    def flipped(self, column: int, operand: Operand) -> None:
        """A source of integers, all bits inverted where it is negated."""
        self.raw(column, operand)
        if isinstance(operand, Register | Constant) and (operand.negate or operand.invert):
            self.modify(column, FULL, FULL, 0)

    def pair(self, column: int, operand: Operand) -> None:
        """A source of 64-bit integers."""
        if isinstance(operand, Register | Constant) and (operand.negate or operand.invert or operand.absolute):
            refuse()
        self.raw(column, operand)

    # Floating point -------------------------------------------------------------------------------

    def single(self, column: int, operand: Operand, flush: bool) -> None:
        """A source of single precision, `|x|` and `-` applied."""
        self.raw(column, operand)
        keep, flip = _signs(operand)
        self.modify(column, keep, flip, 0, flush)

    def double(self, column: int, operand: Operand) -> None:
        """A source of double precision, `|x|` and `-` applied."""
        if isinstance(operand, Immediate):
            bits = _double_bits(operand)
            self.constant(column, bits, bits >> 32)
            return
        self.raw(column, operand)
        keep, flip = _signs(operand)
        if self.cells[column + KIND] == core.CONSTANT:
            self.cells[column + HIGH] = (self.cells[column + HIGH] & keep) ^ flip
        else:
            self.modify(column, keep, flip, 0)


def _signs(operand: Operand) -> tuple[int, int]:
    """Which bits to keep and which to flip in the word with the sign."""
    if not isinstance(operand, Register | Constant):
        return FULL, 0
    if operand.select:
        refuse()
    return FULL & ~SIGN if operand.absolute else FULL, SIGN if operand.negate else 0


def _double_bits(operand: Immediate) -> int:
    import struct

    if isinstance(operand.value, int):
        # Hexadecimal text of a double immediate is its upper half.
        return (operand.value & FULL) << 32
    bits: int = struct.unpack("<Q", struct.pack("<d", operand.value))[0]
    return bits
