"""How far a predicted time may be from the truth: the parts of its uncertainty, and the band that they make."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from ..models.base import Prediction
from ..models.pipeline import Pipeline
from ..ready import BoundKernel, Options
from ..result import Band, BandPart, MemoryBounds
from .bounds import bounds_of, within
from .combine import combine, part
from .doubts import doubts_of, memory_doubt
from .probe import Probe
from .uncertainty import uncertainty
from .variants import Variant, clock_range_mhz, variants

MODEL = "model"
"""The part that is left when everything else is right."""


def band_of(
    ready: BoundKernel, options: Options, prediction: Prediction, bounds: MemoryBounds | None = None
) -> Band | None:
    """The confidence band of the Pipeline model's answer for a kernel that was emulated.

    None for another model's, whose error nobody measured; where nothing was emulated, so that trip counts may be
    anything (always on AMD GPUs and those of the papers); and where there is no positive time. `bounds` are those of
    `bounds_of`.
    """
    if prediction.model != Pipeline.name or ready.static is not None or not 0 < prediction.time_s < float("inf"):
        return None
    known = uncertainty()
    found = list(variants(ready, options, prediction, known, bounds))
    parts = [*_tried(Probe(ready), found, 1 - ready.bound.start_s / prediction.time_s)]
    residual = known.model.residual
    parts.append(part(MODEL, [1 / residual.value, residual.value], residual.source))
    clocks = clock_range_mhz(ready.gpu, options)
    return combine(prediction.time_s, known.level, parts, (clocks[0] * 1e6, clocks[1] * 1e6) if clocks else None)


def _tried(probe: Probe, found: Sequence[Variant], running: float) -> Iterator[BandPart]:
    """Each variant as a part; those that need it are tried on the stand-in, side by side.

    A trial says something of the share of the time in which blocks are `running`.
    """
    usual = probe.seconds()
    # The compiled loop runs without the interpreter's lock, so that threads use all cores.
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        others = threads.map(probe.seconds, [change for variant in found for change in variant.changes])
    for variant in found:
        ratios = [1 + running * (next(others) / usual - 1) if usual else 1.0 for _ in variant.changes]
        yield part(variant.name, [*ratios, *variant.factors], variant.reason)


__all__ = ["MODEL", "band_of", "bounds_of", "doubts_of", "memory_doubt", "within"]
