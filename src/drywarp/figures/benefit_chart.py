"""GPUPerf's potential benefits: from what the kernel costs to what it could cost (Sim et al. 2012, §3)."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.ticker import FuncFormatter, MaxNLocator

from .answer import Answer, missing
from .canvas import COLUMN_IN, SMALL_PT, Drawing, drawing, gridded, title_of

STEPS = ("A", "A′", "ITILP", "serial", "fp", "ideal")
_NEAR = 0.06
"""Points closer than this part of the frame share a name."""
_LEGS = ("overlap", "B_itilp", "B_serial", "B_fp", "B_memlp")


def benefits(answer: Answer, *, theme: str = "light", width: float = COLUMN_IN) -> Drawing:
    """Cycles of memory to the right, of computation upwards; from A, where nothing overlaps, to the ideal.

    A to A′ takes off what overlaps; then down along B_itilp, B_serial and B_fp, and left along B_memlp. Raises
    UsageError for an answer without detail or advice, and where the model's inputs are missing.
    """
    places = path_of(_cycles(answer))
    most = 1.1 * max(1.0, *(value for place in places for value in place))
    with drawing(theme, width, 0.85 * width) as figure:
        axes = figure.add_subplot()
        axes.set(xlim=(0, most), ylim=(0, most))
        axes.plot([0, most], [0, most], color=figure.theme.soft, linewidth=0.7, linestyle=(0, (2, 2)), gid="balance")
        colours = (figure.theme.soft, *(figure.theme.data[at] for at in (4, 3, 2, 0)))
        for number, leg in enumerate(_LEGS):
            (x0, y0), (x1, y1) = places[number : number + 2]
            axes.plot(
                [x0, x1], [y0, y1], color=colours[number], linewidth=1.0 if number == 0 else 3.5, gid=f"leg-{leg}",
                linestyle=(0, (3, 2)) if number == 0 else "-", solid_capstyle="butt", label=leg,
            )  # fmt: skip
        axes.plot(*zip(*places, strict=True), "o", color=figure.theme.text, markersize=3, gid="steps", clip_on=False)
        named: list[tuple[float, float]] = []
        for name, (x, y) in zip(STEPS, places, strict=True):
            if name not in ("A", "A′", "ideal") or any(max(abs(x - a), abs(y - b)) < _NEAR * most for a, b in named):
                continue
            named.append((x, y))
            right = x > 0.9 * most
            axes.annotate(
                name, (x, y), xytext=(-5 if right else 5, 4), textcoords="offset points", fontsize=SMALL_PT,
                ha="right" if right else "left",
            )  # fmt: skip
        unit, words = next(((u, w) for u, w in ((1e6, "million "), (1e3, "thousand ")) if most >= u), (1.0, ""))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / unit:g}"))
            axis.set_major_locator(MaxNLocator(5))
        axes.set_xlabel(f"memory: {words}cycles of an SM")
        axes.set_ylabel(f"computation: {words}cycles of an SM")
        axes.set_title(title_of(answer.kernel, answer.gpu_title, width))
        gridded(axes, "both")
        figure.legend(loc="outside lower center", ncols=5, handlelength=1.4, columnspacing=1.0)
    return figure


def _cycles(answer: Answer) -> Mapping[str, float]:
    """The chart's figures as advice gives them, else as the detail does."""
    advised = answer.advice.to_dict().get("benefits", {}) if answer.advice else {}
    if "t_exec_cycles" in advised:
        return dict(advised)
    if answer.detail is None:
        raise missing("benefits", "the answer holds no detail (expected drywarp.analyze(…, detail=0))")
    if not answer.detail.benefits:
        raise missing("benefits", answer.detail.missing.get("benefits", "the model's inputs are missing"))
    return answer.detail.benefits


def path_of(cycles: Mapping[str, float]) -> list[tuple[float, float]]:
    """Where each of `STEPS` is: memory and computation in cycles."""
    get = {name.removesuffix("_cycles"): value for name, value in cycles.items()}
    exposed, up = get["t_mem"] - get["t_overlap"], get["t_comp"]
    return [
        (get["t_mem"], up),
        (exposed, up),
        (exposed, up - get["b_itilp"]),
        (exposed, up - get["b_itilp"] - get["b_serial"]),
        (exposed, get["t_fp"]),
        (min(exposed, get["t_mem_min"]), get["t_fp"]),
    ]
