"""Where the warps' time goes, by stall reason."""

from __future__ import annotations

from .answer import Answer, missing
from .canvas import COLUMN_IN, Drawing, drawing, title_of
from .share_bars import height_of, share_bars

_LEAST = 5e-4
"""Reasons that take a smaller part of the warps' time are drawn together, or not if that is as small."""


def stalls(answer: Answer, *, theme: str = "light", width: float = COLUMN_IN) -> Drawing:
    """Shares of all warp time, from launch to end, under Nsight Compute's names. Raises UsageError without any."""
    cycles = answer.predictions[answer.model].stalls
    total = sum(cycles.values())
    if not total:
        raise missing("stalls", f"{answer.model} says nothing of stalls")
    shares = {name: value / total for name, value in cycles.items()}
    rows = sorted(((n, s) for n, s in shares.items() if s >= _LEAST), key=lambda row: -row[1])
    rest = 1.0 - sum(share for _, share in rows)
    if rest >= _LEAST:
        rows.append(("others", rest))
    with drawing(theme, width, height_of(len(rows))) as figure:
        axes = figure.add_subplot()
        share_bars(axes, rows, [figure.theme.of_reason(name) for name, _ in rows], group="stall")
        axes.set_xlabel("share of warp time")
        axes.set_title(title_of(answer.kernel, answer.gpu_title, width))
    return figure
