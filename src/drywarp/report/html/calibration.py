"""The page of a calibration: figures, and every curve with its fit. It holds no script."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files

from ...calibration.result import Calibration, Curve
from ...errors import UsageError

WIDTH, HEIGHT = 480, 300
LEFT, TOP, RIGHT, BOTTOM = 58, 26, 466, 258
_LOGARITHMIC = 60
"""An axis from whose first to whose last value is more than so many times as much is logarithmic."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A place on an axis with its number."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Point:
    """A point with the ends of its spread, in the drawing's units."""

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
    """The page as one HTML document; all text of the device is escaped. Raises UsageError without Jinja2."""
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
    except ImportError:
        raise UsageError("a calibration's report needs Jinja2: pip install jinja2") from None
    assets = files(__package__)
    style = "".join(assets.joinpath(name).read_text(encoding="utf-8") for name in ("report.css", "calibration.css"))
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(assets.joinpath("calibration.html").read_text(encoding="utf-8")).render(
        policy=policy,
        style=Markup(style),
        c=calibration,
        curves=[drawing(curve) for curve in calibration.curves],
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        top=TOP,
        right=RIGHT,
        bottom=BOTTOM,
    )


def drawing(curve: Curve) -> Drawing:
    """Where everything of a curve lies."""
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
    """Powers of ten between two numbers, with 2 and 5 times them where they are few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [step * 10.0**power for power in powers for step in (1, 2, 5) if low <= step * 10.0**power <= high]
    return found if len(found) <= 8 else [value for value in found if math.log10(value) % 1 < 1e-9]
