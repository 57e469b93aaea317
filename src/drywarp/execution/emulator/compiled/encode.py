"""An instruction as a row of numbers for the compiled loop; forms without a row are left to the handlers.

Modules of this folder register an encoder per opcode with `encodes`. An encoder is equivalent to the handler of that
opcode (see `decode`); for a form that it does not cover, it raises `NotEncoded`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from ....errors import EmulationError
from ....kernel.cfg import ends_block, function_start, jump_target
from ....kernel.instruction import (
    PT,
    RZ,
    Address,
    Constant,
    Immediate,
    Instruction,
    Operand,
    Predicate,
    Register,
    Special,
)
from ..constants import ConstantBanks
from ..memory_ops import HINTS, WIDTHS
from ..operands import float_bits, float_or_int_high
from . import layout as core
from .layout import FULL, A, B, C, D

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
            row.cells[core.GUARD] = row.predicate(instruction.guard)
        encoder(row, instruction)
    except (KeyError, NotEncoded, EmulationError, StopIteration, ValueError, IndexError):
        # A malformed instruction is reported by its handler when it is reached.
        row = Row(banks)
        row.cells[core.OP] = core.UNKNOWN_END if ends_block(instruction) else core.UNKNOWN
    return row.cells


def refuse() -> NoReturn:
    """Leave this form to the handler."""
    raise NotEncoded


class Row:
    """The cells of one instruction."""

    def __init__(self, banks: ConstantBanks) -> None:
        self.banks = banks
        self.cells = [0] * core.COLUMNS
        for column in (core.DST, core.OUT0, core.OUT0 + 1, core.REGION, core.PATTERN, core.PATTERN2):
            self.cells[column] = core.NOWHERE
        for column in (core.GUARD, core.IN0, core.IN0 + 1, core.IN0 + 2):
            self.cells[column] = core.ALWAYS
        for column in (A, B, C, D):
            self.cells[column + core.KEEP] = FULL

    def __setitem__(self, column: int, value: int) -> None:
        self.cells[column] = value

    # Destinations ---------------------------------------------------------------------------------

    def put(self, operand: Operand) -> None:
        """The register that the instruction writes, the first of several."""
        if not isinstance(operand, Register) or not 0 <= operand.index <= RZ:
            refuse()
        self.cells[core.DST] = core.NOWHERE if operand.index == RZ else operand.index
        self.cells[core.DST_UNIFORM] = int(operand.uniform)

    def put_predicate(self, operand: Operand, which: int = 0) -> None:
        """The predicate that the instruction writes; `which` 1 is the second one."""
        if not isinstance(operand, Predicate) or not 0 <= operand.index <= PT:
            refuse()
        number = operand.index + core.UNIFORM_PREDICATE * operand.uniform
        self.cells[core.OUT0 + which] = core.NOWHERE if operand.index == PT else number

    # Predicates -----------------------------------------------------------------------------------

    def predicate(self, operand: Operand) -> int:
        """A predicate source."""
        if not isinstance(operand, Predicate) or not 0 <= operand.index <= PT:
            refuse()
        if operand.index == PT:
            return core.NEVER if operand.negate else core.ALWAYS
        return (operand.index + core.UNIFORM_PREDICATE * operand.uniform) * 2 + operand.negate

    def given(self, operand: Operand, which: int = 0) -> None:
        """A predicate that the instruction reads, other than its guard."""
        self.cells[core.IN0 + which] = self.predicate(operand)

    # Words ----------------------------------------------------------------------------------------

    def constant(self, column: int, value: int, high: int = 0) -> None:
        """A source that is known."""
        self.cells[column + core.KIND] = core.CONSTANT
        self.cells[column + core.VALUE], self.cells[column + core.HIGH] = value & FULL, high & FULL

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
        self.cells[column + core.KIND] = core.UNIFORM if operand.uniform else core.REGISTER
        self.cells[column + core.INDEX] = operand.index

    def modify(self, column: int, keep: int, flip: int, plus: int, flush: bool = False) -> None:
        """Modifiers of a source: ((word & keep) ^ flip) + plus; of a pair, its upper word's."""
        cells = self.cells
        changed = core.MODIFIED * ((keep, flip, plus) != (FULL, 0, 0)) | core.FLUSHED * flush
        if cells[column + core.KIND] == core.CONSTANT:
            for part in (core.VALUE, core.HIGH):
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
        if self.cells[column + core.KIND] == core.CONSTANT:
            self.cells[column + core.HIGH] = (self.cells[column + core.HIGH] & keep) ^ flip
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


# Rows of loads, stores, copies and atomics.

_SPACES = {"global": core.GLOBAL, "shared": core.SHARED, "local": core.LOCAL, "generic": core.GENERIC}
_MOST_SCALE = 255


def _address(row: Row, i: Instruction, operand: Operand) -> int:
    """Sources and offset of an address; returns its flags: scale << 16, and 1 << 24 for a base of one word."""
    assert i.memory is not None
    if not isinstance(operand, Address) or operand.symbol or operand.scale > _MOST_SCALE:
        refuse()
    space = i.memory.space
    long = space == "global" or (space == "generic" and "E" in i.modifiers)
    if space == "generic" and not long:
        refuse()
    if operand.base is not None and operand.base.index != RZ:
        if long and operand.base.uniform:
            refuse()
        row.raw(A, operand.base)
    if operand.uniform is not None and operand.uniform.index != RZ:
        row.raw(B, operand.uniform)
    row[core.IMM] = operand.offset
    return operand.scale << 16 | (long and operand.base_unsigned32) << 24


def _space(i: Instruction) -> int:
    assert i.memory is not None
    if i.memory.space == "local" and i.memory.width < 4:
        refuse()
    return _SPACES[i.memory.space]


@encodes("LDG LDS LDL LD", HINTS + WIDTHS)
def _load(row: Row, i: Instruction) -> None:
    assert i.memory is not None
    operands = [o for o in i.operands if not isinstance(o, Predicate)]
    row.put(operands[0])
    signed = "S8" in i.modifiers or "S16" in i.modifiers
    row[core.OP], row[core.SUB] = core.LOAD, _space(i)
    row[core.IMM2] = _address(row, i, operands[1]) | i.memory.width | signed << 8


@encodes("STG STS STL ST", HINTS + WIDTHS)
def _store(row: Row, i: Instruction) -> None:
    assert i.memory is not None
    row[core.OP], row[core.SUB] = core.STORE, _space(i)
    row[core.IMM2] = _address(row, i, i.operands[0]) | i.memory.width
    if not isinstance(i.operands[1], Register):
        refuse()
    row.raw(C, i.operands[1])


@encodes("LDGSTS", HINTS + WIDTHS)
def _copy(row: Row, i: Instruction) -> None:
    assert i.memory is not None
    to, source = (o for o in i.operands if isinstance(o, Address))
    predicates = [o for o in i.operands if isinstance(o, Predicate)]
    if to.symbol or to.uniform is not None or to.scale != 1 or i.memory.width < 4 or source.base_unsigned32:
        refuse()
    row[core.OP], row[core.SUB] = core.COPY, to.offset
    if to.base is not None and to.base.index != RZ:
        row.raw(C, to.base)
    if source.symbol or (source.base is not None and source.base.uniform):
        refuse()
    if source.base is not None and source.base.index != RZ:
        row.raw(A, source.base)
    if source.uniform is not None and source.uniform.index != RZ:
        row.raw(B, source.uniform)
    row[core.IMM], row[core.IMM2] = source.offset, i.memory.width | 1 << 16
    if predicates:
        row.given(predicates[-1])


_OPERATIONS = {
    "POPC": (core.ADDS, core.ADDS),
    "INC": (core.COUNTS_UP, core.COUNTS_UP),
    "DEC": (core.COUNTS_DOWN, core.COUNTS_DOWN),
    "ADD": (core.ADDS, core.ADDS),
    "EXCH": (core.EXCHANGES, core.EXCHANGES),
    "CAS": (core.SWAPS, core.SWAPS),
    "AND": (core.MEETS, core.MEETS),
    "OR": (core.JOINS, core.JOINS),
    "XOR": (core.DIFFERS, core.DIFFERS),
    "MIN": (core.LEAST, core.LEAST_SIGNED),
    "MAX": (core.MOST, core.MOST_SIGNED),
}
"""Unsigned and signed. POPC comes first: `POPC.INC` adds one for each lane."""


@encodes("ATOMS ATOMG ATOM RED REDG REDS", f"{HINTS} {' '.join(_OPERATIONS)} S32 U32 S64 U64 64 32 F32 F64 FTZ RN")
def _atomic(row: Row, i: Instruction) -> None:
    names, operands = i.modifiers, list(i.operands)
    name = next(n for n in _OPERATIONS if n in names)
    long = any(n in names for n in ("64", "S64", "U64", "F64"))
    signed = "S32" in names or "S64" in names
    row[core.OP], row[core.SUB], row[core.OPERATION] = core.ATOMIC, _space(i), _OPERATIONS[name][signed]
    if "F32" in names or "F64" in names:
        if name != "ADD":
            refuse()
        row[core.OPERATION] = core.ADDS_DOUBLE if long else core.ADDS_FLUSHED if "FTZ" in names else core.ADDS_FLOAT
    if row.cells[core.SUB] == core.LOCAL or (long and name in ("INC", "DEC")):
        refuse()
    if isinstance(operands[0], Predicate):
        row.put_predicate(operands.pop(0))
    if i.opcode.startswith("ATOM") and isinstance(operands[0], Register):
        row.put(operands.pop(0))
    row[core.IMM2] = _address(row, i, operands.pop(0)) | (8 if long else 4)
    data = [o for o in operands if isinstance(o, Register)]
    if name == "POPC":
        row.constant(C, 1)
        return
    row.raw(C, data[0])
    if name == "CAS":
        row.raw(D, data[1])


# Rows of the instructions at which warps branch, diverge, wait and end.


def _barrier_number(i: Instruction) -> int:
    return int(next(o.name for o in i.operands if isinstance(o, Special) and o.name[0] == "B")[1:])


def _only_unguarded(row: Row) -> None:
    if row.cells[core.GUARD] != core.ALWAYS:
        refuse()


def _extra(row: Row, i: Instruction) -> None:
    extra = next((o for o in i.operands if isinstance(o, Predicate)), None)
    if extra is not None:
        row.given(extra)


@encodes("BRA", "U")
def _branch(row: Row, i: Instruction) -> None:
    target = jump_target(i)
    if target is None:
        refuse()
    _extra(row, i)
    row[core.OP], row[core.IMM] = core.BRANCH, target


@encodes("EXIT KILL", "KEEPREFCOUNT PREEMPTED NO_ATEXIT")
def _exit(row: Row, i: Instruction) -> None:
    _extra(row, i)
    row[core.OP] = core.EXIT


@encodes("CALL", "REL NOINC INC")
def _call(row: Row, i: Instruction) -> None:
    target = jump_target(i)
    if target is None or any(isinstance(o, Register) for o in i.operands):
        refuse()
    # Unlike a branch, a guarded call splits its lanes even if all or none of them take it.
    row[core.OP], row[core.IMM], row[core.SUB] = (
        core.JUMP if row.cells[core.GUARD] == core.ALWAYS else core.BRANCH,
        target,
        1,
    )


@encodes("RET", "REL NODEC INC")
def _return(row: Row, i: Instruction) -> None:
    _only_unguarded(row)
    if function_start(i):
        refuse()
    row[core.OP] = core.RETURN
    row.word(A, next(o for o in i.operands if isinstance(o, Register)))


@encodes("BSSY", "RECONVERGENT RELIABLE")
def _begin_convergence(row: Row, i: Instruction) -> None:
    row[core.OP], row[core.IMM] = core.CONVERGENCE_BEGINS, _barrier_number(i)


@encodes("BSYNC", "RECONVERGENT RELIABLE")
def _converge(row: Row, i: Instruction) -> None:
    _only_unguarded(row)
    row[core.OP], row[core.IMM] = core.CONVERGENCE, _barrier_number(i)


@encodes("BREAK", "RELIABLE")
def _leave_convergence(row: Row, i: Instruction) -> None:
    _extra(row, i)
    row[core.OP], row[core.IMM] = core.LEAVE_CONVERGENCE, _barrier_number(i)


@encodes("YIELD NANOSLEEP", "SYNCS WARP")
def _yield(row: Row, i: Instruction) -> None:
    row[core.OP] = core.YIELD


@encodes("ENDCOLLECTIVE")
def _go_on(row: Row, i: Instruction) -> None:
    row[core.OP] = core.GO_ON


@encodes("WARPSYNC", "ALL COLLECTIVE EXCLUSIVE")
def _synchronise_warp(row: Row, i: Instruction) -> None:
    _only_unguarded(row)
    row[core.OP] = core.WARP_SYNC
    operand: Operand | None = next((o for o in i.operands if isinstance(o, Register | Immediate)), None)
    if operand is None:
        row.constant(A, FULL)
    else:
        row.word(A, operand)


@encodes("BAR", "SYNC DEFER_BLOCKING SYNCALL")
def _block_barrier(row: Row, i: Instruction) -> None:
    _only_unguarded(row)
    known = [row.known(o) for o in i.operands if not isinstance(o, Predicate)]
    if None in known or len(known) > 1:  # the participants are recorded if not the whole block takes part
        refuse()
    number, threads = ([value or 0 for value in known] + [0, 0])[:2]
    row[core.OP], row[core.IMM], row[core.IMM2] = core.BLOCK_BARRIER, number & 15, threads
