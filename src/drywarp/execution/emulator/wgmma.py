"""Matrix multiply-accumulate of a warp group: 64 x N += 64 x K by K x N, the second operand in shared memory.

Four warps act together, warp w of the group on rows 16 w to 16 w + 15; here each does its part when it issues, which is
before any code may read the result. HGMMA takes 16-bit and TF32 elements, QGMMA 8-bit floats, IGMMA 8-bit integers,
BGMMA bits; K is 32 bytes of them, 64 where the first operand is sparse (.SP). `gdesc[URn]` names four uniform
registers, two 64-bit descriptors: of the first operand, where that is not in registers, and of the second. A predicate
before gsb0 says whether the old accumulator counts. Accumulators lie as those of the 16 x 8 instructions, column block
by column block.

Products are exact in float32 and summed there, as integers are without any rounding; the hardware's sums keep
other bits, fewest for 8-bit floats. A half accumulator is rounded once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ...errors import EmulationError, UnsupportedInstructionError
from ...kernel.instruction import RZ, Address, Instruction, Operand, Predicate, Register
from .bits import FULL, LANE, LANES
from .decode import Decoder, Step, opcode, place
from .frame import Frame
from .operands import Fetch, Put, constant, join, single_bits
from .rounding import small_to_single
from .sparse import Sparsity, sparsity
from .tensor_maps import swizzled

Ints = npt.NDArray[np.int64]
Singles = npt.NDArray[np.float32]
_ROWS, _K_BYTES, _WARPS = 64, 32, 4
_HEIGHT = _ROWS // _WARPS
_SWIZZLES = (0, 128, 64, 32)
"""Bytes of the pattern by the two highest bits of a descriptor."""
_START = np.uint64(0x3FFF)
_G = LANE.astype(np.int64) // 4
_T = LANE.astype(np.int64) % 4


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of an operand, from its descriptor: bytes between pieces, and the pattern of its permutation.

    `offset` is the line of 128 bytes, of 8, at which the pattern begins.
    """

    leading: int
    stride: int
    swizzle: int
    offset: int = 0

    def permuted(self, addresses: Ints) -> Ints:
        """Where bytes lie that would lie at these addresses without a pattern."""
        return swizzled(addresses, self.swizzle, self.offset)


def split_descriptor(word: int) -> tuple[int, Layout]:
    """Start address and layout of a 64-bit descriptor; addresses count 16 bytes."""
    layout = Layout((word >> 16 & 0x3FFF) << 4, (word >> 32 & 0x3FFF) << 4, _SWIZZLES[word >> 62], word >> 49 & 7)
    return (word & 0x3FFF) << 4, layout


@lru_cache(maxsize=256)
def offsets(layout: Layout, extent: int, depth: int, width: int, transposed: bool) -> Ints:
    """Bytes from the start of an operand to its elements before the permutation, shape (extent, depth).

    `extent` counts rows of the first or columns of the second operand, `depth` is K, `width` bytes an
    element. Elements that follow each other along K are neighbours, or where `transposed` those along the
    extent. Without a pattern pieces of 8 rows of 16 bytes lie dense; with one, rows are as long as it is.
    """
    i = np.arange(extent, dtype=np.int64)[:, None]
    k = np.arange(depth, dtype=np.int64)[None, :]
    if not transposed:
        byte = k * width
        if layout.swizzle:
            return i // 8 * layout.stride + i % 8 * layout.swizzle + byte
        return i // 8 * layout.stride + i % 8 * 16 + byte // 16 * layout.leading + byte % 16
    byte = i * width
    if layout.swizzle:
        row = k // 8 * layout.stride + k % 8 * layout.swizzle
        return row + byte // layout.swizzle * layout.leading + byte % layout.swizzle
    return byte // 16 * layout.stride + byte % 16 + k // 8 * layout.leading + k % 8 * 16


@dataclass(frozen=True)
class ElementKind:
    """An element type: bytes, how its bits become numbers, and how many of them side by side."""

    width: int
    widen: Callable[[Any], Singles]
    numbers: int = 1

    @property
    def depth(self) -> int:
        """K of an instruction: 32 bytes of elements, or of several numbers each."""
        return _K_BYTES // self.width * self.numbers


def _bfloat(bits: Any) -> Singles:
    return np.asarray((bits.astype(np.uint32) << np.uint32(16)).view(np.float32))


KINDS: dict[str, ElementKind] = {
    "F16": ElementKind(2, lambda bits: np.asarray(bits.view(np.float16).astype(np.float32))),
    "BF16": ElementKind(2, _bfloat),
    "TF32": ElementKind(4, lambda bits: np.asarray((bits & np.uint32(0xFFFFE000)).view(np.float32))),
    "E4M3": ElementKind(1, lambda bits: small_to_single(bits, "E4M3")),
    "E5M2": ElementKind(1, lambda bits: small_to_single(bits, "E5M2")),
    "S8": ElementKind(1, lambda bits: np.asarray(bits.view(np.int8).astype(np.float32))),
    "U8": ElementKind(1, lambda bits: np.asarray(bits.astype(np.float32))),
    "B1": ElementKind(1, lambda bits: np.unpackbits(bits, axis=-1, bitorder="little").astype(np.float32), 8),
}
"""Bits have no name in an instruction; a byte is eight of them, the lowest first."""


class SharedOperand:
    """An operand in shared memory: reads its elements by descriptor, `depth` of them along K."""

    def __init__(
        self, where: str, extent: int, depth: int, kind: ElementKind, *, transposed: bool, negated: bool
    ) -> None:
        self._where, self._extent, self._depth, self._kind = where, extent, depth, kind
        self._transposed, self._negated = transposed, negated

    def read(self, f: Frame, warps: Ints, words: npt.NDArray[np.uint64], parts: Ints, height: int) -> Singles:
        """Elements for some warps by their descriptors, `height` rows from row `parts` · `height` on each.

        Shape (warps, height, K).
        """
        kind, machine = self._kind, f.machine
        result = np.empty((len(warps), height, self._depth), np.float32)
        depth = self._depth // kind.numbers
        # Everything except the start is almost always the same for all.
        for rest in np.unique(words & ~_START).tolist():
            same = np.flatnonzero((words & ~_START) == np.uint64(rest))
            _, layout = split_descriptor(rest)
            if 0 < layout.swizzle < depth * kind.width and not self._transposed:
                raise UnsupportedInstructionError(f"{self._where}: rows longer than their pattern")
            whole = offsets(layout, self._extent, depth, kind.width, self._transposed)
            start = (words[same] & _START).astype(np.int64) << 4
            places = start[:, None, None] + whole.reshape(-1, height, depth)[parts[same]]
            places = layout.permuted(places)
            if places.max() + kind.width > machine.shared_bytes:
                self._outside(f, warps[same], places)
            places += machine.shared_base[warps[same]][:, None, None]
            result[same] = kind.widen(machine.shared[kind.width].take(places // kind.width))
        return np.negative(result) if self._negated else result

    def _outside(self, f: Frame, warps: Ints, places: Ints) -> None:
        row = int(places.max(axis=(1, 2)).argmax())
        raise EmulationError(
            f"{self._where}: operand out of bounds at shared address {int(places[row].max()):#x},"
            f" {f.machine.thread_name(int(warps[row]), 0)}: the block has {f.machine.shared_bytes} bytes"
        )


@opcode("HGMMA QGMMA IGMMA BGMMA", None)
def _multiply(d: Decoder, i: Instruction) -> Step:
    rest = [name for name in i.modifiers if name != "SP"]
    sparse = len(rest) < len(i.modifiers)
    shape = re.fullmatch(r"64x(\d+)x(\d+)", rest.pop(0))
    result = "S32" if i.opcode in ("IGMMA", "BGMMA") else rest.pop(0)
    saturates = "SAT" in rest
    if i.opcode == "BGMMA":
        # Counts of the bits that are set in both rows are the only ones that PTX has.
        rest = ["B1" if rest == ["AND", "POPC"] else "POPC"]
    names = [name for name in rest if name in KINDS]
    if shape is None or result not in ("F32", "F16", "S32") or set(rest) - {*names, "SAT"}:
        raise UnsupportedInstructionError(f"modifiers {'.'.join(i.modifiers)}")
    left_kind, right_kind = (KINDS[n] for n in ((names or ["F16"])[0], (names or ["F16"])[-1]))
    columns, depth = int(shape[1]), int(shape[2])
    if depth != left_kind.depth * (1 + sparse):
        raise UnsupportedInstructionError(f"shape 64x{columns}x{depth}")
    operands = [o for o in i.operands if isinstance(o, Register | Address | Predicate)]
    to = operands.pop(0)
    if isinstance(to, Register) and to.index == RZ:
        return _order(d, i)  # what ptxas writes to end a group without products of its own
    held = first if isinstance(first := operands[0], Register) else None
    operands = operands[held is not None :]
    described, old, *more = operands
    if not isinstance(described, Address) or described.descriptor is None or not isinstance(old, Register):
        raise UnsupportedInstructionError(f"operands {i.text}")
    where, marks = place(d.kernel, i), set(described.marks)
    if marks - {"tnspA", "tnspB", "negA", "negB"}:
        raise UnsupportedInstructionError(f"descriptor .{min(marks)}")
    left: LeftOperand
    if held is None:
        shared = SharedOperand(
            where, _ROWS, left_kind.depth, left_kind, transposed="tnspA" in marks, negated="negA" in marks
        )
        left = SharedLeft(shared, _descriptor(d, described.descriptor, 0))
    else:
        negated = "negA" in marks or held.negate
        left = HeldLeft([d.raw(replace(held, negate=False), part) for part in range(4)], left_kind, negated)
    if sparse:
        left = _sparse_left(d, i, left, left_kind)
    right = SharedOperand(where, columns, depth, right_kind, transposed="tnspB" in marks, negated="negB" in marks)
    right_words = _descriptor(d, described.descriptor, 2)
    counts = next((d.predicate(o) for o in more if isinstance(o, Predicate)), constant(np.True_))
    accumulator = Accumulator(d, to, old, columns, result, saturates)

    def multiply(f: Frame) -> None:
        machine = f.machine
        rows = np.flatnonzero(f.words())
        warps = f.warps[rows]
        # The warps of a group, and often its blocks' groups too, share the second operand.
        key = np.stack([warps // machine.warps_per_block, right_words(f)[rows].view(np.int64)])
        _, first, inverse = np.unique(key, axis=1, return_index=True, return_inverse=True)
        read = right.read(f, warps[first], right_words(f)[rows][first], np.zeros(len(first), np.int64), columns)
        accumulator.add(f, rows, _products(left.read(f, rows), read, inverse.reshape(-1)), counts(f))

    return multiply


def _sparse_left(d: Decoder, i: Instruction, left: LeftOperand, kind: ElementKind) -> LeftOperand:
    """The first operand with its zeros: the metadata is the last register, a selector for wide elements follows it."""
    at = max(n for n, o in enumerate(i.operands) if isinstance(o, Register))
    selector = i.operands[at + 1] if kind.width > 1 else None
    return SparseLeft(left, sparsity(d, i.operands[at], selector, 8 * kind.width))


def _products(left: Singles, right: Singles, which: Ints) -> Singles:
    """Products of each warp's rows of the first operand and the transpose of the second one that it has."""
    groups = which.reshape(-1, _WARPS) if len(which) % _WARPS == 0 else which[:, None]
    if (groups == groups[:, :1]).all():
        together = left.reshape(len(groups), -1, left.shape[2]) @ right[groups[:, 0]].transpose(0, 2, 1)
        return together.reshape(*left.shape[:2], right.shape[1])
    return np.asarray(left @ right[which].transpose(0, 2, 1))


def _descriptor(d: Decoder, register: Register, part: int) -> Fetch:
    low, high = (d.register(register.index + part + half, True) for half in (0, 1))
    return lambda f: np.broadcast_to(join(low(f), high(f)), (f.rows, 1))[:, 0]


class LeftOperand(Protocol):
    """Where the first operand comes from."""

    def read(self, f: Frame, rows: Ints) -> Singles:
        """The 16 rows of it for the warps in some rows of the frame, shape (rows, 16, K)."""
        ...


@dataclass(frozen=True)
class SharedLeft:
    """A first operand in shared memory; each warp of a group reads its own rows."""

    shared: SharedOperand
    words: Fetch

    def read(self, f: Frame, rows: Ints) -> Singles:
        """See `LeftOperand`."""
        warps = f.warps[rows]
        parts = warps % f.machine.warps_per_block % _WARPS
        return self.shared.read(f, warps, self.words(f)[rows], parts, _HEIGHT)


@dataclass(frozen=True)
class HeldLeft:
    """A first operand in four registers of each lane, as fragments of the 16-row instructions."""

    registers: Sequence[Fetch]
    kind: ElementKind
    negated: bool

    def read(self, f: Frame, rows: Ints) -> Singles:
        """See `LeftOperand`."""
        per = 4 // self.kind.width * self.kind.numbers
        words = np.empty((len(rows), LANES, 4, 1), np.uint32)
        for number, register in enumerate(self.registers):
            words[:, :, number, 0] = f.spread(register(f))[rows]
        part, element = np.arange(4)[None, :, None], np.arange(per)[None, None, :]
        bits: Any = {1: np.uint8, 2: np.uint16, 4: np.uint32}[self.kind.width]
        matrix = np.zeros((len(rows), _HEIGHT, self.kind.depth), np.float32)
        columns = _T[:, None, None] * per + element + 4 * per * (part >> 1)
        matrix[:, _G[:, None, None] + 8 * (part & 1), columns] = self.kind.widen(words.view(bits))
        return np.negative(matrix) if self.negated else matrix


@dataclass(frozen=True)
class SparseLeft:
    """A first operand of which half the elements are stored, in either place."""

    stored: LeftOperand
    sparsity: Sparsity

    def read(self, f: Frame, rows: Ints) -> Singles:
        """See `LeftOperand`."""
        return self.sparsity.expand(f, self.stored.read(f, rows), rows)


class Accumulator:
    """The registers of D and C: pairs of neighbouring columns, rows g and g + 8, column block by column block."""

    def __init__(
        self, d: Decoder, to: Operand, old: Register, columns: int, result: str, saturates: bool
    ) -> None:  # fmt: skip
        self._result, self._saturates, self._blocks = result, saturates, columns // 8
        count = self._blocks * (2 if result == "F16" else 4)
        self._puts: list[Put] = [d.put(to, part) for part in range(count)]
        self._old = None if old.index == RZ else [d.raw(old, part) for part in range(count)]
        # If old and new are the same registers of all warps, they are a slice of the machine's arrays.
        self._first = old.index if isinstance(to, Register) and to.index == old.index != RZ else None

    def add(self, f: Frame, rows: Ints, products: Singles, counts: Any) -> None:
        """Write the sums of old values, if `counts` says so, and products, shape (executing rows, 16, columns)."""
        parts = products.reshape(len(rows), 2, 8, self._blocks, 4, 2)
        ordered: Any
        if self._result == "F16":
            ordered = parts.transpose(3, 1, 0, 2, 4, 5).reshape(-1, len(rows), LANES, 2)
        else:
            ordered = np.ascontiguousarray(parts.transpose(3, 1, 5, 0, 2, 4)).reshape(-1, len(rows), LANES)
        keep = np.broadcast_to(counts, (f.rows, 1))[rows]
        if self._first is not None and not f.gathered and keep.all() and (f.words()[rows] == FULL).all():
            registers = f.machine.registers[self._first : self._first + len(self._puts)]
            warps = f.warps[rows]
            registers[:, warps] = self._sum(registers[:, warps], ordered)
            return
        for part, put in enumerate(self._puts):
            old = np.zeros((len(rows), LANES), np.uint32)
            if self._old is not None and keep.any():
                old = np.where(keep, f.spread(self._old[part](f))[rows], np.uint32(0))
            words = np.zeros((f.rows, LANES), np.uint32)
            words[rows] = self._sum(old, ordered[part])
            put(f, words)

    def _sum(self, old: npt.NDArray[np.uint32], new: Singles) -> npt.NDArray[np.uint32]:
        """Words of old accumulators plus products; those of halves have two in the last dimension."""
        old = np.ascontiguousarray(old)
        if self._result == "F32":
            return np.asarray(single_bits(old.view(np.float32) + new))
        if self._result == "F16":
            halves = old[..., None].view(np.float16).astype(np.float32)
            return np.ascontiguousarray((halves + new).astype(np.float16)).view(np.uint32)[..., 0]
        if self._saturates:
            whole = old.view(np.int32).astype(np.int64) + new.astype(np.int64)
            return np.clip(whole, -(1 << 31), (1 << 31) - 1).astype(np.int32).view(np.uint32)
        return (old.view(np.int32) + new.astype(np.int32)).view(np.uint32)


@opcode("WARPGROUP", "ARRIVE DEPBAR LE")
def _order(d: Decoder, i: Instruction) -> Step:
    """Fences and waits for asynchronous multiplications, which complete when they issue."""
    return lambda f: None
