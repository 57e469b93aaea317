"""Predicted over measured times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..errors import UsageError
from .canvas import COLUMN_IN, LETTER_IN, Drawing, columns, drawing, label
from .log_axes import decades, tick_time

OFF = 0.25
"""The thin lines are so far off the diagonal."""
_MARGIN = 1.2
"""The frame reaches so many times beyond the points."""
_MARKS = "osD^vP*Xhp"

Point = tuple[float, float, str]
"""Measured and predicted seconds, and what the prediction says limits the kernel: colour and shape."""


def predicted_over_measured(
    points: Sequence[Point], title: str = "", *, theme: str = "light", width: float = COLUMN_IN
) -> Drawing:
    """Both axes logarithmic, the diagonal, and lines 25 % off it. Raises UsageError without points."""
    if not points:
        raise UsageError("no row was predicted: there is nothing to draw")
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
