"""Rows of instructions on integers, bits, predicates and between lanes."""

from __future__ import annotations

from ....kernel.instruction import PT, RZ, Constant, Immediate, Instruction, Operand, Predicate, Register, Special
from ....kernel.isa.nvidia.opcodes import having
from ..bitwise import permutation
from ..half import half_sources, packed_immediate
from ..integer import split_predicates
from ..machine import SPECIAL_ROWS
from . import layout as core
from .encode import Row, encodes, refuse
from .layout import ALWAYS, FULL, GUARD, IMM, IMM2, IN0, NEVER, OP, SUB, A, B, C

TESTS = {
    "LT": core.LESS,
    "EQ": core.EQUAL,
    "LE": core.LESS | core.EQUAL,
    "GT": core.GREATER,
    "NE": core.LESS | core.GREATER,
    "GE": core.GREATER | core.EQUAL,
    "NUM": core.LESS | core.EQUAL | core.GREATER,
    "NAN": core.UNORDERED,
}
TESTS |= {f"{name}U": bits | core.UNORDERED for name, bits in TESTS.items() if name not in ("NUM", "NAN")}
"""When a compare holds; names ending in U also hold for unordered operands (NaN)."""
COMBINED = {"AND": 0, "OR": 1, "XOR": 2}


def _negated(operand: Operand) -> bool:
    return isinstance(operand, Register | Constant) and (operand.negate or operand.invert)


def _ones_left_out(operand: Operand, extended: bool) -> int:
    """The correction for inverting a negated addend; an incoming carry cancels it."""
    return int(isinstance(operand, Register | Constant) and operand.negate and not extended)


@encodes(" ".join(having("idle")), None)
def _nothing(row: Row, i: Instruction) -> None:
    if row.cells[GUARD] != ALWAYS:
        refuse()
    row[OP] = core.NOTHING


@encodes("MOV UMOV MOV32I", "64 SPILL")
def _move(row: Row, i: Instruction) -> None:
    row.put(i.operands[0])
    if "64" in i.modifiers:
        row[OP] = core.MOVE_WIDE
        row.pair(A, i.operands[1])
    else:
        row[OP] = core.MOVE
        row.word(A, i.operands[1])


@encodes("SEL USEL", "64")
def _select(row: Row, i: Instruction) -> None:
    destination, a, b, test = i.operands
    row.put(destination)
    row.given(test)
    wide = "64" in i.modifiers
    row[OP] = core.SELECT_WIDE if wide else core.SELECT
    for column, operand in ((A, a), (B, b)):
        (row.pair if wide else row.word)(column, operand)


@encodes("S2R S2UR CS2R CS2UR", "32")
def _special(row: Row, i: Instruction) -> None:
    operand = i.operands[1]
    if not isinstance(operand, Special):
        refuse()
    row.put(i.operands[0])
    row[OP] = core.MOVE
    if operand.name == "SRZ":
        row[OP] = core.MOVE_WIDE if i.opcode.startswith("CS") and "32" not in i.modifiers else core.MOVE
    elif operand.name in SPECIAL_ROWS and not i.opcode.startswith("CS"):
        row[A + core.KIND], row[A + core.INDEX] = core.SPECIAL, SPECIAL_ROWS.index(operand.name)
    else:
        refuse()


@encodes("LDC ULDC LDCU", "64")
def _load_constant(row: Row, i: Instruction) -> None:
    source = i.operands[1]
    if not isinstance(source, Constant) or source.bank_register or (source.register and source.register.index != RZ):
        refuse()
    row.put(i.operands[0])
    place = source.offset & 0xFFFFFFFC
    row[OP] = core.MOVE_WIDE if "64" in i.modifiers else core.MOVE
    row.constant(A, row.banks.word(source.bank, place), row.banks.word(source.bank, place + 4))


@encodes("IADD3 UIADD3 IADD UIADD VIADD UVIADD", "X 64")
def _add(row: Row, i: Instruction) -> None:
    outs, sources, ins = split_predicates(i.operands[1:])
    row.put(i.operands[0])
    columns = list(zip((A, B, C), sources, strict=False))
    extended, carries = "X" in i.modifiers, any(not isinstance(o, Predicate) or o.index != PT for o in outs)
    if "64" in i.modifiers:
        if extended or carries or ins:
            refuse()
        row[OP] = core.ADD_WIDE
        for column, operand in columns:
            row.pair(column, operand)
        return
    if not extended and not carries:
        row[OP] = core.ADD
        for column, operand in columns:
            row.word(column, operand)
        return
    row[OP] = core.ADD_CARRY
    for column, operand in columns:
        row.flipped(column, operand)
    row[IMM2] = sum(_ones_left_out(operand, extended) for operand in sources)
    for which in range(2):
        if extended and which < len(ins):
            row.given(ins[which], which)
        else:
            row[IN0 + which] = NEVER
    for which, out in enumerate(outs):
        row.put_predicate(out, which)


@encodes("IMAD UIMAD", "MOV U32 SHL IADD X WIDE HI")
def _multiply_add(row: Row, i: Instruction) -> None:
    names = i.modifiers
    outs, (a, b, c), ins = split_predicates(i.operands[1:])
    row.put(i.operands[0])
    row.word(A, a)
    row.word(B, b)
    if "WIDE" in names or "HI" in names:
        row[OP], row[SUB] = core.MULTIPLY_WIDE, ("U32" in names) | ("HI" in names) << 1
        row.pair(C, c)
        row[IN0] = row.predicate(ins[0]) if ins else NEVER
        if outs:
            row.put_predicate(outs[0])
        return
    if outs:
        refuse()
    if "X" in names:
        row[OP] = core.MULTIPLY_ADD_CARRY
        row.flipped(C, c)
        row.given(ins[0])
        return
    row[OP] = core.MULTIPLY_ADD
    row.word(C, c)
    if 0 in (_plain(row, a), _plain(row, b)):
        row[OP] = core.MOVE
        row.cells[A : A + 8] = row.cells[C : C + 8]


def _plain(row: Row, operand: Operand) -> int | None:
    return None if _negated(operand) else row.known(operand)


@encodes("LEA ULEA", "HI X SX32")
def _scaled_add(row: Row, i: Instruction) -> None:
    outs, sources, ins = split_predicates(i.operands[1:])
    extended, high = "X" in i.modifiers, "HI" in i.modifiers
    shift = row.known(sources[-1])
    if shift is None:
        refuse()
    row.put(i.operands[0])
    negated = _negated(sources[0]) and not (high or extended)
    if outs and negated:
        row.raw(A, sources[0])
    else:
        row.word(A, sources[0])
    if not (high or outs or extended):
        row[OP] = core.MULTIPLY_ADD
        row.constant(B, 1 << (shift & 31))
        row.word(C, sources[1])
        return
    row[OP], row[IMM] = core.SCALED_ADD, shift & 31
    row[SUB] = (2 if "SX32" in i.modifiers else 1) if high else 3 if negated else 0
    row.flipped(B, sources[1])
    row[IMM2] = _ones_left_out(sources[1], extended) + negated
    if row.cells[SUB] == 1:
        row.word(C, sources[2])
    row[IN0], row[IN0 + 1] = row.predicate(ins[0]) if extended and ins else NEVER, NEVER
    if outs:
        row.put_predicate(outs[0])


@encodes("LOP3 ULOP3", "LUT PAND")
def _logic(row: Row, i: Instruction) -> None:
    operands = list(i.operands)
    if isinstance(operands[0], Predicate):
        row.put_predicate(operands.pop(0))
    destination, a, b, c, table, *rest = operands
    row.put(destination)
    for column, operand in ((A, a), (B, b), (C, c)):
        row.word(column, operand)
    if not isinstance(table, Immediate):
        refuse()
    row[OP], row[IMM], row[SUB] = core.LOGIC, int(table.value) & 0xFF, "PAND" in i.modifiers
    row[IN0] = row.predicate(rest[0]) if rest else NEVER


@encodes("PLOP3 UPLOP3", "LUT")
def _predicate_logic(row: Row, i: Instruction) -> None:
    first, second, a, b, c, table, other = i.operands
    if not isinstance(table, Immediate) or not isinstance(other, Immediate):
        refuse()
    _put_logic(row, (first, second), (a, b, c), int(table.value), int(other.value))


@encodes("PSETP UPSETP", "AND OR XOR")
def _predicate_set(row: Row, i: Instruction) -> None:
    first, second, a, b, c = i.operands
    inner, outer = (COMBINED[n] for n in i.modifiers[:2])
    table = other = 0
    for index in range(8):
        test = _combine(inner, index >> 2 & 1, index >> 1 & 1)
        table |= _combine(outer, test, index & 1) << index
        other |= _combine(outer, 1 - test, index & 1) << index
    _put_logic(row, (first, second), (a, b, c), table, other)


def _combine(how: int, a: int, b: int) -> int:
    return (a & b, a | b, a ^ b)[how]


def _put_logic(row: Row, outs: tuple[Operand, ...], ins: tuple[Operand, ...], table: int, other: int) -> None:
    row[OP], row[IMM], row[IMM2] = core.PREDICATE_LOGIC, table & 0xFF, other & 0xFF
    for which, operand in enumerate(outs):
        row.put_predicate(operand, which)
    for which, operand in enumerate(ins):
        row.given(operand, which)


@encodes("SHF USHF", "L R W U32 S32 U64 S64 HI")
def _shift(row: Row, i: Instruction) -> None:
    names = i.modifiers
    destination, low, amount, high = i.operands[:4]
    row.put(destination)
    row.word(A, low)
    row.word(B, amount)
    row.word(C, high)
    signed = "S32" in names or "S64" in names
    row[IMM], row[SUB] = 64 if "U64" in names or "S64" in names else 32, ("W" in names) | signed << 1
    if "L" in names:
        row[OP] = core.FUNNEL_LEFT if "HI" in names else core.SHIFT_LEFT
    else:
        row[OP] = core.SHIFT_RIGHT if "HI" in names else core.FUNNEL_RIGHT


@encodes("PRMT UPRMT", "F4E B4E RC8 ECL ECR RC16")
def _permute(row: Row, i: Instruction) -> None:
    destination, a, selector, c = i.operands[:4]
    row[OP] = core.PERMUTE
    row.put(destination)
    for column, operand in ((A, a), (B, selector), (C, c)):
        row.word(column, operand)
    if i.modifiers:
        known = _plain(row, selector)
        if known is None:
            refuse()
        row.constant(B, sum(permutation(i.modifiers[0], k, known) << 4 * k for k in range(4)))


@encodes("BMSK UBMSK", "C W")
def _bit_mask(row: Row, i: Instruction) -> None:
    _two(row, i, core.BIT_MASK)
    row[SUB] = "W" in i.modifiers


@encodes("SGXT USGXT", "U32 W")
def _extend(row: Row, i: Instruction) -> None:
    _two(row, i, core.EXTEND)
    row[SUB] = ("W" in i.modifiers) | ("U32" in i.modifiers) << 1


def _two(row: Row, i: Instruction, op: int) -> None:
    row[OP] = op
    row.put(i.operands[0])
    row.word(A, i.operands[1])
    row.word(B, i.operands[2])


@encodes("POPC UPOPC BREV UBREV IABS UIABS")
def _of_one(row: Row, i: Instruction) -> None:
    name = i.opcode.removeprefix("U")
    row[OP] = {"POPC": core.POPULATION, "BREV": core.REVERSE, "IABS": core.ABSOLUTE}[name]
    row.put(i.operands[0])
    row.word(A, i.operands[1])


@encodes("FLO UFLO", "U32 SH")
def _leading_one(row: Row, i: Instruction) -> None:
    operands = [o for o in i.operands if not isinstance(o, Predicate)]
    row[OP], row[SUB] = core.LEADING_ONE, ("U32" not in i.modifiers) | ("SH" in i.modifiers) << 1
    row.put(operands[0])
    row.word(A, operands[1])


@encodes("IMNMX VIMNMX UIMNMX UVIMNMX VIADDMNMX", "U32 S32")
def _minimum(row: Row, i: Instruction) -> None:
    _, sources, ins = split_predicates(i.operands[1:])
    row[OP] = core.MAXIMUM_OF_SUM if i.opcode == "VIADDMNMX" else core.MINIMUM
    row[SUB] = "U32" in i.modifiers
    row.put(i.operands[0])
    row.given(ins[-1])
    for column, operand in zip((A, B, C), sources, strict=False):
        row.word(column, operand)


@encodes("ISETP UISETP", "EQ NE LT LE GT GE U32 AND OR XOR EX S64 U64")
def _compare(row: Row, i: Instruction) -> None:
    names = i.modifiers
    how = next(n for n in names if n in TESTS)
    combined = COMBINED[next(n for n in names if n in COMBINED)]
    first, second, a, b, given, *extra = i.operands
    wide = "S64" in names or "U64" in names
    unsigned = "U32" in names or "U64" in names
    upper = "EX" in names
    row[OP] = core.COMPARE_WIDE if wide else core.COMPARE
    row[IMM] = TESTS[how]
    row[SUB] = combined | (not unsigned) << 2 | upper << 3 | (upper and how == "NE") << 4
    if upper:
        row.given(extra[0], 1)
    for column, operand in ((A, a), (B, b)):
        (row.pair if wide else row.word)(column, operand)
    row.put_predicate(first)
    row.put_predicate(second, 1)
    row.given(given)


@encodes("P2R", "B0 B1 B2 B3")
def _predicates_to_register(row: Row, i: Instruction) -> None:
    destination, _, base, mask = i.operands
    if not isinstance(mask, Immediate) or not isinstance(destination, Register):
        refuse()
    field = next((n for n in (*i.modifiers, destination.select) if n.startswith("B")), "B0")
    shift, bits = 8 * int(field[1]), int(mask.value) & 0x7F
    row[OP], row[SUB], row[IMM], row[IMM2] = core.PREDICATES_TO_REGISTER, shift, bits, ~(bits << shift) & FULL
    row.put(destination)
    row.raw(A, base)


@encodes("R2P", "B0 B1 B2 B3")
def _register_to_predicates(row: Row, i: Instruction) -> None:
    _, source, mask = i.operands
    if not isinstance(mask, Immediate) or not isinstance(source, Register):
        refuse()
    row[OP], row[SUB] = core.REGISTER_TO_PREDICATES, 8 * int((source.select or "B0")[1])
    row[IMM] = int(mask.value) & 0x7F
    row.raw(A, source)


@encodes("SHFL", "UP DOWN BFLY IDX")
def _shuffle(row: Row, i: Instruction) -> None:
    row[OP], row[SUB] = core.SHUFFLE, ("UP", "DOWN", "BFLY", "IDX").index(i.modifiers[0])
    row.put_predicate(i.operands[0])
    row.put(i.operands[1])
    for column, operand in zip((A, B, C), i.operands[2:5], strict=True):
        row.word(column, operand)


@encodes("VOTE VOTEU", "ANY ALL EQ")
def _vote(row: Row, i: Instruction) -> None:
    operands = list(i.operands)
    row[OP], row[SUB] = core.VOTE, ("ANY", "ALL", "EQ").index(i.modifiers[0] if i.modifiers else "ALL")
    if isinstance(operands[0], Register):
        row.put(operands.pop(0))
    if len(operands) > 1:
        row.put_predicate(operands.pop(0))
    row.given(operands[0])


@encodes("R2UR", "FILL BROADCAST")
def _to_uniform(row: Row, i: Instruction) -> None:
    operands = list(i.operands)
    row[OP] = core.TO_UNIFORM
    if isinstance(operands[0], Predicate):
        row.put_predicate(operands.pop(0))
    if len(operands) != 2:
        refuse()
    row.put(operands[0])
    row.word(A, operands[1])


@encodes("HFMA2", "MMA BF16_V2")
def _constant_pair(row: Row, i: Instruction) -> None:
    """The compiler's idiom for loading a constant: zero times zero plus two halves."""
    sources = half_sources(i.operands[1:])
    if len(sources) != 3 or not isinstance(sources[2], tuple):
        refuse()
    if not all(isinstance(o, Register) and o.index == RZ and not o.uniform for o in sources[:2]):
        refuse()
    row[OP] = core.MOVE
    row.put(i.operands[0])
    row.constant(A, packed_immediate(sources[2], "BF16_V2" in i.modifiers))
