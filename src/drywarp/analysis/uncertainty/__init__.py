"""The uncertainty of a predicted time: its parts, and the band that they combine to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from ...models.base import Model, Prediction
from ...models.pipeline import Pipeline
from ...support.folders import thread_count
from ..prepared import Prepared
from ..request import Options
from ..result import Band, BandPart, MemoryBounds
from .constants import Probe, combine, part
from .uncertainty import uncertainty
from .variants import ATOMICS, SCATTERED, Variant, bounds_of, clock_range_mhz, doubts_of, memory_doubt, variants, within

MODEL = "model"
"""The part that remains when everything else is right."""
_ASYNCHRONOUS = ("bulk_copy", "wgmma", "tcgen05")
"""Classes that run while their warp goes on: the copy engine and products of warp groups and of whole SMs."""


def bounded(prepared: Prepared, prediction: Prediction, model: Model) -> tuple[Prediction, MemoryBounds | None]:
    """A prediction of `model` whose limiter is consistent with its bounds, and these bounds."""
    bounds = bounds_of(prepared, prediction, model)
    return within(prepared, prediction, bounds), bounds


def band_of(
    prepared: Prepared, options: Options, prediction: Prediction, bounds: MemoryBounds | None = None
) -> Band | None:
    """The confidence band of the Pipeline model's answer for an emulated kernel.

    None for other models, whose error was not measured; if nothing was emulated, because trip counts are unknown
    (always on AMD GPUs and those of the papers); and without a positive time. `bounds` come from `bounds_of`.
    """
    if prediction.model != Pipeline.name or prepared.static is not None or not 0 < prediction.time_s < float("inf"):
        return None
    known = uncertainty()
    found = list(variants(prepared, options, prediction, known, bounds))
    parts = [*_tried(Probe(prepared), found, 1 - prepared.costed.start_s / prediction.time_s)]
    # Scattered sectors and atomics have their own parts and do not count as a stream.
    apart = any(access.apart for access in prepared.behaviour.accesses.values())
    stream = prediction.limiter == "dram" and not apart and not {SCATTERED, ATOMICS} & {one.name for one in found}
    ahead = any(one.class_ in _ASYNCHRONOUS for one in prepared.kernel.instructions)
    residual = known.model.stream if stream else known.model.asynchronous if ahead else known.model.rest
    parts.append(part(MODEL, [1 / residual.value, residual.value], residual.source))
    clocks = clock_range_mhz(prepared.gpu, options)
    return combine(prediction.time_s, known.level, parts, (clocks[0] * 1e6, clocks[1] * 1e6) if clocks else None)


def _tried(probe: Probe, found: Sequence[Variant], running: float) -> Iterator[BandPart]:
    """Each variant as a part; those with changes are simulated on the stand-in, in parallel.

    A trial applies only to the share of the time in which blocks are `running`.
    """
    usual = probe.seconds()
    # The compiled loop releases the GIL, so threads use all cores.
    with ThreadPoolExecutor(thread_count()) as threads:
        others = threads.map(probe.seconds, [change for variant in found for change in variant.changes])
    for variant in found:
        ratios = [1 + running * (next(others) / usual - 1) if usual else 1.0 for _ in variant.changes]
        yield part(variant.name, [*ratios, *variant.factors], variant.reason)


__all__ = ["MODEL", "band_of", "bounded", "doubts_of", "memory_doubt"]
