"""What is known of an AMD opcode by its name: class, memory access, control flow, matrix shape, affine behaviour.

NVIDIA's opcodes have a row each. AMD's names follow a grammar instead: the unit (``v_``, ``s_``, ``ds_``, ``global_``
…), the operation and the type. Rules parse them, so that a new opcode of a known kind is known at once; anything else
has the class ``unknown``. Which registers an instruction reads and writes is in `registers.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...instruction import MemoryAccess

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
    """The instruction class of an AMD opcode; ``unknown`` if no rule matches. Scratch is ``local``."""
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
    if opcode.startswith("scratch_"):
        return "local_load" if "_load_" in opcode else "local_store"
    return next(f"global_{word}" for word in ("load", "store", "atomic") if f"_{word}_" in opcode)


def _vector_class(opcode: str) -> str:
    if opcode.startswith(("v_mfma_", "v_smfmac_")):
        return "tensor"
    if opcode in ("v_nop", "v_clrexcp"):
        return "nop"
    if _TRANSCENDENTAL.match(opcode):
        return "sfu"
    if opcode.startswith("v_cvt_"):
        return "convert" if "f64" in opcode else "convert_fast"
    for pattern, name in ((_MOVE, "move"), (_FULL_PRODUCT, "imad_wide"), (_SHIFT, "shift"), (_BIT, "bit")):
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


_FLOAT_SUM = re.compile(r"v_(pk_)?(add|sub|subrev|mul)(_legacy)?_f\d+")
_FLOAT_FMA = re.compile(r"v_(pk_)?(fma|mad|mac|fmac)([am]k|_legacy|_mix(lo|hi)?)?_f\d+")


def operations(opcode: str) -> int:
    """Additions and multiplications of floating-point numbers per lane; 0 for anything else."""
    each = 2 if _FLOAT_FMA.match(opcode) else 1 if _FLOAT_SUM.match(opcode) else 0
    return each * (2 if opcode.startswith("v_pk_") else 1)


def memory_access(opcode: str, modifiers: Sequence[str]) -> MemoryAccess | None:
    """Space, kind and bytes per lane of a vector memory or data share opcode; None for all others.

    Scalar loads are excluded, because they go through the constant cache. ``ds_read2_b32`` and its variants access two
    locations of `width` each.
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


# Control flow of AMD instructions.

_CONDITIONAL = "s_cbranch_"
_ENDS = ("s_endpgm", "s_setpc_b64", "s_rfe_b64")
_CALLS = ("s_swappc_b64", "s_call_b64")


def is_call(opcode: str) -> bool:
    """Whether it calls a function that returns."""
    return opcode in _CALLS


def is_return(opcode: str) -> bool:
    """Whether it jumps to an address in registers."""
    return opcode == "s_setpc_b64"


def is_exit(opcode: str) -> bool:
    """Whether it ends the warp."""
    return opcode.startswith("s_endpgm")


def ends_block(opcode: str) -> bool:
    """Whether the warp may leave the sequential order, or wait for others, after this instruction."""
    return opcode.startswith((_CONDITIONAL, *_ENDS, *_CALLS)) or opcode in ("s_branch", "s_barrier")


def is_jump(opcode: str) -> bool:
    """Whether the opcode is a branch with a label as its target."""
    return opcode == "s_branch" or opcode.startswith(_CONDITIONAL)


def falls_through(opcode: str) -> bool:
    """Whether the next instruction in address order may follow; a call returns to it."""
    return opcode != "s_branch" and not opcode.startswith(_ENDS)


# Numbers that change by a constant with a loop's iterations: which opcodes keep them so.

keeps_affine = re.compile(
    r"v_(mov|accvgpr_(read|write|mov))_b\d+|v_pk_mov_b32|v_(add|sub|subrev|addc|subb|subbrev)_(co_)?[ui]32|v_add3_u32"
    r"|s_(mov|movk|add|sub|addc|subb|addk|mulk|lshl[1-4]_add)_[biu]\d+|v_readfirstlane_b32"
).fullmatch
"""Whether affine sources give an affine result."""
is_product = re.compile(r"(v_mul_lo|v_mul|v_mad|v_mad_u64|v_mad_i64|s_mul)_[iu]32(_[iu]24)?$").match
"""Whether the result is affine only if one of its factors stays constant."""
is_compare = re.compile(r"(s_cmpk?|v_cmpx?)_\w+?_[iuf]\d+$").match
"""Whether it compares two numbers."""
selects = re.compile(r"s_cselect|s_cmov").match
"""Whether the condition code selects one of two scalars."""
takes_carry = re.compile(r"s_(addc|subb)_|v_(addc|subb|subbrev)_").match
"""Whether it adds the upper half of a 64-bit number."""
works_on_long = re.compile(
    r"(v_lshlrev|s_lshl|v_ashrrev|s_ashr|v_lshrrev|s_lshr)_[bi]64|[vs]_cmpx?_\w+_[iu]64|v_mul_lo_u32|s_mul_i32"
).match
"""Whether a register pair that it reads is a long integer rather than an address."""
adds_address = re.compile(r"v_add_(co_)?u32|s_add_u32|v_mad_[iu]64_[iu]32").fullmatch
"""Whether it may add an offset to an address."""
CONSTANT_OPERAND = {
    "v_lshlrev_b32": 1, "v_lshlrev_b64": 1, "v_lshl_add_u32": 2, "v_lshl_add_u64": 2, "v_add_lshl_u32": 3,
    "s_lshl_b32": 2, "s_lshl_b64": 2, "v_cndmask_b32": 3, "v_readlane_b32": 2,
}  # fmt: skip
"""Position of the operand that must stay constant: the shift amount, or the lane whose number is taken."""
SIGN_BIT, SIGN_AMOUNT = 31, {"v_ashrrev_i32": 1, "s_ashr_i32": 2}
"""Position of the shift amount that, if it is the sign bit's, makes the result a sign."""


# Matrix instructions of AMD GPUs, parsed from their names.

_NAME = re.compile(r"v_s?mfma[c]?_[fi]\d+_(\d+)x(\d+)x(\d+)(?:_(\d+)b)?_?([a-z0-9_]+)$")
_TYPES = {"f16": "fp16", "bf16": "bf16", "bf16_1k": "bf16", "f32": "fp32", "xf32": "tf32", "f64": "fp64", "i8": "int8"}
_OLD_BLOCKS = {
    ("32", "32", "1", "f32"): 2, ("16", "16", "1", "f32"): 4, ("4", "4", "1", "f32"): 16,
    ("32", "32", "4", "f16"): 2, ("16", "16", "4", "f16"): 4, ("4", "4", "4", "f16"): 16,
    ("32", "32", "4", "i8"): 2, ("16", "16", "4", "i8"): 4, ("4", "4", "4", "i8"): 16,
    ("32", "32", "2", "bf16"): 2, ("16", "16", "2", "bf16"): 4, ("4", "4", "2", "bf16"): 16,
    ("32", "32", "4", "bf16_1k"): 2, ("16", "16", "4", "bf16_1k"): 4, ("4", "4", "4", "bf16_1k"): 16,
    ("4", "4", "4", "f64"): 4,
}  # fmt: skip
"""Number of blocks for names that do not include it (GFX908 and GFX90A)."""


@dataclass(frozen=True, slots=True)
class MatrixShape:
    """Shape of one block, number of blocks, the input type as in `[tensor]`, and whether A is sparse."""

    m: int
    n: int
    k: int
    blocks: int
    input_type: str
    sparse: bool

    @property
    def multiplications(self) -> int:
        """Multiply-adds of the instruction, including those with the zeros of a sparse A."""
        return self.m * self.n * self.k * self.blocks


def matrix_shape(opcode: str) -> MatrixShape | None:
    """The shape that `v_mfma_f32_32x32x8_f16` and its variants multiply; None if the name cannot be parsed.

    The input type of GFX908's narrow bf16 instructions, which run at half the rate of the ``_1k`` ones on GFX90A, is
    ``bf16_narrow``. For instructions on several blocks, it ends in ``_blocks``, and for sparse ones in ``_sparse``,
    because their rates may differ.
    """
    match = _NAME.match(opcode)
    if match is None:
        return None
    m, n, k, stated, kind = match.groups()
    blocks = int(stated) if stated else _OLD_BLOCKS.get((m, n, k, kind), 1)
    sparse = opcode.startswith("v_smfmac")
    name = "fp8" if "fp8" in kind or "bf8" in kind else _TYPES.get(kind)
    if name is None:
        return None
    if kind == "bf16" and f"{k}bf16" in opcode:
        name = "bf16_narrow"
    elif blocks > 1:
        name += "_blocks"
    elif sparse:
        name += "_sparse"
    return MatrixShape(int(m), int(n), int(k), blocks, name, sparse)
