"""How busy each part of the machine is."""

from __future__ import annotations

from .answer import Answer, missing
from .canvas import COLUMN_IN, Drawing, drawing, title_of
from .share_bars import height_of, share_bars

_LEAST = 5e-4
"""Parts that are busy for less of the time are left out."""


def utilization(answer: Answer, *, theme: str = "light", width: float = COLUMN_IN) -> Drawing:
    """Share of the time that each part is busy, the limiter in the first colour. Raises UsageError without any."""
    believed = answer.predictions[answer.model]
    rows = sorted(((n, s) for n, s in believed.utilization.items() if s >= _LEAST), key=lambda row: -row[1])
    if not rows:
        raise missing("utilization", f"{answer.model} says nothing of it")
    with drawing(theme, width, height_of(len(rows))) as figure:
        axes = figure.add_subplot()
        colours = [figure.theme.data[1 if name == believed.limiter else 0] for name, _ in rows]
        share_bars(axes, rows, colours, group="part")
        axes.set_xlim(0, 1.14)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
        axes.set_xlabel(f"share of the time that it is busy (limited by {believed.limiter})")
        axes.set_title(title_of(answer.kernel, answer.gpu_title, width))
    return figure
