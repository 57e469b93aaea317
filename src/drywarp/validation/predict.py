"""One row predicted: the kernel compiled for it, emulated, bound, and every wanted model asked for its time."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from .. import __version__
from ..api import Options, bind_kernel
from ..band import band_of
from ..emulator import Limits
from ..emulator.sampling import Blocks
from ..frontends.toolchain import tool_versions
from ..hardware import Gpu, TooManyRegisters
from ..models import get_model
from ..models.base import NotApplicable, Prediction, model_names
from ..models.unavailable import Unavailable
from ..models_api import with_producers
from ..ready import DEFAULT_MODELS, BoundKernel
from .recipe import CLOCK, MOST_REGISTERS, Recipe
from .row import BAND, NOT_APPLICABLE


@dataclass(frozen=True)
class Settings:
    """How rows are predicted: fields of `drywarp.Options`, and `seconds`, the limit of a row's emulation."""

    models: tuple[str, ...] = DEFAULT_MODELS
    warm_l2: bool = False
    scheduler: str | None = None
    blocks: Blocks = None
    confidence: float | None = None
    full_simulation: bool = False
    seconds: float = 20.0

    def options(self) -> Options:
        """As the analysis takes them."""
        return Options(
            models=self.models,
            warm_l2=self.warm_l2,
            scheduler=self.scheduler,
            blocks=self.blocks,
            confidence=self.confidence,
            full_simulation=self.full_simulation,
            limits=Limits(seconds=self.seconds),
        )


def every_model() -> tuple[str, ...]:
    """All models that can answer, the default ones first."""
    others = [name for name in model_names() if name not in DEFAULT_MODELS]
    return (*DEFAULT_MODELS, *(name for name in others if not isinstance(get_model(name), Unavailable)))


def fingerprint(kernel: str | Path, gpu: Gpu, recipe: Recipe, settings: Settings) -> str:
    """What predictions depend on besides the row, in twelve characters; of the kernel the file itself counts."""
    text = kernel.read_bytes() if isinstance(kernel, Path) else kernel.encode()
    parts = [__version__, *sorted(tool_versions().values()), gpu.file_hash, _plain(recipe), _plain(settings)]
    return hashlib.sha256("\0".join(parts).encode() + b"\0" + text).hexdigest()[:12]


def _plain(value: Any) -> str:
    if is_dataclass(value):
        return repr([(f.name, _plain(getattr(value, f.name))) for f in fields(value)])
    if isinstance(value, Mapping):
        return repr(sorted((str(name), str(held)) for name, held in value.items()))
    return repr(value)


@dataclass(frozen=True)
class Answer:
    """What was found out about one row; the fields are those of `RowResult`."""

    facts: dict[str, float | str]
    times: dict[str, float]
    limiters: dict[str, str]


def predict_row(kernel: str | Path, gpu: Gpu, launch: Mapping[str, Any], settings: Settings) -> Answer:
    """Predict one launch, as `launch_of` states it. Raises DrywarpError where that is not possible.

    A kernel whose threads take more registers than its block can have is compiled again with the cap that lets it run:
    it did run where it was measured.
    """
    options = replace(settings.options(), clock_mhz=launch.get(CLOCK))
    launch = {name: value for name, value in launch.items() if name != CLOCK}
    cap = int(launch.get("max_registers") or 0)
    try:
        ready = bind_kernel(kernel, gpu=gpu, options=options, **launch)
    except TooManyRegisters as error:
        cap = min(error.most, MOST_REGISTERS)
        ready = bind_kernel(kernel, gpu=gpu, options=options, **{**launch, "max_registers": cap})
    started = perf_counter()
    predictions, refused = _ask(ready, settings.models, settings.full_simulation)
    facts = _facts(ready, cap, predictions.get(settings.models[0]))
    if believed := predictions.get(settings.models[0]):
        facts |= _band(ready, options, believed)
    times = {"compile_s": ready.compile_s, "emulate_s": ready.emulate_s, "memory_s": ready.memory_s}
    times["models_s"] = perf_counter() - started
    return Answer(
        facts=facts | {name: round(seconds, 3) for name, seconds in times.items()},
        times={name: prediction.time_s for name, prediction in predictions.items()},
        limiters={name: p.limiter for name, p in predictions.items()}
        | {name: NOT_APPLICABLE + reason for name, reason in refused.items()},
    )


def _ask(ready: BoundKernel, models: Sequence[str], full: bool) -> tuple[dict[str, Prediction], dict[str, str]]:
    if not set(models) <= set(DEFAULT_MODELS):
        ready = replace(ready, bound=with_producers(ready))
    predictions: dict[str, Prediction] = {}
    refused: dict[str, str] = {}
    for name in models:
        try:
            # No curve: the launch's own occupancy is all that was measured.
            predictions[name] = get_model(name, full_simulation=full).predict(ready.bound, ())
        except NotApplicable as reason:
            refused[name] = str(reason)
    return predictions, refused


def _band(ready: BoundKernel, options: Options, believed: Prediction) -> dict[str, float | str]:
    band = band_of(ready, options, believed)
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
