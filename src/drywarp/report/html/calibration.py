"""A calibration as terminal text, and as a page: constants, and every curve with its fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from ...experiments.calibrate.result import Calibration, Curve
from . import document


def render_calibration(calibration: Calibration) -> Table:
    """Every measured constant with its spread."""
    table = Table(box=None, pad_edge=False, title_justify="left", title=Text(_title(calibration)))
    table.add_column("constant")
    for name in ("value", "±", "ns"):
        table.add_column(name, justify="right")
    table.add_column("unit")
    for figure in calibration.figures:
        ns = "" if figure.ns is None else f"{figure.ns:.4g}"
        name = figure.key if figure.in_file else f"{figure.key} (report only)"
        table.add_row(Text(name), f"{figure.value:.5g}", f"{figure.spread:.2g}", ns, figure.unit)
    return table


def _title(calibration: Calibration) -> str:
    low, high = calibration.clock_range_mhz
    device = calibration.device
    return f"{device.name}, {device.driver}, {calibration.date}, SM clock {low:.0f} to {high:.0f} MHz"


def notes(calibration: Calibration) -> list[str]:
    """Lines on what could not be measured, and on the values inherited from the packaged file."""
    lines = [f"not determined: {name}: {why}" for name, why in calibration.silent.items()]
    if calibration.gpu_file:
        lines.append(f"inherited from the packaged architecture, not measured: {', '.join(calibration.inherited)}")
    return lines


# The page of a calibration: constants, and every curve with its fit. It contains no script.

WIDTH, HEIGHT = 480, 300
LEFT, TOP, RIGHT, BOTTOM = 58, 26, 466, 258
_LOGARITHMIC = 60
"""Axes whose last value is more than this many times the first are logarithmic."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A position on an axis with its label."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Point:
    """A point with the ends of its error bar, in drawing units."""

    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class Drawing:
    """A curve as the template draws it."""

    title: str
    formula: str
    x_label: str
    y_label: str
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    points: list[Point]
    fit: str


def calibration_page(calibration: Calibration) -> str:
    """The page as one HTML document; all text from the device is escaped. Raises UsageError without Jinja2."""
    text, _ = document(
        "html/calibration.html",
        ["html/report.css", "html/calibration.css"],
        what="a calibration's report",
        c=calibration,
        curves=[drawing(curve) for curve in calibration.curves],
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        top=TOP,
        right=RIGHT,
        bottom=BOTTOM,
    )
    return text


def drawing(curve: Curve) -> Drawing:
    """Lay out a curve: axes, points and fit in drawing units."""
    x, x_ticks = _axis(curve.x, LEFT, RIGHT)
    y, y_ticks = _axis([*curve.y, *curve.fit], BOTTOM, TOP)
    points = [Point(x(a), y(b), y(b - s), y(b + s)) for a, b, s in zip(curve.x, curve.y, curve.spread, strict=True)]
    corners = [f"{x(a):.1f} {y(b):.1f}" for a, b in zip(curve.x, curve.fit, strict=False)]
    fit = "M" + "L".join(corners) if corners else ""
    return Drawing(curve.title, curve.formula, curve.x_label, curve.y_label, x_ticks, y_ticks, points, fit)


def _axis(values: Sequence[float], start: float, end: float) -> tuple[Callable[[float], float], list[Tick]]:
    low, high = min(values), max(values)
    if low > 0 and high / low > _LOGARITHMIC:
        span = math.log(high / low)

        def log_place(value: float) -> float:
            return round(start + math.log(max(value, low / 2) / low) / span * (end - start), 1)

        places, place = _powers(low, high), log_place
    else:
        top = high * 1.05 or 1.0

        def place(value: float) -> float:
            return round(start + value / top * (end - start), 1)

        step = 10 ** math.floor(math.log10(top))
        step = next(step / part for part in (1, 2, 5, 10) if top * part / step >= 4)
        places = [n * step for n in range(int(top / step) + 1)]
    return place, [Tick(place(value), f"{value:.4g}") for value in places]


def _powers(low: float, high: float) -> list[float]:
    """Powers of ten between two numbers, plus 2 and 5 times them if there are few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [step * 10.0**power for power in powers for step in (1, 2, 5) if low <= step * 10.0**power <= high]
    return found if len(found) <= 8 else [value for value in found if math.log10(value) % 1 < 1e-9]
