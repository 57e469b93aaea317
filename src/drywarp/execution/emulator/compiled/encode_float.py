"""Rows of floating-point instructions and conversions."""

from __future__ import annotations

from ....kernel.instruction import Instruction, Predicate, Register
from . import layout as core
from .encode import SIGN, Row, encodes, refuse
from .encode_integer import COMBINED, TESTS
from .layout import FULL, IMM, OP, SUB, A, B, C

_COMPARES = "AND OR XOR FTZ " + " ".join(TESTS)


def _put_single(row: Row, i: Instruction, op: int, sources: int) -> None:
    flush = "FTZ" in i.modifiers
    row[OP], row[core.FLUSH_OUT] = op, flush | ("SAT" in i.modifiers) << 1
    row.put(i.operands[0])
    for column, operand in zip((A, B, C), i.operands[1 : 1 + sources], strict=False):
        row.single(column, operand, flush)


@encodes("FADD UFADD FADD32I", "RN FTZ SAT")
def _add(row: Row, i: Instruction) -> None:
    _put_single(row, i, core.FLOAT_ADD, 2)


@encodes("FMUL UFMUL FMUL32I", "RN FTZ SAT")
def _multiply(row: Row, i: Instruction) -> None:
    _put_single(row, i, core.FLOAT_MULTIPLY, 2)


@encodes("FFMA UFFMA FFMA32I", "RN RM RP FTZ SAT")
def _fused(row: Row, i: Instruction) -> None:
    _put_single(row, i, core.FLOAT_FUSED, 3)
    row[SUB] = 1 if "RM" in i.modifiers else 2 if "RP" in i.modifiers else 0


@encodes("FMNMX UFMNMX", "FTZ NAN")
def _minimum(row: Row, i: Instruction) -> None:
    _put_single(row, i, core.FLOAT_MINIMUM, 2)
    row[SUB] = "NAN" not in i.modifiers
    row.given(next(o for o in i.operands[3:] if isinstance(o, Predicate)))


@encodes("FSEL UFSEL", "FTZ")
def _select(row: Row, i: Instruction) -> None:
    _put_single(row, i, core.SELECT, 2)
    row.given(i.operands[3])


@encodes("FSETP UFSETP", _COMPARES)
def _compare(row: Row, i: Instruction) -> None:
    row[OP] = core.COMPARE_FLOAT
    _put_compare(row, i)
    for column, operand in zip((A, B), i.operands[2:4], strict=True):
        row.single(column, operand, "FTZ" in i.modifiers)


@encodes("DSETP", _COMPARES)
def _compare_doubles(row: Row, i: Instruction) -> None:
    row[OP] = core.COMPARE_DOUBLE
    _put_compare(row, i)
    for column, operand in zip((A, B), i.operands[2:4], strict=True):
        row.double(column, operand)


def _put_compare(row: Row, i: Instruction) -> None:
    row[IMM] = TESTS[next(n for n in i.modifiers if n in TESTS)]
    row[SUB] = COMBINED[next(n for n in i.modifiers if n in COMBINED)]
    row.put_predicate(i.operands[0])
    row.put_predicate(i.operands[1], 1)
    row.given(i.operands[4])


@encodes("FCHK", "DIVIDE")
def _division_check(row: Row, i: Instruction) -> None:
    row[OP] = core.DIVISION_CHECK
    row.put_predicate(i.operands[0])
    row.raw(A, i.operands[1])
    row.raw(B, i.operands[2])


@encodes("MUFU", "RCP RSQ SQRT RCP64H RSQ64H FTZ")
def _special_function(row: Row, i: Instruction) -> None:
    name, operand = i.modifiers[0], i.operands[1]
    row.put(i.operands[0])
    upper = {"RCP64H": core.UPPER_RECIPROCAL, "RSQ64H": core.UPPER_RECIPROCAL_ROOT}
    if name in upper:
        row[OP] = upper[name]
        row.raw(A, operand)
        if not isinstance(operand, Register) or operand.absolute:
            refuse()
        row.modify(A, FULL, SIGN if operand.negate else 0, 0)
        return
    row[OP], row[core.FLUSH_OUT] = {"RCP": core.RECIPROCAL, "RSQ": core.RECIPROCAL_ROOT, "SQRT": core.ROOT}[name], 1
    row.single(A, operand, True)


@encodes("DADD DMUL DFMA", "RN")
def _double(row: Row, i: Instruction) -> None:
    row[OP] = {"DADD": core.DOUBLE_ADD, "DMUL": core.DOUBLE_MULTIPLY, "DFMA": core.DOUBLE_FUSED}[i.opcode]
    row.put(i.operands[0])
    row.double(A, i.operands[1])
    # The second addend is printed last, whatever stands between.
    row.double(B, i.operands[-1] if i.opcode == "DADD" else i.operands[2])
    if i.opcode == "DFMA":
        row.double(C, i.operands[3])


@encodes("I2F I2FP UI2F UI2FP", "S32 U32 F32 F64 RN RP")
def _integer_to_float(row: Row, i: Instruction) -> None:
    unsigned, up, operand = "U32" in i.modifiers, "RP" in i.modifiers, i.operands[1]
    if isinstance(operand, Register) and (operand.select or operand.negate or operand.absolute):
        refuse()
    row.put(i.operands[0])
    row.raw(A, operand)
    if "F64" in i.modifiers:
        row[OP] = core.DOUBLE_FROM_UNSIGNED if unsigned else core.DOUBLE_FROM_SIGNED
    elif up:
        row[OP] = core.FROM_UNSIGNED_UP if unsigned else refuse()
    else:
        row[OP] = core.FROM_UNSIGNED if unsigned else core.FROM_SIGNED


@encodes("F2I UF2I", "S32 U32 F32 F64 TRUNC FLOOR CEIL FTZ NTZ")
def _float_to_integer(row: Row, i: Instruction) -> None:
    signed, double = "U32" not in i.modifiers, "F64" in i.modifiers
    how = next((n for n, name in enumerate(("TRUNC", "FLOOR", "CEIL"), 1) if name in i.modifiers), 0)
    row[OP], row[SUB] = core.TO_INTEGER, signed | double << 1 | how << 2
    row[IMM] = SIGN if double else 0
    row.put(i.operands[0])
    if double:
        row.double(A, i.operands[1])
    else:
        row.single(A, i.operands[1], "FTZ" in i.modifiers)


@encodes("F2F UF2F", "F32 F64 RN FTZ")
def _float_to_float(row: Row, i: Instruction) -> None:
    to, source = [n for n in i.modifiers if n in ("F32", "F64")][:2]
    row.put(i.operands[0])
    if (to, source) == ("F32", "F64"):
        row[OP], row[core.FLUSH_OUT] = core.FROM_DOUBLE, "FTZ" in i.modifiers
        row.double(A, i.operands[1])
    elif (to, source) == ("F64", "F32"):
        row[OP] = core.DOUBLE_FROM_FLOAT
        row.single(A, i.operands[1], "FTZ" in i.modifiers)
    else:
        refuse()


@encodes("FRND UFRND", "TRUNC FLOOR CEIL FTZ")
def _round(row: Row, i: Instruction) -> None:
    row[OP] = core.ROUND_FLOAT
    row[SUB] = next((n for n, name in enumerate(("TRUNC", "FLOOR", "CEIL"), 1) if name in i.modifiers), 0) << 2
    row.put(i.operands[0])
    row.single(A, i.operands[1], "FTZ" in i.modifiers)
