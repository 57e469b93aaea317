"""The registers that an AMD instruction reads and writes; the assembly states all widths.

A place is a pair (file, index): ``("v", 3)``, ``("s", 10)``, ``("vcc", 0)``, ``("exec", 1)``, ``("scc", 0)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...instruction import Counting, Instruction, Operand, RegisterRange
from .opcodes import memory_access

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
"""These have a carry as their second result on GFX8, and none on GFX9."""


def result_count(instruction: Instruction) -> int:
    """The number of leading operands that receive results."""
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
    """Places read and written, including implicit ones. Inactive lanes keep their old values."""
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


# The counters of outstanding accesses: which instructions raise them, and what `s_waitcnt` waits for.
#
# Per LLVM's AMDGPU documentation for GFX6 to GFX9: vector memory counts in ``vmcnt``; the data share, scalar memory and
# messages in ``lgkmcnt``; exports in ``expcnt``. Within a counter, vector memory completes in order, and so does the
# data share. With scalar loads outstanding, the compiler waits for 0.

_NAMED = re.compile(r"(vmcnt|lgkmcnt|expcnt|vscnt)\((\d+)\)")
_SCALAR = re.compile(r"s_(buffer_|scratch_)?(load|store|atomic)_|s_mem(real)?time$|s_dcache_|s_sendmsg$")
_FREE = re.compile(r"buffer_(wbinvl1|inv|gl)|global_(wb|inv)$")


def counting_of(opcode: str, operands: str) -> Counting | None:
    """The effect of an instruction on the counters; `operands` is its text after the mnemonic."""
    if opcode.startswith("s_waitcnt"):
        waits = _waits(operands)
        return Counting(waits=waits) if waits else None
    raised: tuple[str, ...] = ()
    if opcode.startswith("flat_"):
        raised = ("vmcnt", "lgkmcnt")
    elif opcode.startswith("ds_"):
        raised = () if opcode == "ds_nop" else ("lgkmcnt",)
    elif opcode.startswith(("global_", "buffer_", "tbuffer_", "scratch_", "image_")) and not _FREE.match(opcode):
        raised = ("vmcnt",)
    elif _SCALAR.match(opcode):
        raised = ("lgkmcnt",)
    elif opcode == "exp":
        raised = ("expcnt",)
    return Counting(raises=raised) if raised else None


def _waits(operands: str) -> tuple[tuple[str, int], ...]:
    named = tuple((name, int(count)) for name, count in _NAMED.findall(operands))
    if named:
        return named
    try:
        packed = int(operands.strip(), 0)
    except ValueError:
        return ()
    # The fields as packed on GFX9; a field at its maximum does not wait.
    vector = (packed & 15) | (packed >> 10 & 0x30)
    fields = (("vmcnt", vector, 63), ("expcnt", packed >> 4 & 7, 7), ("lgkmcnt", packed >> 8 & 15, 15))
    return tuple((name, count) for name, count, full in fields if count < full)
