"""Three-input logic by look-up table, over words or booleans.

Index bit of the table: a << 2 | b << 1 | c. With the table's upper nibble for a = 1 and the lower
for a = 0, the result is low(b, c) ^ (a & (low ^ high)(b, c)); both factors are one of the sixteen
functions of two inputs.
"""

from __future__ import annotations

from collections.abc import Callable

from .operands import Value

Logic3 = Callable[[Value, Value, Value], Value]
Logic2 = Callable[[Value, Value], Value]

_TWO_INPUT: dict[int, Logic2] = {
    0x1: lambda b, c: ~(b | c),
    0x2: lambda b, c: ~b & c,
    0x3: lambda b, c: ~b,
    0x4: lambda b, c: b & ~c,
    0x5: lambda b, c: ~c,
    0x6: lambda b, c: b ^ c,
    0x7: lambda b, c: ~(b & c),
    0x8: lambda b, c: b & c,
    0x9: lambda b, c: ~(b ^ c),
    0xA: lambda b, c: c,
    0xB: lambda b, c: ~b | c,
    0xC: lambda b, c: b,
    0xD: lambda b, c: b | ~c,
    0xE: lambda b, c: b | c,
}
_COMMON: dict[int, Logic3] = {
    0xC0: lambda a, b, c: a & b,
    0xFC: lambda a, b, c: a | b,
    0x3C: lambda a, b, c: a ^ b,
    0x30: lambda a, b, c: a & ~b,
    0x96: lambda a, b, c: a ^ b ^ c,
    0xF8: lambda a, b, c: a | (b & c),
    0xFE: lambda a, b, c: a | b | c,
    0x80: lambda a, b, c: a & b & c,
    0xEA: lambda a, b, c: (a & b) | c,
    0xE2: lambda a, b, c: c ^ (b & (a ^ c)),
}


def lookup(table: int, zero: Value) -> Logic3:
    """The function of a look-up table of 8 bits; `zero` is the all-false value of its type."""
    table &= 0xFF
    if table in _COMMON:
        return _COMMON[table]
    low, difference = table & 15, (table & 15) ^ (table >> 4)

    def two(nibble: int) -> Logic2:
        if nibble == 0:
            return lambda b, c: zero
        if nibble == 15:
            return lambda b, c: ~zero
        return _TWO_INPUT[nibble]

    base, change = two(low), two(difference)
    if difference == 0:
        return lambda a, b, c: base(b, c)
    if low == 0:
        return lambda a, b, c: a & change(b, c)
    return lambda a, b, c: base(b, c) ^ (a & change(b, c))
