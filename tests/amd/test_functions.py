"""What AMD's integer opcodes compute, against Python's integers over boundary values (the ISA manuals' definitions)."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from drywarp.execution.symbolic.amd.functions import SCALAR, VECTOR, as_compared

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
WORDS = [0, 1, 2, 3, 5, 31, 32, 33, 0x7FFF, 0x8000, 0xFFFF, 0x00FFFFFF, 0x00800000, 0x7FFFFFFF, 0x80000000,
         0xDEADBEEF, M32]  # fmt: skip
LONGS = [0, 1, 0x7FFFFFFF, 0x80000000, M32, 1 << 32, 0x123456789ABCDEF0, 1 << 63, M64]
Exact = Callable[..., int]


def s(x: int, bits: int = 32) -> int:
    """The same bits as a signed number."""
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def field(x: int, at: int, size: int) -> int:
    return x >> (at & 31) & ((1 << (size & 31)) - 1)


def signed_field(x: int, at: int, size: int) -> int:
    return s(field(x, at, size), size & 31) if size & 31 else 0


def lowest(x: int) -> int:
    return (x & -x).bit_length() - 1


def highest(x: int) -> int:
    return 32 - x.bit_length() if x else -1


def middle(a: int, b: int, c: int) -> int:
    return sorted((a, b, c))[1]


BOTH: dict[str, Exact] = {
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "xnor": lambda a, b: ~(a ^ b),
    "not": lambda a: ~a,
}  # fmt: skip
EXACT: dict[str, Exact] = {
    **{f"v_{name}_b32": exact for name, exact in BOTH.items()},
    **{f"s_{name}_b{bits}": exact for name, exact in BOTH.items() for bits in (32, 64)},
    **{f"s_{name}_b{bits}": exact for bits in (32, 64) for name, exact in {
        "andn2": lambda a, b: a & ~b, "orn2": lambda a, b: a | ~b, "nand": lambda a, b: ~(a & b),
        "nor": lambda a, b: ~(a | b), "mov": lambda a: a}.items()},
    "v_add_u32": lambda a, b: a + b, "v_sub_u32": lambda a, b: a - b, "v_subrev_u32": lambda a, b: b - a,
    "v_add_i32": lambda a, b: a + b, "v_sub_i32": lambda a, b: a - b, "v_add3_u32": lambda a, b, c: a + b + c,
    "v_xad_u32": lambda a, b, c: (a ^ b) + c, "v_lshl_add_u32": lambda a, b, c: (a << (b & 31)) + c,
    "v_add_lshl_u32": lambda a, b, c: (a + b & M32) << (c & 31), "v_lshl_or_b32": lambda a, b, c: a << (b & 31) | c,
    "v_lshl_add_u64": lambda a, b, c: (a << (b & 7)) + c, "v_and_or_b32": lambda a, b, c: a & b | c,
    "v_or3_b32": lambda a, b, c: a | b | c,
    "v_lshlrev_b32": lambda n, a: a << (n & 31), "v_lshrrev_b32": lambda n, a: a >> (n & 31),
    "v_ashrrev_i32": lambda n, a: s(a) >> (n & 31), "v_lshlrev_b64": lambda n, a: a << (n & 63),
    "v_lshrrev_b64": lambda n, a: a >> (n & 63), "v_ashrrev_i64": lambda n, a: s(a, 64) >> (n & 63),
    "v_lshlrev_b16": lambda n, a: (a & 0xFFFF) << (n & 15) & 0xFFFF,
    "v_lshrrev_b16": lambda n, a: (a & 0xFFFF) >> (n & 15),
    "v_add_u16": lambda a, b: a + b & 0xFFFF, "v_sub_u16": lambda a, b: a - b & 0xFFFF,
    "v_mul_lo_u16": lambda a, b: a * b & 0xFFFF, "v_mad_u16": lambda a, b, c: a * b + c & 0xFFFF,
    "v_mad_u32_u16": lambda a, b, c: (a & 0xFFFF) * (b & 0xFFFF) + c,
    "v_bfe_u32": field, "v_bfe_i32": signed_field, "v_bfi_b32": lambda m, a, b: m & a | ~m & b,
    "v_bfm_b32": lambda n, at: ((1 << (n & 31)) - 1) << (at & 31),
    "v_alignbit_b32": lambda a, b, n: (a << 32 | b) >> (n & 31),
    "v_alignbyte_b32": lambda a, b, n: (a << 32 | b) >> 8 * (n & 3),
    "v_min_u32": min, "v_max_u32": max, "v_min3_u32": min, "v_max3_u32": max, "v_med3_u32": middle,
    "v_min_i32": lambda a, b: min(s(a), s(b)), "v_max_i32": lambda a, b: max(s(a), s(b)),
    "v_min3_i32": lambda a, b, c: min(s(a), s(b), s(c)), "v_max3_i32": lambda a, b, c: max(s(a), s(b), s(c)),
    "v_med3_i32": lambda a, b, c: middle(s(a), s(b), s(c)),
    "v_mul_lo_u32": lambda a, b: a * b, "v_mul_lo_i32": lambda a, b: a * b, "v_mul_hi_u32": lambda a, b: a * b >> 32,
    "v_mul_hi_i32": lambda a, b: s(a) * s(b) >> 32,
    "v_mul_u32_u24": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF), "v_mul_i32_i24": lambda a, b: s(a, 24) * s(b, 24),
    "v_mul_hi_u32_u24": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF) >> 32,
    "v_mad_u32_u24": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c,
    "v_mad_i32_i24": lambda a, b, c: s(a, 24) * s(b, 24) + c,
    "v_mad_u64_u32": lambda a, b, c: a * b + c, "v_mad_i64_i32": lambda a, b, c: s(a) * s(b) + c,
    "v_bcnt_u32_b32": lambda a, b: a.bit_count() + b, "v_ffbh_u32": highest, "v_ffbl_b32": lowest,
    "v_bfrev_b32": lambda a: int(f"{a:032b}"[::-1], 2),
    "s_movk_i32": lambda a: s(a, 16), "s_add_u32": lambda a, b: a + b, "s_sub_u32": lambda a, b: a - b,
    "s_add_i32": lambda a, b: a + b, "s_sub_i32": lambda a, b: a - b, "s_mul_i32": lambda a, b: a * b,
    "s_mul_hi_u32": lambda a, b: a * b >> 32, "s_mul_hi_i32": lambda a, b: s(a) * s(b) >> 32,
    "s_lshl_b32": lambda a, n: a << (n & 31), "s_lshr_b32": lambda a, n: a >> (n & 31),
    "s_ashr_i32": lambda a, n: s(a) >> (n & 31), "s_lshl_b64": lambda a, n: a << (n & 63),
    "s_lshr_b64": lambda a, n: a >> (n & 63), "s_ashr_i64": lambda a, n: s(a, 64) >> (n & 63),
    "s_bfe_u32": lambda a, f: field(a, f, f >> 16), "s_bfe_i32": lambda a, f: signed_field(a, f, f >> 16),
    "s_bfe_u64": lambda a, f: a >> (f & 63) & ((1 << (f >> 16 & 63)) - 1),
    "s_bfm_b32": lambda n, at: ((1 << (n & 31)) - 1) << (at & 31),
    "s_bfm_b64": lambda n, at: ((1 << (n & 63)) - 1) << (at & 63),
    "s_min_u32": min, "s_max_u32": max, "s_min_i32": lambda a, b: min(s(a), s(b)),
    "s_max_i32": lambda a, b: max(s(a), s(b)), "s_abs_i32": lambda a: abs(s(a)),
    "s_absdiff_i32": lambda a, b: abs(s(a - b)), "s_sext_i32_i16": lambda a: s(a, 16),
    "s_sext_i32_i8": lambda a: s(a, 8),
    **{f"s_lshl{n}_add_u32": lambda a, b, n=n: (a << n & M32) + b for n in (1, 2, 3, 4)},
    "s_pack_ll_b32_b16": lambda a, b: a & 0xFFFF | b << 16,
    "s_pack_lh_b32_b16": lambda a, b: a & 0xFFFF | b & 0xFFFF0000,
    "s_pack_hh_b32_b16": lambda a, b: a >> 16 | b & 0xFFFF0000, "s_bcnt1_i32_b32": int.bit_count,
    "s_bcnt1_i32_b64": int.bit_count, "s_ff1_i32_b32": lowest, "s_ff1_i32_b64": lowest, "s_flbit_i32_b32": highest,
    "s_brev_b32": lambda a: int(f"{a:032b}"[::-1], 2),
}  # fmt: skip
CARRIES: dict[str, Callable[..., bool]] = {
    "s_add_u32": lambda a, b: a + b > M32, "s_sub_u32": lambda a, b: a < b,
    "s_add_i32": lambda a, b: not -(1 << 31) <= s(a) + s(b) < 1 << 31,
    "s_sub_i32": lambda a, b: not -(1 << 31) <= s(a) - s(b) < 1 << 31,
}  # fmt: skip
TABLE = {**VECTOR, **{name: (form, of) for name, (form, of, _) in SCALAR.items()}}


def values(kinds: str) -> list[tuple[int, ...]]:
    return list(itertools.product(*(WORDS if kind == "i" else LONGS for kind in kinds)))


def columns(rows: list[tuple[int, ...]], kinds: str) -> list[np.ndarray]:
    types = [np.uint32 if kind == "i" else np.uint64 for kind in kinds]
    return [np.array(column, type_) for column, type_ in zip(zip(*rows, strict=True), types, strict=True)]


@pytest.mark.parametrize("name", EXACT)
def test_integers(name: str) -> None:
    (result, sources), of = TABLE[name][0].split(":"), TABLE[name][1]
    rows, mask = values(sources), M64 if result == "q" else M32
    with np.errstate(over="ignore"):
        found = np.asarray(of(*columns(rows, sources)))
    expected = [EXACT[name](*row) & mask for row in rows]
    pairs = zip(rows, found.tolist(), expected, strict=True)
    assert [(*map(hex, row), hex(ours)) for row, ours, theirs in pairs if ours != theirs] == []


@pytest.mark.parametrize("name", CARRIES)
def test_carries_and_overflows(name: str) -> None:
    _, of, carry = SCALAR[name]
    rows = values("ii")
    a, b = columns(rows, "ii")
    with np.errstate(over="ignore"):
        found = carry(of(a, b), a, b)
    assert [bool(f) for f in found] == [CARRIES[name](*row) for row in rows]


HELD = {"i": np.uint32, "q": np.uint64, "f": np.float32, "d": np.float64}


@pytest.mark.parametrize("kind", ["i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64"])
def test_what_is_compared_has_the_size_and_the_sign_of_its_type(kind: str) -> None:
    letter, seen = as_compared(kind)
    size = int(kind[1:])
    held = np.dtype(HELD[letter])
    assert held.itemsize * 8 == max(size, 32), "sixteen bits are the low half of a register"
    if kind[0] == "f":
        assert seen(held.type(-1.5)) == -1.5
        return
    bits = [word for word in LONGS if word >> 8 * held.itemsize == 0]
    expected = [s(word, size) if kind[0] == "i" else word & ((1 << size) - 1) for word in bits]
    assert np.asarray(seen(np.array(bits, held))).tolist() == expected


def test_what_is_left_out_has_a_reason() -> None:
    """Floating-point steps of divisions run in the examples; a move and the program counter compute nothing."""
    left = {name for name, (form, _) in TABLE.items() if set(form) <= set("iq:") and name not in EXACT}
    assert {name for name in left if "mov" not in name and "accvgpr" not in name} == {"s_getpc_b64"}
