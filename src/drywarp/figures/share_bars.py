"""Lying bars of shares, the largest on top, each with its name and its value."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from .canvas import SMALL_PT, behind, gridded, label

ROW_IN, HEAD_IN = 0.17, 0.62
"""Inches that a bar takes, and what stands above and below all of them."""


def share_bars(axes: Axes, rows: Sequence[tuple[str, float]], colours: Sequence[str], *, group: str) -> None:
    """Bars of `(name, share)`, 0 to 1, as `group`; the axis ends at the largest or at 100 %."""
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
    """Inches of a figure with so many bars in so many panels."""
    return ROW_IN * max(3, rows) + HEAD_IN * panels
