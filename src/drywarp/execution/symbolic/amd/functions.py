"""What AMD's integer and simple floating-point opcodes compute, as functions of NumPy arrays.

Only the opcodes from which addresses and branches are computed: indices, and the floating-point steps of integer
divisions. A signature names the result and the sources: i 32 bits, q 64 bits, f a float, d a double. The result of any
other opcode is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

A = Any
Function = Callable[..., A]

_U, _Q = np.uint32, np.uint64


def _s(x: A) -> A:
    return np.asarray(x, _U).view(np.int32)


def _sq(x: A) -> A:
    return np.asarray(x, _Q).view(np.int64)


def _u(x: A) -> A:
    return np.asarray(x, np.int32).view(_U)


def _uq(x: A) -> A:
    return np.asarray(x, np.int64).view(_Q)


def _wide(x: A) -> A:
    return np.asarray(x, _Q)


def _low(x: A, bits: int) -> A:
    return x & _U((1 << bits) - 1)


def _signed_low(x: A, bits: int) -> A:
    shift = np.int32(32 - bits)
    return (_s(x) << shift) >> shift


def _shift_left(x: A, n: A) -> A:
    return x << (n & _U(31))


def _shift_left_wide(x: A, n: A) -> A:
    return x << _wide(n & _U(63))


def _shift_right(x: A, n: A) -> A:
    return x >> (n & _U(31))


def _shift_right_wide(x: A, n: A) -> A:
    return x >> _wide(n & _U(63))


def _arithmetic(x: A, n: A) -> A:
    return _u(_s(x) >> np.asarray(n & _U(31), np.int32))


def _arithmetic_wide(x: A, n: A) -> A:
    return _uq(_sq(x) >> np.asarray(n & _U(63), np.int64))


def _field(x: A, at: A, size: A) -> A:
    size = size & _U(31)
    return (x >> (at & _U(31))) & ((_U(1) << size) - _U(1))


def _signed_field(x: A, at: A, size: A) -> A:
    unused = np.asarray(_U(32) - (size & _U(31)), np.int32) & np.int32(31)
    raised = _s(_field(x, at, size) << np.asarray(unused, _U))
    return np.where(size & _U(31) == 0, _U(0), _u(raised >> unused))


def _high(x: A, y: A) -> A:
    return (_wide(x) * _wide(y) >> _Q(32)).astype(_U)


def _signed_product(x: A, y: A) -> A:
    return _uq(_s(x).astype(np.int64) * _s(y).astype(np.int64))


def _signed_high(x: A, y: A) -> A:
    return (_signed_product(x, y) >> _Q(32)).astype(_U)


def _count_ones(x: A) -> A:
    return np.bitwise_count(x).astype(_U)


def _first_one(x: A) -> A:
    """Position of the lowest set bit; all ones if there is none."""
    x = np.asarray(x)
    one = x.dtype.type(1)
    return np.where(x == 0, _U(0xFFFFFFFF), np.bitwise_count((x & (~x + one)) - one).astype(_U))


def _leading_zeros(x: A) -> A:
    """Zeros above the highest set bit; all ones if there is none."""
    x = np.asarray(x, _U)
    for step in (1, 2, 4, 8, 16):
        x = x | x >> _U(step)
    return np.where(x == 0, _U(0xFFFFFFFF), _U(32) - _count_ones(x))


def _reversed_bits(x: A) -> A:
    x = np.asarray(x, _U)
    for step, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0x0000FFFF)):
        x = (x >> _U(step)) & _U(mask) | (x & _U(mask)) << _U(step)
    return x


def _median(a: A, b: A, c: A) -> A:
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


def _whole(x: A, low: float, high: float) -> A:
    """A float without its fraction, within bounds; 0 of a NaN."""
    return np.clip(np.nan_to_num(np.trunc(x), nan=0.0), low, high).astype(np.int64)


def _aligned(high: A, low: A, bits: A) -> A:
    """A word of a pair, starting at a bit of the lower half."""
    return ((_wide(high) << _Q(32) | _wide(low)) >> _wide(bits)).astype(_U)


def _fused(a: A, b: A, c: A) -> A:
    """Correctly rounded in all but the rarest cases: a product of floats is exact in double."""
    return (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(np.float32)


VECTOR: dict[str, tuple[str, Function]] = {
    "v_mov_b32": ("i:i", lambda a: a), "v_mov_b64": ("q:q", lambda a: a), "v_accvgpr_read_b32": ("i:i", lambda a: a),
    "v_accvgpr_write_b32": ("i:i", lambda a: a), "v_accvgpr_mov_b32": ("i:i", lambda a: a),
    "v_add_u32": ("i:ii", lambda a, b: a + b), "v_add_i32": ("i:ii", lambda a, b: a + b),
    "v_sub_u32": ("i:ii", lambda a, b: a - b), "v_sub_i32": ("i:ii", lambda a, b: a - b),
    "v_subrev_u32": ("i:ii", lambda a, b: b - a),
    "v_add3_u32": ("i:iii", lambda a, b, c: a + b + c), "v_xad_u32": ("i:iii", lambda a, b, c: (a ^ b) + c),
    "v_lshl_add_u32": ("i:iii", lambda a, b, c: _shift_left(a, b) + c),
    "v_add_lshl_u32": ("i:iii", lambda a, b, c: _shift_left(a + b, c)),
    "v_lshl_or_b32": ("i:iii", lambda a, b, c: _shift_left(a, b) | c),
    "v_lshl_add_u64": ("q:qiq", lambda a, b, c: (a << _wide(b & _U(7))) + c),
    "v_and_or_b32": ("i:iii", lambda a, b, c: a & b | c), "v_or3_b32": ("i:iii", lambda a, b, c: a | b | c),
    "v_and_b32": ("i:ii", lambda a, b: a & b), "v_or_b32": ("i:ii", lambda a, b: a | b),
    "v_xor_b32": ("i:ii", lambda a, b: a ^ b), "v_xnor_b32": ("i:ii", lambda a, b: ~(a ^ b)),
    "v_not_b32": ("i:i", lambda a: ~a),
    "v_lshlrev_b32": ("i:ii", lambda n, a: _shift_left(a, n)),
    "v_lshrrev_b32": ("i:ii", lambda n, a: _shift_right(a, n)),
    "v_ashrrev_i32": ("i:ii", lambda n, a: _arithmetic(a, n)),
    "v_lshlrev_b64": ("q:iq", lambda n, a: _shift_left_wide(a, n)),
    "v_lshrrev_b64": ("q:iq", lambda n, a: _shift_right_wide(a, n)),
    "v_ashrrev_i64": ("q:iq", lambda n, a: _arithmetic_wide(a, n)),
    "v_lshlrev_b16": ("i:ii", lambda n, a: _low(a << (n & _U(15)), 16)),
    "v_lshrrev_b16": ("i:ii", lambda n, a: _low(a, 16) >> (n & _U(15))),
    "v_add_u16": ("i:ii", lambda a, b: _low(a + b, 16)), "v_sub_u16": ("i:ii", lambda a, b: _low(a - b, 16)),
    "v_mul_lo_u16": ("i:ii", lambda a, b: _low(_low(a, 16) * _low(b, 16), 16)),
    "v_mad_u16": ("i:iii", lambda a, b, c: _low(a * b + c, 16)),
    "v_mad_u32_u16": ("i:iii", lambda a, b, c: _low(a, 16) * _low(b, 16) + c),
    "v_bfe_u32": ("i:iii", _field), "v_bfe_i32": ("i:iii", _signed_field),
    "v_bfi_b32": ("i:iii", lambda m, a, b: m & a | ~m & b),
    "v_bfm_b32": ("i:ii", lambda n, at: ((_U(1) << (n & _U(31))) - _U(1)) << (at & _U(31))),
    "v_alignbit_b32": ("i:iii", lambda a, b, n: _aligned(a, b, n & _U(31))),
    "v_alignbyte_b32": ("i:iii", lambda a, b, n: _aligned(a, b, (n & _U(3)) * _U(8))),
    "v_min_u32": ("i:ii", np.minimum), "v_max_u32": ("i:ii", np.maximum),
    "v_min_i32": ("i:ii", lambda a, b: _u(np.minimum(_s(a), _s(b)))),
    "v_max_i32": ("i:ii", lambda a, b: _u(np.maximum(_s(a), _s(b)))),
    "v_min3_u32": ("i:iii", lambda a, b, c: np.minimum(np.minimum(a, b), c)),
    "v_max3_u32": ("i:iii", lambda a, b, c: np.maximum(np.maximum(a, b), c)),
    "v_min3_i32": ("i:iii", lambda a, b, c: _u(np.minimum(np.minimum(_s(a), _s(b)), _s(c)))),
    "v_max3_i32": ("i:iii", lambda a, b, c: _u(np.maximum(np.maximum(_s(a), _s(b)), _s(c)))),
    "v_med3_u32": ("i:iii", _median), "v_med3_i32": ("i:iii", lambda a, b, c: _u(_median(_s(a), _s(b), _s(c)))),
    "v_mul_lo_u32": ("i:ii", lambda a, b: a * b), "v_mul_lo_i32": ("i:ii", lambda a, b: a * b),
    "v_mul_hi_u32": ("i:ii", _high), "v_mul_hi_i32": ("i:ii", _signed_high),
    "v_mul_u32_u24": ("i:ii", lambda a, b: _low(a, 24) * _low(b, 24)),
    "v_mul_i32_i24": ("i:ii", lambda a, b: _u(_signed_low(a, 24) * _signed_low(b, 24))),
    "v_mul_hi_u32_u24": ("i:ii", lambda a, b: _high(_low(a, 24), _low(b, 24))),
    "v_mad_u32_u24": ("i:iii", lambda a, b, c: _low(a, 24) * _low(b, 24) + c),
    "v_mad_i32_i24": ("i:iii", lambda a, b, c: _u(_signed_low(a, 24) * _signed_low(b, 24)) + c),
    "v_mad_u64_u32": ("q:iiq", lambda a, b, c: _wide(a) * _wide(b) + c),
    "v_mad_i64_i32": ("q:iiq", lambda a, b, c: _signed_product(a, b) + c),
    "v_bcnt_u32_b32": ("i:ii", lambda a, b: _count_ones(a) + b),
    "v_ffbh_u32": ("i:i", _leading_zeros), "v_ffbl_b32": ("i:i", _first_one), "v_bfrev_b32": ("i:i", _reversed_bits),
    "v_cvt_f32_u32": ("f:i", lambda a: np.asarray(a).astype(np.float32)),
    "v_cvt_f32_i32": ("f:i", lambda a: _s(a).astype(np.float32)),
    "v_cvt_u32_f32": ("i:f", lambda a: _whole(a, 0, 4294967040.0).astype(_U)),
    "v_cvt_i32_f32": ("i:f", lambda a: _u(_whole(a, -2147483648.0, 2147483520.0).astype(np.int32))),
    "v_cvt_f64_u32": ("d:i", lambda a: np.asarray(a).astype(np.float64)),
    "v_cvt_f64_i32": ("d:i", lambda a: _s(a).astype(np.float64)),
    "v_cvt_u32_f64": ("i:d", lambda a: _whole(a, 0, 4294967295.0).astype(_U)),
    "v_rcp_iflag_f32": ("f:f", lambda a: np.float32(1) / a), "v_rcp_f32": ("f:f", lambda a: np.float32(1) / a),
    "v_rcp_f64": ("d:d", lambda a: 1.0 / a),
    "v_mul_f32": ("f:ff", lambda a, b: a * b), "v_add_f32": ("f:ff", lambda a, b: a + b),
    "v_sub_f32": ("f:ff", lambda a, b: a - b), "v_subrev_f32": ("f:ff", lambda a, b: b - a),
    "v_min_f32": ("f:ff", np.fmin), "v_max_f32": ("f:ff", np.fmax),
    "v_fma_f32": ("f:fff", _fused), "v_mad_f32": ("f:fff", lambda a, b, c: a * b + c),
    "v_trunc_f32": ("f:f", np.trunc), "v_floor_f32": ("f:f", np.floor), "v_ceil_f32": ("f:f", np.ceil),
    "v_rndne_f32": ("f:f", np.rint), "v_fract_f32": ("f:f", lambda a: a - np.floor(a)),
    "v_mul_f64": ("d:dd", lambda a, b: a * b), "v_add_f64": ("d:dd", lambda a, b: a + b),
    "v_fma_f64": ("d:ddd", lambda a, b, c: a * b + c), "v_trunc_f64": ("d:d", np.trunc),
    "v_floor_f64": ("d:d", np.floor),
}  # fmt: skip
"""Vector opcodes that do not touch carries, masks or other lanes."""


def _nonzero(r: A, *sources: A) -> A:
    return r != 0


def _never(r: A, *sources: A) -> A:
    return None


SCALAR: dict[str, tuple[str, Function, Function]] = {
    "s_mov_b32": ("i:i", lambda a: a, _never), "s_mov_b64": ("q:q", lambda a: a, _never),
    "s_movk_i32": ("i:i", lambda a: _u(_signed_low(a, 16)), _never),
    "s_add_u32": ("i:ii", lambda a, b: a + b, lambda r, a, b: r < a),
    "s_sub_u32": ("i:ii", lambda a, b: a - b, lambda r, a, b: a < b),
    "s_add_i32": ("i:ii", lambda a, b: a + b, lambda r, a, b: ((a ^ r) & (b ^ r)) >> _U(31) != 0),
    "s_sub_i32": ("i:ii", lambda a, b: a - b, lambda r, a, b: ((a ^ b) & (a ^ r)) >> _U(31) != 0),
    "s_mul_i32": ("i:ii", lambda a, b: a * b, _never),
    "s_mul_hi_u32": ("i:ii", _high, _never), "s_mul_hi_i32": ("i:ii", _signed_high, _never),
    "s_lshl_b32": ("i:ii", _shift_left, _nonzero), "s_lshr_b32": ("i:ii", _shift_right, _nonzero),
    "s_ashr_i32": ("i:ii", _arithmetic, _nonzero),
    "s_lshl_b64": ("q:qi", _shift_left_wide, _nonzero), "s_lshr_b64": ("q:qi", _shift_right_wide, _nonzero),
    "s_ashr_i64": ("q:qi", _arithmetic_wide, _nonzero),
    "s_and_b32": ("i:ii", lambda a, b: a & b, _nonzero), "s_and_b64": ("q:qq", lambda a, b: a & b, _nonzero),
    "s_or_b32": ("i:ii", lambda a, b: a | b, _nonzero), "s_or_b64": ("q:qq", lambda a, b: a | b, _nonzero),
    "s_xor_b32": ("i:ii", lambda a, b: a ^ b, _nonzero), "s_xor_b64": ("q:qq", lambda a, b: a ^ b, _nonzero),
    "s_andn2_b32": ("i:ii", lambda a, b: a & ~b, _nonzero), "s_andn2_b64": ("q:qq", lambda a, b: a & ~b, _nonzero),
    "s_orn2_b32": ("i:ii", lambda a, b: a | ~b, _nonzero), "s_orn2_b64": ("q:qq", lambda a, b: a | ~b, _nonzero),
    "s_nand_b32": ("i:ii", lambda a, b: ~(a & b), _nonzero), "s_nand_b64": ("q:qq", lambda a, b: ~(a & b), _nonzero),
    "s_nor_b32": ("i:ii", lambda a, b: ~(a | b), _nonzero), "s_nor_b64": ("q:qq", lambda a, b: ~(a | b), _nonzero),
    "s_xnor_b32": ("i:ii", lambda a, b: ~(a ^ b), _nonzero), "s_xnor_b64": ("q:qq", lambda a, b: ~(a ^ b), _nonzero),
    "s_not_b32": ("i:i", lambda a: ~a, _nonzero), "s_not_b64": ("q:q", lambda a: ~a, _nonzero),
    "s_bfe_u32": ("i:ii", lambda a, f: _field(a, f, f >> _U(16)), _nonzero),
    "s_bfe_i32": ("i:ii", lambda a, f: _signed_field(a, f, f >> _U(16)), _nonzero),
    "s_bfe_u64": (
        "q:qi", lambda a, f: (a >> _wide(f & _U(63))) & ((_Q(1) << _wide(f >> _U(16) & _U(63))) - _Q(1)), _nonzero
    ),
    "s_bfm_b32": ("i:ii", lambda n, at: ((_U(1) << (n & _U(31))) - _U(1)) << (at & _U(31)), _never),
    "s_bfm_b64": ("q:ii", lambda n, at: ((_Q(1) << _wide(n & _U(63))) - _Q(1)) << _wide(at & _U(63)), _never),
    "s_min_u32": ("i:ii", np.minimum, lambda r, a, b: r == a),
    "s_max_u32": ("i:ii", np.maximum, lambda r, a, b: r == a),
    "s_min_i32": ("i:ii", lambda a, b: _u(np.minimum(_s(a), _s(b))), lambda r, a, b: r == a),
    "s_max_i32": ("i:ii", lambda a, b: _u(np.maximum(_s(a), _s(b))), lambda r, a, b: r == a),
    "s_abs_i32": ("i:i", lambda a: _u(np.abs(_s(a))), _nonzero),
    "s_absdiff_i32": ("i:ii", lambda a, b: _u(np.abs(_s(a - b))), _nonzero),
    "s_sext_i32_i16": ("i:i", lambda a: _u(_signed_low(a, 16)), _never),
    "s_sext_i32_i8": ("i:i", lambda a: _u(_signed_low(a, 8)), _never),
    "s_lshl1_add_u32": ("i:ii", lambda a, b: (a << _U(1)) + b, lambda r, a, b: r < b),
    "s_lshl2_add_u32": ("i:ii", lambda a, b: (a << _U(2)) + b, lambda r, a, b: r < b),
    "s_lshl3_add_u32": ("i:ii", lambda a, b: (a << _U(3)) + b, lambda r, a, b: r < b),
    "s_lshl4_add_u32": ("i:ii", lambda a, b: (a << _U(4)) + b, lambda r, a, b: r < b),
    "s_pack_ll_b32_b16": ("i:ii", lambda a, b: _low(a, 16) | b << _U(16), _never),
    "s_pack_lh_b32_b16": ("i:ii", lambda a, b: _low(a, 16) | b & _U(0xFFFF0000), _never),
    "s_pack_hh_b32_b16": ("i:ii", lambda a, b: a >> _U(16) | b & _U(0xFFFF0000), _never),
    "s_bcnt1_i32_b32": ("i:i", _count_ones, _nonzero), "s_bcnt1_i32_b64": ("i:q", _count_ones, _nonzero),
    "s_ff1_i32_b32": ("i:i", _first_one, _never), "s_ff1_i32_b64": ("i:q", _first_one, _never),
    "s_flbit_i32_b32": ("i:i", _leading_zeros, _never), "s_brev_b32": ("i:i", _reversed_bits, _never),
    "s_getpc_b64": ("q:", lambda: _Q(0), _never),
}  # fmt: skip
"""Scalar opcodes: signature, result, and the condition code as a function of result and sources (None: unchanged)."""

COMPARES: dict[str, Function] = {
    "eq": np.equal, "ne": np.not_equal, "lg": np.not_equal, "neq": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal, "nlt": lambda a, b: ~(a < b), "nle": lambda a, b: ~(a <= b),
    "ngt": lambda a, b: ~(a > b), "nge": lambda a, b: ~(a >= b), "nlg": lambda a, b: ~((a < b) | (a > b)),
    "o": lambda a, b: (a == a) & (b == b), "u": lambda a, b: (a != a) | (b != b),
    "f": lambda a, b: np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b)), np.bool_),
    "t": lambda a, b: np.ones(np.broadcast_shapes(np.shape(a), np.shape(b)), np.bool_),
    "tru": lambda a, b: np.ones(np.broadcast_shapes(np.shape(a), np.shape(b)), np.bool_),
}  # fmt: skip
"""Comparisons by name."""


def as_compared(kind: str) -> tuple[str, Function]:
    """The signature letter of a type suffix (``i32``, ``u64``, ``f32``) and the view of its bits."""
    size = int(kind[1:])
    if kind[0] == "f":
        return ("f", lambda x: x) if size == 32 else ("d", lambda x: x)
    if size == 64:
        return ("q", _sq) if kind[0] == "i" else ("q", lambda x: x)
    if size == 16:
        return ("i", lambda x: _signed_low(x, 16)) if kind[0] == "i" else ("i", lambda x: _low(x, 16))
    return ("i", _s) if kind[0] == "i" else ("i", lambda x: x)
