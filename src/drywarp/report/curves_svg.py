"""Curves over occupancy as an SVG figure, written by hand."""

from __future__ import annotations

from html import escape

from ..models.comparison import Comparison
from .curves_text import highest_shown

WIDTH, HEIGHT = 960, 560
LEFT, TOP, RIGHT, BOTTOM = 70, 40, 250, 50
COLOURS = ("#1b6ca8", "#d1495b", "#3a7d44", "#8e5ea2", "#e58f1f", "#4c5760", "#00a6a6", "#b0413e", "#7a9e35", "#5c4b99")
DASHES = ("", "6 3", "2 3", "8 3 2 3")
TICKS = 5


def curves_svg(comparison: Comparison) -> str:
    """The figure; models beyond the frame (more than twice the roof) are cut off."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    first, last = comparison.occupancies[0], comparison.occupancies[-1]
    top = highest_shown(comparison) * 1.05 or 1.0

    def x(warps: float) -> float:
        return LEFT + (warps - first) / max(1, last - first) * (right - LEFT)

    def y(wpc: float) -> float:
        return bottom - max(0.0, min(wpc, top)) / top * (bottom - TOP)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="15">{escape(f"{comparison.workload} on {comparison.gpu_title}")}</text>',
        f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="black"/>',
        f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 12}" text-anchor="middle">occupancy in warps per SM</text>',
        f'<text x="16" y="{(TOP + bottom) / 2}" text-anchor="middle" '
        f'transform="rotate(-90 16 {(TOP + bottom) / 2})">warps per cycle</text>',
    ]
    for tick in range(TICKS + 1):
        value = top * tick / TICKS
        parts.append(f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.3g}</text>')
    shown = comparison.occupancies[:: max(1, len(comparison.occupancies) // 12)]
    for warps in shown:
        parts.append(f'<text x="{x(warps):.1f}" y="{bottom + 18}" text-anchor="middle">{warps}</text>')
    for number, (name, prediction) in enumerate(comparison.predictions.items()):
        colour, dash = COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]
        points = " ".join(
            f"{x(p.occupancy_warps):.1f},{y(p.warps_per_cycle):.1f}" for p in prediction.curve if p.warps_per_cycle >= 0
        )
        width = 3 if name == "pipeline" else 1.5
        style = f'fill="none" stroke="{colour}" stroke-width="{width}" stroke-dasharray="{dash}"'
        parts.append(f'<polyline points="{points}" {style}><title>{escape(name)}</title></polyline>')
        at = TOP + 16 * number
        parts.append(f'<path d="M{right + 20} {at}h24" {style}/>')
        parts.append(f'<text x="{right + 50}" y="{at + 4}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
