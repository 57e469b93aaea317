"""Numbers of the machine's formats, and exact arithmetic on them that is rounded once: Python integers only.

A floating-point number is a Python float here: every number of the formats below is one.
"""

from __future__ import annotations

import math
import struct
from typing import NamedTuple

M32, M64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


class Format(NamedTuple):
    """A binary format: digits of a mantissa, exponent of the smallest unit, exponent that no number reaches."""

    digits: int
    least: int
    limit: int


SINGLE, DOUBLE, HALF, BRAIN = (
    Format(24, -149, 128),
    Format(53, -1074, 1024),
    Format(11, -24, 16),
    Format(8, -133, 128),
)


# Integers -----------------------------------------------------------------------------------------


def signed(x: int, bits: int = 32) -> int:
    """What a word says in two's complement."""
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def clamped(x: int, low: int, high: int) -> int:
    return low if x < low else high if x > high else x


def parts(x: int, bits: int, is_signed: bool, count: int | None = None) -> list[int]:
    """The bytes or halves of a word, the lowest first."""
    fields = [x >> k & ((1 << bits) - 1) for k in range(0, 32, bits)][:count]
    return [signed(field, bits) for field in fields] if is_signed else fields


def joined(fields: list[int], bits: int) -> int:
    return sum((field & ((1 << bits) - 1)) << bits * k for k, field in enumerate(fields))


# Bits of floating-point numbers -------------------------------------------------------------------


def single(word: int) -> float:
    value: float = struct.unpack("<f", struct.pack("<I", word))[0]
    return value


def double(words: int) -> float:
    value: float = struct.unpack("<d", struct.pack("<Q", words))[0]
    return value


def half(word: int) -> float:
    value: float = struct.unpack("<e", struct.pack("<H", word & 0xFFFF))[0]
    return value


def brain(word: int) -> float:
    return single((word & 0xFFFF) << 16)


def bits_of(value: float, form: Format) -> int:
    """The bits of a number that the format holds; NaN is the one with all bits set but the sign."""
    if value != value:
        return {SINGLE: 0x7FFFFFFF, DOUBLE: M64 >> 1, HALF: 0x7FFF, BRAIN: 0x7FFF}[form]
    code = {SINGLE: "<f", DOUBLE: "<d", HALF: "<e", BRAIN: "<f"}[form]
    number = int.from_bytes(struct.pack(code, value), "little")
    return number >> 16 if form == BRAIN else number


# Rounding -----------------------------------------------------------------------------------------


def rounded(number: int, exponent: int, form: Format, mode: str = "RN") -> float:
    """number * 2**exponent, not zero, rounded: to the nearest, even one (RN), down (RM), up (RP) or to zero (RZ)."""
    negative, size = number < 0, abs(number)
    drop = max(size.bit_length() - form.digits, form.least - exponent)
    away = {"RN": False, "RZ": False, "RM": negative, "RP": not negative}[mode]
    if drop > 0:
        size, rest = size >> drop, size & ((1 << drop) - 1)
        tie = 1 << (drop - 1)
        if mode == "RN":
            away = rest > tie or (rest == tie and size & 1 == 1)
        size += away and rest != 0
        exponent += drop
    if size.bit_length() + exponent > form.limit:
        # The largest number is next to infinity: the directed modes that come from there stop at it.
        infinite = mode == "RN" or {"RZ": False, "RM": negative, "RP": not negative}[mode]
        result = math.inf if infinite else math.ldexp((1 << form.digits) - 1, form.limit - form.digits)
    else:
        result = math.ldexp(size, exponent)
    return -result if negative else result


def _whole(x: float) -> tuple[int, int]:
    mantissa, exponent = math.frexp(x)
    return int(mantissa * 2.0**53), exponent - 53


def sign_of(x: float) -> bool:
    return math.copysign(1.0, x) < 0


def fused(a: float, b: float, c: float, form: Format, mode: str = "RN") -> float:
    """a * b + c as IEEE 754 defines it."""
    product = a * b if a in (0.0, math.inf, -math.inf) or b in (0.0, math.inf, -math.inf) else None
    if a != a or b != b or c != c or (product is not None and product != product):
        return math.nan
    if abs(c) == math.inf:
        return math.nan if product is not None and product == -c else c
    if product is not None and abs(product) == math.inf:
        return product
    negative = sign_of(a) != sign_of(b)
    if product == 0.0 and c == 0.0:
        return -0.0 if (negative and sign_of(c)) or (negative != sign_of(c) and mode == "RM") else 0.0
    (m, e), (n, f), (o, g) = _whole(a), _whole(b), _whole(c)
    low = min(e + f, g)
    total = (m * n << (e + f - low)) + (o << (g - low))
    if total == 0:
        return -0.0 if mode == "RM" else 0.0
    return rounded(total, low, form, mode)


def added(a: float, b: float, form: Format, mode: str = "RN") -> float:
    return fused(a, 1.0, b, form, mode)


def multiplied(a: float, b: float, form: Format, mode: str = "RN", scale: int = 0) -> float:
    """a * b * 2**scale; the sign of a zero is that of the product."""
    if a != a or b != b or a in (0.0, math.inf, -math.inf) or b in (0.0, math.inf, -math.inf):
        return a * b
    (m, e), (n, f) = _whole(a), _whole(b)
    return rounded(m * n, e + f + scale, form, mode)


def converted(x: float, form: Format, mode: str = "RN") -> float:
    """A number in another format."""
    return multiplied(x, 1.0, form, mode)


def of_integer(x: int, form: Format, mode: str = "RN") -> float:
    return rounded(x, 0, form, mode) if x else 0.0


def whole(x: float, mode: str) -> float:
    """Rounded to an integer (nearest even, TRUNC, FLOOR, CEIL), the sign of a zero kept."""
    if x != x or abs(x) == math.inf or x == 0.0:
        return x
    number = {"": round, "TRUNC": math.trunc, "FLOOR": math.floor, "CEIL": math.ceil}[mode](x)
    return math.copysign(float(number), x)


def to_integer(x: float, mode: str, bits: int, is_signed: bool, nan: int) -> int:
    """A number as an integer of so many bits, those that are too large cut to the ends of the range."""
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if is_signed else (0, (1 << bits) - 1)
    if x != x:
        return nan
    if abs(x) == math.inf:
        return high if x > 0 else low
    return clamped(int(whole(x, mode)), low, high)


def flushed(x: float) -> float:
    """Single precision with denormal numbers made zero, the sign kept."""
    return math.copysign(0.0, x) if abs(x) < 2.0**-126 else x


def saturated(x: float) -> float:
    return 0.0 if x != x or x <= 0 else min(x, 1.0)


def least(a: float, b: float, nan_wins: bool = False) -> float:
    """The smaller number; -0 is smaller than 0, and NaN is passed over, or wins."""
    if a != a or b != b:
        return math.nan if nan_wins or a == b or (a != a and b != b) else b if a != a else a
    return min((a, b), key=lambda x: (x, not sign_of(x)))


def largest(a: float, b: float, nan_wins: bool = False) -> float:
    return -least(-a, -b, nan_wins)


def compares(how: str, a: float, b: float) -> bool:
    """A compare of numbers: those ending in U also hold of what is no number."""
    if how in ("NAN", "NUM"):
        return (a != a or b != b) == (how == "NAN")
    if a != a or b != b:
        return len(how) == 3
    return {"LT": a < b, "LE": a <= b, "GT": a > b, "GE": a >= b, "EQ": a == b, "NE": a != b}[how[:2]]
