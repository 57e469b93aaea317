"""What a load of 64 bits brings, judged by what is first done with it: an address, a long integer, or neither."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...kernel.amd.registers import reads_and_writes, result_count
from ...kernel.instruction import Instruction
from ...kernel.operand import Immediate, RegisterRange
from ..contents import INTEGER, POINTER

_LOOK_AHEAD = 96
_LONG = re.compile(
    r"(v_lshlrev|s_lshl|v_ashrrev|s_ashr|v_lshrrev|s_lshr)_[bi]64|[vs]_cmpx?_\w+_[iu]64|v_mul_lo_u32|s_mul_i32"
)
_SUM = re.compile(r"v_add_(co_)?u32|s_add_u32|v_mad_[iu]64_[iu]32")


def wide_loads(instructions: Sequence[Instruction]) -> dict[int, str]:
    """Kinds of loads of 64 bits by instruction index; those of two words or of a double are left out."""
    found = {}
    for index, i in enumerate(instructions):
        target = i.operands[0] if i.operands else None
        vector = i.memory is not None and i.memory.kind == "load" and i.memory.width == 8
        if not (vector or i.opcode.startswith("s_load_dwordx2")) or not isinstance(target, RegisterRange):
            continue
        if target.count == 2 and (kind := _kind(instructions[index + 1 : index + 1 + _LOOK_AHEAD], target)):
            found[index] = kind
    return found


def _kind(after: Sequence[Instruction], pair: RegisterRange) -> str:
    places = {(pair.file, pair.index), (pair.file, pair.index + 1)}
    for i in after:
        reads, writes = reads_and_writes(i)
        if places & reads:
            return _use(i, pair)
        if places & writes:
            return ""
    return ""


def _use(i: Instruction, pair: RegisterRange) -> str:
    """What the register pair is to one instruction."""
    sources = i.operands[result_count(i) :]
    mine = [
        n
        for n, o in enumerate(sources)
        if isinstance(o, RegisterRange) and (o.file, o.index) == (pair.file, pair.index)
    ]
    if i.memory is not None or i.opcode.startswith("s_load_"):
        # The data of a store are not its address; a scalar base stands behind the vector part.
        return POINTER if any(n == 0 or pair.file == "s" for n in mine) and _is_pair(sources, mine) else ""
    if i.opcode == "v_lshl_add_u64" and mine:
        amount = sources[1]
        return INTEGER if mine[0] == 0 and not (isinstance(amount, Immediate) and amount.value == 0) else POINTER
    if _LONG.match(i.opcode):
        return INTEGER
    return POINTER if _SUM.fullmatch(i.opcode) and mine else ""


def _is_pair(sources: Sequence[object], positions: Sequence[int]) -> bool:
    return any(isinstance(o := sources[n], RegisterRange) and o.count == 2 for n in positions)
