"""What model inputs are made of: the kinds of instructions with their counts, λ and Λ, and straight-line code."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..workload.cost import TICKS_PER_CYCLE, CostedNode, CostedPath, CostedWorkload, Item, Level, Repeat
from .gpuperf_terms import amat, average, avg_dram_lat

MEMORY = (
    *("global_load", "global_store", "global_atomic", "local_load", "local_store", "texture"),
    *("async_copy", "bulk_copy"),
)
SHARED = ("shared_load", "shared_store", "shared_atomic")
FLOATING = ("fp32", "fp16", "fp64", "tensor", "wgmma")
KINDS = ("computation", "fp", "sfu", "shared", "memory", "barrier")
"""Permitted values of `CostedWorkload.kinds`; all but the last two are computation."""


@dataclass(frozen=True, slots=True)
class Part:
    """Instructions of one kind: α per mean warp, and their mean λ and Λ in cycles (0 if there are none)."""

    count: float = 0.0
    lambda_: float = 0.0
    latency: float = 0.0


@dataclass(frozen=True)
class Parts:
    """The instructions of a mean warp by kind, and by class."""

    computation: Part
    memory: Part
    barrier: Part
    sfu: Part
    shared: Part
    fp: Part
    by_class: dict[str, Part]
    mixed_cycles: float
    """Σ α · λ over all computing instructions, as if they shared one subsystem."""


@dataclass(frozen=True, slots=True)
class Transactions:
    """How a warp's accesses split: means per access, and accesses with one transaction and with several.

    `dram_share` is the share of the accesses that DRAM serves.
    """

    per_access: float
    coalesced: float
    uncoalesced: float
    per_uncoalesced: float
    dram_share: float


@dataclass(frozen=True, slots=True)
class Latency:
    """AMAT and avg_DRAM_lat, in cycles (GPUPerf Eqs. 12 and 13)."""

    amat: float
    dram: float


def kind_of(workload: CostedWorkload, node: CostedNode) -> str:
    """The kind of an instruction, one of `KINDS`: as the workload states, else by the class's name."""
    name = node.class_
    if node.barrier:
        return "barrier"
    if name in workload.kinds:
        return workload.kinds[name]
    if name in MEMORY:
        return "memory"
    if name in SHARED:
        return "shared"
    if name in FLOATING:
        return "fp"
    return "sfu" if name == "sfu" else "computation"


def scoped(workload: CostedWorkload, at: CostedNode | Level, ticks: float) -> float:
    """A λ in cycles of the whole SM, of an instruction or of one of its visits."""
    inside = workload.subsystems[at.subsystem].scope == "partition"
    return ticks / TICKS_PER_CYCLE / (workload.partitions if inside else 1)


def own_lambda(workload: CostedWorkload, node: CostedNode) -> float:
    """λ of an instruction on its own subsystem, where it may also queue without blocking its warp."""
    queued = sum(level.lambda_ticks for level in node.levels if level.subsystem == node.subsystem)
    return scoped(workload, node, node.lambda_ticks + queued)


def weighed(workload: CostedWorkload, weights: list[float]) -> Iterator[tuple[CostedNode, float]]:
    """Every node of every path with how often a mean warp runs it."""
    for path, weight in zip(workload.paths, weights, strict=True):
        if weight:
            for node, count in zip(path.nodes, path.counts(), strict=True):
                if count:
                    yield node, weight * count


def make_parts(workload: CostedWorkload, weights: list[float]) -> Parts:
    """Counts and means of each kind and class.

    λ of computation is that of the busiest computing subsystem, or of the issue limit: subsystems work in parallel, so
    a warp occupies the machine no longer than the busiest of them.
    """
    kinds = {kind: [0.0, 0.0, 0.0] for kind in KINDS}
    classes: dict[str, list[float]] = {}
    levels: dict[int, float] = {}
    events = 0.0
    computing: dict[int, float] = {}
    for node, times in weighed(workload, weights):
        kind = kind_of(workload, node)
        lambda_ = own_lambda(workload, node)
        for total in (kinds[kind], classes.setdefault(node.class_, [0.0, 0.0, 0.0])):
            total[0] += times
            total[1] += times * lambda_
            total[2] += times * node.latency_ticks / TICKS_PER_CYCLE
        if kind in KINDS[:-2]:
            events += times * node.issues
            computing[node.subsystem] = computing.get(node.subsystem, 0.0) + times * lambda_
            for level in node.levels:  # the tensor core and the shared memory of a warp-group product
                if level.subsystem != node.subsystem:
                    cycles = times * scoped(workload, level, level.lambda_ticks)
                    computing[level.subsystem] = computing.get(level.subsystem, 0.0) + cycles
        for level in node.levels if kind == "memory" else ():
            levels[level.subsystem] = levels.get(level.subsystem, 0.0) + times * level.lambda_ticks / TICKS_PER_CYCLE
    own = kinds["memory"]
    memory = (own[0], max(own[1], *levels.values()) if levels else own[1], own[2])
    computation = [sum(kinds[kind][i] for kind in KINDS[:-2]) for i in range(3)]
    issue = workload.issue_ticks / TICKS_PER_CYCLE / workload.partitions
    least = events * issue
    mixed = max(computation[1], least)
    computation[1] = max(least, *computing.values()) if computing else least
    return Parts(
        computation=_mean(*computation),
        memory=_mean(*memory),
        barrier=_mean(*kinds["barrier"]),
        sfu=_mean(*kinds["sfu"]),
        shared=_mean(*kinds["shared"]),
        fp=_mean(*kinds["fp"]),
        by_class={name: _mean(*total) for name, total in sorted(classes.items(), key=lambda item: -item[1][0])},
        mixed_cycles=mixed,
    )


def _mean(count: float, lambda_: float, latency: float) -> Part:
    return Part(count, lambda_ / count, latency / count) if count else Part()


def transactions_of(workload: CostedWorkload, weights: list[float]) -> Transactions:
    """Coalesced and uncoalesced accesses; one whose transactions are not known counts as one."""
    single = several = total = split = far = 0.0
    for node, times in weighed(workload, weights):
        if kind_of(workload, node) != "memory":
            continue
        each = max(1.0, node.transactions)
        total += times * each
        far += times * node.dram_share
        if each > 1:
            several += times
            split += times * each
        else:
            single += times
    accesses = single + several
    if not accesses:
        return Transactions(0.0, 0.0, 0.0, 0.0, 0.0)
    per_uncoalesced = split / several if several else 0.0
    return Transactions(total / accesses, single, several, per_uncoalesced, far / accesses)


def memory_latency(parameters: Mapping[str, float], memory: Part, split: Transactions) -> Latency:
    """GPUPerf's Eqs. 12 and 13 from the mean λ and Λ of memory instructions.

    What hits take is the part of the mean Λ that is not DRAM_lat on a miss: the sum over the levels that Eq. 12 leaves
    out "for brevity". A GPU that gives no Δ serves an access's transactions within its λ_mem.
    """
    base = parameters.get("dram_latency")
    if base is None:
        return Latency(memory.latency, memory.latency)
    transactions = max(1.0, split.per_access)
    delta = parameters.get("departure_delay", memory.lambda_ / transactions)
    far = avg_dram_lat(base, transactions, delta)
    hits = max(0.0, memory.latency - base * split.dram_share)
    return Latency(amat(far, split.dram_share, hits), far)


# Source of each model input, as GPUPerf's collector (Sim et al. 2012, §5) gives it in its Table 3.
#
# ``static``: the machine code and its control-flow graph; ``emulated``: an emulated run; ``profile``: a profiler's
# counters; ``user``: the launch, an option or an abstract kernel file; ``gpu``: the GPU file.

STATIC, EMULATED, PROFILE, USER, GPU = "static", "emulated", "profile", "user", "gpu"

_LAUNCH = ("warps_per_block", "total_warps", "repetitions")
_MACHINE = ("sm_count", "active_sms", "clock_hz", "memory_gbs", "parameters", "issue_rate", "departure_delay")
_COUNTS = ("computation", "memory", "barrier", "sfu", "shared", "fp", "by_class", "busy", "mixed_cycles", "roof")
_ACCESSES = (
    *("transactions", "coalesced", "uncoalesced", "uncoalesced_transactions", "conflict_cycles"),
    *("amat", "miss_ratio", "dram_latency", "data_bytes", "idle"),
)
_STRUCTURE = ("ilp", "mlp", "latency_app", "intervals", "memory_intervals", "graph")
_FITS = ("warps", "blocks_per_sm")


def sources_of_kernel(measured_memory: bool, measured_counts: bool) -> dict[str, str]:
    """Sources of each input for a real kernel; several sources are joined by a plus."""
    counts = f"{PROFILE}+{STATIC}" if measured_counts else f"{EMULATED}+{STATIC}"
    accesses = PROFILE if measured_memory else EMULATED
    return {
        **dict.fromkeys(_COUNTS, counts),
        **dict.fromkeys(_ACCESSES, f"{accesses}+{GPU}"),
        **dict.fromkeys(_STRUCTURE, f"{STATIC}+{EMULATED}"),
        **dict.fromkeys(_FITS, f"{STATIC}+{USER}+{GPU}"),
        **dict.fromkeys(_LAUNCH, USER),
        **dict.fromkeys(_MACHINE, GPU),
        "roof_bound": counts,
        "ilp": STATIC + f"+{EMULATED}",
    }


def sources_of_file() -> dict[str, str]:
    """The same for an abstract kernel, which defines everything except the machine."""
    said = (*_COUNTS, *_ACCESSES, *_STRUCTURE, *_LAUNCH, *_FITS, "roof_bound")
    return {**dict.fromkeys(said, USER), **dict.fromkeys(_MACHINE, GPU)}


def in_words(sources: Mapping[str, str]) -> list[tuple[str, str]]:
    """Each source and the inputs that came from it, for a reader."""
    groups: dict[str, list[str]] = {}
    for name, source in sources.items():
        groups.setdefault(source, []).append(name)
    return [(source, ", ".join(names)) for source, names in sorted(groups.items())]


# Straight-line code of a path, and the parallelism in it: ILP and MLP as GPUPerf §5.3 counts them.
#
# A straight line is a maximal run of instructions between the ends of loops; branches that a path takes are part of it.
# GPUPerf averages over basic blocks, weighted by execution count. (In print it divides by the number of blocks; the sum
# of the weights is meant.)

LONGEST_LINE = 1 << 17
"""A longer line, such as a trace in which no loop was recognised, is represented by its beginning."""


def straight_lines(program: Sequence[Item], times: int = 1) -> Iterator[tuple[tuple[int, ...], int]]:
    """Runs of node indices, in order, with how often a warp runs each."""
    run: list[int] = []
    for item in program:
        if not isinstance(item, Repeat):
            run.append(item)
            continue
        if run:
            yield tuple(run), times
            run = []
        if item.count > 0:
            yield from straight_lines(item.body, times * item.count)
    if run:
        yield tuple(run), times


def producers_in(workload: CostedWorkload, path: CostedPath, line: Sequence[int]) -> list[set[int]]:
    """For each place of a straight line, the earlier places in it whose results it needs."""
    found: list[set[int]] = []
    by_instruction: dict[int, int] = {}
    by_slot: dict[int, int] = {}
    for place, index in enumerate(line):
        node = path.nodes[index]
        needs = {by_slot[slot] for slot in node.waits if slot in by_slot}
        if workload.producers:
            needs |= {by_instruction[i] for i in workload.producers[node.instruction] if i in by_instruction}
        found.append(needs)
        by_instruction[node.instruction] = place
        if node.sets >= 0:
            by_slot[node.sets] = place
    return found


def groups(producers: Sequence[set[int]], in_order: bool) -> int:
    """Groups of instructions that can issue together: consecutive ones where warps issue in order,
    else the length of the longest chain of dependences."""
    if in_order:
        count, first = 0, len(producers)
        for place, needs in enumerate(producers):
            if place == 0 or any(producer >= first for producer in needs):
                count, first = count + 1, place
        return count
    depth: list[int] = []
    for needs in producers:
        depth.append(1 + max((depth[producer] for producer in needs), default=0))
    return max(depth, default=0)


def mean_ilp(workload: CostedWorkload, weights: Sequence[float]) -> float:
    """ILP: instructions over groups, as a mean over straight lines weighted by execution count."""

    def local(path: CostedPath, line: Sequence[int]) -> float | None:
        return len(line) / groups(producers_in(workload, path, line), workload.in_order)

    return _mean_over_lines(workload, weights, local)


def mean_mlp(workload: CostedWorkload, weights: Sequence[float]) -> float:
    """MLP: memory requests from a load to its first use, itself included; 1 if nothing is loaded."""

    def local(path: CostedPath, line: Sequence[int]) -> float | None:
        memory = [place for place, i in enumerate(line) if kind_of(workload, path.nodes[i]) == "memory"]
        loads = [place for place in memory if not path.nodes[line[place]].async_result]
        if not loads:
            return 1.0 if memory else None
        first_use: dict[int, int] = {}
        for place, needs in enumerate(producers_in(workload, path, line)):
            for producer in needs:
                first_use.setdefault(producer, place)
        spans = (bisect_left(memory, first_use.get(load, len(line))) - bisect_left(memory, load) for load in loads)
        return sum(spans) / len(loads)

    return _mean_over_lines(workload, weights, local)


def _mean_over_lines(
    workload: CostedWorkload, weights: Sequence[float], local: Callable[[CostedPath, Sequence[int]], float | None]
) -> float:
    """§5.3's average of a straight line's figure over those that have one; 1 if none has."""
    found: list[tuple[float, float]] = []
    for path, weight in zip(workload.paths, weights, strict=True):
        for line, times in straight_lines(path.program) if weight else ():
            value = local(path, line[:LONGEST_LINE])
            if value is not None:
                found.append((value, weight * times))
    return average(found)
