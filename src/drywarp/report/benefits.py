"""GPUPerf's potential benefits as text: several kernels in a row, and the steps and variants of a swept space."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from ..analysis.result import limit_words
from ..experiments.benefits import ALL_FOUR, Agreement, Benefits, Choice, Step, Variant
from ..experiments.sweep.study import Study
from ..models.gpuperf_terms import BENEFITS
from ..support.text import plain, time_text
from .tables import table_text

WORDS = {name: name.replace("b_", "B_") for name in BENEFITS}
"""The paper's names."""
_HEADS = (*WORDS.values(), "largest")
_MOST = 12
"""Most variants shown."""


def render_benefits(found: Benefits) -> Text:
    """Each kernel with its time and benefits, and the speed-up over the previous one; then whether the two agree."""
    text = Text.assemble((f"Potential benefits of {len(found.kernels)} kernels on {plain(found.gpu_title)}", "bold"))
    text.append(f"\n{found.l2_state} L2, times by simulation, benefits by GPUPerf as shares of its T_exec\n\n", "dim")
    steps = {step.after.name: step for step in found.steps}
    heads = ["kernel", "time", "over previous", "T_exec", "bound", *_HEADS, "limited by"]
    rows = [heads]
    for kernel in found.kernels:
        step = steps.get(kernel.name)
        gain = f"{kernel_gain(step):.2f}" if step else ""
        rows.append(
            [plain(kernel.name), time_text(kernel.time_s), gain, _t_exec(kernel), _bound(kernel), *_shares(kernel),
             _largest(kernel), limit_words(kernel.limiter)]
        )  # fmt: skip
    text.append(table_text(rows))
    _reasons(text, found.kernels)
    if len(found.steps) > 1:
        text.append("\n" + _agreement(Agreement(found.steps)) + "\n")
    return text


def kernel_gain(step: Step) -> float:
    """The speed-up that a step brings."""
    return step.before.time_s / step.after.time_s


def render_study(study: Study) -> Text:
    """The steps with what each brings and the benefits left, then each optimisation over all variants."""
    text = Text()
    base = study.baseline
    said = " ".join(f"{name}={value}" for name, value in study.problem.items())
    text.append(f"\nPotential benefits, {plain(study.gpu)} {said}".rstrip() + "\n", "bold")
    text.append("benefits by GPUPerf as shares of T_exec, times and speed-ups by the primary model\n", "dim")
    if study.steps:
        rows = [["step", "time", "over previous", "over the baseline", *_HEADS, "next aims at"]]
        upcoming = [_aims(step) for step in study.steps] + [""]
        for number, kernel in enumerate([base, *(step.after for step in study.steps)]):
            step = study.steps[number - 1] if number else None
            name = f"+ {step.optimisation}" if step else base.name
            gains = [f"{kernel_gain(step):.2f}", f"{base.time_s / kernel.time_s:.2f}"] if step else ["", ""]
            rows.append(
                [plain(name), time_text(kernel.time_s), *gains, *_shares(kernel), _largest(kernel), upcoming[number]]
            )
        text.append(table_text(rows))
    rows = [["variant", "time", "over the baseline", *_HEADS]]
    fastest = sorted(study.variants, key=lambda variant: variant.time_s)
    shown = fastest if len(fastest) <= _MOST else [*fastest[: _MOST - 1], fastest[-1]]
    for variant in shown:
        gain = f"{base.time_s / variant.time_s:.2f}"
        rows.append([plain(variant.name), time_text(variant.time_s), gain, *_shares(variant), _largest(variant)])
    few = len(shown) < len(fastest)
    text.append(f"\nthe fastest, and the slowest, of {len(fastest)} variants\n" if few else "\n", "dim")
    text.append(table_text(rows))
    rows = [["optimisation", "applied to", "faster", "mean speed-up", "aims at", *(f"ρ {w}" for w in WORDS.values())]]
    for name, steps in study.applied.items():
        over = Agreement(steps)
        marks = [_rho(over.rank_correlation[benefit]) for benefit in BENEFITS]
        aims = _aims(steps[0]) if steps else ""
        rows.append([plain(name), str(len(steps)), str(over.faster), f"{over.speedup:.3f}", aims, *marks])
    text.append("\n")
    text.append(table_text(rows))
    text.append("\n" + _agreement(Agreement(study.all_steps)) + "\n")
    if study.choice.variants:
        text.append(_choice(study.choice) + "\n")
    for model, (rho, lost) in study.models.items():
        text.append(
            f"{model} orders the variants with ρ {_rho(rho)}; its best one is {lost:.1%} slower than the fastest.\n"
        )
    _reasons(text, study.variants)
    return text


def _shares(kernel: Variant) -> list[str]:
    """Each benefit in percent of T_exec; a dash without a chart."""
    if not kernel.cycles:
        return ["–"] * len(BENEFITS)
    return [f"{kernel.share(name):.1%}" if kernel.cycles[name] >= 0 else "none" for name in BENEFITS]


def _largest(kernel: Variant) -> str:
    return WORDS[kernel.largest] if kernel.largest else "–"


def _bound(kernel: Variant) -> str:
    return "–" if not kernel.cycles else "compute" if kernel.cycles["t_comp"] >= kernel.cycles["t_mem"] else "memory"


def _t_exec(kernel: Variant) -> str:
    time = kernel.times.get("gpuperf")
    return "–" if time is None else time_text(time)


def _aims(step: Step) -> str:
    return ", ".join(WORDS[aim] for aim in step.aims) or "–"


def _rho(value: float | None) -> str:
    return "–" if value is None else f"{value:+.2f}"


def _agreement(over: Agreement) -> str:
    """One paragraph: how many steps pay, and the rank correlation of benefits with what is saved."""
    words = {**WORDS, ALL_FOUR: "all four", "aimed_at": "those aimed at"}
    marks = ", ".join(f"{words[name]} {_rho(value)}" for name, value in over.rank_correlation.items())
    said = f"{over.faster} of {len(over.steps)} steps are faster. "
    aimed, known = over.aimed
    if known:
        said += f"{aimed} of {known} aim at the largest benefit before them. "
    return f"{said}Rank correlation (Spearman's ρ) of a benefit's share with the time that the step saves: {marks}."


def _choice(choice: Choice) -> str:
    return (
        f"Of {choice.variants} variants with a choice, the best next optimisation of {choice.hits} aims at the largest "
        f"benefit; a random choice would in {choice.chance:.1f}."
    )


def _reasons(text: Text, kernels: Sequence[Variant]) -> None:
    for reason in dict.fromkeys(kernel.not_applicable for kernel in kernels if kernel.not_applicable):
        names = [kernel.name for kernel in kernels if kernel.not_applicable == reason]
        text.append(f"\nno benefits of {plain(', '.join(names), 200)}: {plain(reason, 300)}", "yellow")
