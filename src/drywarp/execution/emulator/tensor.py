"""Matrix multiply-accumulate on the fragments that the lanes of a warp hold, and loads of fragments.

With g = lane / 4 and t = lane % 4: an accumulator of 16x8 has its elements (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8,
2t + 1); operands are cut into 8-row tiles whose row g a lane group holds. Products are exact in float64 and summed
there; hardware uses a different summation order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from ...errors import UnsupportedInstructionError
from ...kernel.instruction import RZ, Instruction, Operand, Register
from .access import Site
from .bits import LANE, LANES
from .decode import Decoder, Step, opcode, place
from .frame import Frame
from .half import bf16_to_double, f16_to_double, pack_halves
from .memory_ops import address32, address_of
from .operands import Fetch, Value, double_bits, join, single_bits

_G = LANE.astype(np.int64) // 4
_T = LANE.astype(np.int64) % 4
Places = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def _registers(d: Decoder, operand: Operand, count: int) -> list[Fetch]:
    if not isinstance(operand, Register):
        raise UnsupportedInstructionError(f"fragment {operand}")
    if operand.negate:
        raise UnsupportedInstructionError("a negated fragment")
    return [d.raw(operand, part) for part in range(count)]


def _stack(f: Frame, fragments: Sequence[Fetch]) -> npt.NDArray[np.uint32]:
    """Registers of a fragment, shape (rows, 32, registers)."""
    words = np.empty((f.rows, LANES, len(fragments)), np.uint32)
    for part, fetch in enumerate(fragments):
        words[..., part] = fetch(f)
    return words


def _places(rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64]) -> Places:
    shape = np.broadcast_shapes(rows.shape, columns.shape)
    return np.broadcast_to(rows, shape), np.broadcast_to(columns, shape)


def _places_a(registers: int, per_register: int) -> Places:
    """Row and column of every element of a 16-row first operand, shape (32, registers, per_register)."""
    r = np.arange(registers)
    rows = _G[:, None, None] + 8 * (r & 1)[None, :, None]
    columns = _T[:, None, None] * per_register + np.arange(per_register) + (4 * per_register * (r >> 1))[None, :, None]
    return _places(rows, columns)


def _places_b(registers: int, per_register: int) -> Places:
    """Row (the summed index) and column of every element of an 8-column second operand."""
    r = np.arange(registers)
    rows = _T[:, None, None] * per_register + np.arange(per_register) + (4 * per_register * r)[None, :, None]
    return _places(rows, _G[:, None, None])


def _places_c(registers: int, per_register: int) -> Places:
    """Row and column of every element of an accumulator with two neighbours in a row of a lane."""
    element = np.arange(registers * per_register).reshape(registers, per_register)
    rows = _G[:, None, None] + 8 * (element >> 1)
    columns = 2 * _T[:, None, None] + (element & 1)
    return _places(rows, columns)


def _matrix(values: Value, places: Places, shape: tuple[int, int]) -> Value:
    """Elements of fragments, shape (rows, 32, registers, per register), as matrices."""
    matrix = np.zeros((len(values), *shape), values.dtype)
    matrix[:, places[0], places[1]] = values
    return matrix


def _step(
    d: Decoder, i: Instruction, a_count: int, b_count: int, c_count: int, out_count: int,
    *, widen_a: Callable[[Value], Value], widen_b: Callable[[Value], Value], widen_c: Callable[[Value], Value],
    per_a: int, per_c: int, finish: Callable[[Value], Value],
) -> Step:  # fmt: skip
    """A multiply-accumulate of 16 x K by K x 8, given the conversions of words to elements and back."""
    operands = [o for o in i.operands if isinstance(o, Register)]
    a, b, c = _registers(d, operands[1], a_count), _registers(d, operands[2], b_count), None
    if operands[3].index != RZ:
        c = _registers(d, operands[3], c_count)
    puts = [d.put(operands[0], part) for part in range(out_count)]
    depth = 4 * per_a * b_count
    height = 8 * min(a_count, 2) if c_count * per_c > 2 else 8
    at_a, at_b, at_c = _places_a(a_count, per_a), _places_b(b_count, per_a), _places_c(c_count, per_c)

    def multiply(f: Frame) -> None:
        left = _matrix(widen_a(_stack(f, a)), at_a, (height, depth))
        right = _matrix(widen_b(_stack(f, b)), at_b, (depth, 8))
        total = left @ right
        if c is not None:
            total = total + _matrix(widen_c(_stack(f, c)), at_c, (height, 8))
        words = finish(total[:, at_c[0], at_c[1]])
        for part, put in enumerate(puts):
            put(f, words[..., part])

    return multiply


def _singles(words: Value) -> Value:
    return words.view(np.float32).astype(np.float64)[..., None]


def _tf32(words: Value) -> Value:
    """float32 with the mantissa cut to 10 bits, as the tensor cores read it."""
    return (words & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)[..., None]


def _single_words(values: Value) -> Value:
    return single_bits(values[..., 0])


def _half_words(values: Value) -> Value:
    return pack_halves(values.astype(np.float16))


def _bytes(signed: bool) -> Callable[[Value], Value]:
    kind = np.int8 if signed else np.uint8

    def widen(words: Value) -> Value:
        return np.ascontiguousarray(words)[..., None].view(kind).astype(np.float64)

    return widen


def _integer_words(values: Value) -> Value:
    # Sums of products of bytes stay far below 2^53.
    return np.ascontiguousarray(values[..., 0]).astype(np.int64).astype(np.uint32)


def _saturated_words(values: Value) -> Value:
    return _integer_words(values.clip(-(2.0**31), 2.0**31 - 1))


@opcode("HMMA", "16816 1688 1684 F32 F16 BF16 TF32")
def _half_multiply(d: Decoder, i: Instruction) -> Step:
    names = i.modifiers
    if "TF32" in names:
        counts = {"1688": (4, 2), "1684": (2, 1)}[names[0]]
        return _step(
            d, i, *counts, 4, 4,
            widen_a=_tf32, widen_b=_tf32, widen_c=_singles, per_a=1, per_c=1, finish=_single_words,
        )  # fmt: skip
    a_count, b_count = {"16816": (4, 2), "1688": (2, 1)}.get(names[0], (0, 0))
    if not a_count:
        raise UnsupportedInstructionError(f"shape {names[0]}")
    widen = bf16_to_double if "BF16" in names else f16_to_double
    if "F32" in names:
        return _step(
            d, i, a_count, b_count, 4, 4,
            widen_a=widen, widen_b=widen, widen_c=_singles, per_a=2, per_c=1, finish=_single_words,
        )  # fmt: skip
    return _step(
        d, i, a_count, b_count, 2, 2,
        widen_a=widen, widen_b=widen, widen_c=f16_to_double, per_a=2, per_c=2, finish=_half_words,
    )  # fmt: skip


@opcode("IMMA", "16816 16832 8816 S8 U8 SAT ROW COL")
def _integer_multiply(d: Decoder, i: Instruction) -> Step:
    names = i.modifiers
    kinds = [n == "S8" for n in names if n in ("S8", "U8")]
    widen_a, widen_b = _bytes(kinds[0]), _bytes(kinds[-1])
    a_count, b_count, c_count = {"16816": (2, 1, 4), "16832": (4, 2, 4), "8816": (1, 1, 2)}[names[0]]

    finish = _saturated_words if "SAT" in names else _integer_words

    def integers(words: Value) -> Value:
        return words.view(np.int32).astype(np.float64)[..., None]

    return _step(
        d, i, a_count, b_count, c_count, c_count,
        widen_a=widen_a, widen_b=widen_b, widen_c=integers, per_a=4, per_c=1, finish=finish,
    )  # fmt: skip


@opcode("DMMA", "884 8x8x4")
def _double_multiply(d: Decoder, i: Instruction) -> Step:
    """8x4 by 4x8 of doubles: a lane holds (g, t), (t, g) and the accumulators (g, 2t), (g, 2t + 1)."""
    a_op, b_op, c_op = [o for o in i.operands if isinstance(o, Register)][1:4]
    a, b, c = _registers(d, a_op, 2), _registers(d, b_op, 2), _registers(d, c_op, 4)
    puts = [d.put(i.operands[0], part) for part in range(4)]

    def doubles(f: Frame, low: Fetch, high: Fetch) -> Value:
        both = join(f.spread(low(f)), f.spread(high(f)))
        return both.view(np.float64)

    def multiply(f: Frame) -> None:
        left = doubles(f, a[0], a[1]).reshape(f.rows, 8, 4)
        right = doubles(f, b[0], b[1]).reshape(f.rows, 8, 4).transpose(0, 2, 1)
        total = left @ right
        for n in range(2):
            result = total[:, _G, 2 * _T + n] + doubles(f, c[2 * n], c[2 * n + 1])
            words = double_bits(result).view(np.uint32).reshape(f.rows, LANES, 2)
            puts[2 * n](f, words[..., 0])
            puts[2 * n + 1](f, words[..., 1])

    return multiply


def _whole_warps(f: Frame, where: str, what: str) -> None:
    if f.exec is not None and not (f.exec | ~f.lanes().any(axis=1, keepdims=True)).all():
        raise UnsupportedInstructionError(f"{where}: {what} by part of a warp is not supported by the emulator")


@opcode("LDSM", "16 M88 MT88 1 2 4")
def _load_matrix(d: Decoder, i: Instruction) -> Step:
    """Load 8x8 tiles of 16-bit elements from shared memory: lanes 8k to 8k + 7 give the rows of tile k."""
    count = int(next((n for n in i.modifiers if n in ("1", "2", "4")), "1"))
    transposed = "MT88" in i.modifiers
    address_of(i.operands[1])
    site, addresses = Site(d, i, "matrix load", 16), address32(d, i.operands[1])
    puts = [d.put(i.operands[0], part) for part in range(count)]
    used, where = np.arange(LANES) < 8 * count, place(d.kernel, i)

    def load(f: Frame) -> None:
        _whole_warps(f, where, "LDSM")
        index, _ = _tile_rows(f, site, addresses, used)
        tiles = f.machine.shared[16].take(index).view(np.uint16).reshape(f.rows, 4, 8, 8)
        if transposed:
            tiles = np.ascontiguousarray(tiles.transpose(0, 1, 3, 2))
        words = tiles.reshape(f.rows, 4, 64).view(np.uint32)
        for part, put in enumerate(puts):
            put(f, words[:, part])

    return load


def _tile_rows(
    f: Frame, site: Site, addresses: Fetch, used: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Where the rows of tiles lie, by the lanes that name one, and these lanes; shape (rows, 32) each."""
    lanes = f.lanes() & used
    saved = f.narrow(lanes)
    try:
        return site.shared_index(f, addresses(f)), lanes
    finally:
        f.restore(saved)


@opcode("STSM", "16 M88 MT88 1 2 4")
def _store_matrix(d: Decoder, i: Instruction) -> Step:
    """Store 8x8 tiles of 16-bit elements to shared memory: the reverse of a matrix load."""
    count = int(next((n for n in i.modifiers if n in ("1", "2", "4")), "1"))
    transposed = "MT88" in i.modifiers
    site, addresses = Site(d, i, "matrix store", 16), address32(d, i.operands[0])
    source = i.operands[1]
    assert isinstance(source, Register)
    sources = [d.raw(source, part) for part in range(count)]
    used, where = np.arange(LANES) < 8 * count, place(d.kernel, i)

    def store(f: Frame) -> None:
        _whole_warps(f, where, "STSM")
        words = np.stack([f.spread(fetch(f)) for fetch in sources], axis=1)
        tiles = np.ascontiguousarray(words).view(np.uint16).reshape(f.rows, count, 8, 8)
        if transposed:
            tiles = np.ascontiguousarray(tiles.transpose(0, 1, 3, 2))
        rows = tiles.reshape(f.rows, 8 * count * 8).view(np.complex128)
        index, lanes = _tile_rows(f, site, addresses, used)
        f.machine.shared[16][index[lanes]] = rows[lanes[:, : 8 * count]]

    return store
