"""Execution profiles of single instructions, and line plots of the caller's own data in the same style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path

from ...analysis.every_model import AbstractProfile
from ...analysis.result.detail import Events
from ...errors import UsageError
from ..execution_profile import LANE_GAP, Box, Order, Row, lanes_of, warps_of
from .canvas import COLUMN_IN, SMALL_PT, Drawing, behind, columns, decades, drawing, gridded, label, title_of
from .roofline_chart import Answer, detail_of, missing
from .theme import DASHES, Theme

_MOST = 10


def lines(
    series: Mapping[str, tuple[Sequence[float], Sequence[float | None]]],
    *,
    x: str,
    y: str,
    title: str = "",
    marks: Mapping[float, str] | None = None,
    logarithmic: bool = False,
    theme: str = "light",
    width: float = COLUMN_IN,
) -> Drawing:
    """Named lines of x and y values (None: a gap). `x` and `y` label the axes; y starts at 0.

    `marks` are labelled vertical lines at values of x; `logarithmic` applies to the x axis. Raises UsageError for no
    series, for more than ten, and if x and y differ in length.
    """
    if not 1 <= len(series) <= _MOST:
        raise UsageError(f"{len(series)} lines: expected 1 to {_MOST}")
    if uneven := [name for name, (xs, ys) in series.items() if len(xs) != len(ys)]:
        raise UsageError(f"line {uneven[0]!r}: expected as many y values as x values")
    with drawing(theme, width, 0.8 * width) as figure:
        axes = figure.add_subplot()
        if logarithmic:
            axes.set_xscale("log")
        for number, (name, (xs, ys)) in enumerate(series.items()):
            axes.plot(
                xs, [float("nan") if value is None else value for value in ys], color=figure.theme.data[number],
                linestyle=DASHES[number % len(DASHES)], label=label(name), gid=f"line-{name}", zorder=2 + number / 20,
                linewidth=2.2 if number == 0 else 1.4,  # so that overlapping lines all remain visible
            )  # fmt: skip
        axes.set_ylim(bottom=0, top=1.08 * axes.get_ylim()[1])
        axes.margins(x=0.02)
        for at, (value, text) in enumerate((marks or {}).items()):
            axes.axvline(value, color=figure.theme.soft, linewidth=0.7, linestyle=(0, (2, 2)), gid=f"mark-{at}")
            axes.annotate(
                label(text, 40), (value, 1), xycoords=("data", "axes fraction"), xytext=(-3, -2 - 10 * at), ha="right",
                textcoords="offset points", va="top", fontsize=SMALL_PT, bbox=behind(figure.theme.background),
            )  # fmt: skip
        if logarithmic:
            decades(axes.xaxis)
        axes.set(xlabel=label(x), ylabel=label(y))
        axes.set_title(label(title))
        gridded(axes)
        figure.legend(loc="outside lower center", ncols=columns(width, 2), handlelength=2.6, columnspacing=1.4)
    return figure


class Curves(Protocol):
    """Lines with the titles of their axes, as `drywarp.experiments.reproduce.figures.PaperFigure` is."""

    @property
    def title(self) -> str: ...  # noqa: D102
    @property
    def x(self) -> str: ...  # noqa: D102
    @property
    def y(self) -> str: ...  # noqa: D102
    @property
    def lines(self) -> Mapping[str, tuple[Sequence[float], Sequence[float | None]]]: ...  # noqa: D102
    @property
    def logarithmic(self) -> bool: ...  # noqa: D102


def papers_figure(curves: Curves, *, theme: str = "light", width: float = COLUMN_IN) -> Drawing:
    """The models' curves of a paper's figure; the last, which is bounded, sets the scale."""
    drawn = lines(
        curves.lines, x=curves.x, y=curves.y, title=curves.title, logarithmic=curves.logarithmic,
        theme=theme, width=width,
    )  # fmt: skip
    # The others may leave the frame.
    values = [[value for value in ys if value is not None] for _, ys in curves.lines.values()]
    top = 1.08 * min(max(map(max, values)), 3 * max(values[-1]))
    drawn.axes[0].set_ylim(-top if min(map(min, values)) < 0 else 0, top)
    return drawn


# Issue and completion of individual instructions in lanes, as in Figs. 8 and 9 of the analysis paper.

FIRST = 200
"""Default number of instructions drawn."""
MOST = 5_000
_ARROWS = 400
"""Waits are not drawn for more instructions than this: their lines would hide everything."""
_NAMED, _NAME_PT = 80, 4.5
"""Most instructions that are named in their boxes, and the size of that text."""
_ROW_IN, _WARP_IN, _HEAD_IN = 0.075, 0.15, 0.85


def profile(
    answer: Answer,
    *,
    first: int = FIRST,
    start: int = 0,
    by: Order = "subsystem",
    warps: Sequence[int] | None = None,
    theme: str = "light",
    width: float = COLUMN_IN,
) -> Drawing:
    """The `first` instructions that one SM issues, starting with number `start`, of these `warps` (slots) or of all.

    By subsystem: one lane per instance; a box is dark for λ, while it occupies the subsystem, and light until
    completion. By warp: one row per warp slot; the colour between two issues is the stall reason of the later one.
    Lines connect each awaited instruction to the one that waited. Raises UsageError without events.
    """
    detail = detail_of(answer, "profile")
    if detail.events is None:
        raise missing(
            "profile", detail.missing.get("events", "no issue events were recorded (expected detail=100_000)")
        )
    place = _Place(answer.kernel, answer.gpu_title, by, theme, width)
    return _drawn(detail.events, place, first, start, warps)


def abstract_profile(
    result: AbstractProfile,
    *,
    first: int = FIRST,
    by: Order = "subsystem",
    theme: str = "light",
    width: float = COLUMN_IN,
) -> Drawing:
    """The same of an abstract kernel, with the names of its instructions where they fit."""
    place = _Place(f"{result.occupancy_warps} × {result.workload}, {result.scheduler}", result.gpu, by, theme, width)
    return _drawn(result.events, place, first, 0, None, result.names)


class _Place(NamedTuple):
    """What the title says, how lanes are ordered, and the figure's theme and width in inches."""

    kernel: str
    gpu: str
    by: Order
    theme: str
    width: float


def _drawn(
    events: Events, place: _Place, first: int, start: int, warps: Sequence[int] | None, names: Sequence[str] = ()
) -> Drawing:
    by = place.by
    if by not in ("subsystem", "warp"):
        raise UsageError(f"figure profile: by {by!r}, expected subsystem or warp")
    if not (1 <= first <= MOST and start >= 0):
        raise UsageError(f"figure profile: expected first from 1 to {MOST} and start from 0, not {first} and {start}")
    chosen = _chosen(events, first, start, warps)
    boxes, rows = lanes_of(events, chosen) if by == "subsystem" else warps_of(events, chosen)
    depth = rows[-1].top + rows[-1].rows
    height = _HEAD_IN + (depth * _ROW_IN if by == "subsystem" else depth * _WARP_IN + 0.5)
    with drawing(place.theme, place.width, min(12.0, max(1.6, height))) as figure:
        axes = figure.add_subplot()
        if by == "subsystem":
            _draw_lanes(axes, events, boxes, figure.theme)
        else:
            _draw_warps(axes, events, boxes, figure.theme, figure)
        if len(boxes) <= _ARROWS:
            _draw_waits(axes, events, boxes, figure.theme)
        if names and by == "subsystem" and len(boxes) <= _NAMED:
            for box in boxes:
                name = label(names[events.nodes[int(events.node[box.event])].instruction], 8)
                axes.text(box.done, box.row + 0.5, f"{name} ", fontsize=_NAME_PT, ha="right", va="center_baseline")
        _frame(axes, rows, depth, figure.theme)
        axes.set_title(title_of(place.kernel, place.gpu, place.width))
        axes.set_xlabel(f"cycles ({len(boxes):,} of {events.total:,} instructions)")
    return figure


def _chosen(events: Events, first: int, start: int, warps: Sequence[int] | None) -> npt.NDArray[np.int64]:
    found = np.arange(len(events.issue))
    if warps is not None:
        found = found[np.isin(events.warp, list(warps))]
    found = found[start : start + first]
    if not len(found):
        raise missing("profile", f"none of the {len(events.issue):,} events matches")
    return found


def _draw_lanes(axes: Axes, events: Events, boxes: Sequence[Box], theme: Theme) -> None:
    by_lane: dict[int, list[Box]] = {}
    for box in boxes:
        by_lane.setdefault(events.nodes[int(events.node[box.event])].lane, []).append(box)
    for lane, mine in by_lane.items():
        colour, name = theme.data[lane % 9], events.lanes[lane].name
        after: dict[float, float] = {}
        shown = []
        for box in reversed(mine):  # in a reused row, the earlier box ends where the next begins
            shown.append((box.issue, min(box.done, after.get(box.row, box.done)) - box.issue))
            after[box.row] = box.issue
        flights = [(*span, box.row) for box, span in zip(mine, reversed(shown), strict=True)]
        _shapes(axes, flights, 0.06, facecolor=colour, alpha=0.35, linewidth=0, gid=f"flight-{name}")
        busy = [(box.issue, box.busy_until - box.issue, box.row) for box in mine]
        _shapes(axes, busy, 0.06, facecolor=colour, edgecolor=theme.background, linewidth=0.2, gid=f"busy-{name}")


def _shapes(axes: Axes, boxes: Sequence[tuple[float, float, float]], gap: float, **style: Any) -> None:
    """Draw boxes (start, width, row) as a single shape: separate shapes would make the file five times as large."""
    corners = [
        [(x, row + gap), (x + wide, row + gap), (x + wide, row + 1 - gap), (x, row + 1 - gap), (x, row + gap)]
        for x, wide, row in boxes
    ]
    codes = [Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY] * len(boxes)
    axes.add_patch(PathPatch(Path([corner for each in corners for corner in each], codes), **style))


def _draw_warps(axes: Axes, events: Events, boxes: Sequence[Box], theme: Theme, figure: Drawing) -> None:
    before: dict[float, float] = {}
    waits: dict[str, list[tuple[float, float, float]]] = {}
    for box in boxes:
        reason = events.reasons[int(events.reason[box.event])]
        if box.row in before and box.issue > before[box.row]:
            waits.setdefault(reason, []).append((before[box.row], box.issue - before[box.row], box.row))
        before[box.row] = box.issue + 1.0  # the cycle of its issue
    for reason, spans in waits.items():
        _shapes(axes, spans, 0.24, facecolor=theme.of_reason(reason), linewidth=0, gid=f"wait-{reason}")
    _shapes(axes, [(box.issue, 1.0, box.row) for box in boxes], 0.1, facecolor=theme.text, linewidth=0, gid="issue")
    keys = [Patch(color=theme.text, label="issue"), *(Patch(color=theme.of_reason(r), label=r) for r in sorted(waits))]
    figure.legend(
        handles=keys,
        loc="outside lower center",
        ncols=columns(figure.get_figwidth()),
        handlelength=1.0,
        columnspacing=1.2,
    )


def _draw_waits(axes: Axes, events: Events, boxes: Sequence[Box], theme: Theme) -> None:
    """Lines from each awaited completion to the instruction that waited, if both are in the figure."""
    by_event = {box.event: box for box in boxes}
    lines = []
    for box in boxes:
        cause = by_event.get(int(events.awaited[box.event]))
        if cause is not None:
            lines.append([(min(cause.done, box.issue), cause.row + 0.5), (box.issue, box.row + 0.5)])
    axes.add_collection(LineCollection(lines, colors=theme.text, linewidths=0.45, alpha=0.7, zorder=3, gid="waits"))


def _frame(axes: Axes, rows: Sequence[Row], depth: float, theme: Theme) -> None:
    axes.set_ylim(depth + 0.3, -0.3)
    every = max(1, len(rows) // 40)
    marked = rows[::every]
    axes.set_yticks([row.top + row.rows / 2 for row in marked], [row.name for row in marked], fontsize=SMALL_PT - 0.5)
    for row in rows[1:] if rows[0].rows + len(rows) > 1 and rows[0].name[:4] != "warp" else []:
        axes.axhline(row.top - LANE_GAP / 2, color=theme.grid, linewidth=0.5, zorder=0)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.autoscale_view(scaley=False)
    axes.margins(x=0.01)
    axes.grid(True, axis="x")
