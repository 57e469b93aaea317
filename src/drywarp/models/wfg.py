"""The WFG model: latencies on the arcs of a work-flow graph, reduced to the average time of a warp.

Baghsorkhi, Delahaye, Patel, Gropp and Hwu, "An adaptive performance modeling tool for GPU architectures"
(PPoPP 2010), as Lemeire, Cornelis and Konstantinidis, "Analysis of the analytical performance models
for GPUs", §2.4, Eqs. 30 to 40, write it; Volkov §7.2 prints the same for one kernel. Both errors that
the analysis finds are kept as published: `wfg_corrected` is without them.

    computation's transition arc   α_i · max(λ_comp, Λ_comp / (ILP_i · ω))                         (30)
    CYC_comp                       Σ_i of these + λ_mem^instr · α_mem                               (31)
    memory's transition arc        λ_mem^instr + max(0, (CYC_mem − CYC_comp) / α_mem)               (33)
    NBC_avg                        CYC_comp / (α_mem + α_sync + 1)                                  (35)
    memory's dependence arc        Λ_exposed = Λ_mem − (ω − 1) · NBC_avg                            (36)

The longest path through the graph is the average time of a warp, CPW; CPR = ω · CPW. Units: cycles of
one SM. Eq. 31 is printed with α_i once too often (Eq. 30 holds it already); Eq. 32 and Volkov's kernel
show what is meant. λ_mem^instr is λ_comp; WLP_effect is ω. No paper at hand prints the arc that leaves
a barrier: it is weighted by Eq. 30 like a computation of one instruction, and it counts in α_sync.

ILP_i is Σ Λ over the time of the block in a lone warp, so that one warp takes Λ_app of Eq. 2; with 3/2,
instructions over the longest chain, the example would lie above Volkov's bound for ω = 1, and not only for
the 3 and 4 that §2.4.4 states.

Assumed: one computing subsystem, one memory subsystem, the representative warp for all. Left out: the issue limit, that
warps of one block wait for each other. The graph (`work_flow_graph`) keeps loops as nodes with a trip count: what an
arc adds to an iteration is counted for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..workload.cost import CostedWorkload
from .base import NotApplicable
from .cycles_per_run import Run, Runs, run_model
from .inputs import ModelInputs, WorkNode, inputs_of, roof_side

# Reducing a work-flow graph whose arcs have weights: the longest way through it.
#
# Lemeire, Cornelis and Konstantinidis, "Analysis of the analytical performance models for GPUs", §2.4.1:
# successive nodes are combined and their latencies added up; of the two arcs that leave a memory node
# the longer counts. Where other nodes lie between a memory node and the one that needs its result, what
# they take counts against the dependence arc. A dependence arc that nothing waits for ends at the
# warp's end; a store has none. Units: those of the weights.


def reduced(graph: Sequence[WorkNode], transitions: Sequence[float], exposed: Sequence[float]) -> float:
    """The longest path, loops counted with their trip counts.

    A dependence on the previous iteration (`needs` not below the node) spans the loop's end and beginning. If a loop
    has several such dependences, the one that adds most counts.
    """
    starts: list[float] = []
    now = total = 0.0
    needed: set[int] = set()
    carried: list[tuple[int, int]] = []
    for index, node in enumerate(graph):
        for source in node.needs:
            needed.add(source)
            if source >= index:
                carried.append((source, index))
                continue
            late = starts[source] + exposed[source] - now
            if late > 0:
                now += late
                total += late * min(node.times, graph[source].times)
        starts.append(now)
        now += transitions[index]
        total += transitions[index] * node.times
    total += _carried(graph, transitions, exposed, starts, carried)
    last = [
        starts[index] + exposed[index] - now
        for index, node in enumerate(graph)
        if node.kind == "memory" and node.waited_for and index not in needed
    ]
    return total + max([0.0, *last])


def _carried(
    graph: Sequence[WorkNode],
    transitions: Sequence[float],
    exposed: Sequence[float],
    starts: Sequence[float],
    carried: Sequence[tuple[int, int]],
) -> float:
    """What dependences on the previous iteration add, once for each iteration but the first."""
    most: dict[tuple[int, int], float] = {}
    for source, index in carried:
        low, high = _loop(graph, index, source)
        passed = starts[high] + transitions[high] - starts[source] + starts[index] - starts[low]
        late = (exposed[source] - passed) * (min(graph[source].times, graph[index].times) - 1)
        most[low, high] = max(most.get((low, high), 0.0), late)
    return sum(most.values())


def _loop(graph: Sequence[WorkNode], low: int, high: int) -> tuple[int, int]:
    """The nodes around `low` to `high` with at least the trip count of these two."""
    iterations = min(node.times for node in graph[low : high + 1])
    while low > 0 and graph[low - 1].times >= iterations:
        low -= 1
    while high + 1 < len(graph) and graph[high + 1].times >= iterations:
        high += 1
    return low, high


def transition_computation(alpha: float, lambda_: float, latency: float, ilp: float, warps: float) -> float:
    """λ_comp^trans = α · max(λ_comp, Λ_comp / (ILP · ω)), Eq. 30."""
    return alpha * max(lambda_, latency / (ilp * warps))


def cyc_comp(transitions: float, lambda_instr: float, alpha_mem: float) -> float:
    """CYC_comp, Eq. 31 without its second α: all computing arcs, and the issue of the memory instructions."""
    return transitions + lambda_instr * alpha_mem


def transition_memory(lambda_instr: float, cyc_mem: float, cyc_comp: float, alpha_mem: float) -> float:
    """λ_mem^trans = λ_mem^instr + max(0, (CYC_mem − CYC_comp) / α_mem), Eq. 33."""
    return lambda_instr + max(0.0, (cyc_mem - cyc_comp) / alpha_mem)


def nbc_avg(cyc_comp: float, alpha_mem: float, alpha_sync: float) -> float:
    """NBC_avg = CYC_comp / (α_mem + α_sync + 1), Eq. 35."""
    return cyc_comp / (alpha_mem + alpha_sync + 1)


def latency_exposed(latency_mem: float, warps: float, nbc: float) -> float:
    """Λ_exposed = Λ_mem − (ω − 1) · NBC_avg, Eq. 36."""
    return latency_mem - (warps - 1) * nbc


@dataclass(frozen=True, slots=True)
class Arcs:
    """The weights at one occupancy: of each node's transition arc, and of a memory node's dependence arcs."""

    transitions: tuple[float, ...]
    exposed: tuple[float, ...]


def totals(graph: Sequence[WorkNode]) -> tuple[float, float]:
    """α_mem and α_sync."""
    return (
        sum(n.instructions * n.times for n in graph if n.kind == "memory"),
        sum(n.instructions * n.times for n in graph if n.kind == "barrier"),
    )


def block_ilp(node: WorkNode) -> float:
    """ILP_i of a block: the latencies of its instructions over the time that it takes alone."""
    return node.instructions * node.latency / node.alone if node.alone and node.latency else 1.0


def computing_arcs(graph: Sequence[WorkNode], warps: float) -> list[float]:
    """Eq. 30 for every node; 0 for memory nodes."""
    return [
        0.0
        if node.kind == "memory"
        else transition_computation(node.instructions, node.lambda_, node.latency, block_ilp(node), warps)
        for node in graph
    ]


def arcs_of(graph: Sequence[WorkNode], warps: float, lambda_mem: float, lambda_instr: float) -> Arcs:
    """Eqs. 30 to 36 on a graph."""
    alpha_mem, alpha_sync = totals(graph)
    transitions = computing_arcs(graph, warps)
    compute = cyc_comp(sum(t * node.times for t, node in zip(transitions, graph, strict=True)), lambda_instr, alpha_mem)
    nbc = nbc_avg(compute, alpha_mem, alpha_sync)
    memory = transition_memory(lambda_instr, alpha_mem * lambda_mem, compute, alpha_mem) if alpha_mem else 0.0
    return Arcs(
        tuple(memory if n.kind == "memory" else t for t, n in zip(transitions, graph, strict=True)),
        tuple(latency_exposed(n.latency, warps, nbc) if n.kind == "memory" else 0.0 for n in graph),
    )


def cycles_per_warp(graph: Sequence[WorkNode], arcs: Arcs) -> float:
    """CPW: the graph reduced."""
    return reduced(graph, arcs.transitions, arcs.exposed)


def issue_lambda(inputs: ModelInputs) -> float:
    """λ_mem^instr = λ_comp; without computations that of the issue limit, Volkov's generic issue latency."""
    if inputs.computation.count:
        return inputs.computation.lambda_
    return 1 / inputs.issue_rate if inputs.issue_rate else 0.0


def graph_of(inputs: ModelInputs) -> tuple[WorkNode, ...]:
    """The work-flow graph. Raises `NotApplicable` where it is empty."""
    if not inputs.graph:
        raise NotApplicable("the kernel has no instructions, so its work-flow graph is empty")
    return inputs.graph


def what_bounds(inputs: ModelInputs, graph: Sequence[WorkNode], arcs: Arcs, cycles: float) -> str:
    """``latency`` if the dependence arcs lengthen the path, else whichever of memory and computation takes longer."""
    if cycles > sum(t * node.times for t, node in zip(arcs.transitions, graph, strict=True)) * (1 + 1e-9):
        return "latency"
    computing = inputs.computation.count * inputs.computation.lambda_
    return "memory" if inputs.memory.count * inputs.memory.lambda_ > computing else "computation"


@run_model("wfg", "latencies on the arcs of a work-flow graph, as published (Baghsorkhi et al. 2010)")
def wfg(workload: CostedWorkload) -> Runs:
    """Eqs. 30 to 36 with both errors that the analysis finds."""
    inputs = inputs_of(workload)
    graph, lambda_instr = graph_of(inputs), issue_lambda(inputs)

    def run_of(warps: int) -> Run:
        arcs = arcs_of(graph, warps, inputs.memory.lambda_, lambda_instr)
        cycles = cycles_per_warp(graph, arcs)
        return Run(cycles * warps, what_bounds(inputs, graph, arcs, cycles))

    return Runs(run_of)


# The WFG model without its two errors.
#
# Lemeire, Cornelis and Konstantinidis, "Analysis of the analytical performance models for GPUs", §§2.4.3,
# 2.4.4 and 5.1: λ_mem^instr is 0, and in place of Eq. 36
#
#     Λ_exposed = Λ_mem/ω − max(0, (ω − 1)/ω · NBC_avg − α_i · Λ_comp / (ω · ILP_i))          (42)
#
# whose last term is the computation before the memory transaction (0 where there is none). Units: cycles of one SM. The
# exposed latency counts once for all warps, and computations that hide each other's latency hide no memory latency as
# well. Assumed: memory transactions depend on the computations before them. Since the model has one computing subsystem
# and no issue limit, its rate is capped at the roof (Eq. 1). All else is as in `wfg`.


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


@run_model("wfg_corrected", "the work-flow graph model with its two errors corrected (analysis §§2.4.3-2.4.4)")
def wfg_corrected(workload: CostedWorkload) -> Runs:
    """Eq. 42 and λ_mem^instr = 0, never above the roof."""
    inputs = inputs_of(workload)
    graph = graph_of(inputs)

    def run_of(warps: int) -> Run:
        arcs = corrected_arcs(graph, warps, inputs.memory.lambda_)
        cycles = cycles_per_warp(graph, arcs)
        if cycles * inputs.roof < 1:
            return Run(warps / inputs.roof, roof_side(inputs))
        return Run(cycles * warps, what_bounds(inputs, graph, arcs, cycles))

    return Runs(run_of)
