"""Matrix multiply-accumulate on the fragments that the lanes of a warp hold, and loads of fragments.

With g = lane / 4 and t = lane % 4: an accumulator of 16x8 has its elements (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8,
2t + 1); operands are cut into 8-row tiles whose row g a lane group holds. Products are exact in float64 and summed
there; hardware uses a different summation order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

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
from .operands import Fetch, Value, single_bits
from .rounding import SMALL, small_to_single
from .sparse import Scales, sparsity

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


@dataclass(frozen=True)
class _Form:
    """Words to elements and back: of both operands, the accumulator and the result; elements of a register."""

    widen_a: Callable[[Value], Value]
    widen_b: Callable[[Value], Value]
    widen_c: Callable[[Value], Value]
    finish: Callable[[Value], Value]
    per_a: int
    per_c: int = 1


def _step(d: Decoder, i: Instruction, counts: tuple[int, int, int], form: _Form) -> Step:
    """A multiply-accumulate of 16 x K by K x 8, given the registers of both operands and the accumulator.

    The first operand of a sparse one is half as deep as it counts; its metadata and selector come last.
    """
    a_count, b_count, c_count = counts
    operands = [o for o in i.operands if isinstance(o, Register)]
    a, b, c = _registers(d, operands[1], a_count), _registers(d, operands[2], b_count), None
    if operands[3].index != RZ:
        c = _registers(d, operands[3], c_count)
    puts = [d.put(operands[0], part) for part in range(c_count)]
    depth = 4 * form.per_a * b_count
    height = 8 * min(a_count, 2) if c_count * form.per_c > 2 else 8
    sparse = sparsity(d, operands[4], i.operands[-1], 32 // form.per_a) if "SP" in i.modifiers else None
    scales = _scales(d, i, operands) if "SF" in i.modifiers else None
    stored = depth if sparse is None else depth // 2
    at_a, at_b, at_c = _places_a(a_count, form.per_a), _places_b(b_count, form.per_a), _places_c(c_count, form.per_c)

    def multiply(f: Frame) -> None:
        left = _matrix(form.widen_a(_stack(f, a)), at_a, (height, stored))
        if sparse is not None:
            left = sparse.expand(f, left)
        right = _matrix(form.widen_b(_stack(f, b)), at_b, (depth, 8))
        if scales is not None:
            left, right = scales.apply(f, left, right)
        total = left @ right
        if c is not None:
            total = total + _matrix(form.widen_c(_stack(f, c)), at_c, (height, 8))
        words = form.finish(total[:, at_c[0], at_c[1]])
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


def _nibbles(signed: bool) -> Callable[[Value], Value]:
    def widen(words: Value) -> Value:
        split = words[..., None] >> (4 * np.arange(8, dtype=np.uint32)) & np.uint32(15)
        return (split.astype(np.int64) ^ 8) - 8.0 if signed else split.astype(np.float64)

    return widen


def _bits(words: Value) -> Value:
    return (words[..., None] >> np.arange(32, dtype=np.uint32) & np.uint32(1)).astype(np.float64)


def _float8(name: str) -> Callable[[Value], Value]:
    """Numbers of at most 8 bits, one to a byte: those of 6 bits in its low bits, those of 4 in its middle."""
    shift = np.uint8(2 if name == "E2M1" else 0)

    def widen(words: Value) -> Value:
        return small_to_single(np.ascontiguousarray(words)[..., None].view(np.uint8) >> shift, name).astype(np.float64)

    return widen


def _float4(words: Value) -> Value:
    return small_to_single(words[..., None] >> (4 * np.arange(8, dtype=np.uint32)), "E2M1").astype(np.float64)


def _scales(d: Decoder, i: Instruction, operands: Sequence[Register]) -> Scales:
    """The factors of the first operand follow the metadata of a sparse one in the next register."""
    names = i.modifiers
    kind, blocks = ("UE4M3", 4) if "4X" in names else ("E8", 2 if i.opcode == "OMMA" else 1)
    if names[-1] not in ("4X", "E8") or kind not in names:
        raise UnsupportedInstructionError(f"modifiers {'.'.join(names)}")
    first = d.raw(operands[4], 1 if "SP" in names else 0)
    return Scales(first, d.raw(operands[5]), d.raw(operands[6]), blocks, kind == "UE4M3")


def _signed(words: Value) -> Value:
    return words.view(np.int32).astype(np.float64)[..., None]


def _shape(i: Instruction, shapes: str) -> tuple[int, int]:
    """Registers of the first and second operand, given the bytes of a row of the first (before sparsity) by shape."""
    held = {"16": (2, 1), "32": (4, 2), "64": (4, 4)}
    known = dict(pair.split("=") for pair in shapes.split())
    name = next(n for n in i.modifiers if n[0].isdigit())
    if name not in known:
        raise UnsupportedInstructionError(f"shape {name}")
    if known[name] == "8":
        return 1, 1
    first, second = held[known[name]]
    return (first, second) if "SP" not in i.modifiers else (second, second)


def _floats(d: Decoder, i: Instruction, counts: tuple[int, int], a: Any, b: Any, per: int) -> Step:
    """A product of floating-point elements with accumulators of single or of half precision."""
    if "F32" in i.modifiers:
        return _step(d, i, (*counts, 4), _Form(a, b, _singles, _single_words, per))
    return _step(d, i, (*counts, 2), _Form(a, b, f16_to_double, _half_words, per, 2))


@opcode("HMMA", "SP 16832 16816 1688 1684 F32 F16 BF16 TF32")
def _half_multiply(d: Decoder, i: Instruction) -> Step:
    if "TF32" in i.modifiers:
        counts = _shape(i, "1688=32 16816=64" if "SP" in i.modifiers else "1684=16 1688=32")
        return _floats(d, i, counts, _tf32, _tf32, 1)
    counts = _shape(i, "16816=32 16832=64" if "SP" in i.modifiers else "1688=16 16816=32")
    widen = bf16_to_double if "BF16" in i.modifiers else f16_to_double
    return _floats(d, i, counts, widen, widen, 2)


@opcode("QMMA", f"SP SF 16864 16832 16816 F32 F16 E8 {' '.join(SMALL)}")
def _float8_multiply(d: Decoder, i: Instruction) -> Step:
    kinds = [n for n in i.modifiers if n in SMALL]
    counts = _shape(i, "16864=64" if "SP" in i.modifiers else "16816=16 16832=32")
    return _floats(d, i, counts, _float8(kinds[0]), _float8(kinds[-1]), 4)


@opcode("OMMA", "SF 16864 F32 E2M1 E8 UE4M3 4X")
def _float4_multiply(d: Decoder, i: Instruction) -> Step:
    return _floats(d, i, _shape(i, "16864=32"), _float4, _float4, 8)


@opcode("IMMA", "SP 168128 16864 16816 16832 8816 8832 S8 U8 S4 U4 SAT ROW COL")
def _integer_multiply(d: Decoder, i: Instruction) -> Step:
    kinds = [n for n in i.modifiers if n in ("S8", "U8", "S4", "U4")]
    small, sparse = kinds[0][1] == "4", "SP" in i.modifiers
    if small:
        counts = _shape(i, "16864=32 168128=64" if sparse else "8832=8 16832=16 16864=32")
    else:
        counts = _shape(i, "16832=32 16864=64" if sparse else "8816=8 16816=16 16832=32")
    left, right = ((_nibbles if small else _bytes)(kind[0] == "S") for kind in (kinds[0], kinds[-1]))
    finish = _saturated_words if "SAT" in i.modifiers else _integer_words
    form = _Form(left, right, _signed, finish, 8 if small else 4)
    return _step(d, i, (*counts, 2 if counts == (1, 1) else 4), form)


@opcode("BMMA", "88128 168128 168256 AND XOR POPC")
def _bit_multiply(d: Decoder, i: Instruction) -> Step:
    """Counts of the bits that are set in both rows, or in one of two."""
    counts = _shape(i, "88128=8 168128=16 168256=32")
    if "AND" in i.modifiers:
        form = _Form(_bits, _bits, _signed, _integer_words, 32)
    else:
        # With bits as signs a product is 1 where they agree: differing ones are (K - sum) / 2.
        depth = 128.0 * counts[1]

        def signs(words: Value) -> Value:
            return 1 - 2 * _bits(words)

        def less(words: Value) -> Value:
            return -2 * _signed(words)

        def differing(values: Value) -> Value:
            return _integer_words((depth - values) / 2)

        form = _Form(signs, signs, less, differing, 32)
    return _step(d, i, (*counts, 2 if counts == (1, 1) else 4), form)


_DOUBLES = {"884": (1, 1, 2), "8x8x4": (1, 1, 2), "16x8x4": (2, 1, 4), "16x8x8": (4, 2, 4), "16x8x16": (8, 4, 4)}
"""Doubles that a lane holds of both operands and of the accumulator."""


@opcode("DMMA", " ".join(_DOUBLES))
def _double_multiply(d: Decoder, i: Instruction) -> Step:
    counts = _DOUBLES[i.modifiers[0]]
    held = [o for o in i.operands if isinstance(o, Register)][1:4]
    a, b, c = (_registers(d, operand, 2 * count) for operand, count in zip(held, counts, strict=True))
    puts = [d.put(i.operands[0], part) for part in range(2 * counts[2])]
    at_a, at_b, at_c = _places_a(counts[0], 1), _places_b(counts[1], 1), _places_c(counts[2], 1)
    height, depth = 8 * min(counts[0], 2), 4 * counts[1]

    def multiply(f: Frame) -> None:
        def matrix(fragments: Sequence[Fetch], places: Places, shape: tuple[int, int]) -> Value:
            return _matrix(_stack(f, fragments).view(np.float64)[..., None], places, shape)

        total = matrix(a, at_a, (height, depth)) @ matrix(b, at_b, (depth, 8)) + matrix(c, at_c, (height, 8))
        words = np.ascontiguousarray(total[:, at_c[0], at_c[1]][..., 0]).view(np.uint32)
        for part, put in enumerate(puts):
            put(f, words[..., part])

    return multiply


def _by_whole_warps(f: Frame) -> bool:
    return f.exec is None or bool((f.exec | ~f.lanes().any(axis=1, keepdims=True)).all())


def _whole_warps(f: Frame, where: str, what: str) -> None:
    if not _by_whole_warps(f):
        raise UnsupportedInstructionError(f"{where}: {what} by part of a warp is not supported by the emulator")


_PACKED_BITS = {"U4x16P64TO8": 4, "U6x16P32TO8": 6}
"""Rows of 16 elements of so many bits, the rest of the 16 bytes unused, which become a byte each."""


@opcode("LDSM", f"16 M88 MT88 M816 1 2 4 {' '.join(_PACKED_BITS)}")
def _load_matrix(d: Decoder, i: Instruction) -> Step:
    """Load 8x8 tiles of 16-bit elements from shared memory: lanes 8k to 8k + 7 give the rows of tile k.

    Tiles of 8x16 elements of 8 bits are as those; narrower elements are spread first.
    """
    count = int(next((n for n in i.modifiers if n in ("1", "2", "4")), "1"))
    transposed = "MT88" in i.modifiers
    narrow = next((_PACKED_BITS[n] for n in i.modifiers if n in _PACKED_BITS), 0)
    if ("M816" in i.modifiers) != bool(narrow):
        raise UnsupportedInstructionError(f"modifiers {'.'.join(i.modifiers)}")
    address_of(i.operands[1])
    site, addresses = Site(d, i, "matrix load", 16), address32(d, i.operands[1])
    puts = [d.put(i.operands[0], part) for part in range(count)]
    used, where = np.arange(LANES) < 8 * count, place(d.kernel, i)

    def load(f: Frame) -> None:
        _whole_warps(f, where, "LDSM")
        index, _ = _tile_rows(f, site, addresses, used)
        rows = f.machine.shared[16].take(index)
        tiles = (_spread_bits(rows, narrow) if narrow else rows).view(np.uint16).reshape(f.rows, 4, 8, 8)
        if transposed:
            tiles = np.ascontiguousarray(tiles.transpose(0, 1, 3, 2))
        words = tiles.reshape(f.rows, 4, 64).view(np.uint32)
        for part, put in enumerate(puts):
            put(f, words[:, part])

    return load


def _spread_bits(rows: Value, bits: int) -> npt.NDArray[np.uint8]:
    """Rows of 16 bytes whose first bits are 16 narrow elements, as a byte for each element."""
    held = np.unpackbits(np.ascontiguousarray(rows).view(np.uint8).reshape(-1, 16), axis=1, bitorder="little")
    fields = held[:, : 16 * bits].reshape(-1, 16, bits)
    return np.packbits(fields, axis=2, bitorder="little")[..., 0]


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
    """Store 8x8 tiles of 16-bit elements to shared memory: the reverse of a matrix load.

    PTX wants the whole warp. Where part of it stores, the rows that its lanes name are stored, out of the registers of
    all lanes: what is read of lanes that do not take part is not documented.
    """
    count = int(next((n for n in i.modifiers if n in ("1", "2", "4")), "1"))
    transposed = "MT88" in i.modifiers
    site, addresses = Site(d, i, "matrix store", 16), address32(d, i.operands[0])
    source = i.operands[1]
    assert isinstance(source, Register)
    sources = [d.raw(source, part) for part in range(count)]
    used, where = np.arange(LANES) < 8 * count, place(d.kernel, i)

    def store(f: Frame) -> None:
        if not _by_whole_warps(f):
            f.machine.notes.add(f"{where}: a matrix store by part of a warp, whose rows alone are stored")
        words = np.stack([f.spread(fetch(f)) for fetch in sources], axis=1)
        tiles = np.ascontiguousarray(words).view(np.uint16).reshape(f.rows, count, 8, 8)
        if transposed:
            tiles = np.ascontiguousarray(tiles.transpose(0, 1, 3, 2))
        rows = tiles.reshape(f.rows, 8 * count * 8).view(np.complex128)
        index, lanes = _tile_rows(f, site, addresses, used)
        f.machine.shared[16][index[lanes]] = rows[lanes[:, : 8 * count]]

    return store
