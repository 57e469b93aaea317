"""Convert values as profilers print them (thousands separators, prefixes, units) to base units."""

from __future__ import annotations

import math
import re

_PREFIX = {"n": 1e-9, "u": 1e-6, "µ": 1e-6, "m": 1e-3, "": 1.0, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_STEMS = {
    "second": ("second", "sec", "s"),
    "byte": ("byte", "bytes", "B"),
    "hz": ("hz", "Hz"),
    "cycle": ("cycle", "cycles"),
    "inst": ("inst",),
}
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_GROUPED = re.compile(r"[+-]?\d{1,3}([,'\u00a0\u202f ]\d{3})+(\.\d+)?")
_GROUPED_COMMA = re.compile(r"[+-]?\d{1,3}(\.\d{3})+(,\d+)?|[+-]?\d+,\d+")


def number(text: str) -> float | None:
    """Parse a printed number; None for anything else (`n/a`, names, switches).

    A metric with instances prints its total first, then the instances in brackets.
    """
    text = text.split("(")[0].split(";")[0].strip()
    if _GROUPED.fullmatch(text):
        text = re.sub(r"[,'\u00a0\u202f ]", "", text)
    elif _GROUPED_COMMA.fullmatch(text) and not _NUMBER.fullmatch(text):
        text = text.replace(".", "").replace(",", ".")
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def scale(unit: str) -> float:
    """The factor from a printed unit to its base unit; 1 for units without a prefix.

    `usecond` gives 1e-6, `Gbyte/second` 1e9, `cycle/nsecond` 1e9, `Ghz` 1e9.
    """
    above, _, below = unit.strip().partition("/")
    return _factor(above) / (_factor(below) if below else 1.0)


def _factor(unit: str) -> float:
    for stems in _STEMS.values():
        for stem in stems:
            if unit.endswith(stem) and unit[: -len(stem)] in _PREFIX:
                return _PREFIX[unit[: -len(stem)]]
    return 1.0
