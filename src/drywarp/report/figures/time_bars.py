"""Times as horizontal bars: the rungs of a ladder, the sides of a comparison, a kernel on many GPUs."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.ticker import FuncFormatter

from ...errors import UsageError
from ...support.text import time_text
from .axes import decades, gridded, tick_time
from .canvas import COLUMN_IN, HEAD_IN, LETTER_IN, ROW_IN, SMALL_PT, Drawing, behind, columns, drawing, label
from .theme import Bar

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
