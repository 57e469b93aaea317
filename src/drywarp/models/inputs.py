"""Inputs of the analytical models, derived once from a workload with its costs.

Sim, Dasgupta, Kim, Vuduc, "A performance analysis framework for identifying potential benefits in GPGPU
applications" (2012), §5.3, derives these figures from binaries; the symbols are those of Lemeire, Cornelis
and Konstantinidis, "Analysis of the analytical performance models for GPUs", Table 2. Counts are per
mean warp of the grid. Times are cycles of one SM, which stands for all: λ of a subsystem that each of p
partitions has counts 1/p.

Memory instructions are those that access memory beyond the SM (global, local, texture, asynchronous copies; in an
abstract kernel the classes declared so). Accesses to shared memory count as computation with their own λ and Λ, as in
the papers. Barriers count as neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..workload.cost import TICKS_PER_CYCLE, CostedNode, CostedPath, CostedWorkload, Item, Repeat
from .inputs_parts import (
    Part,
    kind_of,
    make_parts,
    mean_ilp,
    mean_mlp,
    memory_latency,
    scoped,
    transactions_of,
)
from .throughput import demand, path_weights
from .volkov import latency_bound
from .work_flow_graph import WorkNode, work_flow_graph

# The intervals of a warp as GPUMech defines them: instructions that issue one per cycle, then a stall.
#
# Huang, Lee, Kim, Lee, "GPUMech: GPU performance modeling technique based on interval analysis" (2014), as Volkov
# describes it (§7.6). The warp runs alone and in program order, one instruction per cycle, and stalls if an operand is
# not ready; the last stall lasts until all results are ready. Loops are not unrolled: once an iteration begins in the
# same state as the previous one, the rest are only counted.

MOST_ITERATIONS = 1000
"""Iterations of a loop after which the rest are assumed to equal the last one, even if they still differ."""


@dataclass(frozen=True, slots=True)
class Interval:
    """This many instructions at one per cycle, then `stall` cycles in which the warp issues nothing.

    It occurs `times` times. `memory` says whether the stall waits for a memory instruction.
    """

    instructions: int
    stall: float
    times: int = 1
    memory: bool = False


def intervals(path: CostedPath, memory: Sequence[bool], memory_only: bool = False) -> tuple[Interval, ...]:
    """The intervals of a warp on `path`; `memory` marks its memory instructions.

    With `memory_only`, every other instruction takes only its issue cycle.
    """
    return _Walk(path, memory, memory_only).run()


class _Walk:
    """A warp being followed: times are ticks, and those of the slots count from the next issue."""

    def __init__(self, path: CostedPath, memory: Sequence[bool], memory_only: bool) -> None:
        self.path, self.memory, self.memory_only = path, memory, memory_only
        self.now = 0
        self.open = 0
        self.earliest = 0
        self.last = 0
        self.last_memory = False
        self.ready = [0] * path.slots
        self.from_memory = [False] * path.slots
        self.closed: list[Interval] = []

    def run(self) -> tuple[Interval, ...]:
        self._items(self.path.program)
        if self.open:
            stall = max(0, self.last - self.now)
            self.closed.append(Interval(self.open, stall / TICKS_PER_CYCLE, 1, self.last_memory and stall > 0))
        return tuple(_joined(self.closed))

    def _items(self, program: Sequence[Item]) -> None:
        for item in program:
            if isinstance(item, Repeat):
                self._loop(item)
            else:
                self._issue(item)

    def _loop(self, loop: Repeat) -> None:
        for iteration in range(loop.count):
            before, open_, now, count = self._state(), self.open, self.now, len(self.closed)
            outer, outer_memory, self.last = self.last, self.last_memory, 0
            self._items(loop.body)
            inner, inner_memory = self.last, self.last_memory
            self._end(outer, outer_memory, inner, inner_memory)
            rest = loop.count - iteration - 1
            if rest <= 0 or (self._state() != before and iteration < MOST_ITERATIONS):
                continue
            if len(self.closed) == count:
                # No stall: the open interval grows by the same amount in each iteration.
                grown, passed = self.open - open_, self.now - now
                self.open += rest * grown
            elif self.open == open_:
                passed = self.now - now
                again = [Interval(i.instructions, i.stall, i.times * rest, i.memory) for i in self.closed[count:]]
                self.closed += again
            else:
                continue
            ticks = rest * passed
            self.now += ticks
            self.earliest += ticks
            self.ready = [ready + ticks for ready in self.ready]
            self._end(outer, outer_memory, inner + ticks, inner_memory)
            return

    def _end(self, outer: int, outer_memory: bool, inner: int, inner_memory: bool) -> None:
        """When all results so far are ready: those from before an iteration, and its own."""
        self.last, self.last_memory = (inner, inner_memory) if inner > outer else (outer, outer_memory)

    def _state(self) -> tuple[int, ...]:
        """The state on which the remaining iterations depend, as seen from now."""
        return (self.earliest - self.now, *(max(0, ready - self.now) for ready in self.ready), *self.from_memory)

    def _issue(self, index: int) -> None:
        node = self.path.nodes[index]
        waited = max(node.waits, key=lambda slot: self.ready[slot], default=-1)
        ready = self.ready[waited] if waited >= 0 else 0
        start = max(self.now, self.earliest, ready) + (0 if self.memory_only else node.miss_ticks)
        if start > self.now:
            memory = ready > max(self.now, self.earliest) and self.from_memory[waited]
            self.closed.append(Interval(self.open, (start - self.now) / TICKS_PER_CYCLE, 1, memory))
            self.open = 0
        memory = self.memory[index]
        latency = node.latency_ticks if memory or not self.memory_only else 0
        self.open += 1
        self.now = start + TICKS_PER_CYCLE
        ready = start + latency
        if node.async_result:
            ready = self.now
        if node.sets >= 0:
            self.ready[node.sets] = max(self.ready[node.sets], ready)
            self.from_memory[node.sets] = memory
        if node.stall_ticks > TICKS_PER_CYCLE and not self.memory_only:
            # The compiler's distance to the next instruction, if it encodes the fixed latencies.
            self.earliest = start + node.stall_ticks
        else:
            self.earliest = self.now
        if ready > self.last:
            self.last, self.last_memory = ready, memory


def _joined(closed: Sequence[Interval]) -> list[Interval]:
    """Equal neighbours merged."""
    joined: list[Interval] = []
    for interval in closed:
        if joined and (last := joined[-1]) and _alike(last, interval):
            joined[-1] = Interval(last.instructions, last.stall, last.times + interval.times, last.memory)
        else:
            joined.append(interval)
    return joined


def _alike(one: Interval, other: Interval) -> bool:
    return (one.instructions, one.stall, one.memory) == (other.instructions, other.stall, other.memory)


@dataclass(frozen=True)
class ModelInputs:
    """The demands of a workload and the capacities of its GPU, in the papers' terms.

    Software. `computation` (α_comp, λ_comp, Λ_comp), `memory` (α_mem, λ_mem, Λ_mem) and `barrier` (α_sync) are together
    all instructions; `sfu`, `shared` and `fp` are parts of `computation`. λ_comp is that of the busiest computing
    subsystem, but at least that of the issue limit; λ_mem that of the slowest level of memory. `mixed_cycles` is Σ α·λ
    as if all computing instructions shared one subsystem. `by_class` divides the same by class, with each class's own λ
    and Λ; `busy` is Σλ of a warp per subsystem and of the issue valve.

    Parallelism within a warp, GPUPerf §5.3: `ilp` is instructions over groups that can issue together, `mlp` memory
    requests between a load and its first use, both as means over straight-line code, weighted by execution count.

    Latencies: `latency_app` is Λ_app, a lone warp's time with the replacement of its block; `dram_latency`
    avg_DRAM_lat of GPUPerf Eq. 13 where the GPU gives DRAM_lat, else the mean Λ over memory instructions; `amat` is
    AMAT of Eq. 12: that latency times `miss_ratio`, the share of accesses that DRAM serves, plus what hits take of the
    mean Λ; `departure_delay` Δ, or λ_mem where the GPU gives none (analysis §2.3.4), which an access's transactions
    share.

    Memory requests: mean `transactions` per access, `coalesced` and `uncoalesced` accesses per warp
    (one transaction each, and more than one), `uncoalesced_transactions` per uncoalesced access.
    `conflict_cycles` per warp are lost to bank conflicts. `idle` is the warp instructions that inactive lanes amount to
    (`CostedPath.idle`).

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
    miss_ratio: float
    dram_latency: float
    departure_delay: float
    transactions: float
    coalesced: float
    uncoalesced: float
    uncoalesced_transactions: float
    conflict_cycles: float
    idle: float
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
def inputs_of(workload: CostedWorkload) -> ModelInputs:
    """The inputs of all models; derived once per workload, for any number of models."""
    weights = path_weights(workload)
    parts = make_parts(workload, weights)
    needs = demand(workload)
    representative = workload.paths[_representative(workload, weights)]
    is_memory = [kind_of(workload, node) == "memory" for node in representative.nodes]
    parameters = workload.parameters
    split = transactions_of(workload, weights)
    served = memory_latency(parameters, parts.memory, split)
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
        amat=served.amat,
        miss_ratio=split.dram_share,
        dram_latency=served.dram,
        departure_delay=parameters.get("departure_delay", parts.memory.lambda_),
        transactions=split.per_access,
        coalesced=split.coalesced,
        uncoalesced=split.uncoalesced,
        uncoalesced_transactions=split.per_uncoalesced,
        conflict_cycles=_conflicts(workload, weights),
        idle=sum(weight * path.idle for path, weight in zip(workload.paths, weights, strict=True)),
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


def _representative(workload: CostedWorkload, weights: list[float]) -> int:
    """The path that most warps follow; the longest if several."""
    return max(range(len(weights)), key=lambda path: (weights[path], workload.paths[path].length))


def _conflicts(workload: CostedWorkload, weights: list[float]) -> float:
    def lost(node: CostedNode) -> float:
        return scoped(workload, node, node.conflict_ticks)

    return sum(
        weight * count * lost(node)
        for path, weight in zip(workload.paths, weights, strict=True)
        for node, count in zip(path.nodes, path.counts(), strict=True)
    )


__all__ = ["Interval", "ModelInputs", "Part", "WorkNode", "inputs_of", "kind_of"]


def roof_side(inputs: ModelInputs) -> str:
    """``memory`` if the memory instructions' Σλ is that of the busiest subsystem, else ``computation``."""
    busiest = inputs.busy.get(inputs.roof_bound, 0.0)
    return "memory" if busiest <= inputs.memory.count * inputs.memory.lambda_ else "computation"
