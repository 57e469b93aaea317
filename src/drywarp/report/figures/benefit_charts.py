"""GPUPerf's benefits of several kernels, and of the variants of a swept space (Sim et al. 2012, Figs. 9 to 12, 14)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator, PercentFormatter

from ...errors import UsageError
from ...experiments.benefits import Benefits, Step, Variant
from ...experiments.sweep.study import Study
from ...models.gpuperf_terms import BENEFITS
from .bar_charts import LOG_FROM
from .canvas import COLUMN_IN, LETTER_IN, SMALL_PT, Drawing, columns, drawing, gridded, label, ticks
from .scatter_charts import unit_of
from .theme import Theme

COLOURS = dict(zip(BENEFITS, (4, 0, 2, 3), strict=True))
"""The data colour of each benefit, as in the chart of one kernel."""
_MARKS = "osD^vP*Xhp"
_BAR = 0.8


def words_of(benefit: str) -> str:
    """The paper's name of a benefit."""
    return benefit.replace("b_", "B_")


def benefits_of_kernels(found: Benefits, *, theme: str = "light", width: float = COLUMN_IN) -> Drawing:
    """All kernels in one chart: memory cycles on x, computation cycles on y, each with its way to the ideal.

    A filled point is a kernel's cost (T'_mem, T_comp), from which a line leads down to T_fp and then left to T_mem_min.
    Where T_comp spans a factor of thirty, the axes are linear up to its smallest value and logarithmic from there.
    Raises UsageError if no kernel has a chart.
    """
    charted = [kernel for kernel in found.kernels if kernel.cycles]
    if not charted:
        raise UsageError(f"nothing to draw: {found.kernels[0].not_applicable}")
    places = [_way(kernel.cycles) for kernel in charted]
    most = 1.08 * max(1.0, *(value for way in places for place in way for value in place))
    with drawing(theme, width, 0.95 * width) as figure:
        axes = figure.add_subplot()
        least = min(kernel.cycles["t_comp"] for kernel in charted)
        bent = least > 0 and most >= LOG_FROM * least
        if bent:
            axes.set_xscale("symlog", linthresh=least)
            axes.set_yscale("symlog", linthresh=least)
        axes.set(xlim=(0, most), ylim=(0, most))
        axes.plot([0, most], [0, most], color=figure.theme.soft, linewidth=0.7, linestyle=(0, (2, 2)), gid="balance")
        for number, (kernel, way) in enumerate(zip(charted, places, strict=True)):
            colour, mark = figure.theme.data[number % 10], _MARKS[number % len(_MARKS)]
            axes.plot(*zip(*way, strict=True), color=colour, linewidth=1.0, gid=f"way-{number}", clip_on=False)
            axes.plot(
                *way[0], mark, color=colour, markersize=5, gid=f"kernel-{number}", clip_on=False,
                label=label(kernel.name, 24),
            )  # fmt: skip
            axes.plot(*way[-1], mark, color=colour, markersize=5, markerfacecolor="none", clip_on=False)
        unit, words = unit_of(most)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(FixedLocator([0.0, *ticks(least, most)]) if bent else MaxNLocator(5))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / unit:g}"))
            axis.set_minor_locator(NullLocator())
        axes.set_xlabel(f"memory, not overlapped: {words}SM cycles")
        axes.set_ylabel(f"computation: {words}SM cycles")
        axes.set_title(label(found.gpu_title, int((width - 0.5) / LETTER_IN)))
        gridded(axes, "both")
        figure.legend(loc="outside lower center", ncols=columns(width, 2), handlelength=1.0, columnspacing=1.0)
    return figure


def _way(cycles: Mapping[str, float]) -> list[tuple[float, float]]:
    """From the kernel's cost down to the ideal computation, and left to the ideal memory."""
    exposed = cycles["t_mem"] - cycles["t_overlap"]
    return [(exposed, cycles["t_comp"]), (exposed, cycles["t_fp"]), (min(exposed, cycles["t_mem_min"]), cycles["t_fp"])]


def study(found: Study, name: str, *, theme: str = "light", width: float | None = None) -> Drawing:
    """A chart of a swept space; the default width depends on its bars.

    ``steps``: speed-up over the baseline by model, and the benefits left, as the space's steps are added. ``variants``:
    the speed-up of every variant by model. ``alone``: that of each optimisation of the baseline. The name of an
    optimisation: for each variant that it applies to, the time that it saves beside the benefits that it aims at.
    Raises UsageError for another name, or if there is nothing to draw.
    """
    if name == "steps" and found.steps:
        names = [found.baseline.name, *(f"+ {step.optimisation}" for step in found.steps)]
        title = f"each optimisation added to the previous ones, {found.gpu}"
        return _steps(title, names, [found.baseline, *(step.after for step in found.steps)], theme, width or COLUMN_IN)
    if name == "variants":
        order = sorted(found.variants, key=lambda variant: -variant.time_s)
        title = f"{len(order)} variants, {found.gpu}"
        return _speedups(title, found.baseline, order, theme, width or _wide(len(order)))
    if name == "alone" and found.alone:
        title, order = f"each optimisation alone, {found.gpu}", [step.after for step in found.alone]
        return _speedups(title, found.baseline, order, theme, width or _wide(len(order)))
    if found.applied.get(name):
        return _one(found, name, found.applied[name], theme, width or _wide(len(found.applied[name])))
    known = [*(["steps"] if found.steps else []), "variants", *(["alone"] if found.alone else []), *found.applied]
    raise UsageError(f"figure {name!r}: expected one of {', '.join(known)}, with something to draw")


def _wide(bars: int) -> float:
    return COLUMN_IN if bars <= 10 else 2 * COLUMN_IN


def bars_of_kernels(found: Benefits, *, theme: str = "light", width: float = COLUMN_IN) -> Drawing:
    """The kernels as bars: their speed-up over the first by model, and their benefits over the first one's T_exec."""
    return _steps(found.gpu_title, [kernel.name for kernel in found.kernels], found.kernels, theme, width)


def _steps(title: str, names: Sequence[str], shown: Sequence[Variant], theme: str, width: float) -> Drawing:
    """Speed-ups over the first of the variants, and below their benefits over its T_exec."""
    whole = shown[0].cycles.get("t_exec", 0.0)
    with drawing(theme, width, 1.25 * width) as figure:
        above, below = figure.subplots(2, 1, sharex=True)
        _bars_by_model(above, shown[0], shown, figure.theme)
        above.set_title(label(title, int((width - 0.5) / LETTER_IN)))
        for at, kernel in enumerate(shown):
            bottom = 0.0
            for benefit in BENEFITS:
                height = max(0.0, kernel.cycles[benefit]) / whole if kernel.cycles and whole else 0.0
                below.bar(
                    at, height, _BAR, bottom=bottom, color=figure.theme.data[COLOURS[benefit]], gid=f"{benefit}-{at}",
                    label=words_of(benefit) if at == 0 else None,
                )  # fmt: skip
                bottom += height
        below.set_ylabel(f"benefits over T_exec\nof {label(shown[0].name, 20)}")
        below.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        _named(below, names)
        gridded(below)
        figure.legend(loc="outside lower center", ncols=columns(width, 4), handlelength=1.0, columnspacing=1.0)
    return figure


def _speedups(title: str, base: Variant, shown: Sequence[Variant], theme: str, width: float) -> Drawing:
    with drawing(theme, width, 0.75 * COLUMN_IN + (0.8 if len(shown) > 10 else 0.3)) as figure:
        axes = figure.add_subplot()
        if len(shown) > 10:
            for number, model in enumerate(_models(base)):
                values = [_gain(base, kernel, model) for kernel in shown]
                axes.plot(
                    range(len(shown)), values, _MARKS[number], color=figure.theme.data[number], markersize=3.5,
                    gid=f"model-{model}", label=model,
                )  # fmt: skip
            axes.set_ylim(bottom=0)
            axes.set_ylabel(f"speed-up over {label(base.name, 20)}")
            gridded(axes)
        else:
            _bars_by_model(axes, base, shown, figure.theme)
        _named(axes, [kernel.name for kernel in shown])
        axes.set_title(label(title, int((width - 0.5) / LETTER_IN)))
        figure.legend(loc="outside lower center", ncols=columns(width), handlelength=1.0, columnspacing=1.0)
    return figure


def _models(kernel: Variant) -> list[str]:
    """The models with a time, the primary one first."""
    return sorted(kernel.times, key=lambda model: kernel.times[model] != kernel.time_s)


def _gain(base: Variant, kernel: Variant, model: str) -> float:
    """The speed-up over the baseline according to a model; not a number where it does not apply."""
    return base.times[model] / kernel.times[model] if kernel.times.get(model) else float("nan")


def _bars_by_model(axes: Axes, base: Variant, shown: Sequence[Variant], theme: Theme) -> None:
    models = _models(base)
    each = _BAR / len(models)
    for number, model in enumerate(models):
        for at, kernel in enumerate(shown):
            axes.bar(
                at + (number - (len(models) - 1) / 2) * each, _gain(base, kernel, model), each,
                color=theme.data[(5, 1, 9, 6, 7, 8)[number % 6]], gid=f"{model}-{at}",
                label=model if at == 0 else None,
            )  # fmt: skip
    axes.axhline(1, color=theme.soft, linewidth=0.7)
    axes.set_ylabel(f"speed-up over {label(base.name, 20)}")
    gridded(axes)


def _one(found: Study, name: str, steps: Sequence[Step], theme: str, width: float) -> Drawing:
    """What the optimisation saves, beside the benefits that it aims at: in the order of the former."""
    order = sorted(steps, key=lambda step: -step.saved)
    aims = order[0].aims or BENEFITS
    each = _BAR / (1 + len(aims))
    with drawing(theme, width, 0.75 * COLUMN_IN + 0.8) as figure:
        axes = figure.add_subplot()
        for at, step in enumerate(order):
            left = at - _BAR / 2 + each / 2
            axes.bar(
                left, step.saved, each, color=figure.theme.data[5], gid=f"saved-{at}",
                label="time saved" if at == 0 else None,
            )  # fmt: skip
            for number, aim in enumerate(aims, 1):
                share = step.before.share(aim) if step.before.cycles else 0.0
                axes.bar(
                    left + number * each, share, each, color=figure.theme.data[COLOURS[aim]], gid=f"{aim}-{at}",
                    label=words_of(aim) if at == 0 else None,
                )  # fmt: skip
        axes.axhline(0, color=figure.theme.soft, linewidth=0.7)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.set_ylabel("share of the time before")
        _named(axes, [step.before.name for step in order])
        axes.set_title(label(f"{name} applied to {len(order)} variants, {found.gpu}", int((width - 0.5) / LETTER_IN)))
        gridded(axes)
        figure.legend(loc="outside lower center", ncols=columns(width, 4), handlelength=1.0, columnspacing=1.0)
    return figure


def _named(axes: Axes, names: Sequence[str]) -> None:
    many = len(names) > 4
    axes.set_xticks(
        range(len(names)), [label(name, 36) for name in names], rotation=90 if len(names) > 10 else 30 if many else 0,
        ha="center" if len(names) > 10 or not many else "right", fontsize=SMALL_PT - (1 if len(names) > 30 else 0),
    )  # fmt: skip
    for text in axes.get_xticklabels():
        text.set_parse_math(False)
    axes.tick_params(axis="x", length=0)
