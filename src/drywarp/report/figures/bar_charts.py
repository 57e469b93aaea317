"""Horizontal bars of shares, the largest on top: stall reasons, utilization, overlap."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from .axes import gridded
from .canvas import COLUMN_IN, HEAD_IN, ROW_IN, SMALL_PT, Drawing, behind, drawing, label, title_of
from .roofline_chart import Answer, detail_of, missing


def share_bars(axes: Axes, rows: Sequence[tuple[str, float]], colours: Sequence[str], *, group: str) -> None:
    """Horizontal bars of `(name, share)`, with shares from 0 to 1; `group` prefixes their SVG ids."""
    places = range(len(rows))
    for at, (name, share), colour in zip(places, rows, colours, strict=True):
        axes.barh(at, share, height=0.72, color=colour, gid=f"{group}-{name}")
        axes.annotate(
            f"{share:.1%}", (share, at), xytext=(3, 0), textcoords="offset points", va="center", fontsize=SMALL_PT,
            bbox=behind(axes.get_facecolor()),
        )  # fmt: skip
    axes.set_yticks(places, [label(name, 32) for name, _ in rows])
    for text in axes.get_yticklabels():
        text.set_parse_math(False)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, 1.16 * max([share for _, share in rows], default=1.0) or 1.0)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.locator_params(axis="x", nbins=5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    gridded(axes, "x")


def height_of(rows: int, panels: int = 1) -> float:
    """Height in inches of a figure with this many bars and panels."""
    return ROW_IN * max(3, rows) + HEAD_IN * panels


# Warp time by stall reason.

_LEAST = 5e-4
"""Smaller shares are combined into one bar, or omitted if their sum is smaller too."""


def stalls(answer: Answer, *, theme: str = "light", width: float = COLUMN_IN) -> Drawing:
    """Shares of total warp time, by Nsight Compute's stall reasons. Raises UsageError if there are none."""
    cycles = answer.predictions[answer.model].stalls
    total = sum(cycles.values())
    if not total:
        raise missing("stalls", f"{answer.model} does not report stalls")
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


# Times as horizontal bars: the rungs of a ladder, the sides of a comparison, a kernel on many GPUs.


# How busy each part of the GPU is; parts busy for less than `_LEAST` of the time are omitted.


def utilization(answer: Answer, *, theme: str = "light", width: float = COLUMN_IN) -> Drawing:
    """Fraction of the time that each part is busy, with the limiter highlighted. Raises UsageError if there is none."""
    primary = answer.predictions[answer.model]
    rows = sorted(((n, s) for n, s in primary.utilization.items() if s >= _LEAST), key=lambda row: -row[1])
    if not rows:
        raise missing("utilization", f"{answer.model} does not report it")
    with drawing(theme, width, height_of(len(rows))) as figure:
        axes = figure.add_subplot()
        colours = [figure.theme.data[1 if name == primary.limiter else 0] for name, _ in rows]
        share_bars(axes, rows, colours, group="part")
        axes.set_xlim(0, 1.14)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
        axes.set_xlabel(f"share of time busy (limited by {primary.limiter})")
        axes.set_title(title_of(answer.kernel, answer.gpu_title, width))
    return figure


# How much of the time several subsystems are busy at once, that is, overlap.


def overlap(answer: Answer, *, theme: str = "light", width: float = COLUMN_IN) -> Drawing:
    """Above: shares of the time with none, one, two, … busy subsystems. Below: each one's busy time, total and alone.

    Covers the period of the events in the result's detail. Raises UsageError if there are none.
    """
    detail = detail_of(answer, "overlap")
    found = detail.overlap
    if found is None:
        raise missing("overlap", detail.missing.get("events", "no issue events were recorded"))
    at_once = [(_count(k), share) for k, share in enumerate(found.at_once) if k < 2 or share >= _LEAST]
    parts = sorted(((n, s) for n, s in found.busy.items() if s >= _LEAST), key=lambda row: -row[1])
    with drawing(theme, width, height_of(len(at_once) + len(parts), 2)) as figure:
        above, below = figure.subplots(2, 1, height_ratios=[len(at_once) + 0.5, len(parts) + 0.5])
        share_bars(above, at_once, [figure.theme.data[0]] * len(at_once), group="at-once")
        above.set_xlabel("share of time")
        above.set_title(title_of(answer.kernel, answer.gpu_title, width))
        share_bars(below, parts, [figure.theme.data[5]] * len(parts), group="busy")
        for at, (name, _) in enumerate(parts):
            below.barh(at, found.alone[name], height=0.72, color=figure.theme.data[0], gid=f"alone-{name}")
        below.set_xlabel("share of time busy (dark: alone)", fontsize=SMALL_PT + 1)
        figure.align_ylabels()
    return figure


def _count(k: int) -> str:
    return ("none busy", "1 busy")[k] if k < 2 else f"{k} at once"
