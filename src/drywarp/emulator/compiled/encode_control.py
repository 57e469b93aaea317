"""Rows of the instructions at which warps branch, part, wait and end."""

from __future__ import annotations

from ...kernel.cfg import jump_target
from ...kernel.instruction import Instruction
from ...kernel.operand import Immediate, Operand, Predicate, Register, Special
from .encode import Row, encodes, refuse
from .layout import (
    ALWAYS,
    BLOCK_BARRIER,
    BRANCH,
    CONVERGENCE,
    CONVERGENCE_BEGINS,
    EXIT,
    FULL,
    GO_ON,
    GUARD,
    IMM,
    IMM2,
    JUMP,
    LEAVE_CONVERGENCE,
    OP,
    RETURN,
    SUB,
    WARP_SYNC,
    YIELD,
    A,
)


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
    row[OP], row[IMM] = BRANCH, target


@encodes("EXIT KILL", "KEEPREFCOUNT PREEMPTED NO_ATEXIT")
def _exit(row: Row, i: Instruction) -> None:
    _extra(row, i)
    row[OP] = EXIT


@encodes("CALL", "REL NOINC INC")
def _call(row: Row, i: Instruction) -> None:
    target = jump_target(i)
    if target is None or any(isinstance(o, Register) for o in i.operands):
        refuse()
    # Unlike a branch, a guarded call parts its lanes even where all or none of them take it.
    row[OP], row[IMM], row[SUB] = JUMP if row.cells[GUARD] == ALWAYS else BRANCH, target, 1


@encodes("RET", "REL NODEC INC")
def _return(row: Row, i: Instruction) -> None:
    _only_unguarded(row)
    row[OP] = RETURN
    row.word(A, next(o for o in i.operands if isinstance(o, Register)))


@encodes("BSSY", "RECONVERGENT RELIABLE")
def _begin_convergence(row: Row, i: Instruction) -> None:
    row[OP], row[IMM] = CONVERGENCE_BEGINS, _barrier_number(i)


@encodes("BSYNC", "RECONVERGENT RELIABLE")
def _converge(row: Row, i: Instruction) -> None:
    _only_unguarded(row)
    row[OP], row[IMM] = CONVERGENCE, _barrier_number(i)


@encodes("BREAK", "RELIABLE")
def _leave_convergence(row: Row, i: Instruction) -> None:
    _extra(row, i)
    row[OP], row[IMM] = LEAVE_CONVERGENCE, _barrier_number(i)


@encodes("YIELD NANOSLEEP", "SYNCS WARP")
def _yield(row: Row, i: Instruction) -> None:
    row[OP] = YIELD


@encodes("ENDCOLLECTIVE")
def _go_on(row: Row, i: Instruction) -> None:
    row[OP] = GO_ON


@encodes("WARPSYNC", "ALL COLLECTIVE EXCLUSIVE")
def _synchronise_warp(row: Row, i: Instruction) -> None:
    _only_unguarded(row)
    row[OP] = WARP_SYNC
    operand: Operand | None = next((o for o in i.operands if isinstance(o, Register | Immediate)), None)
    if operand is None:
        row.constant(A, FULL)
    else:
        row.word(A, operand)


@encodes("BAR", "SYNC DEFER_BLOCKING SYNCALL")
def _block_barrier(row: Row, i: Instruction) -> None:
    _only_unguarded(row)
    known = [row.known(o) for o in i.operands if not isinstance(o, Predicate)]
    if None in known or len(known) > 1:  # who meets where not all of the block need to is noted
        refuse()
    number, threads = ([value or 0 for value in known] + [0, 0])[:2]
    row[OP], row[IMM], row[IMM2] = BLOCK_BARRIER, number & 15, threads
