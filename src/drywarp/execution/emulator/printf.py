"""The text of the device's printf, and of assertions that fail, where somebody asks for it (a program that runs whole).

`vprintf` takes the address of the format and that of the arguments, which the caller has laid out in local memory as C
lays them out in a structure: 4 bytes for integers up to int, 8 bytes at multiples of 8 for everything else.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .constants import LOCAL_WINDOW
from .frame import Frame
from .memory import DeviceMemory

_CONVERSION = re.compile(r"%([-+ #0]*)(\*|\d*)(?:\.(\*|\d*))?(hh|h|ll|l|L|q|j|z|t)?([diouxXcspaAeEfFgG%])")
_WIDE = ("l", "ll", "L", "q", "j", "z", "t")
_MOST_TEXT = 1 << 16
"""Longest string that is looked for a terminating zero, in bytes."""


class Words:
    """The arguments of one lane, taken from its local memory one after the other."""

    def __init__(self, f: Frame, row: int, lane: int, address: int) -> None:
        machine = f.machine
        self._words = machine.local[int(machine.thread[int(f.warps[row]), lane]) :: machine.threads]
        self._at = address & 0xFFFFFFFF
        self.taken = 0

    def take(self, size: int) -> bytes:
        """The next argument, of 4 or 8 bytes; zeros beyond the end of local memory."""
        self._at = -(-self._at // size) * size
        first = self._at // 4
        self._at += size
        self.taken += 1
        return self._words[first : first + size // 4].tobytes().ljust(size, b"\0")

    def string(self, memory: DeviceMemory, address: int) -> str:
        """The string at a generic address, which may lie in local memory too."""
        at = address - LOCAL_WINDOW
        if not 0 <= at < 4 * len(self._words):
            return string_at(memory, address)
        content = self._words[at // 4 : at // 4 + _MOST_TEXT // 4].tobytes()[at % 4 :]
        return content.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def string_at(memory: DeviceMemory, address: int) -> str:
    """The string at an address of global memory; a note in its place if there is none."""
    (found,) = memory.region_of(np.array([address], np.uint64), 1).tolist()
    if found < 0:
        return "(null)" if address == 0 else f"(no string at {address:#x})"
    region = memory.regions[found]
    offset = address - region.start
    memory.prepare(region, np.array([offset], np.uint64))
    text = memory.bytes_of(region)[offset : offset + _MOST_TEXT].tobytes()
    return text.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def formatted(text: str, words: Any, memory: DeviceMemory | None = None) -> str:
    """What printf prints for a format; `words.take(bytes)` gives the arguments in turn."""
    return "".join(_parts(text, words, memory))


def _parts(text: str, words: Any, memory: DeviceMemory | None) -> Iterator[str]:
    at = 0
    for match in _CONVERSION.finditer(text):
        yield text[at : match.start()]
        at = match.end()
        flags, width, precision, length, kind = match.groups()
        if kind == "%":
            yield "%"
            continue
        width, precision = (str(_integer(words.take(4), True)) if part == "*" else part for part in (width, precision))
        if width.startswith("-"):
            flags, width = flags + "-", width[1:]
        # A point alone means 0, a negative precision none.
        digits = None if precision is None or precision.startswith("-") else int(precision or 0)
        yield _converted(_Shape(flags, int(width or 0), digits), length, kind, words, memory)
    yield text[at:]


class _Shape(NamedTuple):
    flags: str
    width: int
    precision: int | None

    def __str__(self) -> str:
        return f"%{self.flags}{self.width or ''}" + ("" if self.precision is None else f".{self.precision}")

    def text(self, content: str) -> str:
        """A text in the width."""
        return content.ljust(self.width) if "-" in self.flags else content.rjust(self.width)


def _converted(shape: _Shape, length: str | None, kind: str, words: Any, memory: DeviceMemory | None) -> str:
    if kind in "diouxXc":
        value = _integer(words.take(8 if length in _WIDE else 4), kind in "di")
        if kind == "c":
            return shape.text(bytes([value & 0xFF]).decode("ascii", "surrogateescape"))
        if length in ("h", "hh"):
            bits = 16 if length == "h" else 8
            value &= (1 << bits) - 1
            value -= (value >> bits - 1 << bits) if kind in "di" else 0
        return _whole(shape, kind, value)
    if kind == "s":
        address = _integer(words.take(8), False)
        return shape.text((words.string(memory, address) if memory else f"{address:#x}")[: shape.precision])
    if kind == "p":
        return shape.text(f"{_integer(words.take(8), False):#x}")
    (number,) = struct.unpack("<d", words.take(8))
    if kind in "aA":
        text = float(number).hex()
        return shape.text(text.upper() if kind == "A" else text)
    return str(f"{shape}{kind}" % number)


def _whole(shape: _Shape, kind: str, value: int) -> str:
    """An integer as C prints it, which Python does differently with a precision."""
    flags = shape.flags
    digits = format(abs(value), kind if kind in "oxX" else "d") if value or shape.precision != 0 else ""
    digits = digits.rjust(shape.precision or 0, "0")
    sign = "-" if value < 0 else next((flag for flag in "+ " if flag in flags and kind in "di"), "")
    if "#" in flags and kind == "o" and not digits.startswith("0"):
        digits = f"0{digits}"
    if "#" in flags and kind in "xX" and value:
        sign = f"0{kind}"
    if "0" in flags and "-" not in flags and shape.precision is None:
        digits = digits.rjust(shape.width - len(sign), "0")
    return shape.text(sign + digits)


def _integer(data: bytes, signed: bool) -> int:
    return int.from_bytes(data, "little", signed=signed)
