"""From a model's cycles per run to a `Prediction`: what MWP-CWP and GPUPerf, which think in runs, share.

A run is ω warps that start together on an SM (Lemeire, Cornelis, Konstantinidis, Table 2). The grid takes
as many runs as an SM has rounds of blocks, #Rep of Hong and Kim Eq. 21, not rounded up, and at least
one. An SM that has fewer blocks than it could hold runs with those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..bound import BoundWorkload
from ..pipeline.blocks import share_of
from .base import CurvePoint, Prediction
from .inputs import ModelInputs, kind_of
from .roofline import utilization_at
from .throughput import ISSUE, demand, resident_blocks, share_cycles


@dataclass(frozen=True, slots=True)
class Run:
    """A run of ω warps: its cycles, and whether ``memory``, ``computation`` or ``latency`` bounds it."""

    cycles: float
    bound: str


def predict_runs(
    model: str,
    workload: BoundWorkload,
    occupancies: Sequence[int],
    run_of: Callable[[int], Run],
    notes: tuple[str, ...] = (),
) -> Prediction:
    """The prediction of a model that says how long a run of ω warps takes."""
    needs = demand(workload)
    names = _bound_names(workload)
    points = []
    for occupancy in occupancies:
        run = run_of(occupancy)
        cycles = _grid_cycles(workload, resident_blocks(workload, occupancy), run_of)
        wpc = occupancy / run.cycles if run.cycles else float("inf")
        points.append(CurvePoint(occupancy, wpc, workload.duration_s(cycles), names[run.bound], run.cycles))
    cycles = _grid_cycles(workload, workload.blocks_per_sm, run_of)
    share = share_of(workload, workload.blocks_per_sm)
    return Prediction(
        model=model,
        cycles=cycles,
        time_s=workload.duration_s(cycles),
        limiter=names[run_of(_running(workload, workload.blocks_per_sm)).bound],
        curve=tuple(points),
        utilization=utilization_at(needs, share.blocks * workload.warps_per_block / cycles if cycles > 0 else 0.0),
        headroom=share_cycles(workload, needs, share),
        notes=notes,
    )


def issue_cycles_of(inputs: ModelInputs) -> float:
    """Cycles that the SM takes to issue a warp instruction: the GPU's Issue_cycles, else its issue limit's λ.

    A GPU that has neither issues a computation every λ_comp.
    """
    if "issue_cycles" in inputs.parameters:
        return inputs.parameters["issue_cycles"]
    return 1 / inputs.issue_rate if inputs.issue_rate else inputs.computation.lambda_


def repetitions(workload: BoundWorkload, resident: int) -> float:
    """#Rep: rounds of `resident` blocks on each SM."""
    if workload.runs:
        return float(workload.runs)
    return max(1.0, workload.blocks / (resident * workload.sm_count))


def _running(workload: BoundWorkload, resident: int) -> int:
    """Warps of an SM that run at once, where it may have fewer blocks than fit."""
    return min(resident, share_of(workload, resident).blocks) * workload.warps_per_block


def _grid_cycles(workload: BoundWorkload, resident: int, run_of: Callable[[int], Run]) -> float:
    warps = _running(workload, resident)
    return run_of(warps).cycles * repetitions(workload, warps // workload.warps_per_block)


def _bound_names(workload: BoundWorkload) -> dict[str, str]:
    """The busiest subsystem of memory and of computation, by what the model calls them."""
    memory: set[int] = set()
    rest: set[int] = set()
    for path in workload.paths:
        for node in path.nodes:
            if kind_of(workload, node) == "memory":
                memory |= {node.subsystem, *(level.subsystem for level in node.levels)}
            else:
                rest.add(node.subsystem)
    busy = demand(workload).cycles

    def busiest(indices: set[int], others: tuple[str, ...], without: str) -> str:
        names = [*others, *(workload.subsystems[i].name for i in sorted(indices))]
        return max((name for name in names if name in busy), key=lambda name: busy[name], default=without)

    return {
        "memory": busiest(memory, (), "memory"),
        "computation": busiest(rest, (ISSUE,), ISSUE),
        "latency": "latency",
    }
