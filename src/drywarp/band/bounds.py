"""What is known of a time where memory traffic could not be followed: its extremes, and no limit by mistake."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..binding import Binding, bind
from ..memory.averaged import METHOD as AVERAGED
from ..memory.behaviour import with_dram_reads
from ..models.base import UNKNOWN_LIMIT, Prediction
from ..ready import BoundKernel
from ..result import MemoryBounds

Predict = Callable[[BoundKernel], Prediction]


def bounds_of(ready: BoundKernel, prediction: Prediction, predict: Predict) -> MemoryBounds | None:
    """Between which figures DRAM reads and time lie; None where all was followed, or a profile says what was read.

    `prediction` is the model's for the launch, and `predict` asks the same model again.
    """
    ends = ready.behaviour.dram_read_range
    if ends is None or ready.behaviour.method == AVERAGED or ready.gpu.machine_code is not None:
        return None
    found = [predict(_with_reads(ready, read)) for read in ends]
    times = [prediction.time_s, *(one.time_s for one in found)]
    limiters = dict.fromkeys(one.limiter for one in (found[0], prediction, found[1]))
    return MemoryBounds(ends[0], ends[1], min(times), max(times), tuple(limiters))


def within(ready: BoundKernel, prediction: Prediction, bounds: MemoryBounds | None) -> Prediction:
    """The prediction, which names no limit that either extreme contradicts, and none where blocks need each other."""
    if ready.behaviour.dependent is None and (bounds is None or len(bounds.limiters) == 1):
        return prediction
    return replace(prediction, limiter=UNKNOWN_LIMIT)


def _with_reads(ready: BoundKernel, read: float) -> BoundKernel:
    behaviour = with_dram_reads(ready.behaviour, read)
    binding = Binding(ready.bound.clock_hz / 1e6, ready.bound.policy, ready.fits.blocks_per_sm)
    return replace(ready, behaviour=behaviour, bound=bind(ready.workload, behaviour, ready.gpu, binding))
