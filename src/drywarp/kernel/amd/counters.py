"""The counters of outstanding accesses: who raises them, and what `s_waitcnt` waits for.

As LLVM's AMDGPU backend documents them for GFX6 to GFX9: vector memory counts in ``vmcnt``, the data share,
scalar memory and messages in ``lgkmcnt``, exports in ``expcnt``. Within a counter, vector memory completes in
order, and so does the data share; where scalar loads are outstanding the compiler waits for 0.
"""

from __future__ import annotations

import re

from ..instruction import Counting

_NAMED = re.compile(r"(vmcnt|lgkmcnt|expcnt|vscnt)\((\d+)\)")
_SCALAR = re.compile(r"s_(buffer_|scratch_)?(load|store|atomic)_|s_mem(real)?time$|s_dcache_|s_sendmsg$")
_FREE = re.compile(r"buffer_(wbinvl1|inv|gl)|global_(wb|inv)$")


def counting_of(opcode: str, operands: str) -> Counting | None:
    """What an instruction does to the counters; `operands` is its text after the mnemonic."""
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
    # The fields as GFX9 packs them; a field that is full waits for nothing.
    vector = (packed & 15) | (packed >> 10 & 0x30)
    fields = (("vmcnt", vector, 63), ("expcnt", packed >> 4 & 7, 7), ("lgkmcnt", packed >> 8 & 15, 15))
    return tuple((name, count) for name, count, full in fields if count < full)
