"""What model inputs are made of: the kinds of instructions with their counts, λ and Λ, and straight-line code."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

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


# The work-flow graph of a warp: blocks of computation, memory transactions and barriers, and their arcs.
#
# Baghsorkhi et al., "An adaptive performance modeling tool for GPU architectures" (2010), as Lemeire, Cornelis and
# Konstantinidis §2.4 describe it. Transition arcs follow the order of the nodes; a node's `needs` are its
# data-dependence arcs, from memory transactions only. A block of computation ends where the next instruction is a
# memory transaction or a barrier, or needs a memory transaction's result. Loops are not unrolled: a node represents all
# iterations.


@dataclass(frozen=True, slots=True)
class WorkNode:
    """A node of the graph, run `times` times by a warp.

    `kind` is ``computation``, ``memory`` or ``barrier``; `instructions` how many it holds, `lambda_` and `latency`
    their means in cycles, `ilp` instructions over groups that can issue together. `needs` are indices of memory nodes;
    an index not below the node's own refers to the previous iteration. `waited_for` is false for stores: no arc leaves
    them, not even to the warp's end. `alone` is the cycles that the instructions take in a lone warp, with those on one
    subsystem λ apart (as Λ_app, analysis Eq. 2).
    """

    kind: str
    instructions: int
    lambda_: float
    latency: float
    ilp: float
    times: int
    needs: tuple[int, ...] = ()
    waited_for: bool = True
    alone: float = 0.0


@dataclass
class _Draft:
    kind: str
    times: int
    line: list[int] = field(default_factory=list)
    needs: set[int] = field(default_factory=set)


def work_flow_graph(workload: CostedWorkload, path: CostedPath) -> tuple[WorkNode, ...]:
    """The graph of one path, its nodes in program order."""
    return tuple(_finished(workload, path, draft) for draft in _Builder(workload, path).build())


class _Builder:
    """Walks the program; `writers` holds which memory node last wrote each slot."""

    def __init__(self, workload: CostedWorkload, path: CostedPath) -> None:
        self.path = path
        self.kinds = [kind_of(workload, node) for node in path.nodes]
        self.drafts: list[_Draft] = []
        self.trace: list[tuple[int, int]] = []
        self.writers: dict[int, int] = {}
        self.carried: set[int] = set()
        self.fresh = True

    def build(self) -> list[_Draft]:
        self._items(self.path.program, 1)
        return self.drafts

    def _items(self, program: Sequence[Item], times: int) -> None:
        for item in program:
            if not isinstance(item, Repeat):
                self._add(item, times)
            elif item.count > 0:
                self._loop(item, times * item.count)

    def _loop(self, loop: Repeat, times: int) -> None:
        start, outer = len(self.trace), self.carried
        self.fresh = True
        if loop.count > 1:
            self.carried = outer | _last_memory_slots(self.path, self.kinds, loop.body)
        self._items(loop.body, times)
        self.fresh = True
        self.carried = outer
        if loop.count > 1:
            # State left by the previous iteration, as seen by the next one.
            for index, at in self.trace[start:]:
                self._connect(index, at)

    def _add(self, index: int, times: int) -> None:
        kind = self.kinds[index]
        node = self.path.nodes[index]
        waits = any(slot in self.writers or slot in self.carried for slot in node.waits)
        if kind in ("memory", "barrier"):
            self.drafts.append(_Draft(kind, times))
            self.fresh = True
        elif self.fresh or waits:
            self.drafts.append(_Draft("computation", times))
            self.fresh = False
        at = len(self.drafts) - 1
        self.drafts[at].line.append(index)
        self.trace.append((index, at))
        self._connect(index, at)

    def _connect(self, index: int, at: int) -> None:
        node = self.path.nodes[index]
        self.drafts[at].needs |= {self.writers[slot] for slot in node.waits if slot in self.writers}
        if node.sets < 0:
            return
        self.carried = self.carried - {node.sets}
        if self.kinds[index] == "memory":
            self.writers[node.sets] = at
        else:
            self.writers.pop(node.sets, None)


def _last_memory_slots(path: CostedPath, kinds: Sequence[str], program: Sequence[Item]) -> set[int]:
    """Slots whose last writer in a loop's body is a memory instruction."""
    found: set[int] = set()
    for item in program:
        if isinstance(item, Repeat):
            found |= _last_memory_slots(path, kinds, item.body)
        elif (slot := path.nodes[item].sets) >= 0:
            if kinds[item] == "memory":
                found.add(slot)
            else:
                found.discard(slot)
    return found


def _finished(workload: CostedWorkload, path: CostedPath, draft: _Draft) -> WorkNode:
    nodes = [path.nodes[index] for index in draft.line]
    count = len(nodes)
    return WorkNode(
        kind=draft.kind,
        instructions=count,
        lambda_=sum(own_lambda(workload, node) for node in nodes) / count,
        latency=sum(node.latency_ticks for node in nodes) / count / TICKS_PER_CYCLE,
        ilp=count / groups(producers_in(workload, path, draft.line), workload.in_order),
        times=draft.times,
        needs=tuple(sorted(draft.needs)),
        waited_for=not all(node.async_result for node in nodes),
        alone=_alone(nodes, producers_in(workload, path, draft.line)) / TICKS_PER_CYCLE,
    )


def _alone(nodes: Sequence[CostedNode], producers: Sequence[set[int]]) -> int:
    """Ticks from the first issue to the last result, each instruction after its producers' Λ."""
    starts: list[int] = []
    free: dict[int, int] = {}
    for node, needs in zip(nodes, producers, strict=True):
        ready = max((starts[place] + nodes[place].latency_ticks for place in needs), default=0)
        starts.append(max(ready, free.get(node.subsystem, 0)))
        free[node.subsystem] = starts[-1] + node.lambda_ticks
    return max(start + node.latency_ticks for start, node in zip(starts, nodes, strict=True))
