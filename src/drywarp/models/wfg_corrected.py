"""The WFG model without its two errors.

Lemeire, Cornelis and Konstantinidis, "Analysis of the analytical performance models for GPUs", §§2.4.3,
2.4.4 and 5.1: λ_mem^instr is 0, and in place of Eq. 36

    Λ_exposed = Λ_mem/ω − max(0, (ω − 1)/ω · NBC_avg − α_i · Λ_comp / (ω · ILP_i))          (42)

whose last term is the computation before the memory transaction (0 where there is none). Units: cycles
of one SM. The exposed latency counts once for all warps, and computations that hide each other's latency
hide no memory latency as well. Assumed: memory transactions depend on the computations before them.
Since the model knows one computing subsystem and no issue limit, its rate is kept at or below the roof
(Eq. 1). All else is as in `wfg`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..bound import BoundWorkload
from .base import Prediction, register
from .cycles_per_run import Run, predict_runs
from .inputs import WorkNode, inputs_of
from .roof_side import roof_side
from .wfg import (
    Arcs,
    arcs_of,
    block_ilp,
    computing_arcs,
    cycles_per_warp,
    graph_of,
    nbc_avg,
    totals,
    what_bounds,
)


def latency_exposed_once(latency_mem: float, warps: float, nbc: float) -> float:
    """Λ_exposed with the first error corrected, Eq. 41."""
    return (latency_mem - (warps - 1) * nbc) / warps


def latency_exposed_corrected(latency_mem: float, warps: float, nbc: float, preceding: float) -> float:
    """Λ_exposed, Eq. 42; `preceding` is α_i · Λ_comp / ILP_i of the computation before."""
    return latency_mem / warps - max(0.0, (warps - 1) / warps * nbc - preceding / warps)


def corrected_arcs(graph: Sequence[WorkNode], warps: float, lambda_mem: float) -> Arcs:
    """Eqs. 30 to 35 with λ_mem^instr = 0, and Eq. 42."""
    published = arcs_of(graph, warps, lambda_mem, 0.0)
    compute = sum(t * node.times for t, node in zip(computing_arcs(graph, warps), graph, strict=True))
    nbc = nbc_avg(compute, *totals(graph))
    exposed = [0.0] * len(graph)
    for index, node in enumerate(graph):
        if node.kind == "memory":
            before = graph[index - 1] if index and graph[index - 1].kind == "computation" else None
            preceding = before.instructions * before.latency / block_ilp(before) if before else 0.0
            exposed[index] = latency_exposed_corrected(node.latency, warps, nbc, preceding)
    return Arcs(published.transitions, tuple(exposed))


@register("wfg_corrected")
class WorkFlowGraphCorrected:
    """Eq. 42 and λ_mem^instr = 0, never above the roof."""

    name = "wfg_corrected"
    summary = "the work-flow graph model with its two errors corrected (analysis §§2.4.3-2.4.4)"

    def predict(self, workload: BoundWorkload, occupancies: Sequence[int]) -> Prediction:
        """Predict `workload`, and the curve at `occupancies`."""
        inputs = inputs_of(workload)
        graph = graph_of(inputs)

        def run_of(warps: int) -> Run:
            arcs = corrected_arcs(graph, warps, inputs.memory.lambda_)
            cycles = cycles_per_warp(graph, arcs)
            if cycles * inputs.roof < 1:
                return Run(warps / inputs.roof, roof_side(inputs))
            return Run(cycles * warps, what_bounds(inputs, graph, arcs, cycles))

        return predict_runs(self.name, workload, occupancies, run_of)
