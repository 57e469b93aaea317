"""The rooflines; also the parts of a result that figures need, and the errors if they are missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from matplotlib.axes import Axes

from ...analysis.result.detail import Detail, Roof, Roofline
from ...errors import UsageError
from ...models.base import Prediction
from .canvas import COLUMN_IN, SMALL_PT, Drawing, behind, decades, drawing, tick_rate, title_of


class Fits(Protocol):
    """The launch's occupancy, its position on the curves."""

    @property
    def warps_per_sm(self) -> int: ...  # noqa: D102


class Answer(Protocol):
    """An analysis, as `drywarp.analysis.result.Analysis` is one."""

    @property
    def kernel(self) -> str: ...  # noqa: D102
    @property
    def gpu_title(self) -> str: ...  # noqa: D102
    @property
    def occupancy(self) -> Fits: ...  # noqa: D102
    @property
    def predictions(self) -> Mapping[str, Prediction]: ...  # noqa: D102
    @property
    def model(self) -> str: ...  # noqa: D102
    @property
    def advice(self) -> Any: ...  # noqa: D102
    @property
    def detail(self) -> Detail | None: ...  # noqa: D102


def detail_of(answer: Answer, figure: str) -> Detail:
    """The result's detail. Raises UsageError that states how to request it."""
    if answer.detail is None:
        raise UsageError(f"figure {figure}: the result has no detail (expected drywarp.analyze(…, detail=100_000))")
    return answer.detail


def missing(figure: str, why: str) -> UsageError:
    """The error for a figure without data in the result."""
    return UsageError(f"figure {figure}: {why}")


# The rooflines: the kernel's rate under the limits of each part of the GPU.

_SEEN = 30.0
"""The instruction roofline omits flat roofs more than this many times above the kernel; frames end as far below it."""
_ISSUE = "issue"


def roofline(answer: Answer, *, theme: str = "light", width: float = COLUMN_IN) -> Drawing:
    """FLOP/s over arithmetic intensity, both logarithmic (Williams et al. 2009); integers if there is no FLOP.

    Peak rates are flat roofs, bandwidths are sloped; a point marks the kernel's intensity for each of the latter.
    Raises UsageError for a result without detail or operations.
    """
    found = detail_of(answer, "roofline").roofline
    if found is None:
        raise missing("roofline", "no known operations (the figure instruction_roofline counts instructions)")
    unit = "FLOP" if found.work == "FLOP" else "op"
    words = (f"{found.work} per byte", f"{found.work} per second", f"{tick_rate(found.rate)}{unit}/s")
    return _drawn(answer, found, words, tick_rate, theme, width)


def instruction_roofline(answer: Answer, *, theme: str = "light", width: float = COLUMN_IN) -> Drawing:
    """Warp instructions per cycle of one SM over warp instructions per byte, both logarithmic (Ding, Williams 2019).

    Raises UsageError for a result without detail, or a kernel that takes no time.
    """
    found = detail_of(answer, "instruction_roofline").instruction_roofline
    if found is None:
        raise missing("instruction_roofline", "the kernel takes no time")
    near = replace(found, roofs=tuple(r for r in found.roofs if r.intensity or r.rate < _SEEN * found.rate))
    words = ("warp instructions per byte", "warp instructions per cycle per SM", f"{found.rate:.3g}")
    return _drawn(answer, near, words, lambda value: f"{value:g}", theme, width)


def _drawn(
    answer: Answer, found: Roofline, words: tuple[str, str, str], tick: Callable[[float], str], theme: str, width: float
) -> Drawing:
    """One roofline; `words` are the titles of x and y, and the kernel's rate."""
    rate = found.rate
    flat = [r for r in found.roofs if not r.intensity]
    sloped = [(r, r.intensity) for r in found.roofs if r.intensity]
    top = 2.2 * max([rate, *(r.rate for r in flat)])
    ends = [x for r, i in sloped for x in (i, i * top / r.rate)] or [1.0]
    low, high, floor = min(ends) / 6, max(ends) * 4, rate / _SEEN
    with drawing(theme, width, 0.8 * width) as figure:
        axes = figure.add_subplot()
        axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(floor, top))
        colour = {
            roof.name: figure.theme.soft if roof.name == _ISSUE else figure.theme.data[number % 9]
            for number, roof in enumerate(found.roofs)
        }
        for roof in flat:
            axes.axhline(roof.rate, color=colour[roof.name], gid=f"roof-{roof.name}")
        background = figure.theme.background
        _names(axes, flat, colour, figure)
        for roof, intensity in sloped:
            slope = roof.rate / intensity
            axes.plot([low, high], [low * slope, high * slope], color=colour[roof.name], gid=f"roof-{roof.name}")
            _text(axes, roof.name, (top / slope, top), (-8, -1), colour[roof.name], background)
            axes.plot(
                [intensity, intensity], [rate, roof.rate], color=figure.theme.soft, linewidth=0.7,
                linestyle=(0, (2, 2)),
            )  # fmt: skip
            axes.plot(
                [intensity], [rate], "o", color=colour[roof.name], markeredgecolor=figure.theme.background,
                gid=f"kernel-{roof.name}", zorder=4,
            )  # fmt: skip
        axes.axhline(rate, color=figure.theme.text, linewidth=0.7, linestyle=(0, (2, 2)), gid="kernel")
        # The area right of the points and below the kernel is free.
        _text(axes, f"this kernel: {words[2]}", (high, rate), (-1, -2), figure.theme.text, background)
        axes.set_xlabel(words[0])
        axes.set_ylabel(words[1])
        axes.set_title(title_of(answer.kernel, answer.gpu_title, width))
        decades(axes.xaxis)
        decades(axes.yaxis, tick)
    return figure


def _names(axes: Axes, roofs: Sequence[Roof], colours: dict[str, str], figure: Drawing) -> None:
    """Label flat roofs at their right ends, moving labels up where they would overlap."""
    least = 1.25 * SMALL_PT / (0.7 * 72 * figure.get_figheight())  # of the frame's height, about 0.7 of the figure's
    to_frame = axes.transScale + axes.transLimits
    before = -1.0
    for roof in sorted(roofs, key=lambda each: each.rate):
        at = float(to_frame.transform((1.0, roof.rate))[1]) + 0.012
        before = max(at, before + least)
        axes.text(
            0.995, before, roof.name, transform=axes.transAxes, ha="right", va="bottom", fontsize=SMALL_PT,
            color=colours[roof.name], bbox=behind(figure.theme.background),
        )  # fmt: skip


def _text(
    axes: Axes, text: str, at: tuple[float, float], off: tuple[float, float], colour: str, background: str
) -> None:
    """Draw text with its upper right corner at this offset in points from a position."""
    axes.annotate(
        text, at, xytext=off, textcoords="offset points", ha="right", va="top", fontsize=SMALL_PT, color=colour,
        bbox=behind(background),
    )  # fmt: skip
