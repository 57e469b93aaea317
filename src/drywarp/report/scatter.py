"""Predicted over measured times as a figure: both axes logarithmic, the diagonal, and lines 25 % off it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from html import escape
from importlib import import_module
from pathlib import Path

from ..errors import ToolError, UsageError
from .curves_svg import COLOURS
from .units import time_text

WIDTH, HEIGHT = 860, 640
LEFT, TOP, RIGHT, BOTTOM = 90, 40, 190, 60
OFF = 0.25
_MARGIN = 1.15
"""The frame reaches so many times beyond the points."""

Point = tuple[float, float, str]
"""Measured and predicted seconds, and what the prediction says limits the kernel, which is the colour."""


def write_scatter(path: Path, points: Sequence[Point], title: str) -> None:
    """Write the figure as SVG or, where CairoSVG is installed, PNG. Raises UsageError without points or a place."""
    if not points:
        raise UsageError(f"--plot {path}: no row was predicted, there is nothing to draw")
    figure = scatter_svg(points, title)
    data = _png(figure) if path.suffix == ".png" else figure.encode()
    try:
        path.write_bytes(data)
    except OSError as error:
        raise UsageError(f"--plot {path}: cannot be written ({error.strerror})") from None


def _png(figure: str) -> bytes:
    try:
        svg2png = import_module("cairosvg").svg2png
    except (ImportError, OSError):
        # OSError: the package is there, and the Cairo library of the system is not.
        raise ToolError("PNG needs CairoSVG: pip install 'drywarp[png]' (or name a .svg file)") from None
    data: bytes = svg2png(bytestring=figure.encode(), scale=2.0)
    return data


def scatter_svg(points: Sequence[Point], title: str) -> str:
    """The figure as SVG."""
    low = min(min(measured, predicted) for measured, predicted, _ in points) / _MARGIN
    high = max(max(measured, predicted) for measured, predicted, _ in points) * _MARGIN
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    span = math.log(high / low)

    def x(seconds: float) -> float:
        return LEFT + math.log(seconds / low) / span * (right - LEFT)

    def y(seconds: float) -> float:
        return bottom - math.log(seconds / low) / span * (bottom - TOP)

    def line(factor: float, style: str) -> str:
        start, end = max(low, low / factor), min(high, high / factor)
        ends = f"M{x(start):.1f} {y(start * factor):.1f}L{x(end):.1f} {y(end * factor):.1f}"
        return f'<path d="{ends}" fill="none" {style}/>'

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="24" font-size="15">{escape(title)}</text>',
        f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="black"/>',
        f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 14}" text-anchor="middle">measured time</text>',
        f'<text x="18" y="{(TOP + bottom) / 2}" text-anchor="middle" '
        f'transform="rotate(-90 18 {(TOP + bottom) / 2})">predicted time</text>',
    ]
    for tick in ticks(low, high):
        parts.append(f'<text x="{x(tick):.1f}" y="{bottom + 18}" text-anchor="middle">{time_text(tick)}</text>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{time_text(tick)}</text>')
        parts.append(f'<path d="M{x(tick):.1f} {bottom}v4M{LEFT} {y(tick):.1f}h-4" stroke="black"/>')
    parts.append(line(1.0, 'stroke="black"'))
    parts += [line(factor, 'stroke="#888888" stroke-dasharray="5 4"') for factor in (1 - OFF, 1 + OFF)]
    counts = Counter(limiter for _, _, limiter in points)
    for number, (limiter, count) in enumerate(counts.most_common()):
        colour = COLOURS[number % len(COLOURS)]
        dots = "".join(f'<circle cx="{x(m):.1f}" cy="{y(p):.1f}" r="3"/>' for m, p, said in points if said == limiter)
        parts.append(f'<g fill="{colour}" fill-opacity="0.6">{dots}</g>')
        at = TOP + 18 * number
        parts.append(f'<circle cx="{right + 24}" cy="{at}" r="4" fill="{colour}"/>')
        parts.append(f'<text x="{right + 36}" y="{at + 4}">{escape(limiter or "no limiter")} ({count})</text>')
    at = TOP + 18 * len(counts) + 10
    parts.append(f'<path d="M{right + 14} {at}h18" stroke="#888888" stroke-dasharray="5 4"/>')
    parts.append(f'<text x="{right + 36}" y="{at + 4}">±{OFF:.0%}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten between two numbers; powers of ten alone where that is more than ten."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 2, 5), (1,)):
        found = [step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high]
        if len(found) <= 10:
            break
    return found
