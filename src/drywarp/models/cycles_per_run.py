"""From a model's cycles per run to a `Prediction`.

A run is ω warps that start together on an SM (Lemeire, Cornelis, Konstantinidis, Table 2). The grid takes
as many runs as an SM has rounds of blocks, #Rep of Hong and Kim Eq. 21, not rounded up, and at least
one. An SM that has fewer blocks than it could hold runs with those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..pipeline.blocks import share_of
from ..workload.cost import CostedWorkload
from .base import CurvePoint, Prediction, register
from .inputs import ModelInputs, kind_of
from .throughput import ISSUE, demand, resident_blocks, share_cycles, utilization_at


@dataclass(frozen=True, slots=True)
class Run:
    """A run of ω warps: its cycles, and whether ``memory``, ``computation`` or ``latency`` bounds it."""

    cycles: float
    bound: str


RunOf = Callable[[int], Run]


@dataclass(frozen=True, slots=True)
class Runs:
    """What a model makes of a workload: the run of ω warps, and notes; `noted` are those on certain occupancies."""

    run_of: RunOf
    notes: tuple[str, ...] = ()
    noted: Callable[[Sequence[int]], tuple[str, ...]] = lambda occupancies: ()


@dataclass
class RunModel:
    """A model that gives the cycles of a run of ω warps."""

    name: str
    summary: str
    runs: Callable[[CostedWorkload], Runs]

    def predict(self, workload: CostedWorkload, occupancies: Sequence[int]) -> Prediction:
        """Predict `workload`, and the curve at `occupancies`."""
        found = self.runs(workload)
        return predict_runs(self.name, workload, occupancies, found.run_of, found.notes + found.noted(occupancies))


def run_model(name: str, summary: str) -> Callable[[Callable[[CostedWorkload], Runs]], RunModel]:
    """Decorator: registers a function as a model under `name`."""

    def made(runs: Callable[[CostedWorkload], Runs]) -> RunModel:
        model = RunModel(name, summary, runs)
        register(name)(lambda: model)
        return model

    return made


def predict_runs(
    model: str,
    workload: CostedWorkload,
    occupancies: Sequence[int],
    run_of: RunOf,
    notes: tuple[str, ...] = (),
) -> Prediction:
    """The prediction of a model that gives the cycles of a run of ω warps."""
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
        limiter=names[run_of(running_warps(workload, workload.blocks_per_sm)).bound],
        curve=tuple(points),
        utilization=utilization_at(needs, share.blocks * workload.warps_per_block / cycles if cycles > 0 else 0.0),
        headroom=share_cycles(workload, needs, share),
        notes=notes,
    )


def issue_cycles_of(inputs: ModelInputs) -> float:
    """Cycles that the SM takes to issue a warp instruction: the GPU's Issue_cycles, else its issue limit's λ.

    A GPU that has neither issues one computation every λ_comp.
    """
    if "issue_cycles" in inputs.parameters:
        return inputs.parameters["issue_cycles"]
    return 1 / inputs.issue_rate if inputs.issue_rate else inputs.computation.lambda_


def repetitions(workload: CostedWorkload, resident: int) -> float:
    """#Rep: rounds of `resident` blocks on each SM."""
    if workload.runs:
        return float(workload.runs)
    return max(1.0, workload.blocks / (resident * workload.sm_count))


def running_warps(workload: CostedWorkload, resident: int) -> int:
    """Warps of an SM that run at once, if it has fewer blocks than fit."""
    return min(resident, share_of(workload, resident).blocks) * workload.warps_per_block


def _grid_cycles(workload: CostedWorkload, resident: int, run_of: RunOf) -> float:
    warps = running_warps(workload, resident)
    return run_of(warps).cycles * repetitions(workload, warps // workload.warps_per_block)


def _bound_names(workload: CostedWorkload) -> dict[str, str]:
    """The busiest subsystem of memory and of computation, in the model's terms."""
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
