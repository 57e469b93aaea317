"""Horizontal bars: shares with the largest on top (stall reasons, utilization, overlap), and times."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, PercentFormatter

from ...errors import UsageError
from ...support.text import time_text
from .canvas import (
    COLUMN_IN,
    HEAD_IN,
    LETTER_IN,
    ROW_IN,
    SMALL_PT,
    Drawing,
    behind,
    columns,
    decades,
    drawing,
    gridded,
    label,
    tick_time,
    title_of,
)
from .roofline_chart import Answer, detail_of, missing
from .theme import Bar


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


# Times as horizontal bars: the rungs of a ladder, the sides of a comparison, a kernel on many GPUs.


LOG_FROM = 30.0
"""If the longest time is at least this many times the shortest, the axis is logarithmic, with points for bars."""


def bars(rows: Sequence[Bar], title: str = "", *, theme: str = "light", width: float = COLUMN_IN) -> Drawing:
    """One bar per row from top to bottom, followed by its time and note. Raises UsageError without rows."""
    if not rows:
        raise UsageError("no time was predicted: nothing to draw")
    groups = list(dict.fromkeys(row.group for row in rows))
    longest, shortest = max(row.high_s or row.time_s for row in rows), min(row.time_s for row in rows)
    logarithmic = shortest > 0 and longest / shortest >= LOG_FROM
    with drawing(theme, width, HEAD_IN + ROW_IN * max(3, len(rows)) + (0.2 if len(groups) > 1 else 0)) as figure:
        axes = figure.add_subplot()
        if logarithmic:
            axes.set(xscale="log")
        for at, row in enumerate(rows):
            colour = figure.theme.data[groups.index(row.group) % 10]
            first = row.group and row.group not in {other.group for other in rows[:at]}
            name = label(row.group, 20) if first else None
            if logarithmic:  # a bar's length is meaningless on a logarithmic axis
                axes.plot([row.time_s], [at], "o", markersize=5, color=colour, gid=f"bar-{at}", label=name)
            else:
                axes.barh(at, row.time_s, height=0.72, color=colour, gid=f"bar-{at}", label=name)
            if row.low_s is not None and row.high_s is not None:
                axes.plot([row.low_s, row.high_s], [at, at], color=figure.theme.text, linewidth=0.8, gid=f"band-{at}")
            said = axes.annotate(
                f"{time_text(row.time_s)}{'  ' if row.note else ''}{label(row.note, 24)}",
                (max(row.time_s, row.high_s or 0.0), at), xytext=(5, 0), textcoords="offset points", va="center",
                fontsize=SMALL_PT, bbox=behind(figure.theme.background),
            )  # fmt: skip
            said.set_in_layout(False)  # the axis already leaves room for it
        axes.set_yticks(range(len(rows)), [label(row.name, 28) for row in rows])
        for text in axes.get_yticklabels():
            text.set_parse_math(False)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        if logarithmic:
            axes.set_xlim(shortest / 3, longest * (longest / shortest) ** 0.45)
            decades(axes.xaxis, tick_time, most=4)
        else:
            axes.set_xlim(0, 1.5 * longest)
            axes.locator_params(axis="x", nbins=4)
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: tick_time(value) if value else "0"))
        gridded(axes, "both" if logarithmic else "x")
        axes.set_xlabel("predicted time")
        axes.set_title(label(title, int((width - 0.5) / LETTER_IN)))
        if len(groups) > 1:
            figure.legend(loc="outside lower center", ncols=columns(width), handlelength=1.0, columnspacing=1.2)
    return figure
