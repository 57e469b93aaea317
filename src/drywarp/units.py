"""Numbers with units as people read them."""

from __future__ import annotations

_NEARLY_ONE = 0.9995
"""From here on a value rounds up to one of the next unit."""


def time_text(seconds: float) -> str:
    """Three significant digits with s, ms, µs or ns."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= scale * _NEARLY_ONE:
            return f"{_three(seconds / scale)} {unit}"
    return f"{_three(seconds / 1e-9)} ns"


def energy_text(joules: float) -> str:
    """Three significant digits with J, mJ or µJ."""
    for scale, unit in ((1.0, "J"), (1e-3, "mJ")):
        if joules >= scale * _NEARLY_ONE:
            return f"{_three(joules / scale)} {unit}"
    return f"{_three(joules / 1e-6)} µJ"


def bytes_text(count: float) -> str:
    """Three significant digits with B, KiB, MiB or GiB."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if count >= 1024**power * _NEARLY_ONE:
            return f"{_three(count / 1024**power)} {unit}"
    return f"{count:.0f} B"


def count_text(count: float) -> str:
    """A count: all digits up to 99,999, above that three digits with k, M, G."""
    if count < 100_000:
        return f"{count:,.0f}"
    for scale, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= scale * _NEARLY_ONE:
            return f"{_three(count / scale)} {unit}"
    return f"{count:.0f}"


def percent_text(fraction: float | None) -> str:
    """A fraction as a percentage; a dash for none."""
    return "–" if fraction is None else f"{fraction:.0%}"


def _three(value: float) -> str:
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
