"""Operands made into functions of a frame: fetchers of values, and writers of destinations.

A fetcher returns an array that broadcasts against (rows, 32): a register row, a uniform row (rows, 1), or a NumPy
scalar for immediates, constants and the zero register, which are folded here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import UnsupportedInstructionError
from ...kernel.instruction import PT, RZ, Constant, Immediate, Operand, Predicate, Register
from .constants import ConstantBanks
from .frame import Frame

Value = Any
"""An array of words, halves, doubles or booleans that broadcasts against (rows, 32), or a scalar."""
Fetch = Callable[[Frame], Value]
Put = Callable[[Frame, Value], None]

ZERO = np.uint32(0)
SIGN = np.uint32(0x80000000)
_QUIET_NAN, _QUIET_LONG_NAN = np.uint32(0x7FFFFFFF), np.uint64(0xFFF8000000000000)
"""What any operation on floats, or on doubles, makes of NaN (CUDA's own constants, math_constants.h)."""


def constant(value: Value) -> Fetch:
    """A fetcher of a value known at decode."""
    return lambda f: value


def float_bits(immediate: Immediate) -> int:
    """Bits of a float32 immediate; hexadecimal text is already bits."""
    if isinstance(immediate.value, int):
        return immediate.value & 0xFFFFFFFF
    if "NAN" in immediate.text:
        return int(_QUIET_NAN) | (0x80000000 if immediate.text.startswith("-") else 0)
    with np.errstate(all="ignore"):
        return int(np.float32(immediate.value).view(np.uint32))


class Touched:
    """Registers that some instructions read or write, which a gathered frame copies in and out."""

    def __init__(self) -> None:
        self.read: dict[str, set[int]] = {"R": set(), "P": set(), "U": set(), "UP": set()}
        self.written: dict[str, set[int]] = {"R": set(), "P": set(), "U": set(), "UP": set()}

    def gather(self, frame: Frame) -> None:
        """Copy the registers that are used into a gathered frame."""
        machine, warps, read = frame.machine, frame.warps, self.read
        for index in read["R"]:
            np.take(machine.registers[index], warps, axis=0, out=frame.R[index], mode="clip")
        for index in read["P"]:
            np.take(machine.predicates[index], warps, axis=0, out=frame.P[index], mode="clip")
        for index in read["U"]:
            np.take(machine.uniform[index], warps, axis=0, out=frame.U[index], mode="clip")
        for index in read["UP"]:
            np.take(machine.uniform_predicates[index], warps, axis=0, out=frame.UP[index], mode="clip")

    def scatter(self, frame: Frame) -> None:
        """Write the changed registers back from a gathered frame."""
        machine, warps, written = frame.machine, frame.warps, self.written
        for index in written["R"]:
            machine.registers[index][warps] = frame.R[index]
        for index in written["P"]:
            machine.predicates[index][warps] = frame.P[index]
        for index in written["U"]:
            machine.uniform[index][warps] = frame.U[index]
        for index in written["UP"]:
            machine.uniform_predicates[index][warps] = frame.UP[index]


class Operands:
    """Turns operands into fetchers and writers, and records which registers a block uses."""

    def __init__(self, banks: ConstantBanks) -> None:
        self.banks = banks
        self.touched = Touched()

    # Registers ------------------------------------------------------------------------------------

    def register(self, index: int, uniform: bool = False) -> Fetch:
        """The words of a register, without modifiers."""
        if index == RZ:
            return constant(ZERO)
        self.touched.read["U" if uniform else "R"].add(index)
        if uniform:
            return lambda f: f.U[index]
        return lambda f: f.R[index]

    def put(self, operand: Operand, part: int = 0) -> Put:
        """Writer of words into a general or uniform register, or the one `part` after it."""
        if not isinstance(operand, Register):
            raise UnsupportedInstructionError(f"destination {operand}")
        if operand.index == RZ:
            return lambda f, value: None
        index = operand.index + part
        # A partial write preserves the other lanes, so a destination is read as well.
        kind = "U" if operand.uniform else "R"
        self.touched.read[kind].add(index)
        self.touched.written[kind].add(index)
        if operand.uniform:
            return lambda f, value: f.write_uniform(f.U[index], value)
        return lambda f, value: f.write(f.R[index], value)

    def put_pair(self, operand: Operand) -> Put:
        """Writer of 64-bit words into a register pair."""
        low, high = self.put(operand), self.put(operand, 1)

        def put(f: Frame, value: Value) -> None:
            low(f, value.astype(np.uint32))
            high(f, (value >> np.uint64(32)).astype(np.uint32))

        return put

    def put_predicate(self, operand: Operand) -> Put:
        """Writer of booleans to a predicate; writes to the true predicate are dropped."""
        if not isinstance(operand, Predicate):
            raise UnsupportedInstructionError(f"destination {operand}")
        index = operand.index
        if index == PT:
            return lambda f, value: None
        kind = "UP" if operand.uniform else "P"
        self.touched.read[kind].add(index)
        self.touched.written[kind].add(index)
        if operand.uniform:
            return lambda f, value: f.write_uniform(f.UP[index], value)
        return lambda f, value: f.write_predicate(f.P[index], value)

    def predicate(self, operand: Operand) -> Fetch:
        """Booleans of a predicate, `!` applied, or the sign bits of `R7.SIGN`."""
        if isinstance(operand, Register) and operand.select == "SIGN":
            source = self.register(operand.index, operand.uniform)
            flip = np.bool_(operand.invert)
            return lambda f: ((source(f) & SIGN) != ZERO) ^ flip
        if not isinstance(operand, Predicate) or operand.index < 0:
            raise UnsupportedInstructionError(f"predicate operand {operand}")
        index = operand.index
        if index == PT:
            return constant(np.bool_(not operand.negate))
        self.touched.read["UP" if operand.uniform else "P"].add(index)
        if operand.uniform:
            return (lambda f: ~f.UP[index]) if operand.negate else (lambda f: f.UP[index])
        return (lambda f: ~f.P[index]) if operand.negate else (lambda f: f.P[index])

    # Words ----------------------------------------------------------------------------------------

    def raw(self, operand: Operand, part: int = 0) -> Fetch:
        """32-bit words of a source without its modifiers; `part` 1 is the upper half of a 64-bit one."""
        if isinstance(operand, Register):
            index = operand.index if operand.index == RZ else operand.index + part
            return self.register(index, operand.uniform)
        if isinstance(operand, Immediate):
            if part:
                # A 32-bit integer immediate in a 64-bit place is sign-extended.
                return constant(np.uint32(float_or_int_high(operand)))
            return constant(np.uint32(float_bits(operand)))
        if isinstance(operand, Constant):
            return self._constant(operand, part)
        raise UnsupportedInstructionError(f"source operand {operand}")

    def _constant(self, operand: Constant, part: int) -> Fetch:
        if operand.bank_register is not None:
            raise UnsupportedInstructionError("a bindless constant")
        offset = operand.offset + 4 * part
        if operand.register is None:
            return constant(np.uint32(self.banks.word(operand.bank, offset)))
        words = self.banks.bank(operand.bank).view(np.uint32)
        index = self.register(operand.register.index, operand.register.uniform)
        base = np.uint32(offset & 0xFFFFFFFF)
        limit = np.uint32(len(words) - 1)
        return lambda f: words[np.minimum((index(f) + base) >> np.uint32(2), limit)]

    def word(self, operand: Operand) -> Fetch:
        """32-bit integers with `-`, `~` and `|x|` applied."""
        fetch = self.raw(operand)
        if isinstance(operand, Register | Constant):
            if operand.select and operand.select not in ("", "U32"):
                raise UnsupportedInstructionError(f"selector .{operand.select} on an integer operand")
            if operand.absolute:
                inner = fetch
                fetch = lambda f: np.abs(inner(f).view(np.int32)).view(np.uint32)  # noqa: E731
            if operand.negate:
                positive = fetch
                return lambda f: ZERO - positive(f)
            if operand.invert:
                plain = fetch
                return lambda f: ~plain(f)
        return fetch

    def known(self, operand: Operand) -> int | None:
        """The word of a source if it is the same for all threads and has no modifier that changes it, else None."""
        if isinstance(operand, Immediate):
            return float_bits(operand)
        if isinstance(operand, Register | Constant) and operand.invert:
            return None
        if isinstance(operand, Constant) and (operand.negate or operand.absolute):
            return None
        if isinstance(operand, Register):
            return 0 if operand.index == RZ else None
        if isinstance(operand, Constant) and operand.register is None and operand.bank_register is None:
            return self.banks.word(operand.bank, operand.offset)
        return None

    def pair(self, operand: Operand) -> Fetch:
        """64-bit integers of a register pair, a constant or an immediate, negation applied."""
        low, high = self.raw(operand), self.raw(operand, 1)
        if isinstance(operand, Immediate | Constant) and self.known(operand) is not None:
            none: Any = None
            value = np.uint64(int(low(none)) | int(high(none)) << 32)
            fetch = constant(value)
        else:
            fetch = lambda f: join(low(f), high(f))  # noqa: E731
        if isinstance(operand, Register | Constant):
            if operand.negate:
                positive = fetch
                return lambda f: np.uint64(0) - positive(f)
            if operand.invert:
                plain = fetch
                return lambda f: ~plain(f)
        return fetch

    # Floating point -------------------------------------------------------------------------------

    def f32(self, operand: Operand, flush: bool = False) -> Fetch:
        """float32 values with `|x|` and `-` applied; `flush` makes denormals zero."""
        fetch = self.raw(operand)
        negate, absolute = _signs(operand)

        def load(f: Frame) -> Value:
            value = fetch(f).view(np.float32)
            if flush:
                value = flush_denormals(value)
            if absolute:
                value = np.abs(value)
            return -value if negate else value

        if self.known(operand) is not None:
            none: Any = None
            return constant(load(none))
        if not (flush or negate or absolute):
            return lambda f: fetch(f).view(np.float32)
        return load

    def f64(self, operand: Operand) -> Fetch:
        """float64 values with `|x|` and `-` applied."""
        if isinstance(operand, Immediate):
            value = operand.value
            if isinstance(value, int):
                # Hexadecimal text of a double immediate is its upper half.
                return constant(np.uint64((value & 0xFFFFFFFF) << 32).view(np.float64))
            return constant(np.float64(value))
        low, high = self.raw(operand), self.raw(operand, 1)
        negate, absolute = _signs(operand)

        def load(f: Frame) -> Value:
            value = join(low(f), high(f)).view(np.float64)
            if absolute:
                value = np.abs(value)
            return -value if negate else value

        return load


def float_or_int_high(immediate: Immediate) -> int:
    """Upper half of an immediate in a 64-bit integer place."""
    if isinstance(immediate.value, int):
        return (immediate.value >> 32) & 0xFFFFFFFF
    return 0


def _signs(operand: Operand) -> tuple[bool, bool]:
    if isinstance(operand, Register | Constant):
        return operand.negate, operand.absolute
    return False, False


def join(low: Value, high: Value) -> Value:
    """64-bit words of two 32-bit halves."""
    shape = np.broadcast_shapes(np.shape(low), np.shape(high))
    if not shape:
        return np.uint64(int(low) | int(high) << 32)
    # Interleaving halves and viewing them is cheaper than widening, shifting and joining.
    words = np.empty((*shape, 2), np.uint32)
    words[..., 0] = low
    words[..., 1] = high
    return words.view(np.uint64)[..., 0]


def single_bits(value: Value) -> Value:
    """The bits of results in single precision; every NaN has the same."""
    value = np.asarray(value, np.float32)
    return np.where(np.isnan(value), _QUIET_NAN, value.view(np.uint32))


def double_bits(value: Value) -> Value:
    """The bits of results in double precision; every NaN has the same."""
    value = np.asarray(value, np.float64)
    return np.where(np.isnan(value), _QUIET_LONG_NAN, value.view(np.uint64))


def flush_denormals(value: Value) -> Value:
    """Denormal float32 numbers replaced by zeros of the same sign."""
    bits = np.asarray(value).view(np.uint32)
    tiny = (bits & np.uint32(0x7F800000)) == ZERO
    return np.where(tiny, bits & SIGN, bits).view(np.float32)
