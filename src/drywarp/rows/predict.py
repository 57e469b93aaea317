"""One row predicted: the kernel compiled for it, emulated, bound, and every wanted model asked for its time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from ..api import Options, state_kernel
from ..band import band_of, bounds_of, within
from ..emulator.sampling import Blocks
from ..fit import geometry_of
from ..frontends import cache
from ..hardware import Gpu, TooManyRegisters
from ..models import get_model
from ..models.base import NotApplicable, Prediction, model_names
from ..models.unavailable import Unavailable
from ..models_api import with_producers
from ..ready import DEFAULT_MODELS, BoundKernel
from ..result import MemoryBounds
from . import kept_answers
from .answer import Answer
from .facts import BAND, NOT_APPLICABLE, SPENT
from .recipe import CLOCK, MOST_REGISTERS


@dataclass(frozen=True)
class Settings:
    """How rows are predicted: fields of `drywarp.Options`.

    `band` asks for the confidence band too. With `cap` a kernel whose threads take more registers than its block can
    have is compiled again with the cap that lets it run; without, it is a row that fails, as its launch would.
    """

    models: tuple[str, ...] = DEFAULT_MODELS
    warm_l2: bool = False
    scheduler: str | None = None
    blocks: Blocks = None
    confidence: float | None = None
    full_simulation: bool = False
    band: bool = True
    cap: bool = True

    def options(self) -> Options:
        """As the analysis takes them."""
        return Options(
            models=self.models,
            warm_l2=self.warm_l2,
            scheduler=self.scheduler,
            blocks=self.blocks,
            confidence=self.confidence,
            full_simulation=self.full_simulation,
        )


def every_model() -> tuple[str, ...]:
    """All models that can answer, the default ones first."""
    others = [name for name in model_names() if name not in DEFAULT_MODELS]
    return (*DEFAULT_MODELS, *(name for name in others if not isinstance(get_model(name), Unavailable)))


def predict_row(kernel: Any, gpu: Gpu, launch: Mapping[str, Any], settings: Settings) -> Answer:
    """Predict one launch, as `launch_of` states it. Raises DrywarpError where that is not possible."""
    options = replace(settings.options(), clock_mhz=launch.get(CLOCK))
    launch = {name: value for name, value in launch.items() if name != CLOCK}
    cap = int(launch.get("max_registers") or 0)
    try:
        answer = _answer(kernel, gpu, launch, settings, options, cap)
    except TooManyRegisters as error:
        if not settings.cap:
            raise
        cap = min(error.most, MOST_REGISTERS)
        answer = _answer(kernel, gpu, {**launch, "max_registers": cap}, settings, options, cap)
    notes = tuple(f"{path}: damaged, made anew" for path in cache.damaged)
    cache.damaged.clear()
    return replace(answer, notes=notes)


def _answer(kernel: Any, gpu: Gpu, launch: Mapping[str, Any], settings: Settings, options: Options, cap: int) -> Answer:
    """What an earlier run has left, else a prediction."""
    begun = perf_counter()
    stated = state_kernel(kernel, gpu=gpu, options=options, **launch)
    place = stated.place() if stated.place else None
    key = kept_answers.key_of(place, gpu, repr((settings, options.clock_mhz, cap))) if place else ""
    if known := kept_answers.read(key):
        took = (round(perf_counter() - begun, 3), 0.0, 0.0, 0.0)
        return replace(known, facts={**known.facts, **dict(zip(SPENT, took, strict=True))})
    answer, ready = _predicted(stated.bind(), settings, options, cap)
    if place and place.holds(geometry_of(gpu, ready.fits), options.warm_l2):
        kept_answers.keep(key, answer)
    return answer


def _predicted(ready: BoundKernel, settings: Settings, options: Options, cap: int) -> tuple[Answer, BoundKernel]:
    started = perf_counter()
    predictions, refused = _ask(ready, settings.models, settings.full_simulation, brief=not settings.band)
    facts = _facts(ready, cap, predictions.get(settings.models[0]))
    if believed := predictions.get(settings.models[0]):
        first, full = settings.models[0], settings.full_simulation
        bounds = bounds_of(
            ready, believed, lambda r: get_model(first, full_simulation=full, brief=True).predict(r.bound, ())
        )
        predictions[first] = believed = within(ready, believed, bounds)
        facts |= _band(ready, options, believed, bounds) if settings.band else {}
    spent = (ready.compile_s, ready.emulate_s, ready.memory_s, perf_counter() - started)
    return Answer(
        facts=facts | {name: round(seconds, 3) for name, seconds in zip(SPENT, spent, strict=True)},
        times={name: prediction.time_s for name, prediction in predictions.items()},
        limiters={name: p.limiter for name, p in predictions.items()}
        | {name: NOT_APPLICABLE + reason for name, reason in refused.items()},
    ), ready


def _ask(
    ready: BoundKernel, models: Sequence[str], full: bool, brief: bool
) -> tuple[dict[str, Prediction], dict[str, str]]:
    if not set(models) <= set(DEFAULT_MODELS):
        ready = replace(ready, bound=with_producers(ready))
    predictions: dict[str, Prediction] = {}
    refused: dict[str, str] = {}
    for name in models:
        try:
            # No curve: the launch's own occupancy is all that was measured.
            predictions[name] = get_model(name, full_simulation=full, brief=brief).predict(ready.bound, ())
        except NotApplicable as reason:
            refused[name] = str(reason)
    return predictions, refused


def _band(
    ready: BoundKernel, options: Options, believed: Prediction, bounds: MemoryBounds | None
) -> dict[str, float | str]:
    band = band_of(ready, options, believed, bounds)
    if band is None:
        return {}
    ends = (band.level, band.low_s, band.high_s, band.low_at_clock_s, band.high_at_clock_s)
    return dict(zip(BAND, ends, strict=True))


def _facts(ready: BoundKernel, cap: int, believed: Prediction | None) -> dict[str, float | str]:
    fits, resources, behaviour = ready.fits, ready.kernel.resources, ready.behaviour
    held = ready.gpu.device.sm_count * fits.blocks_per_sm
    facts: dict[str, float | str | None] = {
        "registers": resources.registers,
        "register_cap": cap,
        "local_bytes": resources.local_bytes,
        "shared_bytes": resources.shared_bytes + ready.launch.dynamic_shared,
        "clock_mhz": ready.bound.clock_hz / 1e6,
        "code_instructions": len(ready.kernel.instructions),
        "warps_per_sm": fits.warps_per_sm,
        "occupancy": fits.fraction,
        "occupancy_limited_by": fits.limited_by,
        "waves": ready.launch.blocks / held,
        "warp_instructions": float(ready.profile.executions().sum()),
        "l1_hit_rate": behaviour.l1_hit_rate,
        "l2_hit_rate": behaviour.l2_hit_rate,
        "dram_bytes": behaviour.dram_bytes,
        "achieved_warps": believed.achieved_occupancy_warps if believed else None,
    }
    if believed and (busy := believed.utilization):
        facts["busiest"] = max(busy, key=lambda name: busy[name])
        facts["utilization"] = " ".join(
            f"{name}={share:.3f}" for name, share in sorted(busy.items(), key=lambda item: -item[1]) if share >= 0.01
        )
    return {name: value for name, value in facts.items() if value is not None}
