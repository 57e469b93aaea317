"""Matrix multiply-accumulate in tensor memory (tcgen05.mma): D, rows x columns, += A B.

One warp issues it for its block, or for a pair of blocks (.2CTA), with ranks 2n and 2n + 1. Operands are in uniform
registers: the descriptor of A, or where in tensor memory it lies; that of B; where D lies; the instruction descriptor,
which holds shape and types (of the pair `tmem[UR4], idesc[UR5]` the first is where the metadata of a sparse A lie);
then scale factors (`tmem[UR12]`: those of A, and in the next register those of B) or a mask of lanes that are not
written; whether the old D counts; and n where the old D is divided by 2^n. UTCHMMA takes 16-bit and TF32 elements,
UTCQMMA 8-bit floats and smaller ones in bytes, UTCIMMA bytes, UTCOMMA packed 4-bit floats. K is 32 bytes of them,
64 where A is sparse, and 96 packed 4-bit floats where the instruction descriptor says so (10.3).

Row m of D is lane m; of 64 rows, 16 lie in each quarter of the lanes. Of a pair's 256 rows each block has half; of its
128 each has 64, and the second half of the columns lies in lanes 64 to 127. So it is with 64 rows of one block where B
is kept (.WS); of 32, each quarter of the columns lies in 32 lanes. Each block provides its rows of A and half
of the columns of B. Column n of D is a column of tensor memory, a half-precision number in its low half.

Products are exact in float32 and summed there, integers without rounding; the hardware's sums keep other bits.
Sources: PTX ISA, tcgen05; instruction and matrix descriptors, and layouts, as CUTLASS writes them down.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import UnsupportedInstructionError
from ...kernel.instruction import Address, Immediate, Instruction, Operand, Predicate, Register
from .bulk_copy import UNREAD
from .decode import Decoder, Step, opcode, place
from .frame import Frame
from .machine import TENSOR_LANES
from .operands import Fetch, single_bits
from .tcgen05_form import FORMATS, HALF_LANES, Form, Product, TensorAddress, acting, blocks_of, tensor_address
from .tensor_operands import Singles, descriptor_words

Words = npt.NDArray[np.uint32]
_BY_SIXTEEN = frozenset({"4X", "BLOCK16"})
"""What says that 16 elements share a scale factor; the second is that of compute capability 10.3."""
_NAMED = frozenset(name for formats in FORMATS.values() for name in formats.values())


@opcode("UTCHMMA UTCIMMA UTCQMMA UTCOMMA", None)
def _multiply(d: Decoder, i: Instruction) -> Step:
    # Shape and type are our own annotation (`kernel.kernel.with_products`).
    known = {"2CTA", "SP", "WS", UNREAD, *_BY_SIXTEEN}
    unknown = [m for m in i.modifiers if m not in known and not re.match(r"\d+x\d+x\d+|T\.", m) and m not in _NAMED]
    if unknown:
        raise UnsupportedInstructionError(f"modifier .{unknown[0]}")
    product = _product(d, i)
    number, recorder, unread = i.pc // 16, d.recorder, UNREAD in i.modifiers

    def multiply(f: Frame) -> None:
        machine = f.machine
        lefts = product.left.words(f) if isinstance(product.left, TensorAddress) else product.left(f)
        rights = product.right(f)
        targets, words = product.target.of(f), np.broadcast_to(product.descriptor(f), (f.rows, 1))
        counts = np.broadcast_to(product.counts(f), (f.rows, 1))
        masks = [np.broadcast_to(fetch(f), (f.rows, 1)) for fetch in product.disabled]
        for row in acting(f):
            form = product.form(int(words[row, 0]))
            warp = int(f.warps[row])
            blocks = blocks_of(machine, warp, product.paired, product.where)
            recorder.product(number, *form.stated)
            if unread:
                continue
            each = form.columns // len(blocks)
            parts = [product.columns_of(f, form, block, int(rights[row]), each) for block in blocks]
            right = np.concatenate(parts) if len(parts) > 1 else parts[0]
            for at, block in enumerate(blocks):
                left = product.rows_of(f, form, block, int(lefts[row]), form.rows // len(blocks))
                left = product.whole(f, form, block, left, row)
                scaled = product.scaled(f, form, block, left, row, 0)
                sums = product.scaled(f, form, block, right, row, 1) @ scaled.T
                off = [int(mask[row, 0]) for mask in masks[4 * at : 4 * at + 4]]
                _accumulate(f, product, form, block, targets[row], sums, bool(counts[row, 0]), off)

    return multiply


def _product(d: Decoder, i: Instruction) -> Product:
    """The operands of an instruction."""
    addresses = [o for o in i.operands if isinstance(o, Address)]
    registers = [o for o in i.operands if isinstance(o, Register)]
    predicate = next((o for o in i.operands if isinstance(o, Predicate)), None)
    shift = next((int(o.value) for o in i.operands if isinstance(o, Immediate)), 0)
    if len(addresses) not in (5, 6) or predicate is None:
        raise UnsupportedInstructionError(f"operands {i.text}")
    first, right, target, metadata, described_by, *scales = addresses
    held = re.search(r"\s(gdesc|tmem)\[", i.text)
    if held is None or ("WS" in i.modifiers and registers):
        raise UnsupportedInstructionError(f"operands {i.text}")
    paired, wide = "2CTA" in i.modifiers, not _BY_SIXTEEN.isdisjoint(i.modifiers)
    return Product(
        name=i.opcode,
        where=place(d.kernel, i),
        left=tensor_address(d, i, first) if held[1] == "tmem" else descriptor_words(d, first),
        right=descriptor_words(d, right),
        target=tensor_address(d, i, target),
        metadata=tensor_address(d, i, metadata),
        descriptor=_register(d, described_by, 0),
        scales=_scale_addresses(d, i, scales[0]) if scales else None,
        disabled=[d.register(r.index + part, True) for r in registers for part in range(8 if paired else 4)],
        counts=d.predicate(predicate),
        divisor=2.0**shift,
        paired=paired,
        stationary="WS" in i.modifiers,
        per_scale=16 if wide else 32,
    )


def _register(d: Decoder, operand: Address, part: int) -> Fetch:
    assert operand.descriptor is not None
    return d.register(operand.descriptor.index + part, True)


def _scale_addresses(d: Decoder, i: Instruction, operand: Operand) -> tuple[TensorAddress, TensorAddress]:
    assert isinstance(operand, Address)
    left, right = (TensorAddress(_register(d, operand, part), 0, place(d.kernel, i)) for part in (0, 1))
    return left, right


def _accumulate(
    f: Frame, product: Product, form: Form, block: int, at: tuple[int, int], sums: Singles, counts: bool, off: list[int]
) -> None:
    """Add products, shape (columns, rows of the block), to D; lanes whose bit in `off` is set stay as they are."""
    lane, column = at
    if product.paired or product.stationary:
        sums = np.concatenate(np.split(sums, TENSOR_LANES // sums.shape[1]), axis=1)
    product.target.check(f.machine, block, column, len(sums), "accumulates in")
    held = f.machine.tensor.words[block, column : column + len(sums)]
    lanes: Any = slice(None) if sums.shape[1] == 128 else lane + HALF_LANES
    old = held[:, lanes] if counts else None
    new = _sums(form, old, sums, product.divisor)
    if off:
        writes = ~np.unpackbits(np.array(off, np.uint32).view(np.uint8), bitorder="little").astype(np.bool_)[lanes]
        new = np.where(writes, new, held[:, lanes])
    held[:, lanes] = new


def _sums(form: Form, old: Words | None, sums: Singles, divisor: float) -> Words:
    """Words of the old accumulators, if they count, plus products."""
    if form.result == "S32":
        whole = sums.astype(np.int64)
        if old is not None:
            whole += old.view(np.int32)
        if form.saturates:
            whole = np.clip(whole, -(1 << 31), (1 << 31) - 1)
        return whole.astype(np.int32).view(np.uint32)
    if form.result == "F16":
        if old is not None:
            sums = sums + old.astype(np.uint16).view(np.float16).astype(np.float32) / np.float32(divisor)
        return sums.astype(np.float16).view(np.uint16).astype(np.uint32)
    if old is not None:
        before = old.view(np.float32)
        sums = sums + (before if divisor == 1 else before / np.float32(divisor))
    return sums.view(np.uint32) if np.isfinite(sums).all() else np.asarray(single_bits(sums))
