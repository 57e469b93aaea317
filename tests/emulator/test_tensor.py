"""Matrix multiply-accumulate instructions, fragment by fragment, as the PTX manual lays them out."""

from __future__ import annotations

import numpy as np
import pytest

from tests.effort import first, in_turn, some

from .support import ARCHES, run

RNG = np.random.default_rng(23)
LANE = np.arange(32)
GROUP, THREAD = LANE // 4, LANE % 4

# shape, PTX types of D, A, B, C, and how many elements of A and B stand in a register.
CASES = {
    "m16n8k16 f16 into f32": (16, 16, "f32.f16.f16.f32", 2),
    "m16n8k8 f16 into f32": (16, 8, "f32.f16.f16.f32", 2),
    "m16n8k16 f16 into f16": (16, 16, "f16.f16.f16.f16", 2),
    "m16n8k8 f16 into f16": (16, 8, "f16.f16.f16.f16", 2),
    "m16n8k16 bf16 into f32": (16, 16, "f32.bf16.bf16.f32", 2),
    "m16n8k8 bf16 into f32": (16, 8, "f32.bf16.bf16.f32", 2),
    "m16n8k8 tf32 into f32": (16, 8, "f32.tf32.tf32.f32", 1),
    "m16n8k4 tf32 into f32": (16, 4, "f32.tf32.tf32.f32", 1),
    "m16n8k16 s8 into s32": (16, 16, "s32.s8.s8.s32", 4),
    "m16n8k32 s8 into s32": (16, 32, "s32.s8.s8.s32", 4),
    "m16n8k32 u8 and s8 into s32": (16, 32, "s32.u8.s8.s32", 4),
    "m8n8k16 u8 into s32": (8, 16, "s32.u8.u8.s32", 4),
    "m8n8k4 f64 into f64": (8, 4, "f64.f64.f64.f64", 1),
}


def values(kind: str, shape: tuple[int, int]) -> np.ndarray:
    """Random elements that the type holds exactly, as float64."""
    if kind in ("s8", "u8", "s32"):
        low, high = {"s8": (-128, 128), "u8": (0, 256), "s32": (-5000, 5000)}[kind]
        return RNG.integers(low, high, shape).astype(np.float64)
    steps = {"bf16": 8, "f16": 16, "tf32": 64, "f32": 64, "f64": 64}[kind]
    return RNG.integers(-4 * steps, 4 * steps, shape) / steps


def packed(elements: np.ndarray, kind: str) -> np.ndarray:
    """Elements in their memory form, as 32-bit words along the last axis (bf16 and tf32 are upper parts)."""
    if kind == "bf16":
        data = (elements.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    else:
        types = {"f16": "f2", "tf32": "f4", "f32": "f4", "s8": "i1", "u8": "u1", "s32": "i4", "f64": "f8"}
        data = elements.astype(types[kind])
    return np.ascontiguousarray(data).view(np.uint32)


def fragment_a(a: np.ndarray, per: int) -> np.ndarray:
    """A's elements per lane, shape (32, registers, per): row tiles of 8 alternate first, then columns."""
    rows, columns = a.shape
    parts = [
        a[GROUP[:, None] + 8 * row_tile, column + (THREAD * per)[:, None] + np.arange(per)]
        for column in range(0, columns, 4 * per)
        for row_tile in range(rows // 8)
    ]
    return np.stack(parts, axis=1)


def fragment_b(b: np.ndarray, per: int) -> np.ndarray:
    parts = [b[row + (THREAD * per)[:, None] + np.arange(per), GROUP[:, None]] for row in range(0, len(b), 4 * per)]
    return np.stack(parts, axis=1)


def fragment_c(c: np.ndarray) -> np.ndarray:
    """Accumulator elements per lane, shape (32, 2 or 4)."""
    columns = 2 * THREAD[:, None] + np.arange(2)
    return np.concatenate([c[GROUP[:, None] + 8 * tile, columns] for tile in range(len(c) // 8)], axis=1)


@pytest.mark.parametrize("arch", first(ARCHES))
@pytest.mark.parametrize("case", some(CASES, 4))
def test_matrix_multiply_accumulate(arch, case):
    multiply_accumulate(arch, *CASES[case])


@pytest.mark.parametrize("k", first([8, 4, 16]))
def test_double_products_of_16_rows(k):
    multiply_accumulate("sm_90", 16, k, "f64.f64.f64.f64", 1)


def multiply_accumulate(arch: str, m: int, k: int, types: str, per: int) -> None:
    """Run one instruction on fragments of random matrices and compare the accumulator's bits."""
    d_kind, a_kind, b_kind, c_kind = types.split(".")
    a, b, c = values(a_kind, (m, k)), values(b_kind, (k, 8)), values(c_kind, (m, 8))
    words_a = packed(fragment_a(a, per), a_kind).reshape(32, -1)
    words_b = packed(fragment_b(b, per), b_kind).reshape(32, -1)
    words_c = packed(fragment_c(c), c_kind).reshape(32, -1)
    double = d_kind == "f64"
    letter = "d" if double else "f" if d_kind == "f32" else "r"
    kind = {"d": "double", "f": "float", "r": "unsigned"}[letter]
    operand_kind = ("double", "d") if double else ("unsigned", "r")
    counts = [w.shape[1] // (2 if double else 1) for w in (words_c, words_a, words_b)]
    places = iter(range(100))
    groups = ["{" + ", ".join(f"%{next(places)}" for _ in range(n)) + "}" for n in counts]
    out = ", ".join(f'"+{letter}"(d[{n}])' for n in range(counts[0]))
    ins = ", ".join(
        f'"{operand_kind[1]}"({v}[{n}])' for v, count in (("x", counts[1]), ("y", counts[2])) for n in range(count)
    )
    name = f"mma.sync.aligned.m{m}n8k{k}.row.col.{types}"
    source = f"""extern "C" __global__ void k(const {operand_kind[0]}* a, const {operand_kind[0]}* b, {kind}* c) {{
  {operand_kind[0]} x[{counts[1]}], y[{counts[2]}]; {kind} d[{counts[0]}]; int t = threadIdx.x;
  for (int i = 0; i < {counts[1]}; ++i) x[i] = a[t * {counts[1]} + i];
  for (int i = 0; i < {counts[2]}; ++i) y[i] = b[t * {counts[2]} + i];
  for (int i = 0; i < {counts[0]}; ++i) d[i] = c[t * {counts[0]} + i];
  asm volatile("{name} {groups[0]}, {groups[1]}, {groups[2]}, {groups[0]};" : {out} : {ins});
  for (int i = 0; i < {counts[0]}; ++i) c[t * {counts[0]} + i] = d[i]; }}"""
    arrays = [np.ascontiguousarray(w).view(np.float64 if double else np.uint32) for w in (words_a, words_b, words_c)]
    if letter == "f":
        arrays[2] = arrays[2].view(np.float32)
    got = run(source, 1, 32, *arrays, arch=arch).buffer("c")
    want = packed(fragment_c(a @ b + c), d_kind).reshape(32, -1)
    np.testing.assert_array_equal(np.ascontiguousarray(got).view(np.uint32).reshape(32, -1), want)


@pytest.mark.parametrize(("mode", "sign"), in_turn(["", ".satfinite"], [1, -1]))
def test_integer_sums_wrap_or_saturate(mode, sign):
    start = sign * (2**31 - 1000)
    source = f"""extern "C" __global__ void k(int* c, int a, int b, int start) {{
  int d[4] = {{start, start, start, start}};
  asm volatile("mma.sync.aligned.m16n8k32.row.col{mode}.s32.s8.s8.s32 {{%0, %1, %2, %3}}, {{%4, %4, %4, %4}}, "
               "{{%5, %5}}, {{%0, %1, %2, %3}};" : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a), "r"(b));
  for (int i = 0; i < 4; ++i) c[threadIdx.x * 4 + i] = d[i]; }}"""
    hundreds, others = 0x64646464, 0x64646464 if sign > 0 else 0x9C9C9C9C - 2**32
    got = run(source, 1, 32, np.zeros(128, np.int32), hundreds, others, start).buffer("c")
    exact = start + sign * 32 * 100 * 100
    limit = 2**31 - 1 if sign > 0 else -(2**31)
    wrapped = (exact + 2**31) % 2**32 - 2**31
    assert set(got.tolist()) == {limit if mode else wrapped}
