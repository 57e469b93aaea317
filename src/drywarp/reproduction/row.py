"""A published number beside the one that drywarp computes.

The tolerance is half a unit of the last printed digit, or 2 % where the paper says "about". A number
whose own printed inputs give another result is `inconsistent_in_source`: its note shows the arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

Status = Literal["reproduced", "inconsistent_in_source", "failed"]

ABOUT = 0.02
"""Tolerance, as a fraction, of a number that the paper gives with the word "about"."""

ROUNDING = 1e-9
"""Slack for binary fractions, as a fraction of the published number."""


@dataclass(frozen=True, slots=True)
class Row:
    """One published number: where it stands, what was printed, what comes out here."""

    paper: str
    place: str
    quantity: str
    published: float
    computed: float
    tolerance: float
    status: Status
    note: str = ""


def tolerance_of(published: str, about: bool = False) -> float:
    """Half a unit of the last digit of a number as it is printed, such as ``12.40`` or ``2.1E10``."""
    value = Decimal(published)
    if about:
        return abs(float(value)) * ABOUT
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise ValueError(f"{published!r} is not a finite number")
    return 0.5 * 10.0**exponent


def _agrees(published: float, computed: float, tolerance: float) -> bool:
    return abs(computed - published) <= tolerance + ROUNDING * abs(published)


def row(
    paper: str, place: str, quantity: str, published: str, computed: float, about: bool = False, note: str = ""
) -> Row:
    """A number that the printed inputs should give; `published` is the string that the paper prints."""
    tolerance, value = tolerance_of(published, about), float(published)
    status: Status = "reproduced" if _agrees(value, computed, tolerance) else "failed"
    return Row(paper, place, quantity, value, computed, tolerance, status, note)


def inconsistent(
    paper: str, place: str, quantity: str, published: str, computed: float, note: str, about: bool = False
) -> Row:
    """A number that its printed inputs do not give; `note` shows the arithmetic. ValueError if they do."""
    tolerance, value = tolerance_of(published, about), float(published)
    if _agrees(value, computed, tolerance):
        raise ValueError(f"{paper}, {place}, {quantity}: {computed} agrees with the printed {published}")
    if not note:
        raise ValueError(f"{paper}, {place}, {quantity}: an inconsistency needs its arithmetic")
    return Row(paper, place, quantity, value, computed, tolerance, "inconsistent_in_source", note)
