"""Numbers with their units, read back from a report as a person reads them."""

from __future__ import annotations

import re

UNITS = {
    "ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0,
    "B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30,
    "µJ": 1e-6, "mJ": 1e-3, "J": 1.0,
    "k": 1e3, "M": 1e6, "G": 1e9, "%": 1e-2, "": 1.0, "×": 1.0, "MHz": 1e6,
}  # fmt: skip
NUMBER = r"[-+]?[\d,]*\d(?:\.\d+)?(?:e[-+]\d+)?"
TIME = rf"{NUMBER} (?:ns|µs|ms|s)\b"
RANGE = rf"{NUMBER}(?: (?:ns|µs|ms|s) )?–\s?{TIME}"


def read(text: str) -> tuple[float, float]:
    """A number in base units, and half of what its last digit is worth."""
    found = re.fullmatch(rf"\s*({NUMBER})\s*(\S*)\s*", text)
    assert found, text
    digits, unit = found[1].replace(",", ""), UNITS[found[2]]
    mantissa, _, exponent = digits.partition("e")
    decimals = len(mantissa.partition(".")[2])
    return float(digits) * unit, 0.5 * 10.0 ** (int(exponent or 0) - decimals) * unit


def says(text: str, value: float) -> bool:
    """Whether the text is that value, rounded to the digits that it shows."""
    shown, half = read(text)
    return abs(shown - value) <= half * (1 + 1e-6) + 1e-12 * abs(value)


def ends(text: str) -> tuple[str, str]:
    """Both ends of a range, each with its unit."""
    low, high = (part.strip() for part in text.split("–"))
    return (low if " " in low else f"{low} {high.rpartition(' ')[2]}"), high


def found(pattern: str, text: str) -> re.Match[str]:
    """The one place where the pattern stands."""
    places = list(re.finditer(pattern, text, re.MULTILINE))
    assert len(places) == 1, f"{len(places)} of {pattern}"
    return places[0]
