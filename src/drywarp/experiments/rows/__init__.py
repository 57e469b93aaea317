"""Rows of parameters, predicted in worker processes: the common part of validation tables and sweeps."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from time import perf_counter
from typing import Any

import msgspec

from ...analysis.advice.findings import benefit_chart
from ...analysis.emulation_cache import CacheEntry
from ...analysis.every_model import with_producers
from ...analysis.fits import geometry_of
from ...analysis.prepare import cost, execute, load, serve_memory
from ...analysis.prepared import Prepared
from ...analysis.request import DEFAULT_MODELS, LaunchRequest, Options
from ...analysis.result import Band
from ...analysis.uncertainty import band_of, bounded
from ...execution.emulator.sampling import Blocks
from ...frontends import cache
from ...hardware import Gpu, TooManyRegisters
from ...models import get_model
from ...models.base import Model, NotApplicable, Prediction, model_names
from ...models.gpuperf_terms import CHARTED
from ...models.pipeline import Pipeline
from ...support.folders import sources_digest
from .recipe import CLOCK, MOST_REGISTERS


@dataclass(frozen=True)
class Answer:
    """The result of one row; `notes` concern the machine that it ran on."""

    facts: dict[str, int | float | str]
    times: dict[str, float]
    limiters: dict[str, str]
    notes: tuple[str, ...] = ()


BAND_LEVEL, BAND_LOW, BAND_HIGH = "band_level", "band_low_s", "band_high_s"
CLOCK_LOW, CLOCK_HIGH = "band_at_clock_low_s", "band_at_clock_high_s"
BAND = (BAND_LEVEL, BAND_LOW, BAND_HIGH, CLOCK_LOW, CLOCK_HIGH)
"""The band of the primary model's time: its probability, and its ends in seconds over all clocks and at the assumed
clock; empty without a band. Files of earlier versions lack these columns."""
BENEFITS = (*(f"{name}_cycles" for name in CHARTED), "benefits_not_applicable")
"""GPUPerf's benefit chart in cycles of an SM, and why it is missing; empty unless requested."""
SPENT = ("compile_s", "emulate_s", "memory_s", "models_s")
"""Wall time of a row by step; only compilation if its answer was cached."""
FACTS = (
    *("clock_mhz", "registers", "register_cap", "local_bytes", "shared_bytes", "code_instructions", "warps_per_sm"),
    *("occupancy", "occupancy_limited_by", "waves", "warp_instructions", "l1_hit_rate", "l2_hit_rate", "dram_bytes"),
    *("achieved_warps", "busiest", "utilization", *BAND, *SPENT),
)
"""Facts about a kernel and its launch besides times: `register_cap` is 0 if none was needed; `waves` is the number of
blocks over the blocks that the GPU holds at once; `utilization` lists the share of time that each subsystem is busy;
the last four are wall times."""
NOT_APPLICABLE = "not applicable: "
"""Prefix of the limiter of a model that does not apply to a row; the reason follows."""


@dataclass(frozen=True)
class Settings:
    """How rows are predicted: fields of `drywarp.Options`.

    `band` requests the confidence band too, `benefits` GPUPerf's benefit chart. Without a band, shares too long for a
    full simulation are estimated from a quarter of what an analysis simulates. With `cap`, a kernel whose threads need
    more registers than its block can have is recompiled with a cap that lets it run; otherwise the row fails, as its
    launch would.
    """

    models: tuple[str, ...] = DEFAULT_MODELS
    warm_l2: bool = False
    scheduler: str | None = None
    blocks: Blocks = None
    confidence: float | None = None
    full_simulation: bool = False
    band: bool = True
    cap: bool = True
    benefits: bool = False

    def options(self) -> Options:
        """The settings as options of an analysis."""
        return Options(
            models=self.models,
            warm_l2=self.warm_l2,
            scheduler=self.scheduler,
            blocks=self.blocks,
            confidence=self.confidence,
            full_simulation=self.full_simulation,
        )


def every_model() -> tuple[str, ...]:
    """All models, the default ones first."""
    return (*DEFAULT_MODELS, *(name for name in model_names() if name not in DEFAULT_MODELS))


def predict_row(kernel: Any, gpu: Gpu, launch: Mapping[str, Any], settings: Settings) -> Answer:
    """Predict one launch from `launch_of`. Raises DrywarpError if that is impossible; a row has no room for doubts."""
    options = replace(settings.options(), clock_mhz=launch.get(CLOCK), fall_back=False)
    launch = {name: value for name, value in launch.items() if name != CLOCK}
    cap = int(launch.get("max_registers") or 0)
    try:
        answer = _answer(kernel, gpu, launch, settings, options, cap)
    except TooManyRegisters as error:
        if not settings.cap:
            raise
        cap = min(error.most, MOST_REGISTERS)
        answer = _answer(kernel, gpu, {**launch, "max_registers": cap}, settings, options, cap)
    notes = tuple(f"{path}: damaged, regenerated" for path in cache.damaged)
    cache.damaged.clear()
    return replace(answer, notes=notes)


def _answer(kernel: Any, gpu: Gpu, launch: Mapping[str, Any], settings: Settings, options: Options, cap: int) -> Answer:
    """The cached answer of an earlier run, else a prediction."""
    begun = perf_counter()
    loaded = load(LaunchRequest.of(kernel, gpu=gpu, **launch), options)
    place = loaded.place
    key = key_of(place, gpu, repr((settings, options.clock_mhz, cap))) if place.key else ""
    if known := cached_answer(key):
        took = (round(perf_counter() - begun, 3), 0.0, 0.0, 0.0)
        return replace(known, facts={**known.facts, **dict(zip(SPENT, took, strict=True))})
    prepared = cost(serve_memory(execute(loaded, options), options))
    answer = _predicted(prepared, settings, options, cap)
    if place.key and place.holds(geometry_of(gpu, prepared.fits), options.warm_l2):
        cache_answer(key, answer)
    return answer


def _predicted(prepared: Prepared, settings: Settings, options: Options, cap: int) -> Answer:
    started = perf_counter()
    # A band reruns models, which must then run in full.
    full, brief = settings.full_simulation, not settings.band
    models = {name: get_model(name, full_simulation=full, brief=brief) for name in settings.models}
    for model in models.values():
        if brief and isinstance(model, Pipeline):
            model.launch_budget = model.curve_budget
    predictions, refused = predictions_of(prepared, models)
    facts = _facts(prepared, cap, predictions.get(settings.models[0]))
    if primary := predictions.get(settings.models[0]):
        first = settings.models[0]
        predictions[first], bounds = bounded(prepared, primary, models[first])
        if settings.band and (band := band_of(prepared, options, predictions[first], bounds)):
            facts |= _ends(band)
    if settings.benefits:
        facts |= _benefits(prepared)
    spent = (prepared.compile_s, prepared.emulate_s, prepared.memory_s, perf_counter() - started)
    return Answer(
        facts=facts | {name: round(seconds, 3) for name, seconds in zip(SPENT, spent, strict=True)},
        times={name: prediction.time_s for name, prediction in predictions.items()},
        limiters={name: p.limiter for name, p in predictions.items()}
        | {name: NOT_APPLICABLE + reason for name, reason in refused.items()},
    )


def predictions_of(prepared: Prepared, models: Mapping[str, Model]) -> tuple[dict[str, Prediction], dict[str, str]]:
    """What models say of the launch's own occupancy, and why others say nothing."""
    if not set(models) <= set(DEFAULT_MODELS):
        prepared = replace(prepared, costed=with_producers(prepared))
    predictions: dict[str, Prediction] = {}
    refused: dict[str, str] = {}
    for name, model in models.items():
        try:
            # No curve: only the launch's own occupancy was measured.
            predictions[name] = model.predict(prepared.costed, ())
        except NotApplicable as reason:
            refused[name] = str(reason)
    return predictions, refused


def _benefits(prepared: Prepared) -> dict[str, float | str]:
    chart = benefit_chart(prepared)
    return {**chart.cycles()} if not chart.not_applicable else {BENEFITS[-1]: chart.not_applicable}


def _ends(band: Band) -> dict[str, float | str]:
    ends = (band.level, band.low_s, band.high_s, band.low_at_clock_s, band.high_at_clock_s)
    return dict(zip(BAND, ends, strict=True))


def _facts(prepared: Prepared, cap: int, primary: Prediction | None) -> dict[str, float | str]:
    fits, resources, behaviour = prepared.fits, prepared.kernel.resources, prepared.behaviour
    held = prepared.gpu.device.sm_count * fits.blocks_per_sm
    facts: dict[str, float | str | None] = {
        "registers": resources.registers,
        "register_cap": cap,
        "local_bytes": resources.local_bytes,
        "shared_bytes": resources.shared_bytes + prepared.launch.dynamic_shared,
        "clock_mhz": prepared.costed.clock_hz / 1e6,
        "code_instructions": len(prepared.kernel.instructions),
        "warps_per_sm": fits.warps_per_sm,
        "occupancy": fits.fraction,
        "occupancy_limited_by": fits.limited_by,
        "waves": prepared.launch.blocks / held,
        "warp_instructions": float(prepared.profile.executions().sum()),
        "l1_hit_rate": behaviour.l1_hit_rate,
        "l2_hit_rate": behaviour.l2_hit_rate,
        "dram_bytes": behaviour.dram_bytes,
        "achieved_warps": primary.achieved_occupancy_warps if primary else None,
    }
    if primary and (busy := primary.utilization):
        facts["busiest"] = max(busy, key=lambda name: busy[name])
        facts["utilization"] = " ".join(
            f"{name}={share:.3f}" for name, share in sorted(busy.items(), key=lambda item: -item[1]) if share >= 0.01
        )
    return {name: value for name, value in facts.items() if value is not None}


# The cache of answers: one for each machine code, launch, GPU and settings.
#
# An answer is only cached if its emulation is, so nothing that a time limit cut short. Its name is a hash of everything
# it depends on, including the sources of drywarp.

FOLDER = "answers"
MOST_BYTES = 256 << 20
"""Most bytes of all answers together: some hundred thousand answers."""


@lru_cache(maxsize=64)
def values_hash(gpu: Gpu) -> str:
    """A hash of every value of a GPU, because a GPU changed in Python still has its file's hash."""
    values = [repr(getattr(gpu, field.name)) for field in fields(gpu)]
    return hashlib.sha256("\0".join(values).encode()).hexdigest()


def key_of(place: CacheEntry, gpu: Gpu, settings: str) -> str:
    """The name of an answer; empty if the emulation cannot be cached. `settings` is everything else it depends on."""
    if not place.key:
        return ""
    sources = sources_digest(suffixes=(".py", ".toml", ".c", ".h"))
    return hashlib.sha256("\0".join((place.key, values_hash(gpu), settings, sources)).encode()).hexdigest()


def cached_answer(key: str) -> Answer | None:
    """The answer that an earlier run cached, else None."""
    data = cache.read(FOLDER, key) if key else None
    try:
        return None if data is None else msgspec.json.decode(data, type=Answer)
    except msgspec.MsgspecError:
        return None


def cache_answer(key: str, answer: Answer) -> None:
    """Cache an answer for later runs; does nothing if that is impossible."""
    if key:
        cache.write(FOLDER, key, msgspec.json.encode(answer), MOST_BYTES)
