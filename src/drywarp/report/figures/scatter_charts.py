"""Predicted against measured times, and GPUPerf's potential benefits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from matplotlib.ticker import FuncFormatter, MaxNLocator

from ...errors import UsageError
from .canvas import (
    COLUMN_IN,
    LETTER_IN,
    SMALL_PT,
    Drawing,
    columns,
    decades,
    drawing,
    gridded,
    label,
    tick_time,
    title_of,
)
from .roofline_chart import Answer, missing

OFF = 0.25
"""Relative distance of the thin lines from the diagonal."""
_MARGIN = 1.2
"""The frame extends beyond the points by this factor."""
_MARKS = "osD^vP*Xhp"

Point = tuple[float, float, str]
"""Measured and predicted seconds, and the predicted limiter, which selects colour and shape."""


def predicted_over_measured(
    points: Sequence[Point], title: str = "", *, theme: str = "light", width: float = COLUMN_IN
) -> Drawing:
    """Logarithmic axes with the diagonal and lines 25 % off it. Raises UsageError without points."""
    if not points:
        raise UsageError("no row was predicted: nothing to draw")
    times = [time for measured, predicted, _ in points for time in (measured, predicted)]
    low, high = min(times) / _MARGIN, max(times) * _MARGIN
    with drawing(theme, width, width) as figure:
        axes = figure.add_subplot()
        axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), aspect="equal")
        ends = [low, high]
        axes.plot(ends, ends, color=figure.theme.text, linewidth=0.8, gid="equal")
        for factor in (1 - OFF, 1 + OFF):
            (line,) = axes.plot(
                ends, [factor * end for end in ends], color=figure.theme.soft, linewidth=0.7, linestyle=(0, (4, 3)),
                gid="off",
            )  # fmt: skip
        line.set_label(f"±{OFF:.0%}")
        counts = Counter(limiter for _, _, limiter in points)
        for number, (limiter, count) in enumerate(counts.most_common()):
            mine = [(measured, predicted) for measured, predicted, said in points if said == limiter]
            axes.plot(
                *zip(*mine, strict=True), _MARKS[number % len(_MARKS)], color=figure.theme.data[number % 10],
                markersize=3, alpha=0.7, markeredgewidth=0, gid=f"points-{limiter}",
                label=f"{label(limiter, 20) or 'no limiter'} ({count:,})",
            )  # fmt: skip
        decades(axes.xaxis, tick_time, most=5)
        decades(axes.yaxis, tick_time, most=5)
        axes.set_xlabel("measured time")
        axes.set_ylabel("predicted time")
        axes.set_title(label(title, int((width - 0.5) / LETTER_IN)))
        axes.grid(True)
        figure.legend(loc="outside lower center", ncols=columns(width), handlelength=1.2, columnspacing=1.2)
    return figure


# GPUPerf's potential benefits: from the kernel's cost to its potential cost (Sim et al. 2012, §3).

STEPS = ("A", "A′", "ITILP", "serial", "fp", "ideal")
_NEAR = 0.06
"""Points closer than this fraction of the frame share a label."""
_LEGS = ("overlap", "B_itilp", "B_serial", "B_fp", "B_memlp")


def benefits(answer: Answer, *, theme: str = "light", width: float = COLUMN_IN) -> Drawing:
    """Memory cycles on x, computation cycles on y; from A, without overlap, to the ideal.

    A to A′ subtracts the overlap; then down along B_itilp, B_serial and B_fp, and left along B_memlp. Raises
    UsageError for a result without detail or advice, and if the model's inputs are missing.
    """
    places = path_of(_cycles(answer))
    most = 1.1 * max(1.0, *(value for place in places for value in place))
    with drawing(theme, width, 0.85 * width) as figure:
        axes = figure.add_subplot()
        axes.set(xlim=(0, most), ylim=(0, most))
        axes.plot([0, most], [0, most], color=figure.theme.soft, linewidth=0.7, linestyle=(0, (2, 2)), gid="balance")
        colours = (figure.theme.soft, *(figure.theme.data[at] for at in (4, 3, 2, 0)))
        for number, leg in enumerate(_LEGS):
            (x0, y0), (x1, y1) = places[number : number + 2]
            axes.plot(
                [x0, x1], [y0, y1], color=colours[number], linewidth=1.0 if number == 0 else 3.5, gid=f"leg-{leg}",
                linestyle=(0, (3, 2)) if number == 0 else "-", solid_capstyle="butt", label=leg,
            )  # fmt: skip
        axes.plot(*zip(*places, strict=True), "o", color=figure.theme.text, markersize=3, gid="steps", clip_on=False)
        named: list[tuple[float, float]] = []
        for name, (x, y) in zip(STEPS, places, strict=True):
            if name not in ("A", "A′", "ideal") or any(max(abs(x - a), abs(y - b)) < _NEAR * most for a, b in named):
                continue
            named.append((x, y))
            right = x > 0.9 * most
            axes.annotate(
                name, (x, y), xytext=(-5 if right else 5, 4), textcoords="offset points", fontsize=SMALL_PT,
                ha="right" if right else "left",
            )  # fmt: skip
        unit, words = unit_of(most)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / unit:g}"))
            axis.set_major_locator(MaxNLocator(5))
        axes.set_xlabel(f"memory: {words}SM cycles")
        axes.set_ylabel(f"computation: {words}SM cycles")
        axes.set_title(title_of(answer.kernel, answer.gpu_title, width))
        gridded(axes, "both")
        figure.legend(loc="outside lower center", ncols=5, handlelength=1.4, columnspacing=1.0)
    return figure


def unit_of(most: float) -> tuple[float, str]:
    """The unit of an axis that ends at `most`, and its word."""
    return next(((unit, word) for unit, word in ((1e6, "million "), (1e3, "thousand ")) if most >= unit), (1.0, ""))


def _cycles(answer: Answer) -> Mapping[str, float]:
    """The chart's numbers from the advice if present, otherwise from the detail."""
    advised = answer.advice.to_dict().get("benefits", {}) if answer.advice else {}
    if "t_exec_cycles" in advised:
        return dict(advised)
    if answer.detail is None:
        raise missing("benefits", "the result has no detail (expected drywarp.analyze(…, detail=0))")
    if not answer.detail.benefits:
        raise missing("benefits", answer.detail.missing.get("benefits", "the model's inputs are missing"))
    return answer.detail.benefits


def path_of(cycles: Mapping[str, float]) -> list[tuple[float, float]]:
    """The position of each of `STEPS`: memory and computation in cycles."""
    get = {name.removesuffix("_cycles"): value for name, value in cycles.items()}
    exposed, up = get["t_mem"] - get["t_overlap"], get["t_comp"]
    return [
        (get["t_mem"], up),
        (exposed, up),
        (exposed, up - get["b_itilp"]),
        (exposed, up - get["b_itilp"] - get["b_serial"]),
        (exposed, get["t_fp"]),
        (min(exposed, get["t_mem_min"]), get["t_fp"]),
    ]
