"""What a tcgen05.mma multiplies: its instruction descriptor, and where its operands lie (see `tcgen05`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ...errors import EmulationError, UnsupportedInstructionError
from ...kernel.instruction import Address, Instruction, Operand
from .decode import Decoder, place
from .frame import Frame
from .machine import TENSOR_COLUMNS, TENSOR_LANES, Machine
from .operands import Fetch
from .sparse import expanded, tensor_codes
from .tensor_operands import (
    BELOW_A_BYTE,
    K_BYTES,
    Bytes,
    Ints,
    Singles,
    bytes_across,
    elements,
    matrix_bytes,
    scale_factors,
)
from .wgmma import KINDS

_K_WORDS, _LONG, _PER_WORD = 8, 96, 4
FORMATS = {
    "UTCHMMA": {0: "F16", 1: "BF16", 2: "TF32"},
    "UTCIMMA": {0: "U8", 1: "S8"},
    "UTCQMMA": {0: "E4M3", 1: "E5M2", 3: "E2M3", 4: "E3M2", 5: "E2M1"},
    "UTCOMMA": {1: "E2M1"},
}
"""Element types by the number in an instruction descriptor."""
_KEPT = (64, 128, 256)
"""Columns of products that keep B."""
_RESULTS = ("F16", "F32", "S32")
HALF_LANES = np.arange(64) % 16 + 32 * (np.arange(64) // 16)
"""The lanes of 64 rows."""


@dataclass(frozen=True)
class TensorAddress:
    """An operand `tmem[UR4+0x3]`, which adds to an address: a lane in its high half, a column in its low one.

    `where` is for messages.
    """

    fetch: Fetch
    offset: int
    where: str

    def of(self, f: Frame) -> list[tuple[int, int]]:
        """Lane and column for each row of the frame."""
        return [(word >> 16 & TENSOR_LANES - 1, word & 0xFFFF) for word in self.words(f).tolist()]

    def words(self, f: Frame) -> Ints:
        """The address for each row of the frame."""
        return np.asarray(np.broadcast_to(self.fetch(f), (f.rows, 1))[:, 0].astype(np.int64) + self.offset)

    def check(self, machine: Machine, block: int, column: int, count: int, what: str) -> None:
        """Raises EmulationError if a block has not allocated these columns."""
        if column + count > TENSOR_COLUMNS or not machine.tensor.holds(block, column, count):
            raise EmulationError(
                f"{self.where}: {what} columns {column} to {column + count - 1} of tensor memory, "
                f"which block {machine.launch.coordinates(machine.blocks[block])} has not allocated"
            )


def tensor_address(d: Decoder, i: Instruction, operand: Operand) -> TensorAddress:
    """The tensor-memory address that an operand gives."""
    if not isinstance(operand, Address) or operand.descriptor is None:
        raise UnsupportedInstructionError(f"operand {operand}")
    register = operand.descriptor
    return TensorAddress(d.register(register.index, True), operand.offset, place(d.kernel, i))


def acting(f: Frame) -> list[int]:
    """Rows of the frame whose warps execute."""
    return [int(row) for row in np.flatnonzero(f.words())]


def blocks_of(machine: Machine, warp: int, paired: bool, where: str) -> list[int]:
    """A warp's block, or the pair with ranks 2n and 2n + 1 in their cluster to which it belongs."""
    block = machine.block_of(warp)
    if not paired:
        return [block]
    if machine.cluster_blocks % 2:
        raise EmulationError(
            f"{where}: a pair of blocks (cta_group::2) in a cluster of {machine.cluster_blocks}: expected an even"
            " number of blocks (--cluster X,Y,Z states its size)"
        )
    first = block - block % machine.cluster_blocks % 2
    return [first, first + 1]


@dataclass(frozen=True, slots=True)
class Form:
    """What an instruction descriptor says. `rows` are those of all blocks together, `transposed` says which of A and B
    have their elements along rows or columns instead of along K. `depth` is K as far as it is stored of a `sparse` A,
    of which `selector` names the column of metadata."""

    left: str
    right: str
    result: str
    rows: int
    columns: int
    depth: int
    negated: tuple[bool, bool]
    transposed: tuple[bool, bool]
    saturates: bool
    scale_ids: tuple[int, int]
    exponents: bool
    sparse: bool
    selector: int

    @property
    def stated(self) -> tuple[str, ...]:
        """Rows, columns and K, the type of A, and whether it is sparse, as the modifiers of other instructions say."""
        shape = f"{self.rows}x{self.columns}x{self.depth * (1 + self.sparse)}"
        return (shape, self.left, "SP") if self.sparse else (shape, self.left)


@cache
def form_of(word: int, name: str, scaled: bool) -> Form:
    """The form that a descriptor gives an instruction. Raises UnsupportedInstructionError for what is not emulated."""
    formats = FORMATS[name]
    left, right = (formats.get(word >> low & 7, "") for low in (7, 10))
    result = "F32" if scaled else dict(enumerate(_RESULTS)).get(word >> 4 & 3, "")
    long = bool(scaled and word >> 31)
    if long and (name != "UTCOMMA" or word >> 2 & 1):
        raise UnsupportedInstructionError("96 elements along K that are not dense 4-bit ones")
    if not left or not right or not result:
        raise UnsupportedInstructionError(f"instruction descriptor {word:#010x}")
    return Form(
        left,
        right,
        result,
        rows=(word >> 24 & 31) << 4,
        columns=(word >> 17 & 63) << 3,
        depth=(_LONG if long else 64) if name == "UTCOMMA" else K_BYTES // (KINDS[left].width if left in KINDS else 1),
        negated=(bool(word >> 13 & 1), bool(word >> 14 & 1)),
        transposed=(bool(word >> 15 & 1), bool(word >> 16 & 1)),
        saturates=not scaled and bool(word >> 3 & 1),
        scale_ids=(word >> 29 & 3, word >> 4 & 3),
        exponents=bool(word >> 23 & 1),
        sparse=bool(word >> 2 & 1),
        selector=0 if scaled else word & 3,
    )


@dataclass(frozen=True)
class Product:
    """One instruction: where its operands come from."""

    name: str
    where: str
    left: Any
    right: Any
    target: TensorAddress
    metadata: TensorAddress
    descriptor: Fetch
    scales: tuple[TensorAddress, TensorAddress] | None
    disabled: list[Fetch]
    counts: Fetch
    divisor: float
    paired: bool
    stationary: bool
    per_scale: int

    def form(self, word: int) -> Form:
        """What the instruction descriptor says, checked against the number of blocks."""
        try:
            form = form_of(word, self.name, self.scales is not None)
        except UnsupportedInstructionError as error:
            raise UnsupportedInstructionError(f"{self.where}: {self.name} with {error} is not emulated") from None
        known = (128, 256) if self.paired else (32, 64, 128) if self.stationary else (64, 128)
        if form.rows not in known or not form.columns or (self.scales and not self.paired and form.rows != 128):
            expected = " or ".join(map(str, known))
            raise EmulationError(
                f"{self.where}: {self.name} of {form.rows} rows and {form.columns} columns: expected {expected} rows"
            )
        if form.sparse and (self.stationary or (self.paired and form.rows == 128)):
            kind = "that keeps B" if self.stationary else "of 128 rows by a pair of blocks"
            raise UnsupportedInstructionError(f"{self.where}: a sparse {self.name} {kind}")
        if self.stationary and form.columns not in _KEPT:
            raise EmulationError(f"{self.where}: {self.name}.WS of {form.columns} columns: expected 64, 128 or 256")
        return form

    def rows_of(self, f: Frame, form: Form, block: int, word: int, count: int) -> Singles:
        """The rows of A that a block provides."""
        if isinstance(self.left, TensorAddress):
            lane, column = word >> 16 & 127, word & 0xFFFF
            if self.stationary and count < TENSOR_LANES:
                raise UnsupportedInstructionError(f"{self.where}: {count} rows in tensor memory where B is kept")
            self.left.check(f.machine, block, column, _K_WORDS, "multiplies")
            held = f.machine.tensor.words[block, column : column + _K_WORDS]
            lanes: Any = lane + HALF_LANES if count == 64 and not self.paired else slice(count)
            found = np.ascontiguousarray(held[:, lanes].T).view(np.uint8)
            if (form.left in BELOW_A_BYTE and self.name == "UTCQMMA") or form.depth == _LONG:
                raise UnsupportedInstructionError(f"{self.where}: K = {form.depth} of {form.left} in tensor memory")
        else:
            found = self._shared(f, form, block, word, count, 0)
        return self._numbers(form, found, 0)

    def whole(self, f: Frame, form: Form, block: int, stored: Singles, row: int) -> Singles:
        """Rows of a sparse A with their zeros. Of 64 rows the metadata are in the same lanes as the results."""
        if not form.sparse:
            return stored
        (lane, column), count = self.metadata.of(f)[row], len(stored)
        units, columns = (16, 1) if self.name == "UTCHMMA" else (32, 2)
        column += form.selector
        self.metadata.check(f.machine, block, column, columns, "reads metadata from")
        lanes: Any = lane + HALF_LANES if count == 64 else slice(count)
        words = f.machine.tensor.words[block, column : column + columns, lanes]
        return expanded(stored, tensor_codes(words, count, units))

    def columns_of(self, f: Frame, form: Form, block: int, word: int, count: int) -> Singles:
        """The columns of B that a block provides."""
        return self._numbers(form, self._shared(f, form, block, word, count, 1), 1)

    def _shared(self, f: Frame, form: Form, block: int, word: int, count: int, side: int) -> Bytes:
        kind = (form.left, form.right)[side]
        size = form.depth // 2 if self.name == "UTCOMMA" else K_BYTES
        size *= 1 + (side and form.sparse)
        if not form.transposed[side]:
            return matrix_bytes(f, block, word, count, size, self.where)
        if kind in BELOW_A_BYTE:
            raise UnsupportedInstructionError(f"{self.where}: {kind} elements that do not lie along K")
        return bytes_across(f, block, word, count, size, KINDS[kind].width, self.where)

    def _numbers(self, form: Form, found: Bytes, side: int) -> Singles:
        numbers = elements(found, (form.left, form.right)[side], self.name == "UTCOMMA")
        return np.negative(numbers) if form.negated[side] else numbers

    def scaled(self, f: Frame, form: Form, block: int, numbers: Singles, row: int, side: int) -> Singles:
        """Rows of A or columns of B times their scale factors: a byte for each 16 or 32 elements along K, or if A is
        sparse for twice as many.

        Row m has its bytes in the word at lane m % 32 and column m / 32; of pairs with 64 rows each, the second half of
        the columns is scaled from lane 64 on. Of 96 elements they may go on in the words behind those of 128 rows, or
        of as many times 128 as there are.
        """
        if self.scales is None:
            return numbers
        address, count = self.scales[side], len(numbers)
        (_, column), first = address.of(f)[row], form.scale_ids[side]
        halves = 2 if side and self.paired and form.rows == 128 else 1
        index = np.arange(count) % (count // halves)
        lanes = index % 32 + 64 * (np.arange(count) // (count // halves))
        per_scale = self.per_scale * (1 + form.sparse)
        groups = numbers.shape[1] // per_scale
        if first + groups > _PER_WORD and form.depth != _LONG:
            raise EmulationError(f"{self.where}: scale factors from byte {first} on: expected {groups} within a word")
        ahead = 4 * -(-count // halves // TENSOR_LANES)
        behind = np.arange(-(-(first + groups) // _PER_WORD))
        rows_each = -(-count // halves // 32)
        address.check(f.machine, block, column, int(behind[-1]) * ahead + rows_each, "scales by")
        columns = column + (index // 32)[:, None] + ahead * behind
        words = np.ascontiguousarray(f.machine.tensor.words[block][columns, lanes[:, None]])
        found = words.view(np.uint8).reshape(count, -1)[:, first : first + groups]
        return numbers * np.repeat(scale_factors(found, form.exponents), per_scale, axis=1)
