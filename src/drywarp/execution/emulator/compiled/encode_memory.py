"""Rows of loads, stores, copies and atomics."""

from __future__ import annotations

from ....kernel.cfg import function_start, jump_target
from ....kernel.instruction import RZ, Address, Immediate, Instruction, Operand, Predicate, Register, Special
from ..memory_ops import HINTS, WIDTHS
from . import layout as core
from .encode import Row, encodes, refuse
from .layout import ALWAYS, FULL, GUARD, IMM, IMM2, OP, SUB, A, B, C, D

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
    row[IMM] = operand.offset
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
    row[OP], row[SUB] = core.LOAD, _space(i)
    row[IMM2] = _address(row, i, operands[1]) | i.memory.width | signed << 8


@encodes("STG STS STL ST", HINTS + WIDTHS)
def _store(row: Row, i: Instruction) -> None:
    assert i.memory is not None
    row[OP], row[SUB] = core.STORE, _space(i)
    row[IMM2] = _address(row, i, i.operands[0]) | i.memory.width
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
    row[OP], row[SUB] = core.COPY, to.offset
    if to.base is not None and to.base.index != RZ:
        row.raw(C, to.base)
    if source.symbol or (source.base is not None and source.base.uniform):
        refuse()
    if source.base is not None and source.base.index != RZ:
        row.raw(A, source.base)
    if source.uniform is not None and source.uniform.index != RZ:
        row.raw(B, source.uniform)
    row[IMM], row[IMM2] = source.offset, i.memory.width | 1 << 16
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
    row[OP], row[SUB], row[core.OPERATION] = core.ATOMIC, _space(i), _OPERATIONS[name][signed]
    if "F32" in names or "F64" in names:
        if name != "ADD":
            refuse()
        row[core.OPERATION] = core.ADDS_DOUBLE if long else core.ADDS_FLUSHED if "FTZ" in names else core.ADDS_FLOAT
    if row.cells[SUB] == core.LOCAL or (long and name in ("INC", "DEC")):
        refuse()
    if isinstance(operands[0], Predicate):
        row.put_predicate(operands.pop(0))
    if i.opcode.startswith("ATOM") and isinstance(operands[0], Register):
        row.put(operands.pop(0))
    row[IMM2] = _address(row, i, operands.pop(0)) | (8 if long else 4)
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
    if row.cells[GUARD] != ALWAYS:
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
    row[OP], row[IMM] = core.BRANCH, target


@encodes("EXIT KILL", "KEEPREFCOUNT PREEMPTED NO_ATEXIT")
def _exit(row: Row, i: Instruction) -> None:
    _extra(row, i)
    row[OP] = core.EXIT


@encodes("CALL", "REL NOINC INC")
def _call(row: Row, i: Instruction) -> None:
    target = jump_target(i)
    if target is None or any(isinstance(o, Register) for o in i.operands):
        refuse()
    # Unlike a branch, a guarded call splits its lanes even if all or none of them take it.
    row[OP], row[IMM], row[SUB] = core.JUMP if row.cells[GUARD] == ALWAYS else core.BRANCH, target, 1


@encodes("RET", "REL NODEC INC")
def _return(row: Row, i: Instruction) -> None:
    _only_unguarded(row)
    if function_start(i):
        refuse()
    row[OP] = core.RETURN
    row.word(A, next(o for o in i.operands if isinstance(o, Register)))


@encodes("BSSY", "RECONVERGENT RELIABLE")
def _begin_convergence(row: Row, i: Instruction) -> None:
    row[OP], row[IMM] = core.CONVERGENCE_BEGINS, _barrier_number(i)


@encodes("BSYNC", "RECONVERGENT RELIABLE")
def _converge(row: Row, i: Instruction) -> None:
    _only_unguarded(row)
    row[OP], row[IMM] = core.CONVERGENCE, _barrier_number(i)


@encodes("BREAK", "RELIABLE")
def _leave_convergence(row: Row, i: Instruction) -> None:
    _extra(row, i)
    row[OP], row[IMM] = core.LEAVE_CONVERGENCE, _barrier_number(i)


@encodes("YIELD NANOSLEEP", "SYNCS WARP")
def _yield(row: Row, i: Instruction) -> None:
    row[OP] = core.YIELD


@encodes("ENDCOLLECTIVE")
def _go_on(row: Row, i: Instruction) -> None:
    row[OP] = core.GO_ON


@encodes("WARPSYNC", "ALL COLLECTIVE EXCLUSIVE")
def _synchronise_warp(row: Row, i: Instruction) -> None:
    _only_unguarded(row)
    row[OP] = core.WARP_SYNC
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
    row[OP], row[IMM], row[IMM2] = core.BLOCK_BARRIER, number & 15, threads
