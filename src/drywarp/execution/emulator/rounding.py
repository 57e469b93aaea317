"""Exact rounding, which NumPy's own operations do not provide.

Sums and products of float32 are computed in float64. Rounding that to float32 is a second rounding. It is wrong only if
the first one landed exactly half-way between two float32 numbers; then the error of the first sum decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .operands import Value

_TAIL = np.uint64(0x1FFFFFFF)
_HALF = np.uint64(0x10000000)
_ONE = np.uint64(1)
_SPLIT = 134217729.0
"""2^27 + 1, Dekker's constant for splitting a double in halves."""
ROUNDINGS = ("RN", "RM", "RP", "RZ")
TO_INTEGER: dict[str, Callable[[Value], Value]] = {"TRUNC": np.trunc, "FLOOR": np.floor, "CEIL": np.ceil}
"""Roundings to integers by modifier; without one, to the nearest, even one."""


def two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """Sum of doubles and its rounding error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def round_to_odd(a: Value, b: Value) -> Value:
    """Sum of doubles with an inexact result's last bit set, so that a later rounding is exact."""
    total, error = two_sum(a, b)
    total, error = np.asarray(total), np.asarray(error)
    bits = total.view(np.uint64)
    fix = (error != 0) & np.isfinite(total) & np.isfinite(error) & ((bits & _ONE) == 0)
    outward = (error > 0) == (total > 0)
    return np.where(fix, np.where(outward, bits + _ONE, bits - _ONE), bits).view(np.float64)


def sum_to_float32(a: Value, b: Value) -> Value:
    """a + b of doubles, rounded once to float32 (nearest even)."""
    total = a + b
    bits = total.view(np.uint64)
    if ((bits & _TAIL) == _HALF).any():
        return round_to_odd(a, b).astype(np.float32)
    return total.astype(np.float32)


def narrow(value: Value, rounding: str) -> Value:
    """Doubles (rounded to odd where inexact) to float32, in a rounding mode of `ROUNDINGS`."""
    value = np.asarray(value)
    nearest = np.asarray(value.astype(np.float32))
    if rounding == "RN":
        return nearest
    return _directed(nearest, value, rounding, np.float32)


def narrow_half(value: Value, rounding: str) -> Value:
    """Doubles (rounded to odd where inexact) to float16, in a rounding mode of `ROUNDINGS`."""
    value = np.asarray(value)
    nearest = value.astype(np.float16)
    return nearest if rounding == "RN" else _directed(nearest, value, rounding, np.float16)


def _directed(nearest: Value, exact: Value, rounding: str, kind: Any) -> Value:
    """The neighbour of a nearest-rounded value that the mode asks for."""
    down, up = kind(-np.inf), kind(np.inf)
    over, under = nearest > exact, nearest < exact
    if rounding == "RZ":
        over, under = over & (exact > 0), under & (exact < 0)
    result = nearest
    if rounding in ("RM", "RZ"):
        result = np.where(over, np.nextafter(nearest, down), result)
    if rounding in ("RP", "RZ"):
        result = np.where(under, np.nextafter(nearest, up), result)
    return result


def sum_directed(a: Value, b: Value, rounding: str) -> Value:
    """a + b of doubles, rounded once to float32 in a mode of `ROUNDINGS`."""
    if rounding == "RN":
        return sum_to_float32(a, b)
    return _zero_sum(narrow(round_to_odd(a, b), rounding), a, b, rounding)


def _zero_sum(total: Value, a: Value, b: Value, rounding: str) -> Value:
    """A sum whose zero is negative when rounding down, except that of two positive zeros."""
    if rounding != "RM":
        return total
    negative = (a + b == 0) & (np.signbit(a) | np.signbit(b))
    return np.where(negative, -np.zeros_like(total), total)


def two_product(a: Value, b: Value) -> tuple[Value, Value]:
    """Product of doubles and its rounding error (Dekker); the error is NaN where the split overflows."""
    product = a * b
    ta, tb = a * _SPLIT, b * _SPLIT
    ah, bh = ta - (ta - a), tb - (tb - b)
    al, bl = a - ah, b - bh
    return product, ((ah * bh - product) + ah * bl + al * bh) + al * bl


def fused_double(a: Value, b: Value, c: Value, rounding: str = "RN") -> Value:
    """a * b + c of doubles with one rounding (Boldo and Melquiond's emulation of a fused multiply-add).

    Operands near the ends of the exponent range are scaled first, so that no step over- or underflows.
    """
    # The largest products that overflow do not reach an infinite addend.
    plain = np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, a * b + c)
    if rounding == "RN" and _moderate(a) and _moderate(b) and _moderate(c) and _moderate(plain):
        high, rest = _fused_parts(a, b, c)
        total = high + rest
        # The sign of an exact zero is that of the plain sum, whose product is then exact.
        return np.where(total == 0, plain, total)
    return _fused_scaled(a, b, c, plain, rounding)


def _moderate(x: Value) -> bool:
    """Whether all values are zero or far from overflow and underflow, also when multiplied."""
    exponent = (np.asarray(x).view(np.uint64) >> np.uint64(52)) & np.uint64(0x7FF)
    return bool(((exponent - np.uint64(0x200) < np.uint64(0x3FF)) | (x == 0)).all())


def _fused_parts(a: Value, b: Value, c: Value) -> tuple[Value, Value]:
    """a * b + c as a sum of two doubles, the second rounded to odd."""
    product, error = two_product(a, b)
    upper, lower = two_sum(c, error)
    high, low = two_sum(product, upper)
    return high, round_to_odd(lower, low)


def _fused_scaled(a: Value, b: Value, c: Value, plain: Value, rounding: str) -> Value:
    a, b, c = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (a, b, c)))
    (ma, ea), (mb, eb), (mc, ec) = np.frexp(a), np.frexp(b), np.frexp(c)
    scale = ea + eb
    # An addend further away than this only affects the rounding direction, wherever exactly it lies.
    addend = np.ldexp(mc, np.clip(ec - scale, -200, 400))
    far = (ec - scale > 400) & (c != 0)
    high, rest = _fused_parts(ma, mb, addend)
    total = high + rest if rounding == "RN" else _step_double(*two_sum(high, rest), rounding)
    result = _bounded(np.ldexp(total, scale), rounding)
    with np.errstate(over="ignore"):
        small = np.abs(total) < np.ldexp(1.0, -1022 - scale)
    if small.any():
        result = np.where(small, _scaled_down(high, rest, scale, rounding), result)
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    factors = finite & (a != 0) & (b != 0)
    if rounding != "RN":
        result = np.where(far, _step_double(c, np.sign(ma * mb), rounding), result)
        # The sum of a zero product is exact; so is that of a product that cancels.
        plain = np.where(finite & ~factors, sum_double(a * b, c, rounding), plain)
        plain = np.where(factors & (total == 0) & (rounding == "RM"), -0.0, plain)
        far = np.zeros_like(far)
    return np.where(factors & (total != 0) & ~far, result, plain)


def _scaled_down(high: Value, rest: Value, scale: Value, rounding: str) -> Value:
    """(high + rest) * 2^scale, a denormal number, rounded once."""
    high, rest = two_sum(high, rest)
    nearest = np.ldexp(high, scale)
    with np.errstate(over="ignore"):
        left, half = high - np.ldexp(nearest, -scale), np.ldexp(1.0, -1075 - scale)
    if rounding != "RN":
        return _step_double(nearest, left + rest, rounding)
    # The remainder of a tie decides.
    further = (np.abs(left) == half) & (np.sign(left) == np.sign(rest))
    return np.where(further, np.nextafter(nearest, np.copysign(np.inf, left)), nearest)


def _bounded(result: Value, rounding: str) -> Value:
    """A finite number that rounded to infinity: directed modes towards zero stop at the largest finite number."""
    if rounding == "RN":
        return result
    most = np.finfo(np.float64).max
    if rounding in ("RM", "RZ"):
        result = np.where(result == np.inf, most, result)
    return np.where(result == -np.inf, -most, result) if rounding in ("RP", "RZ") else result


def _step_double(total: Value, rest: Value, rounding: str) -> Value:
    """A nearest-rounded double moved to the directed result, given the rounding error."""
    up = (rest > 0) & ((rounding == "RP") | ((rounding == "RZ") & (total < 0)))
    down = (rest < 0) & ((rounding == "RM") | ((rounding == "RZ") & (total > 0)))
    total = np.where(up, np.nextafter(total, np.inf), total)
    return np.where(down, np.nextafter(total, -np.inf), total)


def sum_double(a: Value, b: Value, rounding: str) -> Value:
    """a + b of doubles in a rounding mode."""
    total, rest = two_sum(a, b)
    if rounding == "RN":
        return total
    total = np.where(np.isfinite(a) & np.isfinite(b), _bounded(total, rounding), total)
    return _zero_sum(np.where(np.isfinite(rest), _step_double(total, rest, rounding), total), a, b, rounding)


# Formats of 8, 6 and 4 bits, two of which stand in a byte where they fit.


@dataclass(frozen=True, slots=True)
class SmallFloat:
    """A format of at most 8 bits. `finite`: how many bit patterns of one sign are finite; `nan`: what NaN becomes."""

    exponent: int
    fraction: int
    bias: int
    finite: int
    nan: int

    @property
    def bits(self) -> int:
        """The sign included."""
        return 1 + self.exponent + self.fraction


SMALL = {
    "E4M3": SmallFloat(4, 3, 7, 127, 0x7F),
    "E5M2": SmallFloat(5, 2, 15, 124, 0x7F),
    "E2M3": SmallFloat(2, 3, 1, 32, 0x1F),
    "E3M2": SmallFloat(3, 2, 3, 32, 0x1F),
    "E2M1": SmallFloat(2, 1, 1, 8, 0x07),
}
"""E4M3 has one NaN and no infinity, E5M2 has both as IEEE's formats do, the others neither: NaN becomes the largest."""


@cache
def _table(name: str) -> npt.NDArray[np.float32]:
    """The numbers of all bit patterns."""
    form = SMALL[name]
    sign = 1 << form.bits - 1
    bits = np.arange(2 * sign)
    exponent = bits >> form.fraction & (1 << form.exponent) - 1
    mantissa = (bits & (1 << form.fraction) - 1) / (1 << form.fraction)
    normal = (1 + mantissa) * 2.0 ** (exponent - form.bias)
    values = np.where(exponent == 0, mantissa * 2.0 ** (1 - form.bias), normal)
    size = bits & sign - 1
    values[size >= form.finite] = np.nan
    if name == "E5M2":
        values[size == form.finite] = np.inf
    return np.where(bits >= sign, -values, values).astype(np.float32)


def small_to_single(bits: Any, name: str) -> npt.NDArray[np.float32]:
    """Numbers of bit patterns (uint8) of a format of `SMALL`; bits above it are ignored."""
    known = _table(name)
    return np.asarray(known[np.asarray(bits) & (len(known) - 1)])


def double_to_small(values: Any, name: str) -> npt.NDArray[np.uint8]:
    """Bit patterns of a format of `SMALL`, rounded to nearest even; too large ones become the largest."""
    form = SMALL[name]
    known = _table(name)[: form.finite].astype(np.float64)
    size = np.where(np.isfinite(values), np.abs(values), known[-1])
    least = 1 - form.bias
    exponent = np.maximum(np.frexp(np.maximum(size, 2.0**least))[1] - 1, least) - form.fraction
    rounded = np.minimum(np.ldexp(np.rint(np.ldexp(size, -exponent)), exponent), known[-1])
    bits = np.searchsorted(known, rounded) | np.signbit(values).astype(np.int64) << form.bits - 1
    return np.where(np.isnan(values), form.nan, bits).astype(np.uint8)


def scale_to_double(bits: Any) -> Value:
    """Scale factors: powers of two from 2^-127 on, 0xff is NaN (UE8M0)."""
    exponents = np.asarray(bits).astype(np.int64)
    return np.where(exponents == 255, np.nan, np.ldexp(1.0, exponents - 127))


def double_to_scale(values: Any, up: bool, saturate: bool) -> npt.NDArray[np.uint8]:
    """Magnitudes as powers of two, rounded down, or up; the least is 2^-127, above the largest lies NaN."""
    size = np.abs(values)
    mantissa, exponent = np.frexp(np.where(np.isfinite(size), size, 1.0))
    power = np.where(size == 0, -127, exponent - (mantissa == 0.5) if up else exponent - 1)
    found = np.clip(np.where(np.isfinite(size), power + 127, 255), 0, 255)
    found = np.minimum(found, 254) if saturate else found
    return np.where(np.isnan(size), 255, found).astype(np.uint8)
