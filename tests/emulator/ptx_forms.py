"""Instructions of PTX with their modifiers, and what each should give: exact arithmetic, rounded once.

A form is one instruction in a kernel of its own, so that what is refused is named, and hides no other.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from . import exact
from .exact import BRAIN, DOUBLE, HALF, SINGLE, Format

Answer = Callable[..., Any]


@dataclass(frozen=True)
class Form:
    """An instruction, the types of its results and sources, and its answer for numbers of the sources.

    `spelled` is its text where it is more than name, results, sources; `off` how far an approximation may be off,
    relative to numbers above one, as the PTX manual states it, rounding included.
    """

    name: str
    results: tuple[str, ...]
    sources: tuple[str, ...]
    answer: Answer
    spelled: str = ""
    off: float = 0.0


FLOATS: dict[str, Format] = {"f16": HALF, "bf16": BRAIN, "f32": SINGLE, "f64": DOUBLE}
SMALL = {"e4m3": (4, 3, 7), "e5m2": (5, 2, 15), "e2m3": (2, 3, 1), "e3m2": (3, 2, 3), "e2m1": (2, 1, 1)}
"""Bits of the exponent and of the fraction, and the bias."""
LEAST = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 0.0}
INTEGERS = ("s16", "u16", "s32", "u32", "s64", "u64")


def bits_of(kind: str) -> int:
    """The width of a type."""
    if kind == "pred":
        return 1
    if kind == "tf32":
        return 32
    match = re.match(r"e(\d)m(\d)", kind)
    each = 1 + int(match[1]) + int(match[2]) if match else int((re.search(r"\d+", kind) or "0")[0])
    each = 8 if each == 6 else each
    return each * (int(kind[-1]) if re.search(r"x\d$", kind) else 1)


def form(name: str, results: str, sources: str, answer: Answer, spelled: str = "", off: float = 0.0) -> Form:
    return Form(name, tuple(results.split()), tuple(sources.split()), answer, spelled, off)


# Pieces of answers --------------------------------------------------------------------------------


def flushed(kind: str, x: float) -> float:
    return math.copysign(0.0, x) if abs(x) < LEAST[kind] else x


def finished(name: str, kind: str, exactly: Answer) -> Answer:
    """With the modifiers: .ftz on the way in and out, .sat, .relu."""

    def answer(*given: float) -> float:
        given = tuple(flushed(kind, x) for x in given) if ".ftz" in name else given
        x = exactly(*given)
        x = flushed(kind, x) if ".ftz" in name else x
        x = exact.saturated(x) if ".sat" in name else x
        return 0.0 if ".relu" in name and x <= 0 else x

    return answer


def rational(value: Fraction, negative: bool, kind: Format, mode: str) -> float:
    """A number rounded once; it is zero only where it is exactly so."""
    if value == 0:
        return -0.0 if negative else 0.0
    scale = 1400 - value.numerator.bit_length() + value.denominator.bit_length()
    whole, rest = divmod(value.numerator << max(scale, 0), value.denominator << max(-scale, 0))
    return exact.rounded(whole << 1 | (rest != 0), -scale - 1, kind, mode)


def quotient(a: float, b: float, kind: Format, mode: str) -> float:
    """a / b as IEEE 754 defines it."""
    negative = exact.sign_of(a) != exact.sign_of(b)
    if a != a or b != b or (a == 0 and b == 0) or (math.isinf(a) and math.isinf(b)):
        return math.nan
    if math.isinf(a) or b == 0:
        return -math.inf if negative else math.inf
    if a == 0 or math.isinf(b):
        return -0.0 if negative else 0.0
    size = rational(abs(Fraction(a) / Fraction(b)), False, kind, _mirrored(mode) if negative else mode)
    return -size if negative else size


def _mirrored(mode: str) -> str:
    return {"RM": "RP", "RP": "RM"}.get(mode, mode)


def root(x: float, kind: Format, mode: str) -> float:
    if x != x or x < 0:
        return math.nan
    if x == 0 or math.isinf(x):
        return x
    mantissa, exponent = math.frexp(x)
    number, exponent = int(mantissa * 2.0**53), exponent - 53
    number, exponent = (number, exponent) if exponent % 2 == 0 else (number << 1, exponent - 1)
    wide = number << 200
    whole = math.isqrt(wide)
    return exact.rounded(whole << 1 | (whole * whole != wide), (exponent - 200) // 2 - 1, kind, mode)


def lesser(name: str, kind: str, largest: bool) -> Answer:
    """Minima and maxima with .NaN, .xorsign.abs and .ftz."""
    pick = exact.largest if largest else exact.least

    def answer(*given: float) -> float:
        values = [flushed(kind, x) for x in given] if ".ftz" in name else list(given)
        negative = len([x for x in given if exact.sign_of(x)]) % 2 == 1
        values = [abs(x) for x in values] if ".abs" in name else values
        result = values[0]
        for value in values[1:]:
            result = pick(result, value, ".NaN" in name)
        return -abs(result) if ".xorsign" in name and negative else result

    return answer


def halved(function: Answer) -> Answer:
    """The same on both halves of packed numbers."""
    return lambda *pairs: tuple(function(*parts) for parts in zip(*pairs, strict=True))


def mode_of(name: str) -> str:
    match = re.search(r"\.r([nzmp])\b", name)
    return "R" + match[1].upper() if match else "RN"


# Arithmetic ---------------------------------------------------------------------------------------


def integers() -> Iterator[Form]:
    for kind in INTEGERS:
        bits, is_signed = int(kind[1:]), kind[0] == "s"
        two = f"{kind} {kind}"
        yield form(f"add.{kind}", kind, two, lambda a, b: a + b)
        yield form(f"sub.{kind}", kind, two, lambda a, b: a - b)
        yield form(f"mul.lo.{kind}", kind, two, lambda a, b: a * b)
        yield form(f"mul.hi.{kind}", kind, two, lambda a, b, n=bits: a * b >> n)
        yield form(f"mad.lo.{kind}", kind, f"{two} {kind}", lambda a, b, c: a * b + c)
        yield form(f"mad.hi.{kind}", kind, f"{two} {kind}", lambda a, b, c, n=bits: (a * b >> n) + c)
        yield form(f"sad.{kind}", kind, f"{two} {kind}", lambda a, b, c: c + abs(a - b))
        yield form(f"min.{kind}", kind, two, min)
        yield form(f"max.{kind}", kind, two, max)
        yield form(f"div.{kind}", kind, two, _divided)
        yield form(f"rem.{kind}", kind, two, lambda a, b: None if b == 0 else a - b * _divided(a, b))
        if is_signed:
            yield form(f"abs.{kind}", kind, kind, abs)
            yield form(f"neg.{kind}", kind, kind, lambda a: -a)
        if bits < 64:
            wide = f"{kind[0]}{2 * bits}"
            yield form(f"mul.wide.{kind}", wide, two, lambda a, b: a * b)
            yield form(f"mad.wide.{kind}", wide, f"{two} {wide}", lambda a, b, c: a * b + c)
    yield form("add.sat.s32", "s32", "s32 s32", lambda a, b: exact.clamped(a + b, -(2**31), 2**31 - 1))
    yield form("sub.sat.s32", "s32", "s32 s32", lambda a, b: exact.clamped(a - b, -(2**31), 2**31 - 1))
    for kind, top in (("s16x2", 2**15), ("u16x2", 2**16)):
        yield form(f"add.{kind}", kind, f"{kind} {kind}", halved(lambda a, b: a + b))
        yield form(f"min.{kind}", kind, f"{kind} {kind}", halved(min))
        yield form(f"max.{kind}", kind, f"{kind} {kind}", halved(max))
        low = -top if kind[0] == "s" else 0
        clamped = lambda a, b, low=low, top=top: exact.clamped(a + b, low, top - 1)  # noqa: E731
        yield form(f"add.sat.{kind}", kind, f"{kind} {kind}", halved(clamped))
    for kind, low, top in (("s8x4", -128, 127), ("u8x4", 0, 255)):
        for operation, sign in (("add", 1), ("sub", -1)):
            plain = lambda a, b, s=sign: a + s * b  # noqa: E731
            yield form(f"{operation}.{kind}", kind, f"{kind} {kind}", halved(plain))
            clamped = lambda a, b, f=plain, low=low, top=top: exact.clamped(f(a, b), low, top)  # noqa: E731
            yield form(f"{operation}.sat.{kind}", kind, f"{kind} {kind}", halved(clamped))
        for operation, pick in (("min", min), ("max", max)):
            yield form(f"{operation}.{kind}", kind, f"{kind} {kind}", halved(pick))
            relu = lambda a, b, f=pick: max(f(a, b), 0)  # noqa: E731
            yield form(f"{operation}.relu.{kind}", kind, f"{kind} {kind}", halved(relu))
    for operation, pick in (("min", min), ("max", max)):
        relu = lambda a, b, f=pick: max(f(a, b), 0)  # noqa: E731
        yield form(f"{operation}.relu.s32", "s32", "s32 s32", relu)
        yield form(f"{operation}.relu.s16x2", "s16x2", "s16x2 s16x2", halved(relu))
    for a, b in itertools.product(("s", "u"), repeat=2):
        to = "u32" if a == b == "u" else "s32"
        dot = lambda x, y, c: c + sum(p * q for p, q in zip(x, y, strict=True))  # noqa: E731
        yield form(f"dp4a.{a}32.{b}32", to, f"{a}8x4 {b}8x4 {to}", dot)
        for half, first in (("lo", 0), ("hi", 2)):
            answer = lambda x, y, c, k=first: c + x[0] * y[k] + x[1] * y[k + 1]  # noqa: E731
            yield form(f"dp2a.{half}.{a}32.{b}32", to, f"{a}16x2 {b}8x4 {to}", answer)
    for kind in ("s16", "u16"):
        answer = lambda a, b, k=kind: exact.joined([_into(x, k) for x in (b, a)], 16)  # noqa: E731
        yield form(f"cvt.pack.sat.{kind}.s32", "b32", "s32 s32", answer)
    for kind in ("s8", "u8", "s4", "u4", "s2", "u2"):
        bits = int(kind[1:])
        answer = lambda a, b, c, k=kind, n=bits: exact.joined([_into(b, k), _into(a, k)], n) | c << 2 * n  # noqa: E731
        yield form(f"cvt.pack.sat.{kind}.s32.b32", "b32", "s32 s32 b32", answer)
    answer = lambda a, b, c: exact.joined([abs(x - y) for x, y in zip(a, b, strict=True)], 8)  # noqa: E731
    yield form("vabsdiff4.u32.u32.u32", "b32", "u8x4 u8x4 b32", answer)


def _divided(a: int, b: int) -> int | None:
    """Towards zero; by zero the PTX manual leaves it open."""
    return None if b == 0 else (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)


def _into(x: int, kind: str) -> int:
    bits, is_signed = int(kind[1:]), kind[0] == "s"
    return (
        exact.clamped(x, -(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else exact.clamped(x, 0, (1 << bits) - 1)
    )


def floats() -> Iterator[Form]:
    """Arithmetic in single and double precision with every rounding mode, .ftz and .sat."""
    for kind, real in (("f32", SINGLE), ("f64", DOUBLE)):
        ends = (("", ".ftz"), ("", ".sat")) if kind == "f32" else (("",), ("",))
        for rounding, ftz, sat in itertools.product(("", ".rn", ".rz", ".rm", ".rp"), *ends):
            name, mode = rounding + ftz + sat, mode_of(rounding)
            add = lambda a, b, r=real, m=mode: exact.added(a, b, r, m)  # noqa: E731
            sub = lambda a, b, r=real, m=mode: exact.added(a, -b, r, m)  # noqa: E731
            mul = lambda a, b, r=real, m=mode: exact.multiplied(a, b, r, m)  # noqa: E731
            fma = lambda a, b, c, r=real, m=mode: exact.fused(a, b, c, r, m)  # noqa: E731
            for operation, exactly in (("add", add), ("sub", sub), ("mul", mul)):
                yield form(f"{operation}{name}.{kind}", kind, f"{kind} {kind}", finished(name, kind, exactly))
            if not rounding:
                continue
            yield form(f"fma{name}.{kind}", kind, f"{kind} {kind} {kind}", finished(name, kind, fma))
            if sat:
                continue
            divide = lambda a, b, r=real, m=mode: quotient(a, b, r, m)  # noqa: E731
            inverse = lambda a, r=real, m=mode: quotient(1.0, a, r, m)  # noqa: E731
            square = lambda a, r=real, m=mode: root(a, r, m)  # noqa: E731
            yield form(f"div{name}.{kind}", kind, f"{kind} {kind}", finished(name, kind, divide))
            yield form(f"rcp{name}.{kind}", kind, kind, finished(name, kind, inverse))
            yield form(f"sqrt{name}.{kind}", kind, kind, finished(name, kind, square))
    for rounding, ftz in itertools.product(("", ".rn", ".rz", ".rm", ".rp"), ("", ".ftz")):
        name, mode = rounding + ftz, mode_of(rounding)
        add = lambda a, b, m=mode: exact.added(a, b, SINGLE, m)  # noqa: E731
        mul = lambda a, b, m=mode: exact.multiplied(a, b, SINGLE, m)  # noqa: E731
        fma = lambda a, b, c, m=mode: exact.fused(a, b, c, SINGLE, m)  # noqa: E731
        yield form(f"add{name}.f32x2", "f32x2", "f32x2 f32x2", halved(finished(name, "f32", add)))
        yield form(f"mul{name}.f32x2", "f32x2", "f32x2 f32x2", halved(finished(name, "f32", mul)))
        if rounding:
            yield form(f"fma{name}.f32x2", "f32x2", "f32x2 f32x2 f32x2", halved(finished(name, "f32", fma)))
    for rounding, sat, kind in itertools.product(("", ".rz", ".rm", ".rp"), ("", ".sat"), ("f16", "bf16")):
        name, mode = rounding + sat, mode_of(rounding)
        add = lambda a, b, m=mode: exact.added(a, b, SINGLE, m)  # noqa: E731
        fma = lambda a, b, c, m=mode: exact.fused(a, b, c, SINGLE, m)  # noqa: E731
        yield form(f"add{name}.f32.{kind}", "f32", f"{kind} f32", finished(name, "f32", add))
        yield form(f"fma{rounding or '.rn'}{sat}.f32.{kind}", "f32", f"{kind} {kind} f32", finished(name, "f32", fma))


def halves() -> Iterator[Form]:
    """Arithmetic in half precision, one number or two at a time."""
    for kind, real in (("f16", HALF), ("bf16", BRAIN)):
        for packed, ftz, sat in itertools.product(("", "x2"), ("", ".ftz"), ("", ".sat")):
            if kind == "bf16" and (ftz or sat):
                continue
            name, both = ftz + sat, halved if packed else lambda function: function
            add = lambda a, b, r=real: exact.added(a, b, r)  # noqa: E731
            sub = lambda a, b, r=real: exact.added(a, -b, r)  # noqa: E731
            mul = lambda a, b, r=real: exact.multiplied(a, b, r)  # noqa: E731
            fma = lambda a, b, c, r=real: exact.fused(a, b, c, r)  # noqa: E731
            one = kind + packed
            for operation, exactly in (("add", add), ("sub", sub), ("mul", mul)):
                yield form(f"{operation}{name}.{one}", one, f"{one} {one}", both(finished(name, kind, exactly)))
            for relu in ("", ".relu") if not sat else ("",):
                answer = both(finished(name + relu, kind, fma))
                yield form(f"fma.rn{name}{relu}.{one}", one, f"{one} {one} {one}", answer)
            if not sat:
                yield form(f"abs{ftz}.{one}", one, one, both(finished(ftz, kind, abs)))
                yield form(f"neg{ftz}.{one}", one, one, both(finished(ftz, kind, lambda a: -a)))


def minima() -> Iterator[Form]:
    for kind in ("f32", "f64", "f16", "f16x2", "bf16", "bf16x2"):
        scalar = kind.removesuffix("x2")
        both = halved if kind != scalar else lambda function: function
        for ftz, nan, sign in itertools.product(("", ".ftz"), ("", ".NaN"), ("", ".xorsign.abs")):
            if (kind == "f64" and ftz + nan + sign) or (scalar == "bf16" and ftz):
                continue
            name = ftz + nan + sign
            for operation, largest in (("min", False), ("max", True)):
                answer = both(lesser(name, scalar, largest))
                yield form(f"{operation}{name}.{kind}", kind, f"{kind} {kind}", answer)
    for ftz, nan, absolute in itertools.product(("", ".ftz"), ("", ".NaN"), ("", ".abs")):
        for operation, largest in (("min", False), ("max", True)):
            name = ftz + nan + absolute
            yield form(f"{operation}{name}.f32", "f32", "f32 f32 f32", lesser(name, "f32", largest))


COMPARES = ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")


def compares() -> Iterator[Form]:
    for kind, ftz, how in itertools.product(("f32", "f64", "f16", "bf16"), ("", ".ftz"), COMPARES):
        if ftz and kind in ("f64", "bf16"):
            continue

        def answer(a: float, b: float, h: str = how.upper(), k: str = kind, flush: bool = bool(ftz)) -> bool:
            a, b = (flushed(k, a), flushed(k, b)) if flush else (a, b)
            return exact.compares(h, a, b)

        yield form(f"setp.{how}{ftz}.{kind}", "pred", f"{kind} {kind}", answer)
        if kind in ("f16", "bf16"):
            packed = lambda a, b, f=answer: [f(x, y) for x, y in zip(a, b, strict=True)]  # noqa: E731
            text = f"setp.{how}{ftz}.{kind}x2 {{0}}|{{1}}, {{2}}, {{3}};"
            yield form(f"setp.{how}{ftz}.{kind}x2", "pred pred", f"{kind}x2 {kind}x2", packed, text)
            ones = halved(lambda a, b, f=answer: float(f(a, b)))
            yield form(f"set.{how}{ftz}.{kind}x2.{kind}x2", f"{kind}x2", f"{kind}x2 {kind}x2", ones)


def functions() -> Iterator[Form]:
    """What hardware approximates: the greatest errors are those that the PTX manual states."""
    for kind in ("f16", "bf16"):
        for packed in ("", "x2"):
            both = halved if packed else lambda function: function
            tanh = lambda x: math.tanh(x) if x else x  # noqa: E731
            power = lambda x: math.inf if x > 200 else 0.0 if x < -400 else 2.0**x  # noqa: E731
            flush = ".ftz" if kind == "bf16" else ""
            near = 2.0**-9.5 if kind == "f16" else 2.0**-7
            yield form(f"tanh.approx.{kind}{packed}", kind + packed, kind + packed, both(tanh), off=near)
            yield form(f"ex2.approx{flush}.{kind}{packed}", kind + packed, kind + packed, both(power), off=near)
    for ftz in ("", ".ftz"):
        yield form(
            f"rcp.approx{ftz}.f32", "f32", "f32", _near(ftz, lambda x: quotient(1.0, x, DOUBLE, "RN")), off=2.0**-22
        )
        yield form(f"sqrt.approx{ftz}.f32", "f32", "f32", _near(ftz, lambda x: root(x, DOUBLE, "RN")), off=2.0**-21)
        yield form(f"rsqrt.approx{ftz}.f32", "f32", "f32", _near(ftz, _inverse_root), off=2.0**-21)
        for how in ("approx", "full"):
            divided = _near(ftz, lambda a, b: None if abs(b) > 2.0**126 else quotient(a, b, DOUBLE, "RN"))
            yield form(f"div.{how}{ftz}.f32", "f32", "f32 f32", divided, off=2.0**-21)
    yield form("rsqrt.approx.f64", "f64", "f64", _inverse_root, off=2.0**-50)


def _near(ftz: str, function: Answer) -> Answer:
    """In single precision, out of whose range zeros and infinities lie; those of a flushed result keep its sign."""

    def answer(*given: float) -> float | None:
        x = function(*(flushed("f32", x) for x in given) if ftz else given)
        if x is None:
            return None
        x = exact.converted(x, SINGLE)
        return None if ftz and 0 < abs(x) < 2.0**-125 else x

    return answer


def _inverse_root(x: float) -> float:
    if x == 0:
        return math.copysign(math.inf, x)
    return math.nan if not x > 0 else 0.0 if math.isinf(x) else 1.0 / math.sqrt(x)


# Conversions --------------------------------------------------------------------------------------


def small_numbers(name: str) -> list[float]:
    """What each bit pattern of a small format is worth."""
    exponent_bits, fraction_bits, bias = SMALL[name]
    values = []
    for bits in range(1 << exponent_bits + fraction_bits):
        exponent, fraction = bits >> fraction_bits, bits & (1 << fraction_bits) - 1
        lead = 0 if exponent == 0 else 1 << fraction_bits
        values.append(math.ldexp(lead + fraction, max(exponent, 1) - bias - fraction_bits))
    if name == "e4m3":
        values[-1] = math.nan
    if name == "e5m2":
        values[-4:] = [math.inf, math.nan, math.nan, math.nan]
    return values + [-x for x in values]


def to_small(x: float, name: str) -> int:
    """The nearest finite number's bit pattern, of two the even one; NaN is all ones, or the largest number."""
    values = small_numbers(name)
    half = len(values) // 2
    finite = [n for n in range(half) if math.isfinite(values[n])]
    if x != x:
        return half - 1
    size = min(abs(x), values[finite[-1]])
    best = min(finite, key=lambda n: (abs(Fraction(values[n]) - Fraction(size)), n & 1))
    return best | (half if exact.sign_of(x) else 0)


def to_scale(x: float, up: bool, saturate: bool) -> int:
    """The exponent of a power of two that is no larger than a number's magnitude, or no smaller."""
    if x != x:
        return 255
    size = abs(x)
    power = next((n for n in range(-127, 128) if (2.0**n >= size if up else 2.0 ** (n + 1) > size)), 128)
    return min(power + 127, 254) if saturate else power + 127


def conversions() -> Iterator[Form]:
    for to, rounding, relu, sat in itertools.product(
        ("f16", "bf16"), (".rn", ".rz"), ("", ".relu"), ("", ".satfinite")
    ):
        most = 65504.0 if to == "f16" else 2.0**128 - 2.0**120

        def one(
            x: float, t: str = to, m: str = mode_of(rounding), r: str = relu, s: str = sat, most: float = most
        ) -> float:
            x = exact.converted(x, FLOATS[t], m)
            x = max(-most, min(most, x)) if s and x == x else x
            return 0.0 if r and x <= 0 else x

        name = f"cvt{rounding}{relu}{sat}"
        yield form(f"{name}.{to}.f32", to, "f32", one)
        yield form(f"{name}.{to}x2.f32", f"{to}x2", "f32 f32", lambda a, b, f=one: (f(b), f(a)))
    for rounding, relu, sat in itertools.product((".rn", ".rz", ".rna"), ("", ".relu"), ("", ".satfinite")):
        if rounding == ".rna" and relu:
            continue
        yield form(f"cvt{rounding}{relu}{sat}.tf32.f32", "tf32", "f32", _tensor_float(rounding, relu, sat))
    for rounding, source in itertools.product((".rn", ".rz", ".rm", ".rp"), ("f16", "f32", "f64")):
        answer = lambda x, r=rounding: exact.converted(x, BRAIN, mode_of(r))  # noqa: E731
        yield form(f"cvt{rounding}.bf16.{source}", "bf16", source, answer)
    for rounding, kind in itertools.product((".rn", ".rz", ".rm", ".rp"), INTEGERS):
        for to in FLOATS:
            answer = lambda x, r=rounding, t=to: exact.of_integer(x, FLOATS[t], mode_of(r))  # noqa: E731
            yield form(f"cvt{rounding}.{to}.{kind}", to, kind, answer)
    for whole, how in (("rni", ""), ("rzi", "TRUNC"), ("rmi", "FLOOR"), ("rpi", "CEIL")):
        for kind in FLOATS:
            yield form(f"cvt.{whole}.{kind}.{kind}", kind, kind, lambda x, h=how: exact.whole(x, h))
        for to in ("s8", "u8", *INTEGERS):
            bits, is_signed = int(to[1:]), to[0] == "s"
            answer = lambda x, h=how, n=bits, s=is_signed: None if x != x else exact.to_integer(x, h, n, s, 0)  # noqa: E731
            yield from (form(f"cvt.{whole}.{to}.{kind}", to, kind, answer) for kind in ("f32", "f64", "f16"))
    yield from small()


def _tensor_float(rounding: str, relu: str, sat: str) -> Answer:
    """Eleven digits are left; half of the last one is rounded to the even number, away from zero (.rna) or cut off."""
    kind = Format(11, -136, 128)

    def answer(x: float) -> float:
        if x == x and math.isfinite(x) and x:
            size = exact.converted(abs(x), kind, "RZ")
            left, last = abs(x) - size, math.ldexp(1.0, max(math.frexp(size)[1] - 11, -136))
            size = size + last if rounding == ".rna" and left >= last / 2 else size
            size = exact.converted(abs(x), kind) if rounding == ".rn" else size
            x = math.copysign(math.inf if size >= 2.0**128 else size, x)
        most = 2.0**128 - 2.0**117
        x = max(-most, min(most, x)) if sat and x == x else x
        return 0.0 if relu and x <= 0 else x

    return answer


def small() -> Iterator[Form]:
    """Numbers of 8, 6 and 4 bits, two at a time, and scale factors."""
    for name, relu in itertools.product(SMALL, ("", ".relu")):
        kind, bits = f"{name}x2", 4 if name == "e2m1" else 8
        into = lambda x, n=name, r=relu: to_small(0.0 if r and x <= 0 else x, n)  # noqa: E731
        packed = lambda low, high, f=into, b=bits: f(low) | f(high) << b  # noqa: E731
        byte = "{{.reg .b8 q; %s q, %s; cvt.u16.u8 {0}, q;}}" if bits == 4 else ""
        text = f"cvt.rn.satfinite{relu}.{kind}"
        of_two = byte % (f"{text}.f32", "{1}, {2}") if byte else ""
        yield form(f"{text}.f32", "b16", "f32 f32", lambda a, b, f=packed: f(b, a), of_two)
        for source in ("f16x2", "bf16x2"):
            answer = lambda pair, f=packed: f(*pair)  # noqa: E731
            yield form(f"{text}.{source}", "b16", source, answer, byte % (f"{text}.{source}", "{1}") if byte else "")
        for to in ("f16x2", "bf16x2"):
            # Two numbers of four bits are given as one register of eight.
            out = f"cvt.rn{relu}.{to}.{kind}"
            spelled = f"{{{{.reg .b8 q; cvt.u8.u16 q, {{1}}; {out} {{0}}, q;}}}}" if bits == 4 else ""
            yield form(out, to, kind if bits == 8 else "b16", _from_small(name, relu), spelled)
        for sat in ("", ".satfinite"):
            if bits == 8:
                scaled = f"cvt.rn{sat}{relu}.scaled::n2::ue8m0.bf16x2.{kind}"
                yield form(scaled, "bf16x2", f"{kind} ue8m0x2", _scaled(relu, sat))
    for rounding, sat in itertools.product((".rz", ".rp"), ("", ".satfinite")):
        scale = lambda x, u=rounding == ".rp", s=bool(sat): to_scale(x, u, s)  # noqa: E731
        answer = lambda a, b, f=scale: f(b) | f(a) << 8  # noqa: E731
        yield form(f"cvt{rounding}{sat}.ue8m0x2.f32", "b16", "f32 f32", answer)
        of_pair = lambda pair, f=scale: f(pair[0]) | f(pair[1]) << 8  # noqa: E731
        yield form(f"cvt{rounding}{sat}.ue8m0x2.bf16x2", "b16", "bf16x2", of_pair)
    yield form("cvt.rn.bf16x2.ue8m0x2", "bf16x2", "ue8m0x2", lambda pair: pair)


def _from_small(name: str, relu: str) -> Answer:
    def answer(given: Any) -> tuple[float, ...]:
        values = small_numbers(name)
        pair = given if isinstance(given, tuple) else (values[given & 15], values[given >> 4 & 15])
        return tuple(0.0 if relu and x <= 0 else x for x in pair)

    return answer


def _scaled(relu: str, sat: str) -> Answer:
    most = 2.0**128 - 2.0**120

    def answer(pair: Sequence[float], scales: Sequence[float]) -> tuple[float, ...]:
        values = [exact.converted(x * s, BRAIN) for x, s in zip(pair, scales, strict=True)]
        values = [max(-most, min(most, x)) if sat and x == x else x for x in values]
        return tuple(0.0 if relu and x <= 0 else x for x in values)

    return answer


ALL = [
    one
    for family in (integers, floats, halves, minima, compares, functions, conversions)
    for one in family()
]  # fmt: skip
