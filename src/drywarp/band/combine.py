"""Parts of uncertainty put together as one band."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..result import Band, BandPart

CLOCK = "clock"
DIGITS = 6
"""Digits of a factor behind the point: more would differ from one mathematical library to the next."""


def part(name: str, ratios: Sequence[float], reason: str) -> BandPart:
    """A part that spans these ratios to the nominal time, which is always among them."""
    return BandPart(name, round(min([1.0, *ratios]), DIGITS), round(max([1.0, *ratios]), DIGITS), reason)


def combine(
    time_s: float, level: float, parts: Sequence[BandPart], clock_hz: tuple[float, float] | None = None
) -> Band:
    """The band round a time: parts are independent, so that their squares add up on a logarithmic scale.

    The part called ``clock`` is a range within which nothing is said of what is likely, and adds to the rest as it
    is; `clock_hz` are its ends.
    """
    others = [p for p in parts if p.name != CLOCK]
    low, high = (
        round(math.exp(sign * math.hypot(*(math.log(side) for side in sides), 0.0)), DIGITS)
        for sign, sides in ((-1, [p.low for p in others]), (1, [p.high for p in others]))
    )
    clocks = [p for p in parts if p.name == CLOCK]
    slowest = math.prod(p.high for p in clocks)
    fastest = math.prod(p.low for p in clocks)
    return Band(
        level=level,
        low_s=time_s * low * fastest,
        high_s=time_s * high * slowest,
        low_at_clock_s=time_s * low,
        high_at_clock_s=time_s * high,
        clock_hz=clock_hz if clocks else None,
        parts=tuple(sorted(parts, key=lambda p: (p.low / p.high, p.name))),
    )
