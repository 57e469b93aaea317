"""Instruction classes of AMD opcodes, and how they touch memory.

An opcode says nearly everything itself: the unit it runs on (``v_``, ``s_``, ``ds_``, ``global_`` …), what
it does and the type it does it to. So the rules read the name, and a new opcode of an old kind finds its
class; what no rule knows is ``unknown``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..instruction import MemoryAccess

_TRANSCENDENTAL = re.compile(r"v_(rcp|rsq|sqrt|exp|log|sin|cos)(_iflag|_legacy|_clamp)?_f\d+$|v_trig_preop_f64$")
_FULL_PRODUCT = re.compile(r"v_mul_(lo|hi)_[iu]32$|v_mad_[iu]64_[iu]32$")
_PRODUCT = re.compile(r"v_(pk_)?(mul|mad)_|v_dot\dc?_[iu]32")
_MOVE = re.compile(r"v_(pk_|accvgpr_)?mov|v_(swap|readlane|readfirstlane|writelane|accvgpr_read|accvgpr_write)_")
_SHIFT = re.compile(r"v_(pk_)?(lshl|lshr|ashr)(rev)?_[bi]|v_align(bit|byte)_")
_BIT = re.compile(r"v_(bcnt|mbcnt|ffbh|ffbl|bfrev)_")
_EXTREME = re.compile(r"v_(cmpx?|min3?|max3?|med3)_")
_TYPED_INTEGER = re.compile(r"_[biu](4|8|16|32|64)$|_4se_b32$")
_BRANCH = re.compile(r"s_(branch|cbranch|call|setpc|swappc|endpgm|rfe|trap)")
_INTERNAL = re.compile(
    r"s_(nop|waitcnt|sleep|set(prio|halt|kill|vskip)|sendmsg|wakeup|ttracedata|(inc|dec)perflevel|set_gpr_idx|atc_probe"
    r"|clause|inst_prefetch|delay_alu|code_end)"
)
_SCALAR_MEMORY = re.compile(r"s_(buffer_|scratch_)?(load|store|atomic)_")
_CACHE = re.compile(r"s_[di]cache_|buffer_(wbinvl1|inv|wbl2|gl\d)|global_(wb|inv)$")
_VECTOR_MEMORY = re.compile(r"(global|flat|scratch|buffer|tbuffer)_(load|store|atomic)_")
_BITS = re.compile(r"_[biuf](8|16|32|64|96|128)(_|$)")
_DWORDS = re.compile(r"_dword(?:x(\d+))?$|_format_(?:d16_)?(?:hi_)?(x|xy|xyz|xyzw)$")


def class_of(opcode: str) -> str:
    """The instruction class of an AMD opcode; ``unknown`` where no rule fits. Scratch is ``local``."""
    if opcode.startswith("v_"):
        return _vector_class(opcode)
    if opcode.startswith("s_"):
        return _scalar_class(opcode)
    if opcode.startswith("ds_"):
        return _data_share_class(opcode)
    if _CACHE.match(opcode):
        return "fence"
    if opcode.startswith("image_"):
        return "texture"
    if not _VECTOR_MEMORY.match(opcode):
        return "unknown"
    if "_lds_" in opcode:
        return "async_copy"
    space = "local" if opcode.startswith("scratch_") else "global"
    if space == "local":
        return "local_load" if "_load_" in opcode else "local_store"
    kind = next(word for word in ("load", "store", "atomic") if f"_{word}_" in opcode)
    return f"{space}_{kind}"


def _vector_class(opcode: str) -> str:
    if opcode.startswith(("v_mfma_", "v_smfmac_")):
        return "tensor"
    if opcode in ("v_nop", "v_clrexcp"):
        return "nop"
    if _TRANSCENDENTAL.match(opcode):
        return "sfu"
    if opcode.startswith("v_cvt_"):
        return "convert" if "f64" in opcode else "convert_fast"
    for pattern, name in (
        (_MOVE, "move"),
        (_FULL_PRODUCT, "imad_wide"),
        (_SHIFT, "shift"),
        (_BIT, "bit"),
    ):
        if pattern.match(opcode):
            return name
    if opcode.startswith(("v_fma_mix", "v_mad_mix", "v_dot2_f32", "v_dot2c_f32")):
        return "fp32"
    if re.search(r"f64", opcode):
        return "fp64"
    if re.search(r"f16(_|$)", opcode):
        return "fp16"
    if re.search(r"f32(_|$)|_f32_|v_(mad|fma)[am]k_", opcode) or opcode.startswith("v_interp_"):
        return "fp32_compare" if _EXTREME.match(opcode) else "fp32"
    if _PRODUCT.match(opcode):
        return "imad"
    return "int" if _TYPED_INTEGER.search(opcode) else "unknown"


def _scalar_class(opcode: str) -> str:
    if _SCALAR_MEMORY.match(opcode):
        return "constant_load"
    if opcode in ("s_memtime", "s_memrealtime", "s_getreg_b32", "s_setreg_b32", "s_setreg_imm32_b32"):
        return "special_register"
    if opcode == "s_barrier":
        return "barrier"
    for pattern, name in ((_CACHE, "fence"), (_BRANCH, "branch"), (_INTERNAL, "nop")):
        if pattern.match(opcode):
            return name
    return "uniform"


def _data_share_class(opcode: str) -> str:
    if re.match(r"ds_(b?permute|swizzle)_", opcode):
        return "shuffle"
    if opcode == "ds_nop":
        return "nop"
    if opcode.startswith("ds_gws_"):
        return "fence"
    if opcode.startswith(("ds_read", "ds_load")):
        return "shared_load"
    if opcode.startswith(("ds_write", "ds_store")):
        return "shared_store"
    return "shared_atomic"


def memory_access(opcode: str, modifiers: Sequence[str]) -> MemoryAccess | None:
    """Space, kind and bytes per lane of a vector memory or data share opcode; None for every other one.

    A scalar load is none: it takes the constant cache's path. ``ds_read2_b32`` and its kin access two places
    of `width` each.
    """
    name = class_of(opcode)
    if name == "texture":
        return None
    space, _, kind = name.partition("_")
    if name == "async_copy":
        return MemoryAccess("global", "copy", access_width(opcode))
    if space not in ("global", "local", "shared") or kind not in ("load", "store", "atomic"):
        return None
    if opcode.startswith("flat_"):
        space = "generic"
    if kind == "atomic":
        returns = "_rtn_" in opcode or {"glc", "sc0"} & set(modifiers) or opcode in ("ds_append", "ds_consume")
        kind = "atomic" if returns else "reduction"
    return MemoryAccess(space, kind, access_width(opcode))


def access_width(opcode: str) -> int:
    """Bytes per lane."""
    if opcode.startswith("ds_"):
        match = _BITS.search(opcode)
        return int(match[1]) // 8 if match else 4
    if match := _DWORDS.search(opcode):
        words = int(match[1] or 1) if match[2] is None else len(match[2])
        return words * (2 if "_d16_" in opcode else 4)
    if "byte" in opcode:
        return 1
    if "short" in opcode:
        return 2
    return 8 if opcode.endswith(("_x2", "_f64")) else 4
