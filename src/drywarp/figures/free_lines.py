"""Lines of the caller's own, in the look of all other figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..errors import UsageError
from .canvas import COLUMN_IN, SMALL_PT, Drawing, behind, columns, drawing, gridded, label
from .log_axes import decades
from .theme import DASHES

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
    """Lines by name, each of x and y values (None: a gap). `x` and `y` name the axes; y begins at 0.

    `marks` are upright lines at values of x with a text each; `logarithmic` is the x axis. Raises UsageError for no
    series, for more than ten, and for series whose values are not as many.
    """
    if not 1 <= len(series) <= _MOST:
        raise UsageError(f"{len(series)} lines: expected 1 to {_MOST}")
    if uneven := [name for name, (xs, ys) in series.items() if len(xs) != len(ys)]:
        raise UsageError(f"line {uneven[0]!r}: expected as many values of y as of x")
    with drawing(theme, width, 0.8 * width) as figure:
        axes = figure.add_subplot()
        if logarithmic:
            axes.set_xscale("log")
        for number, (name, (xs, ys)) in enumerate(series.items()):
            axes.plot(
                xs, [float("nan") if value is None else value for value in ys], color=figure.theme.data[number],
                linestyle=DASHES[number % len(DASHES)], label=label(name), gid=f"line-{name}", zorder=2 + number / 20,
                linewidth=2.2 if number == 0 else 1.4,  # where lines lie on each other all are seen
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
