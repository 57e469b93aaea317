"""Products of 8, 6 and 4-bit floating-point matrices of sm_120, with scale factors or without, dense and sparse."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from drywarp.execution.emulator import Emulation
from tests.effort import some

from .ptx_forms import SMALL, small_numbers
from .support import run
from .test_tensor import GROUP, LANE, THREAD, fragment_a, fragment_b, fragment_c

RNG = np.random.default_rng(41)
ARCH = "sm_120a"
OPERANDS = {"a": 4, "b": 2, "c": 4}


def numbers(name: str, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Bit patterns of moderate numbers of a format, so that sums are exact, and what they are worth."""
    known = np.array(small_numbers(name))
    chosen = np.flatnonzero(np.isfinite(known) & (np.abs(known) <= 32) & ((np.abs(known) >= 2.0**-5) | (known == 0)))
    bits = RNG.choice(chosen, shape)
    return bits.astype(np.uint8), known[bits]


def in_bytes(bits: np.ndarray, name: str) -> np.ndarray:
    """A number to a byte, as kind::f8f6f4 takes it: one of 4 bits stands in its middle."""
    return bits << 2 if name == "e2m1" else bits


def words(fragment: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(fragment.astype(np.uint8)).view(np.uint32).reshape(32, -1)


def nibbles(fragment: np.ndarray) -> np.ndarray:
    """Two numbers of 4 bits to a byte, the first one below."""
    return words(fragment[..., ::2] | fragment[..., 1::2] << 4)


def product(name: str, a: np.ndarray, b: np.ndarray, c: np.ndarray, *more: np.ndarray, rest: str = "") -> Emulation:
    """One instruction on fragments; `more` are words of each lane for the operands %x, %y, %z of `rest`."""
    counts = [array.shape[1] for array in (c, a, b)]
    places = itertools.count()
    groups = ["{" + ", ".join(f"%{next(places)}" for _ in range(n)) + "}" for n in counts]
    for letter in "xyz"[: len(more)]:
        rest = rest.replace(f"%{letter}", f"%{next(places)}")
    ins = [f'"r"({v}[t * {n} + {k}])' for v, n in (("a", counts[1]), ("b", counts[2])) for k in range(n)]
    ins += [f'"r"({letter}[t])' for letter in "xyz"[: len(more)]]
    kind, letter = ("float", "f") if c.dtype == np.float32 else ("unsigned", "r")
    outs = ", ".join(f'"+{letter}"(d[{k}])' for k in range(counts[0]))
    extra = "".join(f", const unsigned* {v}" for v in "xyz"[: len(more)])
    source = f"""extern "C" __global__ void k(const unsigned* a, const unsigned* b, {kind}* c{extra}) {{
  int t = threadIdx.x; {kind} d[{counts[0]}];
  for (int i = 0; i < {counts[0]}; ++i) d[i] = c[t * {counts[0]} + i];
  asm volatile("{name} {groups[0]}, {groups[1]}, {groups[2]}, {groups[0]}{rest};" : {outs} : {", ".join(ins)});
  for (int i = 0; i < {counts[0]}; ++i) c[t * {counts[0]} + i] = d[i]; }}"""
    return run(source, 1, 32, a, b, c, *more, arch=ARCH)


def accumulators() -> np.ndarray:
    return RNG.integers(-64, 64, (16, 8)) / 4


@pytest.mark.parametrize(("left", "right"), some(list(itertools.product(SMALL, SMALL)), 6))
def test_numbers_of_8_bits_and_less(left: str, right: str) -> None:
    bits_a, a = numbers(left, (16, 32))
    bits_b, b = numbers(right, (32, 8))
    c = accumulators()
    words_a, words_b = words(in_bytes(fragment_a(bits_a, 4), left)), words(in_bytes(fragment_b(bits_b, 4), right))
    name = f"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.{left}.{right}.f32"
    e = product(name, words_a, words_b, fragment_c(c).astype(np.float32))
    np.testing.assert_array_equal(e.buffer("c").reshape(32, 4), fragment_c(a @ b + c).astype(np.float32))
    assert "QMMA" in {i.opcode for i in e.profile.kernel.instructions}
    half = fragment_c(c).astype(np.float16)
    e = product(name.replace("f32", "f16"), words_a, words_b, np.ascontiguousarray(half).view(np.uint32))
    found = e.buffer("c").view(np.float16).reshape(32, 4)
    np.testing.assert_array_equal(found, fragment_c(a @ b + c).astype(np.float16))


def scale_words(factors: np.ndarray, lane: np.ndarray, byte: int) -> np.ndarray:
    """Every lane's word: bytes of the rows' or columns' factors where these are read, and any elsewhere."""
    held = RNG.integers(0, 256, (32, 4)).astype(np.uint8)
    held[lane, byte : byte + factors.shape[1]] = factors
    return held.view(np.uint32)[:, 0]


def scales(kind: str, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Bytes of scale factors, and what they are worth."""
    if kind == "ue8m0":
        bits = RNG.integers(124, 131, shape).astype(np.uint8)
        return bits, 2.0 ** (bits.astype(np.int64) - 127)
    bits, values = numbers("e4m3", shape)
    return bits & 0x7F, np.abs(values)


CHOICES = [(0, 0, 0, 0), (1, 1, 2, 3), (3, 0, 1, 2), (2, 1, 3, 1)]
"""Byte and thread of the first operand's factors, and of the second one's."""


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize(("left", "right"), [("e4m3", "e2m1"), ("e3m2", "e5m2")])
def test_a_scale_factor_for_each_row(left: str, right: str, choice: tuple[int, ...]) -> None:
    byte_a, thread_a, byte_b, thread_b = choice
    bits_a, a = numbers(left, (16, 32))
    bits_b, b = numbers(right, (32, 8))
    (factors_a, s), (factors_b, t), c = scales("ue8m0", (16, 1)), scales("ue8m0", (8, 1)), accumulators()
    row = np.arange(16)
    x = scale_words(factors_a, 4 * (row % 8) + 2 * thread_a + row // 8, byte_a)
    y = scale_words(factors_b, 4 * np.arange(8) + thread_b, byte_b)
    name = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X"
    e = product(
        f"{name}.f32.{left}.{right}.f32.ue8m0",
        words(in_bytes(fragment_a(bits_a, 4), left)),
        words(in_bytes(fragment_b(bits_b, 4), right)),
        fragment_c(c).astype(np.float32), x, y,
        rest=f", %x, {{{byte_a}, {thread_a}}}, %y, {{{byte_b}, {thread_b}}}",
    )  # fmt: skip
    want = fragment_c((a * s) @ (b * t.T) + c).astype(np.float32)
    np.testing.assert_array_equal(e.buffer("c").reshape(32, 4), want)


@pytest.mark.parametrize("choice", [(0, 0, 0, 0), (0, 1, 0, 3), (2, 1, 2, 2)])
@pytest.mark.parametrize(("kind", "blocks", "factors"), [("mxf4", 2, "ue8m0"), ("mxf4nvf4", 4, "ue4m3")])
def test_numbers_of_4_bits_in_blocks(kind: str, blocks: int, factors: str, choice: tuple[int, ...]) -> None:
    byte_a, thread_a, byte_b, thread_b = choice if blocks == 2 else (0, choice[1], 0, choice[3])
    bits_a, a = numbers("e2m1", (16, 64))
    bits_b, b = numbers("e2m1", (64, 8))
    (of_rows, s), (of_columns, t), c = scales(factors, (16, blocks)), scales(factors, (8, blocks)), accumulators()
    row, depth = np.arange(16), 64 // blocks
    x = scale_words(of_rows, 4 * (row % 8) + 2 * thread_a + row // 8, byte_a)
    y = scale_words(of_columns, 4 * np.arange(8) + thread_b, byte_b)
    e = product(
        f"mma.sync.aligned.m16n8k64.row.col.kind::{kind}.block_scale.scale_vec::{blocks}X.f32.e2m1.e2m1.f32.{factors}",
        nibbles(fragment_a(bits_a, 8)), nibbles(fragment_b(bits_b, 8)), fragment_c(c).astype(np.float32), x, y,
        rest=f", %x, {{{byte_a}, {thread_a}}}, %y, {{{byte_b}, {thread_b}}}",
    )  # fmt: skip
    assert "OMMA" in {i.opcode for i in e.profile.kernel.instructions}
    scaled = (a * s.repeat(depth, axis=1)) @ (b * t.repeat(depth, axis=1).T)
    np.testing.assert_array_equal(e.buffer("c").reshape(32, 4), fragment_c(scaled + c).astype(np.float32))


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(("left", "right"), [("e2m1", "e4m3"), ("e5m2", "e2m3")])
def test_sparse_ones(left: str, right: str, scaled: bool) -> None:
    """Two of four neighbours in a row are stored; lane 2h and 2h + 1 of four hold the codes of 32 columns' rows."""
    bits_a, stored = numbers(left, (16, 32))
    bits_b, b = numbers(right, (64, 8))
    pairs = np.array(list(itertools.combinations(range(4), 2)))
    chosen = pairs[RNG.integers(len(pairs), size=(16, 16))]
    a = np.zeros((16, 16, 4))
    np.put_along_axis(a, chosen, stored.reshape(16, 16, 2), axis=2)
    a, codes = a.reshape(16, 64), chosen.reshape(16, 2, 16)
    packed = (codes.astype(np.uint64) << (2 * np.arange(16, dtype=np.uint64))).sum(axis=2).astype(np.uint32)
    metadata = packed[GROUP + 8 * (THREAD % 2), THREAD // 2]
    c, rest, kind = accumulators(), ", %x, 0", "kind::f8f6f4"
    more, left_factor, right_factor = [metadata], np.ones((16, 1)), np.ones((8, 1))
    if scaled:
        (of_rows, left_factor), (of_columns, right_factor) = scales("ue8m0", (16, 1)), scales("ue8m0", (8, 1))
        row = np.arange(16)
        more.append(scale_words(of_rows, 4 * (row % 8) + 2 + row // 8, 1))
        more.append(scale_words(of_columns, 4 * np.arange(8) + 1, 2))
        rest, kind = ", %x, 0, %y, {1, 1}, %z, {2, 1}", "kind::mxf8f6f4.block_scale.scale_vec::1X"
    e = product(
        f"mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.{kind}.f32.{left}.{right}.f32"
        + (".ue8m0" if scaled else ""),
        words(in_bytes(fragment_a(bits_a, 4), left)), words(in_bytes(fragment_b(bits_b, 4), right)),
        fragment_c(c).astype(np.float32), *more, rest=rest,
    )  # fmt: skip
    want = fragment_c((a * left_factor) @ (b * right_factor.T) + c).astype(np.float32)
    np.testing.assert_array_equal(e.buffer("c").reshape(32, 4), want)
    assert len(LANE) == len(metadata)
