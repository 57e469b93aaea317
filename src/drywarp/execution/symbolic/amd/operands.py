"""Operands of AMD instructions as functions of a batch: their values, and what is known about them.

Scalar registers are one file, numbered as the hardware encodes them: 0 to 101, and the special ones above. A mask of
lanes is a pair of them.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ....kernel.instruction import Immediate, Instruction, Operand, RegisterRange, Special
from ....kernel.isa.nvidia.registers import Place
from ..state import DATA, Batch, Lanes, Value

SPECIAL = {"flat_scratch": 102, "xnack_mask": 104, "vcc": 106, "tba": 108, "tma": 110, "ttmp": 108, "m0": 124,
           "exec": 126, "scc": 253, "vccz": 251, "execz": 252}  # fmt: skip
VCC, M0, EXEC, SCC = SPECIAL["vcc"], SPECIAL["m0"], SPECIAL["exec"], SPECIAL["scc"]
SCALARS = 256

SHARED_APERTURE, PRIVATE_APERTURE = 0x7FFF0001, 0x7FFF0002
"""Upper words of generic addresses in shared and in private memory."""

_SYMBOL = re.compile(r"^([\w.$]+)@\w+@(lo|hi)\b")
_SELECT = re.compile(r"^src(\d)_sel:(BYTE|WORD)_(\d)$")
_SIGN = np.uint32(0x80000000)

Fetch = Callable[[Batch], Value]


def place_of(file: str, index: int) -> Place:
    """A place in the register files of the walk: vector, accumulation and scalar registers."""
    if file in ("v", "a"):
        return file, index
    return "s", SPECIAL.get(file, 0) + index


class Operands:
    """Reads and writes operands of one kernel. `symbols` gives the addresses of module variables."""

    def __init__(self, symbols: Callable[[str], int]) -> None:
        self._symbols = symbols

    # Reading --------------------------------------------------------------------------------------

    def word(self, operand: Operand, i: Instruction | None = None, position: int = -1) -> Fetch:
        """32 bits as uint32; `position` is the source's number, for register parts that the instruction selects."""
        fetch = self._word(operand)
        part = self._part(i, position) if i is not None and "sdwa" in i.modifiers else None
        if part is None:
            return fetch
        shift, mask = part
        return lambda b: (fetch(b) >> shift) & mask

    def _word(self, operand: Operand) -> Fetch:
        if isinstance(operand, RegisterRange):
            file, index = place_of(operand.file, operand.index)
            return lambda b: getattr(b, file)[index]
        constant = np.uint32(self._bits(operand) & 0xFFFFFFFF)
        return lambda b: constant

    def pair(self, operand: Operand) -> Fetch:
        """64 bits as uint64."""
        if isinstance(operand, RegisterRange) and operand.count > 1:
            file, index = place_of(operand.file, operand.index)
            high = np.uint64(32)
            return lambda b: (
                getattr(b, file)[index].astype(np.uint64) | getattr(b, file)[index + 1].astype(np.uint64) << high
            )
        if isinstance(operand, RegisterRange):
            single = self._word(operand)
            return lambda b: single(b).astype(np.uint64)
        if isinstance(operand, Immediate) and isinstance(operand.value, float):
            real = np.uint64(struct.unpack("<Q", struct.pack("<d", operand.value))[0])
            return lambda b: real
        constant = np.uint64(self._bits(operand) & 0xFFFFFFFFFFFFFFFF)
        return lambda b: constant

    def real(self, operand: Operand, i: Instruction, position: int) -> Fetch:
        """A single-precision number, with the operand's sign and magnitude modifiers applied."""
        fetch = self.word(operand, i, position)
        negate, absolute = getattr(operand, "negate", False), getattr(operand, "absolute", False)

        def value(b: Batch) -> Value:
            bits = np.asarray(fetch(b), np.uint32)
            if absolute:
                bits = bits & ~_SIGN
            return (bits ^ _SIGN if negate else bits).view(np.float32)

        return value

    def double(self, operand: Operand) -> Fetch:
        """A double-precision number; see `real`."""
        fetch = self.pair(operand)
        negate, absolute = getattr(operand, "negate", False), getattr(operand, "absolute", False)

        def value(b: Batch) -> Value:
            number = np.asarray(fetch(b), np.uint64).view(np.float64)
            number = np.abs(number) if absolute else number
            return -number if negate else number

        return value

    def mask(self, operand: Operand) -> Callable[[Batch], Lanes]:
        """The lanes in the mask of a pair of scalar registers, shape (rows, lanes)."""
        fetch = self.pair(operand)
        return lambda b: lanes_of(np.asarray(fetch(b), np.uint64), b)

    def flags(self, operands: Iterable[Operand]) -> Callable[[Batch], Value]:
        """What is known about all these operands together."""
        places = [p for o in operands if isinstance(o, RegisterRange) for p in range_places(o)]

        def joined(b: Batch) -> Value:
            total: Any = np.uint16(0)
            for file, index in places:
                total = total | b.flags[file][index]
            return total

        return joined

    def _bits(self, operand: Operand) -> int:
        if isinstance(operand, Immediate):
            if isinstance(operand.value, float):
                return int(struct.unpack("<I", struct.pack("<f", operand.value))[0])
            return operand.value
        if isinstance(operand, Special):
            if match := _SYMBOL.match(operand.name):
                address = self._symbols(match[1])
                return address >> 32 if match[2] == "hi" else address & 0xFFFFFFFF
            apertures = {"src_shared_base": SHARED_APERTURE << 32, "src_private_base": PRIVATE_APERTURE << 32}
            return apertures.get(operand.name, 0)
        return 0

    def _part(self, i: Instruction, position: int) -> tuple[np.uint32, np.uint32] | None:
        """Shift and mask of the part of a source that an SDWA instruction takes."""
        for word in i.modifiers:
            if (match := _SELECT.match(word)) and int(match[1]) == position:
                bits = 8 if match[2] == "BYTE" else 16
                return np.uint32(bits * int(match[3])), np.uint32((1 << bits) - 1)
        return None

    # Writing --------------------------------------------------------------------------------------

    def put_word(self, operand: Operand) -> Callable[[Batch, Value, Value], None]:
        """Writes 32 bits and their flags; to a vector register, for the active lanes only."""
        if not isinstance(operand, RegisterRange):
            return lambda b, value, flags: None
        file, index = place_of(operand.file, operand.index)
        return lambda b, value, flags: put(b, file, index, value, flags)

    def put_pair(self, operand: Operand) -> Callable[[Batch, Value, Value], None]:
        """Writes 64 bits and their flags."""
        if not isinstance(operand, RegisterRange):
            return lambda b, value, flags: None
        file, index = place_of(operand.file, operand.index)

        def write(b: Batch, value: Value, flags: Value) -> None:
            whole = np.asarray(value, np.uint64)
            put(b, file, index, (whole & np.uint64(0xFFFFFFFF)).astype(np.uint32), flags)
            put(b, file, index + 1, (whole >> np.uint64(32)).astype(np.uint32), flags)

        return write

    def put_mask(self, operand: Operand) -> Callable[[Batch, Lanes, Value], None]:
        """Writes lanes as a mask to a pair of scalar registers; its flags are those of all active lanes."""
        write = self.put_pair(operand)

        def put_lanes(b: Batch, lanes: Lanes, flags: Value) -> None:
            write(b, word_of(lanes)[:, None], over_lanes(b, flags))

        return put_lanes


def range_places(operand: RegisterRange) -> list[Place]:
    """The places of all registers of an operand."""
    return [place_of(operand.file, operand.index + k) for k in range(operand.count)]


def put(batch: Batch, file: str, index: int, value: Value, flags: Value) -> None:
    """Write a register and what is known about it."""
    row, known = getattr(batch, file)[index], batch.flags[file][index]
    if file == "s":
        row[...] = np.asarray(value)[..., :1] if np.ndim(value) else value
        known[...] = np.asarray(flags)[..., :1] if np.ndim(flags) else flags
        if index in (EXEC, EXEC + 1):
            batch.__dict__.pop("active_lanes", None)
        return
    lanes = active(batch)
    np.copyto(row, value, where=lanes, casting="unsafe")
    np.copyto(known, flags, where=lanes, casting="unsafe")


def active(batch: Batch) -> Lanes:
    """The lanes that execute a vector instruction, shape (rows, lanes): those of exec that are present."""
    held: Lanes | None = batch.__dict__.get("active_lanes")
    if held is None:
        file: Any = batch.s
        word = file[EXEC].astype(np.uint64) | file[EXEC + 1].astype(np.uint64) << np.uint64(32)
        held = lanes_of(word, batch) & batch.there
        batch.__dict__["active_lanes"] = held
    return held


def lanes_of(words: Value, batch: Batch) -> Lanes:
    """Masks, shape (rows, 1) or a number, as booleans per lane."""
    bits = np.arange(batch.state.lanes, dtype=np.uint64)
    found: Lanes = (np.asarray(words, np.uint64) >> bits) & np.uint64(1) != 0
    return np.broadcast_to(found, (batch.rows, batch.state.lanes))


def word_of(lanes: Lanes) -> Value:
    """Booleans per lane as a mask for each row, shape (rows,)."""
    packed = np.packbits(np.ascontiguousarray(lanes), axis=1, bitorder="little")
    wide = np.zeros((len(lanes), 8), np.uint8)
    wide[:, : packed.shape[1]] = packed
    return wide.view(np.uint64)[:, 0]


def over_lanes(batch: Batch, flags: Value) -> Value:
    """What is known about something to which all active lanes contribute, shape (rows, 1)."""
    if not np.ndim(flags) or np.shape(flags)[-1] == 1:
        return flags
    gathered: Value = np.bitwise_or.reduce(np.where(active(batch), flags, 0), axis=1, keepdims=True)
    return gathered


NOT_KNOWN = np.uint16(DATA)
