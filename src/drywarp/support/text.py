"""Untrusted names and source lines as one line of visible characters; numbers with units; values as JSON."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

LONGEST = 160
"""Maximum number of characters shown of a source line."""
_INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def plain(text: str, longest: int = LONGEST) -> str:
    """One line without control characters, direction marks and the like; truncated if too long."""
    shown = "".join(" " if c in "\t\n\r" else "�" if unicodedata.category(c) in _INVISIBLE else c for c in text)
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


# Output in other encodings than UTF-8.

_SPELLED = dict(zip("µ×·–—…≤≥→²³•°≈±", "u x * - - ... <= >= -> ^2 ^3 * deg ~ +-".split(), strict=True))
_HORIZONTAL, _VERTICAL = "─━┄┅┈┉╌═╴╶╸╺", "│┃┆┇┊┋╎║"


def in_other_words(error: UnicodeError) -> tuple[str, int]:
    """An error handler of encodings: characters that the terminal lacks, in those that all terminals have."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_in_ascii, error.object[error.start : error.end])), error.end


def _in_ascii(character: str) -> str:
    if character in _SPELLED:
        return _SPELLED[character]
    if character in _HORIZONTAL:
        return "-"
    if character in _VERTICAL:
        return "|"
    if "\u2500" <= character <= "\u257f":  # corners and crossings of tables
        return "+"
    if "\u2580" <= character <= "\u259f":  # bars
        return "#"
    if "\u25a0" <= character <= "\u25ff":  # marks of rows
        return ">"
    if (name := unicodedata.name(character, "")).startswith("GREEK "):
        letter = name.split()[-1].replace("LAMDA", "LAMBDA")
        return letter.lower() if "SMALL" in name else letter.capitalize()
    return unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode() or "?"


_LONGEST_LIST, _COMPARED, _NEAREST = 600, 200, 3


def kernels_text(names: Sequence[str], asked: str | None, origin: str) -> str:
    """The names of the kernels in a file, for a message; a long list becomes a count and the nearest to `asked`."""
    text = ", ".join(names)
    if len(text) <= _LONGEST_LIST or len(names) <= 1:
        return plain(text, _LONGEST_LIST)
    which, near = ("nearest", _nearest(names, asked)) if asked else ("the first", names[:_NEAREST])
    shown = ", ".join(plain(name) for name in near)
    return f"{len(names)} kernels in {origin}, which drywarp list shows; {which}: {shown}"


def _nearest(names: Sequence[str], asked: str) -> list[str]:
    holding = [name for name in names if asked in name][:_NEAREST]
    short = {name[:_COMPARED]: name for name in names}
    near = [short[one] for one in difflib.get_close_matches(asked[:_COMPARED], short, _NEAREST, 0.0)]
    return [*holding, *(name for name in near if name not in holding)][:_NEAREST]


def some_text(names: Sequence[str], most: int = _NEAREST) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


# Human-readable numbers with units.

_NEARLY_ONE = 0.9995
"""From this value on, three significant digits round up to one of the next unit."""


def time_text(seconds: float) -> str:
    """Three significant digits with s, ms, µs or ns."""
    return _scaled(seconds, (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def energy_text(joules: float) -> str:
    """Three significant digits with J, mJ or µJ."""
    return _scaled(joules, (1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ"))


def bytes_text(count: float) -> str:
    """Three significant digits with B, KiB, MiB or GiB."""
    if count < 1024 * _NEARLY_ONE:
        return f"{count:.0f} B"
    return _scaled(count, (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"))


def count_text(count: float) -> str:
    """A count: all digits up to 99,999, then three significant digits with k, M or G."""
    return f"{count:,.0f}" if count < 100_000 else _scaled(count, (1e9, "G"), (1e6, "M"), (1e3, "k"))


def rate_text(per_second: float, unit: str) -> str:
    """A rate with three significant digits and a prefix: `1.37 TB/s` for the unit `B/s`."""
    prefixes = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
    return _scaled(per_second, *((scale, f"{prefix}{unit}") for scale, prefix in prefixes))


def three_digits(value: float) -> str:
    """A number with three significant digits and no unit; small ones as `0.000428`, tiny ones as `1.2e-06`."""
    if not value:
        return "0"
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:,.0f}"


def factor_text(factor: float) -> str:
    """A speed-up or ratio with three significant digits: `16.4×`."""
    return f"{_three(factor)}×"


def percent_text(fraction: float | None) -> str:
    """A fraction as a percentage; a dash for none."""
    return "–" if fraction is None else f"{fraction:.0%}"


def range_text(low: str, high: str) -> str:
    """Two numbers with units as a range such as `348–514 µs`; both units are shown if they differ."""
    number, _, unit = low.rpartition(" ")
    return f"{number}–{high}" if high.endswith(f" {unit}") else f"{low} – {high}"


def _scaled(value: float, *units: tuple[float, str]) -> str:
    """Three significant digits with the first of these units that the number reaches, or the last."""
    scale, unit = next((one for one in units if value >= one[0] * _NEARLY_ONE), units[-1])
    return f"{_three(value / scale)} {unit}"


def _three(value: float) -> str:
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


# Values as JSON has them.


def json_of(value: Any, names: str = "") -> Any:
    """A dataclass as an object of its fields, or of those `names`; sequences as lists, mappings as objects."""
    if names or is_dataclass(value):
        keys = names.split() or [field.name for field in fields(value)]
        return {key: json_of(getattr(value, key)) for key in keys}
    if isinstance(value, Mapping):
        return {key: json_of(item) for key, item in value.items()}
    return [json_of(item) for item in value] if isinstance(value, tuple | list) else value
