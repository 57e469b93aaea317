"""Which registers an AMD instruction reads and writes; the assembly states all widths.

A place is a pair (file, index): ``("v", 3)``, ``("s", 10)``, ``("vcc", 0)``, ``("exec", 1)``, ``("scc", 0)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..instruction import Instruction
from ..operand import Operand, RegisterRange
from .classes import memory_access

Place = tuple[str, int]
_SCC: Place = ("scc", 0)
_EXEC: tuple[Place, ...] = (("exec", 0), ("exec", 1))
_VCC: tuple[Place, ...] = (("vcc", 0), ("vcc", 1))

_TWO_RESULTS = re.compile(
    r"v_(add|sub|subrev|addc|subb|subbrev)_co_u32$|v_(addc|subb|subbrev)_u32$|v_div_scale_|v_mad_[iu]64_"
)
_NO_RESULT = re.compile(
    r"s_(cmpk?_|bitcmp|branch|cbranch|endpgm|barrier|waitcnt|nop|sleep|setprio|setpc|set_gpr|setreg|sendmsg|trap"
    r"|dcache|icache|store|buffer_store|scratch_store|sethalt|setkill|wakeup|setvskip|ttracedata)"
)
_READS_RESULT = re.compile(r"v_(fmac|mac|pk_fmac|dot\d+c)_|v_writelane_|v_swap_|s_(cmov|cmovk|addk|mulk|bitset)")
_SETS_SCC = re.compile(
    r"s_(cmpk?_|bitcmp|add|addc|addk|sub|subb|and|or|xor|nand|nor|xnor|andn|orn|not|lshl|lshr|ashr|bfe|min|max|abs"
    r"|absdiff|bcnt|wqm|quadmask)"
)
_READS_SCC = re.compile(r"s_(addc|subb)_|s_cselect_|s_cmov|s_cbranch_scc")
_OLD_CARRY = ("v_add_u32", "v_sub_u32", "v_subrev_u32")
"""These name a carry as their second result on GFX8, and none on GFX9."""


def result_count(instruction: Instruction) -> int:
    """How many of the operands, from the first on, receive results."""
    opcode, operands = instruction.opcode, instruction.operands
    access = memory_access(opcode, instruction.modifiers)
    if access is not None:
        return 1 if access.kind in ("load", "atomic") else 0
    if opcode.startswith(("s_swappc", "s_call")):
        return 1
    if not operands or _NO_RESULT.match(opcode) or opcode.startswith(("buffer_", "exp", "ds_gws", "image_")):
        return 0
    if _TWO_RESULTS.match(opcode) or opcode == "v_swap_b32":
        return 2
    if opcode in _OLD_CARRY and len(operands) > 3:
        return 2
    return 1


def reads_and_writes(instruction: Instruction) -> tuple[set[Place], set[Place]]:
    """Places read and written, those that the opcode implies included. Inactive lanes keep their old values."""
    opcode = instruction.opcode
    results = result_count(instruction)
    writes = set(_places(instruction.operands[:results]))
    reads = set(_places(instruction.operands[results:]))
    if _READS_RESULT.match(opcode) or (opcode.startswith("v_") and "dpp" in instruction.modifiers):
        reads |= writes
    if opcode.startswith("s_"):
        _imply_scalar(opcode, reads, writes)
    else:
        reads.update(_EXEC)
        if opcode.startswith("v_cmpx_"):
            writes.update(_EXEC)
        if opcode.startswith("v_div_fmas_"):
            reads.update(_VCC)
        if opcode.startswith("v_swap_"):
            reads |= writes
    return reads, writes


def _imply_scalar(opcode: str, reads: set[Place], writes: set[Place]) -> None:
    if "saveexec" in opcode or "wrexec" in opcode:
        reads.update(_EXEC)
        writes.update((*_EXEC, _SCC))
    elif _SETS_SCC.match(opcode):
        writes.add(_SCC)
    if _READS_SCC.match(opcode):
        reads.add(_SCC)
    if opcode.startswith("s_cbranch_exec"):
        reads.update(_EXEC)
    elif opcode.startswith("s_cbranch_vcc"):
        reads.update(_VCC)


def _places(operands: Iterable[Operand]) -> Iterable[Place]:
    for operand in operands:
        if isinstance(operand, RegisterRange):
            yield from ((operand.file, operand.index + k) for k in range(operand.count))
