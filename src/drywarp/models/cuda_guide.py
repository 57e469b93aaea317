"""Warps that hide memory latency, according to the CUDA C Programming Guide, §5.2.3, as Volkov summarises it.

Volkov, "Understanding latency hiding on GPUs" (2016), §4.8. With α arithmetic instructions to one memory
instruction:

    warps needed ≈ mem_lat / (instruction time · α)
    refined: mem_lat / (instruction time · (α + 1)) + 1

Units: mem_lat in cycles, instruction time in cycles of one SM per warp instruction, warps per SM. Assumed: peak issue
is the goal, and only memory latency must be hidden. Left out: arithmetic latency (the error that Volkov finds),
bandwidth, occupancies below the needed one. So the registered models have points only from the needed occupancy on,
where they predict the peak instruction rate; they do not apply if memory bandwidth is the limit (§4.8: "not intended").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..workload.cost import CostedWorkload
from .base import NotApplicable, Prediction, register
from .cycles_per_run import Run, predict_runs
from .inputs import inputs_of


def warps_needed(mem_lat: float, instruction_time: float, alpha: float) -> float:
    """≈ mem_lat / (instruction time · α)."""
    return mem_lat / (instruction_time * alpha)


def warps_needed_refined(mem_lat: float, instruction_time: float, alpha: float) -> float:
    """mem_lat / (instruction time · (α + 1)) + 1: with the stalled warp and the memory instruction counted."""
    return mem_lat / (instruction_time * (alpha + 1)) + 1


def instructions_during_stall(mem_lat: float, instruction_time: float) -> float:
    """Instructions that issue at peak rate while one warp waits for memory."""
    return mem_lat / instruction_time


@dataclass
class Guide:
    """Peak rate from the needed occupancy on, which `formula` gives."""

    name: str
    summary: str
    formula: Callable[[float, float, float], float]

    def predict(self, workload: CostedWorkload, occupancies: Sequence[int]) -> Prediction:
        """Predict `workload`, and the curve at those of `occupancies` that hide the latency."""
        given = inputs_of(workload)
        computation, memory = given.computation, given.memory
        if not memory.count or not computation.count:
            raise NotApplicable("it needs both memory and other instructions")
        if not computation.lambda_:
            raise NotApplicable("no instruction time: computation costs nothing on this GPU")
        busy = computation.lambda_ * computation.count
        if memory.lambda_ * memory.count > busy:
            raise NotApplicable("memory bandwidth limits this kernel, which the guide does not consider")
        needed = self.formula(memory.latency, computation.lambda_, given.intensity)
        prediction = predict_runs(self.name, workload, occupancies, lambda warps: Run(warps * busy, "computation"))
        points = tuple(point for point in prediction.curve if point.occupancy_warps >= needed)
        if not points:
            raise NotApplicable(f"it states only that {needed:.4g} or more warps per SM hide the latency")
        hidden = workload.warps_per_sm >= needed
        return Prediction(
            model=self.name,
            cycles=prediction.cycles if hidden else float("nan"),
            time_s=prediction.time_s if hidden else float("nan"),
            limiter="computation" if hidden else "latency",
            curve=points,
            notes=(f"needed occupancy {needed:.4g} warps per SM; no prediction below it",),
        )


for _guide in (
    Guide(
        "cuda_guide",
        "needed occupancy mem_lat / (instruction time · α), peak rate from there on (CUDA C Programming Guide)",
        warps_needed,
    ),
    Guide(
        "cuda_guide_refined",
        "the CUDA guide's needed occupancy with the stalled warp and the memory instruction (Volkov 4.8)",
        warps_needed_refined,
    ),
):
    register(_guide.name)(partial(replace, _guide))
