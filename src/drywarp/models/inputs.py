"""What the analytical models take, derived once from a bound workload.

Sim, Dasgupta, Kim, Vuduc, "A performance analysis framework for identifying potential benefits in GPGPU
applications" (2012), §5.3, derives these figures from binaries; the symbols are those of Lemeire, Cornelis
and Konstantinidis, "Analysis of the analytical performance models for GPUs", Table 2. Counts are per
mean warp of the grid. Times are cycles of one SM, which stands for all: λ of a subsystem that each of p
partitions has counts 1/p.

Memory instructions are those that reach beyond the SM (global, local, texture, asynchronous copies; in an
abstract kernel the classes that say so). Accesses to shared memory count as computation with their own
λ and Λ, as in the papers. Barriers are neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from ..bound import TICKS_PER_CYCLE, BoundNode, BoundWorkload
from .inputs_graph import WorkNode, work_flow_graph
from .inputs_intervals import Interval, intervals
from .inputs_parts import Part, kind_of, make_parts, scoped, transactions_of
from .inputs_straight import mean_ilp, mean_mlp
from .throughput import demand, path_weights
from .volkov import latency_bound

__all__ = ["Interval", "ModelInputs", "Part", "WorkNode", "inputs_of", "kind_of"]


@dataclass(frozen=True)
class ModelInputs:
    """What a workload asks and what its GPU gives, as the papers' models take it.

    Software. `computation` (α_comp, λ_comp, Λ_comp), `memory` (α_mem, λ_mem, Λ_mem) and `barrier` (α_sync)
    are together all instructions; `sfu`, `shared` and `fp` are parts of `computation`. λ_comp is that of the
    busiest computing subsystem and no less than the issue limit allows, λ_mem that of the slowest level of
    memory. `mixed_cycles` is Σ α·λ as if all computing instructions shared one subsystem. `by_class` divides the
    same by class, with each class's own λ and Λ; `busy` is Σλ of a warp per subsystem and of the issue valve.

    Parallelism within a warp, GPUPerf §5.3: `ilp` is instructions over groups that can issue together,
    `mlp` memory requests between a load and its first use, both as means over straight-line code weighed
    by how often it runs.

    Latencies: `latency_app` is Λ_app, a lone warp's time with the replacement of its block; `amat` the mean
    Λ over memory instructions (AMAT); `dram_latency` avg_DRAM_lat of GPUPerf Eq. 13 where the GPU gives
    DRAM_lat and Δ, else `amat`; `departure_delay` Δ, or λ_mem where the GPU gives none (analysis §2.3.4).

    Memory requests: `transactions` per access in the mean, `coalesced` and `uncoalesced` accesses per warp
    (one transaction each, and more than one), `uncoalesced_transactions` per uncoalesced access.
    `conflict_cycles` per warp are lost to bank conflicts.

    Structure: `intervals` of the representative warp at one instruction a cycle, each ending in a stall;
    `memory_intervals` the same where only memory instructions have a latency; `graph` the work-flow graph.

    Machine and launch: `roof` is Roofline's WPC and `roof_bound` its subsystem; `issue_rate` instructions a
    cycle of one SM (None: no limit); `warps` N at the launch's own occupancy; `total_warps` of the grid;
    `repetitions` N_pw = waves of blocks, at least 1; `active_sms`; `memory_gbs` of the GPU's pins (None: not
    known); `parameters` all further facts of the GPU file.
    """

    computation: Part
    memory: Part
    barrier: Part
    sfu: Part
    shared: Part
    fp: Part
    by_class: Mapping[str, Part]
    mixed_cycles: float
    busy: Mapping[str, float]
    ilp: float
    mlp: float
    latency_app: float
    amat: float
    dram_latency: float
    departure_delay: float
    transactions: float
    coalesced: float
    uncoalesced: float
    uncoalesced_transactions: float
    conflict_cycles: float
    intervals: tuple[Interval, ...]
    memory_intervals: tuple[Interval, ...]
    graph: tuple[WorkNode, ...]
    roof: float
    roof_bound: str
    issue_rate: float | None
    warps_per_block: int
    blocks_per_sm: int
    warps: int
    total_warps: int
    repetitions: float
    active_sms: int
    sm_count: int
    clock_hz: float
    memory_gbs: float | None
    data_bytes: float | None
    parameters: Mapping[str, float]

    @property
    def instructions(self) -> float:
        """All warp instructions of a mean warp."""
        return self.computation.count + self.memory.count + self.barrier.count

    @property
    def intensity(self) -> float:
        """CI = α_comp / α_mem; infinite without memory instructions."""
        return self.computation.count / self.memory.count if self.memory.count else float("inf")

    @property
    def periods(self) -> float:
        """P, compute periods of a warp: as many as memory instructions."""
        return self.memory.count


@lru_cache(maxsize=8)
def inputs_of(workload: BoundWorkload) -> ModelInputs:
    """The inputs of all models; derived once for a workload, however many models ask."""
    weights = path_weights(workload)
    parts = make_parts(workload, weights)
    needs = demand(workload)
    representative = workload.paths[_representative(workload, weights)]
    is_memory = [kind_of(workload, node) == "memory" for node in representative.nodes]
    parameters = workload.parameters
    split = transactions_of(workload, weights)
    amat = parts.memory.latency
    delay = parameters.get("departure_delay", parts.memory.lambda_)
    dram = parameters.get("dram_latency")
    sms, blocks = workload.sm_count, workload.blocks
    if workload.runs:
        blocks = workload.blocks_per_sm * sms * workload.runs
    return ModelInputs(
        computation=parts.computation,
        memory=parts.memory,
        barrier=parts.barrier,
        sfu=parts.sfu,
        shared=parts.shared,
        fp=parts.fp,
        by_class=parts.by_class,
        mixed_cycles=parts.mixed_cycles,
        busy=needs.cycles,
        ilp=mean_ilp(workload, weights),
        mlp=mean_mlp(workload, weights),
        latency_app=latency_bound(workload),
        amat=amat,
        dram_latency=amat if dram is None else dram + (max(1.0, split.per_access) - 1) * delay,
        departure_delay=delay,
        transactions=split.per_access,
        coalesced=split.coalesced,
        uncoalesced=split.uncoalesced,
        uncoalesced_transactions=split.per_uncoalesced,
        conflict_cycles=_conflicts(workload, weights),
        intervals=intervals(representative, is_memory),
        memory_intervals=intervals(representative, is_memory, memory_only=True),
        graph=work_flow_graph(workload, representative),
        roof=needs.warps_per_cycle,
        roof_bound=needs.bound,
        issue_rate=TICKS_PER_CYCLE * workload.partitions / workload.issue_ticks if workload.issue_ticks else None,
        warps_per_block=workload.warps_per_block,
        blocks_per_sm=workload.blocks_per_sm,
        warps=workload.warps_per_sm,
        total_warps=blocks * workload.warps_per_block,
        repetitions=max(1.0, blocks / (workload.blocks_per_sm * sms)),
        active_sms=min(sms, blocks),
        sm_count=sms,
        clock_hz=workload.clock_hz,
        memory_gbs=parameters.get("memory_gbs"),
        data_bytes=workload.data_bytes,
        parameters=parameters,
    )


def _representative(workload: BoundWorkload, weights: list[float]) -> int:
    """The path that most warps follow, the longest of equals."""
    return max(range(len(weights)), key=lambda path: (weights[path], workload.paths[path].length))


def _conflicts(workload: BoundWorkload, weights: list[float]) -> float:
    def lost(node: BoundNode) -> float:
        return scoped(workload, node, node.conflict_ticks)

    return sum(
        weight * count * lost(node)
        for path, weight in zip(workload.paths, weights, strict=True)
        for node, count in zip(path.nodes, path.counts(), strict=True)
    )
