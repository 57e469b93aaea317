"""Every model's occupancy curve, with the launch marked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Protocol

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ...errors import UsageError
from ...models.base import CurvePoint, Prediction
from ...models.terms import Terms
from .canvas import COLUMN_IN, SMALL_PT, Drawing, behind, columns, drawing, gridded, title_of
from .execution_profile import lines
from .roofline_chart import Answer
from .theme import DASHES, Theme

Curve = Sequence[CurvePoint]
Launch = tuple[int, Sequence[float], str]
"""A launch's warps per SM, its rate on the primary model's curve, and that model's name."""
_PRIMARY = "pipeline"
"""The model that is listed first."""
_FEW = 8
"""With more named models than this, the legend is beside the curves instead of below."""
_ROOM = 1.6
"""Height of the frame relative to the highest named curve; other models may exceed it."""


class Compared(Protocol):
    """All models on one workload, as `drywarp.models.comparison.Comparison` is."""

    @property
    def workload(self) -> str: ...  # noqa: D102
    @property
    def gpu_title(self) -> str: ...  # noqa: D102
    @property
    def predictions(self) -> Mapping[str, Prediction]: ...  # noqa: D102


class WithTerms(Protocol):
    """All models on one workload with their terms."""

    @property
    def workload(self) -> str: ...  # noqa: D102
    @property
    def gpu_title(self) -> str: ...  # noqa: D102
    @property
    def terms(self) -> Terms | None: ...  # noqa: D102


def occupancy(
    answer: Answer, *, models: Sequence[str] | None = None, theme: str = "light", width: float = COLUMN_IN
) -> Drawing:
    """Warps per cycle of one SM over warps per SM. `models` are named and coloured, the others thin and grey.

    By default, the models of the analysis are named; all models are shown if the result has detail. Raises UsageError
    for a model without a curve.
    """
    found = curves(answer)
    here = answer.occupancy.warps_per_sm
    named = [name for name in answer.predictions if name in found] if models is None else list(models)
    at = [point.warps_per_cycle for point in found.get(answer.model, ()) if point.occupancy_warps == here]
    return _drawn(
        found, named, title_of(answer.kernel, answer.gpu_title, width), (here, at, answer.model), theme, width
    )


def models(
    comparison: Compared, *, models: Sequence[str] | None = None, theme: str = "light", width: float = 2 * COLUMN_IN
) -> Drawing:
    """The same for all models on one workload (`compare_models`): all named, without a launch mark."""
    found = {name: prediction.curve for name, prediction in comparison.predictions.items() if prediction.curve}
    named = sorted(found, key=lambda name: name != _PRIMARY) if models is None else list(models)
    return _drawn(found, named, title_of(comparison.workload, comparison.gpu_title, 0.75 * width), None, theme, width)


def _drawn(
    found: Mapping[str, Curve], named: list[str], title: str, launch: Launch | None, theme: str, width: float
) -> Drawing:
    if not found:
        raise UsageError("figure occupancy: no model has a curve")
    if unknown := [name for name in named if name not in found]:
        raise UsageError(f"figure occupancy: no curve of {unknown[0]!r}; available: {', '.join(found)}")
    beside = len(named) > _FEW
    with drawing(theme, width, 0.55 * width if beside else 0.8 * width) as figure:
        axes = figure.add_subplot()
        others = [name for name in found if name not in named]
        for number, name in enumerate(others):
            _line(axes, name, found[name], "others", colour=figure.theme.soft, width=0.6, alpha=0.45)
            axes.lines[-1].set_label(f"{len(others)} other models" if number == 0 else f"_{name}")
        for number, name in enumerate(named):
            dash = DASHES[(number if len(named) <= len(DASHES) else number // 10) % len(DASHES)]
            colour = figure.theme.data[number % 10]
            _line(axes, name, found[name], "model", colour=colour, width=2.2 if number == 0 else 1.4)
            axes.lines[-1].set(label=name, linestyle=dash, zorder=2.5 + number / 40)
        _frame(axes, [found[name] for name in named] or list(found.values()))
        if launch:
            _mark(axes, *launch, figure.theme)
        axes.set_title(title)
        handles, labels = axes.get_legend_handles_labels()
        place = {name: at for at, name in enumerate(named)}
        order = sorted(range(len(labels)), key=lambda at: place.get(labels[at], len(named)))
        figure.legend(
            [handles[at] for at in order], [labels[at] for at in order], handlelength=2.6, columnspacing=1.4,
            loc="outside right upper" if beside else "outside lower center", ncols=1 if beside else columns(width, 2),
        )  # fmt: skip
    return figure


def curves(answer: Answer) -> dict[str, tuple[CurvePoint, ...]]:
    """The curves of all models if the result has detail, otherwise those of its predictions."""
    detail = answer.detail
    all_of = [(c.model, c.points) for c in detail.curves] if detail else []
    own = [(name, prediction.curve) for name, prediction in answer.predictions.items()]
    return {name: points for name, points in all_of or own if points}


def _line(
    axes: Axes, name: str, points: Sequence[CurvePoint], group: str, colour: str, width: float, alpha: float = 1.0
) -> None:
    xs, ys = [p.occupancy_warps for p in points], [p.warps_per_cycle for p in points]
    axes.plot(xs, ys, color=colour, linewidth=width, alpha=alpha, gid=f"{group}-{name}", solid_joinstyle="round")


def _frame(axes: Axes, named: Sequence[Sequence[CurvePoint]]) -> None:
    rates = [p.warps_per_cycle for points in named for p in points if math.isfinite(p.warps_per_cycle)]
    top = _ROOM * max(rates, default=0.0) or 1.0
    axes.set_ylim(0, top)
    axes.set_xlim(left=0)
    unit = next((each for each in (1, 10**3, 10**6, 10**9) if top * each >= 0.05), 1)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * unit:.4g}"))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.set_xlabel("occupancy: warps per SM")
    axes.set_ylabel("warps per cycle" if unit == 1 else f"warps per {unit:,} cycles")
    gridded(axes)


def _mark(axes: Axes, here: int, rates: Sequence[float], primary: str, theme: Theme) -> None:
    """Mark the launch's occupancy with a line, and its rate on the primary model's curve with a point."""
    axes.axvline(here, color=theme.text, linewidth=0.7, linestyle=(0, (2, 2)), gid="launch")
    colours = {line.get_gid(): line.get_color() for line in axes.lines}
    colour = colours.get(f"model-{primary}", theme.soft)
    for rate in rates:
        axes.plot([here], [rate], "o", color=colour, markeredgecolor=theme.background, gid="launch-point", zorder=4)
    right = here > sum(axes.get_xlim()) / 2
    axes.annotate(
        f"this launch: {here} warps", (here, 1), xycoords=("data", "axes fraction"), xytext=(-3 if right else 3, -2),
        textcoords="offset points", ha="right" if right else "left", va="top", fontsize=SMALL_PT,
        bbox=behind(theme.background),
    )  # fmt: skip


# Terms of the older models over occupancy.

CASES = {"few warps": "few warps", "memory": "memory-bound", "computation": "compute-bound"}
"""Labels of Hong and Kim's three cases."""
MOST_ARCS = 10


def mwp_cwp(comparison: WithTerms, *, theme: str = "light", width: float = 1.6 * COLUMN_IN) -> Drawing:
    """MWP, CWP and what bounds MWP over N warps, with the three cases shaded (Hong and Kim, Figs. 21 to 23).

    Raises UsageError for a workload without memory instructions.
    """
    found = comparison.terms.parallelism if comparison.terms else ()
    if not found:
        raise UsageError("figure mwp_cwp: MWP and CWP are undefined without memory instructions that have a latency")
    at = [p.n for p in found]
    finite = [p.peak_bw if math.isfinite(p.peak_bw) else None for p in found]
    series: dict[str, tuple[Sequence[float], Sequence[float | None]]] = {
        "N": (at, at),
        "MWP": (at, [p.mwp for p in found]),
        "CWP": (at, [p.cwp for p in found]),
        "MWP without BW": (at, [p.without_bw for p in found]),
        "MWP peak BW": (at, finite),
    }
    drawn = lines(
        series, x="N, warps per SM", y="warps", theme=theme, width=width,
        title=title_of(comparison.workload, comparison.gpu_title, width),
    )  # fmt: skip
    axes = drawn.axes[0]
    for number, (case, same) in enumerate(groupby(found, key=lambda p: p.case)):
        inside = [p.n for p in same]
        low, high = inside[0] - 0.5, inside[-1] + 0.5
        axes.axvspan(low, high, color=drawn.theme.soft, alpha=0.16 if number % 2 else 0.06, gid=f"case-{case}", lw=0)
        axes.annotate(
            CASES[case], ((low + high) / 2, 1), xycoords=("data", "axes fraction"), xytext=(0, -2), ha="center",
            textcoords="offset points", va="top", fontsize=SMALL_PT, bbox=behind(drawn.theme.background),
        )  # fmt: skip
    axes.set_xlim(found[0].n - 0.5, found[-1].n + 0.5)
    highest = max(max(p.mwp, p.cwp, p.n) for p in found)
    axes.set_ylim(0, 1.15 * highest)  # a bandwidth that never limits may be far above
    return drawn


def wfg(comparison: WithTerms, *, theme: str = "light", width: float = 1.6 * COLUMN_IN) -> Drawing:
    """Cycles on each arc of the work-flow graph over occupancy, as published (analysis, Fig. 5); ten arcs at most.

    Raises UsageError for a kernel without instructions.
    """
    arcs = comparison.terms.arcs[:MOST_ARCS] if comparison.terms else ()
    if not arcs or comparison.terms is None:
        raise UsageError("figure wfg: the kernel has no instructions, so its work-flow graph is empty")
    at = comparison.terms.occupancies
    series = {f"{arc.node}: {arc.kind}, {arc.arc}": (at, list(arc.published)) for arc in arcs}
    drawn = lines(
        series, x="occupancy: warps per SM", y="cycles on the arc", theme=theme, width=width,
        title=title_of(comparison.workload, comparison.gpu_title, width),
    )  # fmt: skip
    lowest = min(min(arc.published) for arc in arcs)
    if lowest < 0:  # Eq. 36 has no lower bound
        drawn.axes[0].set_ylim(bottom=1.08 * lowest)
    return drawn
