"""Several kernels by GPUPerf's four potential benefits, and whether these predict what an optimisation gains.

Sim, Dasgupta, Kim, Vuduc, "A performance analysis framework for identifying potential benefits in GPGPU applications"
(PPoPP 2012), §6.2 to 6.4: a space of optimisations (Figs. 9 to 12) and steps of one kernel (Figs. 14 and 16). Where the
paper measures what an optimisation brings, this is the difference of two predicted times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ..analysis.result import headed
from ..errors import DrywarpError, UsageError
from ..frontends.cache import tool_versions
from ..hardware import Gpu, load_gpu
from ..models.gpuperf_terms import BENEFITS, CHARTED
from ..support.by_name import figures
from ..support.text import json_of
from .rows import BENEFITS as COLUMNS
from .rows import Settings, predict_row
from .rows.recipe import CLOCK
from .validate.statistics import spearman

ALL_FOUR = "all_four"
"""The sum of the four benefits."""
MODELS = ("pipeline", "gpuperf")
Launch = Mapping[str, Any]


@dataclass(frozen=True)
class Variant:
    """A kernel or a configuration on one GPU: predicted seconds by model, and GPUPerf's chart in cycles of an SM.

    `time_s` and `limiter` are the primary model's. `cycles` maps the names of `CHARTED` to the chart's numbers; it is
    empty if the model's inputs are missing, and `not_applicable` says why.
    """

    name: str
    time_s: float
    limiter: str
    times: Mapping[str, float]
    cycles: Mapping[str, float]
    not_applicable: str = ""
    facts: Mapping[str, float | str] = field(default_factory=dict)

    def share(self, benefit: str) -> float:
        """A benefit, or all four, as a share of T_exec; a negative one is none."""
        whole = self.cycles["t_exec"]
        held = BENEFITS if benefit == ALL_FOUR else (benefit,)
        return sum(max(0.0, self.cycles[name]) for name in held) / whole if whole else 0.0

    @property
    def largest(self) -> str | None:
        """The largest benefit; None without a chart, or if none is positive."""
        if not self.cycles:
            return None
        most = max(BENEFITS, key=lambda name: self.cycles[name])
        return most if self.cycles[most] > 0 else None

    def to_dict(self) -> dict[str, Any]:
        """As in JSON."""
        chart: dict[str, Any] = {f"{name}_cycles": self.cycles[name] for name in CHARTED if self.cycles}
        return {
            **json_of(self, "name time_s limiter"),
            "times_s": dict(self.times),
            "warps_per_sm": self.facts.get("warps_per_sm"),
            "registers": self.facts.get("registers"),
            "benefits": chart or {"not_applicable": self.not_applicable},
            "largest": self.largest,
        }


def variant_of(
    name: str, time_s: float, times: Mapping[str, float], limiter: str, facts: Mapping[str, float | str]
) -> Variant:
    """A variant from a predicted row."""
    chart = {name.removesuffix("_cycles"): float(facts[name]) for name in COLUMNS[:-1] if name in facts}
    return Variant(
        name=name,
        time_s=time_s,
        limiter=limiter,
        times=times,
        cycles=chart,
        not_applicable=str(facts.get(COLUMNS[-1], "")),
        facts={key: value for key, value in facts.items() if key not in COLUMNS},
    )


@dataclass(frozen=True)
class Step:
    """A variant before and after one optimisation; `aims` are the benefits that it should collect (none: unknown)."""

    optimisation: str
    before: Variant
    after: Variant
    aims: tuple[str, ...] = ()

    @property
    def saved(self) -> float:
        """The share of the time that the optimisation saves; negative if it costs time."""
        return 1 - self.after.time_s / self.before.time_s

    @property
    def aimed(self) -> bool | None:
        """Whether it aims at the largest benefit before it; None if that is unknown."""
        return None if not self.aims or self.before.largest is None else self.before.largest in self.aims

    def collected(self, benefit: str) -> float:
        """How much smaller the benefit is afterwards, as a share of T_exec before; negative if it grew."""
        whole = self.before.cycles["t_exec"]
        return (self.before.cycles[benefit] - self.after.cycles[benefit]) / whole if whole else 0.0

    def to_dict(self) -> dict[str, Any]:
        """As in JSON."""
        known = bool(self.before.cycles and self.after.cycles)
        return {
            "optimisation": self.optimisation,
            "before": self.before.name,
            "after": self.after.name,
            "speedup": self.before.time_s / self.after.time_s,
            "saved": self.saved,
            "largest": self.before.largest,
            "aims": list(self.aims),
            "aimed_at_largest": self.aimed,
            "shares": {name: self.before.share(name) for name in BENEFITS} if known else None,
            "collected": {name: self.collected(name) for name in BENEFITS} if known else None,
        }


@dataclass(frozen=True)
class Agreement:
    """Whether benefits predict what optimisations gain, over some steps.

    `speedup` is the geometric mean. `rank_correlation` is Spearman's ρ between a benefit's share of T_exec before a
    step and the share of the time that the step saves, by benefit, for all four together, and for those that the step
    aims at (None: no order, or fewer than three steps).
    """

    steps: tuple[Step, ...]

    @property
    def speedup(self) -> float:
        """The geometric mean of the speed-ups; 1 without steps."""
        product = 1.0
        for step in self.steps:
            product *= step.before.time_s / step.after.time_s
        return float(product ** (1 / len(self.steps))) if self.steps else 1.0

    @property
    def faster(self) -> int:
        """How many steps save time."""
        return sum(step.saved > 0 for step in self.steps)

    @property
    def aimed(self) -> tuple[int, int]:
        """How many steps aim at the largest benefit, and of how many this is known."""
        known = [step.aimed for step in self.steps if step.aimed is not None]
        return sum(known), len(known)

    @cached_property
    def rank_correlation(self) -> dict[str, float | None]:
        """Spearman's ρ by benefit; see the class."""
        charted = [step for step in self.steps if step.before.cycles]
        saved = [step.saved for step in charted]
        shares = {name: [step.before.share(name) for step in charted] for name in (*BENEFITS, ALL_FOUR)}
        if charted and all(step.aims for step in charted):
            shares["aimed_at"] = [sum(step.before.share(aim) for aim in step.aims) for step in charted]
        return {name: spearman(held, saved) if len(charted) > 2 else None for name, held in shares.items()}

    def to_dict(self) -> dict[str, Any]:
        """As in JSON."""
        aimed = dict(zip(("steps", "of"), self.aimed, strict=True))
        told = {"steps": len(self.steps), **json_of(self, "faster speedup"), "aimed_at_largest": aimed}
        return {**told, "rank_correlation": self.rank_correlation}


@dataclass(frozen=True)
class Choice:
    """Of the optimisations that a variant could get next: does the fastest aim at the variant's largest benefit?

    Over `variants` with at least two to choose from: `hits` of them, and `chance`, the hits expected of a choice at
    random among the same optimisations.
    """

    variants: int
    hits: int
    chance: float

    @staticmethod
    def among(steps: Sequence[Step]) -> Choice:
        """Judge the steps, grouped by the variant before them."""
        groups: dict[str, list[Step]] = {}
        for step in steps:
            groups.setdefault(step.before.name, []).append(step)
        judged = [held for held in groups.values() if len(held) > 1 and all(step.aimed is not None for step in held)]
        best = [max(held, key=lambda step: step.saved) for held in judged]
        chance = sum(sum(bool(step.aimed) for step in held) / len(held) for held in judged)
        return Choice(len(judged), sum(bool(step.aimed) for step in best), chance)

    def to_dict(self) -> dict[str, Any]:
        """As in JSON."""
        return {"variants": self.variants, "hits": self.hits, "by_chance": self.chance}


@dataclass(frozen=True)
class Benefits:
    """Several kernels on one GPU, in the given order; each is a step from the one before."""

    gpu: str
    gpu_title: str
    gpu_hash: str
    l2_state: str
    kernels: tuple[Variant, ...]
    versions: Mapping[str, str] = field(default_factory=tool_versions)

    @property
    def steps(self) -> tuple[Step, ...]:
        """From each kernel to the next."""
        pairs = zip(self.kernels, self.kernels[1:], strict=False)
        return tuple(Step(after.name, before, after) for before, after in pairs)

    def figure(self, name: str = "chart", **settings: Any) -> Any:
        """A Matplotlib figure (docs/benefits.md): `theme`, and `width` in inches.

        `name` is ``chart``, all kernels in GPUPerf's chart, or ``bars``, speed-ups and benefits over the first kernel.
        """
        if name not in ("chart", "bars"):
            raise UsageError(f"figure {name!r}: expected chart or bars")
        drawn = figures().benefits_of_kernels if name == "chart" else figures().bars_of_kernels
        return drawn(self, **settings)

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON object (docs/json.md)."""
        return {
            **headed(**self.versions),
            **json_of(self, "gpu gpu_title gpu_hash"),
            "l2": self.l2_state,
            "kernels": [kernel.to_dict() for kernel in self.kernels],
            "steps": [step.to_dict() for step in self.steps],
            "agreement": Agreement(self.steps).to_dict(),
        }


Kernel = str | Path | tuple[str | Path, Launch]


def benefits(
    kernels: Sequence[Kernel],
    gpu: str | Path | Gpu = "a100",
    *,
    warm_l2: bool = False,
    clock_mhz: float | str | None = None,
    scheduler: str | None = None,
    on_kernel: Callable[[str, int, int], None] = lambda name, done, of: None,
    **launch: Any,
) -> Benefits:
    """GPUPerf's potential benefits of several kernels on one GPU, and each one's predicted time.

    Each kernel is a file, or a file with its own launch (a mapping of `drywarp.analyze`'s keywords: grid, args,
    defines, …); `launch` holds for all, and a file's launch comment for what neither says. Raises DrywarpError that
    names the kernel.
    """
    machine = gpu if isinstance(gpu, Gpu) else load_gpu(str(gpu))
    if not kernels:
        raise UsageError("no kernel (expected one file or more)")
    settings = Settings(models=MODELS, warm_l2=warm_l2, scheduler=scheduler, band=False, cap=False, benefits=True)
    given = [kernel if isinstance(kernel, tuple) else (kernel, {}) for kernel in kernels]
    found = []
    for done, (name, (source, own)) in enumerate(zip(_names(given), given, strict=True)):
        on_kernel(name, done, len(given))
        merged = {**launch, **own}
        for key in ("args", "constants", "defines"):
            if key in launch and key in own:
                merged[key] = {**launch[key], **own[key]}
        try:
            answer = predict_row(Path(source), machine, merged | ({CLOCK: clock_mhz} if clock_mhz else {}), settings)
        except DrywarpError as error:
            if len(given) == 1 or str(source) in str(error):
                raise
            raise type(error)(f"{source}: {error}") from None
        times = {model: answer.times[model] for model in MODELS if model in answer.times}
        found.append(variant_of(name, times[MODELS[0]], times, answer.limiters[MODELS[0]], answer.facts))
    return Benefits(
        gpu=machine.name,
        gpu_title=machine.title,
        gpu_hash=machine.file_hash,
        l2_state="warm" if warm_l2 else "cold",
        kernels=tuple(found),
    )


def _names(given: Sequence[tuple[str | Path, Launch]]) -> list[str]:
    """A distinguishing name for each kernel: its file's, its macros, or its number too."""
    found: list[str] = []
    for source, launch in given:
        macros = " ".join(f"{name}={value}" for name, value in launch.get("defines", {}).items())
        name = f"{Path(source).stem} {macros}".strip()
        found.append(name if name not in found else f"{name} ({len(found) + 1})")
    return found
