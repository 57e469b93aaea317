"""Warps per cycle over occupancy: one model beside the simulation, or the simulation under its two bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from drywarp.models.comparison import Comparison

from .svg import Drawing

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 640, 300, 60, 250, 20


def curves(answer: Comparison, name: str) -> str:
    """The model thick, the simulation thin."""
    title = f"Warps per cycle of {name} over occupancy"
    lines = [(_curve(answer, "pipeline"), "s7", 1.5), (_curve(answer, name), "s0", 3.0)]
    return str(chart(title, answer.occupancies, lines, ()))


def bounds(answer: Comparison) -> str:
    """The simulation between what latency and what throughput would allow."""
    inputs = answer.inputs
    latency = {warps: warps / inputs.latency_app for warps in answer.occupancies}
    roof = dict.fromkeys(answer.occupancies, inputs.roof)
    labels = (("warps / latency of one warp", 0, 2), ("throughput of the busiest pipe", 1, 7), ("simulation", 2, 8))
    drawn = chart(
        "Warps per cycle over occupancy: bounded by latency, then by throughput",
        answer.occupancies,
        [(latency, "s1", 1.5), (roof, "s2", 1.5), (_curve(answer, "pipeline"), "s0", 3.0)],
        labels,
        most=inputs.roof * 1.25,
    )
    return str(drawn)


def _curve(answer: Comparison, model: str) -> dict[int, float]:
    return {point.occupancy_warps: point.warps_per_cycle for point in answer.predictions[model].curve}


def chart(
    title: str,
    warps: Sequence[int],
    lines: Sequence[tuple[Mapping[int, float], str, float]],
    labels: Sequence[tuple[str, int, int]],
    most: float | None = None,
) -> Drawing:
    """Lines as (values by warps, class, width). A label is (text, its line, at how many warps)."""
    top = most or max(max(values.values()) for values, _, _ in lines) * 1.08 or 1.0
    drawing = Drawing(_WIDTH, _HEIGHT, title)
    right = _WIDTH - 20

    def at(count: int, value: float) -> tuple[float, float]:
        x = _LEFT + (count - warps[0]) / max(1, warps[-1] - warps[0]) * (right - _LEFT)
        return x, _BOTTOM - min(value, top) / top * (_BOTTOM - _TOP)

    for step in range(5):
        value = top * step / 4
        y = at(warps[0], value)[1]
        drawing.line([(_LEFT, y), (right, y)], "grid")
        drawing.text(_LEFT - 6, y + 4, f"{value:.3f}", "end", "small")
    for count in warps:
        drawing.text(at(count, 0)[0], _BOTTOM + 18, str(count), "middle", "small")
    for values, hue, width in lines:
        inside = [at(count, value) for count, value in values.items() if value <= top * 1.001]
        drawing.line(inside, hue, width)
    for text, number, count in labels:
        x, y = at(count, lines[number][0][count])
        drawing.text(x + 10, y + (-8 if number == 1 else 18), text, classes="small")
    drawing.text((_LEFT + right) / 2, _HEIGHT - 10, "warps on the SM", "middle")
    drawing.text(_LEFT - 6, 12, "warps per cycle", "start", "small")
    return drawing
