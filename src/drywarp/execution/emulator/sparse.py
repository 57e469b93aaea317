"""Operands of matrix products that are not stored as they are multiplied: sparse ones, and those with scale factors.

Sparse first operands: of four neighbours in a row two are stored, and a metadata word says which two.

A code of 2 bits belongs to each stored unit and is its place among its four: a unit is an element of 16 or 8 bits, half
a TF32 element (of two neighbours one is stored), or two 4-bit elements. The lowest bits are the lowest column's. With
g = lane / 4 and t = lane % 4 the 16 rows of a warp have their codes

- for 16-bit units in lane t: bits 0 to 15 for 16 columns of row g, bits 16 to 31 for those of row g + 8. Where a row
  has 16 units the lanes 2s and 2s + 1 hold its columns from left to right, where it has 8 lane s; s is the selector.
- for 8-bit units: a word is 32 columns of one row. Lanes 2s and 2s + 1 hold rows g and g + 8; where a row has 32
  units lanes 0 and 1 hold the left halves, 2 and 3 the right ones.

Source: PTX ISA, "Sparse matrix storage" and the metadata figures of mma.sp and wgmma.mma_async.sp; code that ptxas
makes of 8-bit products for sm_90, out of 16-bit ones, agrees. Layouts in tensor memory (tcgen05.mma.sp): CUTLASS
(sm1xx_sparse_config.inl, mma_traits_sm100_frag.hpp) and JAX's Mosaic GPU, which agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import UnsupportedInstructionError
from ...kernel.instruction import Operand, Register
from .bits import LANES
from .decode import Decoder
from .frame import Frame
from .operands import Fetch
from .rounding import scale_to_double, small_to_single

_ROWS = 16


def codes(words: npt.NDArray[np.uint32], selector: int, unit_bits: int, count: int) -> npt.NDArray[np.int64]:
    """The codes of metadata words, shape (warps, 32): shape (warps, 16 rows, `count` units of a row)."""
    by_lane = words.reshape(-1, 8, 4)
    if unit_bits == 16:
        chunks = count // 8
        lanes = by_lane[:, :, selector * chunks : (selector + 1) * chunks]
        halves = np.stack([lanes & np.uint32(0xFFFF), lanes >> np.uint32(16)], axis=1)
    else:
        lanes = by_lane[:, :, 2 * selector : 2 * selector + count // 8]
        halves = lanes.reshape(len(by_lane), 8, -1, 2).transpose(0, 3, 1, 2)
    per_word = count // halves.shape[3]
    split = halves[..., None] >> (2 * np.arange(per_word, dtype=np.uint32)) & np.uint32(3)
    return np.asarray(split.reshape(len(by_lane), _ROWS, count).astype(np.int64))


@dataclass(frozen=True)
class Sparsity:
    """How one instruction's first operand is stored: its metadata, and the units of its elements."""

    metadata: Fetch
    selector: int
    unit_bits: int
    per_unit: float

    def expand(self, f: Frame, stored: npt.NDArray[Any], rows: npt.NDArray[np.int64] | None = None) -> npt.NDArray[Any]:
        """The whole first operand, shape (warps, 16, K), of its stored half; `rows` of the frame or all."""
        words = f.spread(self.metadata(f))
        words = np.ascontiguousarray(words if rows is None else words[rows]).reshape(-1, LANES)
        return expanded(stored, codes(words, self.selector, self.unit_bits, int(stored.shape[2] / self.per_unit)))


def expanded(stored: npt.NDArray[Any], found: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Rows, along the last axis, of twice as many elements as are stored: a code for each unit, two for a TF32 one."""
    elements, units = stored.shape[-1], found.shape[-1]
    if units > elements:
        places = 2 * np.arange(elements) + (found[..., ::2] >> 1)
    else:
        per, whole = elements // units, 4 * (np.arange(units) // 2) + found
        places = (per * whole[..., None] + np.arange(per)).reshape(stored.shape)
    result = np.zeros((*stored.shape[:-1], 2 * elements), stored.dtype)
    np.put_along_axis(result, places, stored, axis=-1)
    return result


def tensor_codes(words: npt.NDArray[np.uint32], rows: int, units: int) -> npt.NDArray[np.int64]:
    """The codes of rows whose metadata lie in tensor memory, shape (rows, units); `words` are (columns, lanes).

    A row has its 32 codes in two columns of its own lane. Of 16 codes, a word has 8 in its low half for one row and 8
    in its high half for the row 8 below; of 16 lanes the first 8 hold the codes of columns to the left.
    """
    split = words[..., None] >> (2 * np.arange(16, dtype=np.uint32)) & np.uint32(3)
    if units == 16:
        # (lanes of 16, left or right, lane of 8, upper or lower row, code) to (…, row, left or right, code)
        ordered = split.reshape(rows // 16, 2, 8, 2, 8).transpose(0, 3, 2, 1, 4)
    else:
        ordered = split.transpose(1, 0, 2)
    return np.asarray(ordered.reshape(rows, units).astype(np.int64))


def sparsity(d: Decoder, metadata: Operand, selector: Operand | None, element_bits: int) -> Sparsity:
    """The sparsity that an instruction's last operands describe; without a selector all lanes take part."""
    if not isinstance(metadata, Register):
        raise UnsupportedInstructionError(f"metadata {metadata}")
    chosen = 0 if selector is None else d.known(selector)
    if chosen is None:
        raise UnsupportedInstructionError(f"sparsity selector {selector}")
    unit, per = {32: (16, 0.5), 16: (16, 1), 8: (8, 1), 4: (8, 2)}[element_bits]
    return Sparsity(d.raw(metadata, 0), int(chosen), unit, per)


@dataclass(frozen=True)
class Scales:
    """Scale factors of both operands of a warp's product, each for a block of the depth of one row or column.

    They are bytes of a register. With g = lane / 4 and t = lane % 4 the factors of row g are in lane t = 2a of its
    four, those of row g + 8 in the next lane, and those of column g in lane t = b. A word names the lanes and the
    first byte: bits 0 and 1 the first operand's byte, bit 2 its a, bits 3 and 4 the second one's byte, bits 5 and 6
    its b.

    Source: PTX ISA, "Block scaling for mma.sync"; the word is what ptxas makes of PTX's four numbers.
    """

    first: Fetch
    second: Fetch
    chosen: Fetch
    blocks: int
    unsigned_e4m3: bool

    def apply(self, f: Frame, left: npt.NDArray[Any], right: npt.NDArray[Any]) -> tuple[Any, Any]:
        """Both operands, shapes (warps, 16, K) and (warps, K, 8), times their factors."""
        word = np.broadcast_to(np.asarray(self.chosen(f)), (f.rows, 1))[:, :1].astype(np.int64)
        row = np.arange(_ROWS)
        lanes_a = 4 * (row % 8) + 2 * (word >> 2 & 1) + row // 8
        lanes_b = 4 * np.arange(8) + (word >> 5 & 3)
        factors_a = self._factors(f, self.first, lanes_a, word & 3)
        factors_b = self._factors(f, self.second, lanes_b, word >> 3 & 3)
        depth = left.shape[2] // self.blocks
        left = left * np.repeat(factors_a, depth, axis=2)
        return left, right * np.repeat(factors_b, depth, axis=2).transpose(0, 2, 1)

    def _factors(self, f: Frame, fetch: Fetch, lanes: Any, byte: Any) -> Any:
        """The factors of rows or columns, shape (warps, rows, blocks)."""
        words = np.take_along_axis(np.asarray(f.spread(np.asarray(fetch(f)))), lanes, axis=1).astype(np.int64)
        places = 8 * (byte[:, :, None] + np.arange(self.blocks))
        held = words[:, :, None] >> places & 0xFF
        # A factor has no sign: what would be its bit is ignored.
        return small_to_single(held & 0x7F, "E4M3").astype(np.float64) if self.unsigned_e4m3 else scale_to_double(held)
