"""A workload with its costs on one GPU: the only form that models and the pipeline simulation take.

`cost_model.py` derives it from a `Workload`, the memory behaviour and a `Gpu`; an abstract kernel file is converted
directly. Times are ticks: 1/240 of an SM cycle, exact integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

T = TypeVar("T")

TICKS_PER_CYCLE = 240
"""λ and Λ are multiples of 1/240 cycle (design: the meaning of the simulation)."""


def to_ticks(cycles: float) -> int:
    """Round a time in cycles to whole ticks, halves up."""
    return int(cycles * TICKS_PER_CYCLE + 0.5)


SYNC_SIGNALS, SYNC_AT_END, SYNC_AWAITS = 1, 2, 4
"""The effect of a node on its block's barrier phases, see `CostedNode.sync`."""


@dataclass(frozen=True, slots=True)
class Subsystem:
    """A pipeline of the machine. `scope` is ``partition`` (one in each) or ``sm`` (shared by all).

    A subsystem with `upstream` true blocks the warp's issue. With `upstream` false (L2, DRAM), a memory transaction
    visits it after issue and queues there without blocking the warp. `outstanding` is the maximum number of
    instructions between issue and completion there (0: no limit).
    """

    name: str
    scope: str
    upstream: bool = True
    outstanding: int = 0


@dataclass(frozen=True, slots=True)
class Level:
    """A visit of a memory transaction to a further subsystem: λ in ticks with all SMs active.

    `tail_ticks` is λ when only the SMs of the partial last wave are active. A visit without `queues` delays others by
    its λ, but is itself served immediately.
    """

    subsystem: int
    lambda_ticks: int
    tail_ticks: int
    queues: bool = True


@dataclass(frozen=True, slots=True)
class CostedNode:
    """An instruction with its costs on this GPU.

    `instruction` is its index in the kernel (or in the abstract file), `subsystem` an index into
    `CostedWorkload.subsystems`. It issues no earlier than `miss_ticks`, its wait for a constant among its operands,
    after each slot in `waits` is ready (0 where warps issue out of order); after it, the valve stays shut for
    `held_ticks` longer than an issue. `sets` (or -1) is the slot that becomes ready Λ = `latency_ticks` after issue
    plus what `levels` add by queueing; `sets_read` (or -1) the one that becomes ready `read_ticks` after issue. The
    warp's next instruction issues no earlier than `stall_ticks` after this one. A `barrier` node blocks the warp
    until every warp of its block has issued it, then Λ more. `async_result` marks a store: nothing waits for it,
    and it completes when the last level has accepted it.

    Barriers among some of a block's warps: `sync` is a sum of SYNC_SIGNALS (it signals phases: the warp's
    `CostedPath.events` name them), SYNC_AT_END (it signals at completion, not at issue; and if `after` is a slot, not
    before that is ready) and SYNC_AWAITS (after issue, the warp resumes Λ after the phase is complete).

    `register_ticks` is how long its operands occupy the even and the odd bank of the register file. If a bank has not
    delivered them `CostedWorkload.read_window_ticks` after issue, it and all behind it are delayed. `stays`
    says whether a greedy policy may stay with the warp after it. `issues` is how many issue events it takes (Volkov
    2016, §3.6): 0 if it is dual-issued with the instruction before it, 2 if it is reissued once.

    Read by analytical models only: `transactions`, the number that one warp's memory access splits into (0: not an
    access, or not known), `conflict_ticks`, the part of λ that shared-memory bank conflicts add, and `dram_share`, the
    share of an access that DRAM serves (0: none, or not known).
    """

    instruction: int
    class_: str
    subsystem: int
    lambda_ticks: int
    latency_ticks: int
    stall_ticks: int = 0
    waits: tuple[int, ...] = ()
    sets: int = -1
    sets_read: int = -1
    read_ticks: int = 0
    barrier: bool = False
    async_result: bool = False
    levels: tuple[Level, ...] = ()
    transactions: float = 0.0
    conflict_ticks: int = 0
    dram_share: float = 0.0
    sync: int = 0
    after: int = -1
    register_ticks: tuple[int, int] = (0, 0)
    miss_ticks: int = 0
    held_ticks: int = 0
    stays: bool = True
    issues: int = 1

    @property
    def queued(self) -> bool:
        """Whether the subsystem itself is among the `levels`: it issues at once and waits there, not in its warp."""
        return any(level.subsystem == self.subsystem for level in self.levels)

    @property
    def goes_on(self) -> bool:
        """Whether it visits further levels at which it may have to wait."""
        return any(level.queues for level in self.levels)


@dataclass(frozen=True, slots=True)
class Repeat:
    """A loop kept as a loop: `body` is run `count` times."""

    count: int
    body: tuple[Item, ...]


Item = int | Repeat
"""A node index, or a loop over items."""


@dataclass(frozen=True)
class CostedPath:
    """One distinct warp path: its nodes, and the order they run in with loops kept as loops.

    `slots` is the number of dependence slots that the nodes use. A slot is like a register: a wait
    refers to its latest writers, and several outstanding writers must all be done.

    `events` holds for every execution of every node with `sync`, in program order: the number of phases that it
    signals, those phases, and with SYNC_AWAITS the phase that it awaits (-1: none). Phases are numbered within a block,
    so warps that name the same phase synchronise there. `signals` counts, by phase, how often this path signals it; a
    phase is complete when all of the block's warps have signalled as often as their paths specify.

    Read by analytical models only: `idle`, the warp instructions that the lanes which are off are worth: Σ over the
    executed instructions of the share of the warp's lanes that is off (0: none, or not known).
    """

    nodes: tuple[CostedNode, ...]
    program: tuple[Item, ...]
    slots: int
    events: tuple[int, ...] = ()
    signals: tuple[int, ...] = ()
    idle: float = 0.0

    @cached_property
    def length(self) -> int:
        """Dynamic warp instructions of one warp."""
        return length_of(self.program)

    def expand(self) -> Iterator[int]:
        """Node indices in the order in which a warp runs them, loops unrolled."""
        return _expand(self.program)

    def counts(self) -> list[int]:
        """How often one warp runs each node, without unrolling."""
        total = [0] * len(self.nodes)
        _count(self.program, 1, total)
        return total


def length_of(program: tuple[Item, ...]) -> int:
    """Dynamic instructions of a program."""
    return sum(item.count * length_of(item.body) if isinstance(item, Repeat) else 1 for item in program)


def _expand(program: tuple[Item, ...]) -> Iterator[int]:
    for item in program:
        if isinstance(item, Repeat):
            for _ in range(item.count):
                yield from _expand(item.body)
        else:
            yield item


def _count(program: tuple[Item, ...], times: int, total: list[int]) -> None:
    for item in program:
        if isinstance(item, Repeat):
            _count(item.body, times * item.count, total)
        else:
            total[item] += times


@dataclass(frozen=True, slots=True)
class BlockType:
    """A kind of thread block: the path of each of its warps, and how many blocks are of this kind."""

    paths: tuple[int, ...]
    weight: float


@dataclass(frozen=True)
class CostedWorkload:
    """All inputs of a model, hardware numbers included.

    There are `partitions` valves of `issue_ticks` each (0: no valve); `policy` names the scheduler; `in_order` says
    whether a warp issues in program order. `blocks` is the whole grid, `sm_count` the SMs that share it,
    `blocks_per_sm` the number resident on one SM in this launch (`max_blocks_per_sm` is the limit at any occupancy:
    warp slots over warps per block, and the block limit). `launch_ticks` is Λ_launch; an SM starts its blocks at least
    `launch_interval_ticks` apart; `read_window_ticks` is the time within which an instruction reads its registers.
    While subsystem `bank_rival` (-1: none) of the partition is busy, reads take longer by the share `beside_rival`.
    `start_s` is the fixed time before the kernel's first and after its last instruction. `clock_hz` converts cycles to
    seconds. `runs` above 0 is for abstract workloads: at every occupancy each SM runs that many times its concurrent
    warps (1: nothing replaces them), and `blocks` is ignored.

    Read by analytical models only: `kinds` maps a class to the papers' term for it if its name does not tell
    (``memory``, ``sfu``, ``shared``, ``barrier``, ``fp``, ``computation``; see `models.inputs`); `parameters` are
    further facts of the GPU under the names of its section `[parameters]`; `producers` lists, by instruction, those
    whose results it reads (empty: use the slots); `data_bytes` is the kernel's minimum DRAM traffic (None: not known).
    `names` are the instructions' names by index in an abstract kernel, for reports (empty: a real kernel).
    """

    paths: tuple[CostedPath, ...]
    block_types: tuple[BlockType, ...]
    subsystems: tuple[Subsystem, ...]
    partitions: int
    issue_ticks: int
    policy: str
    in_order: bool
    launch_ticks: int
    blocks: int
    warps_per_block: int
    blocks_per_sm: int
    max_blocks_per_sm: int
    sm_count: int
    clock_hz: float
    notes: tuple[str, ...] = field(default=())
    runs: int = 0
    kinds: Mapping[str, str] = field(default_factory=dict, hash=False)
    parameters: Mapping[str, float] = field(default_factory=dict, hash=False)
    producers: tuple[tuple[int, ...], ...] = ()
    data_bytes: float | None = None
    names: tuple[str, ...] = ()
    read_window_ticks: int = 0
    bank_rival: int = -1
    beside_rival: float = 0.0
    launch_interval_ticks: int = 0
    start_s: float = 0.0
    worked_out: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Results derived from this workload alone that models and the simulation request repeatedly."""

    def once(self, what: object, make: Callable[[], T]) -> T:
        """The result of `make`, which is the same each time for the same `what`."""
        if what not in self.worked_out:
            self.worked_out[what] = make()
        found: T = self.worked_out[what]
        return found

    def duration_s(self, cycles: float) -> float:
        """The kernel's duration in seconds if its blocks take this many cycles."""
        return self.start_s + cycles / self.clock_hz

    @property
    def issue_events(self) -> tuple[int, ...]:
        """Issue events of one block of each type."""
        return self.once("issue events", self._issue_events)

    def _issue_events(self) -> tuple[int, ...]:
        each = [sum(n.issues * c for n, c in zip(p.nodes, p.counts(), strict=True)) for p in self.paths]
        return tuple(sum(each[path] for path in kind.paths) for kind in self.block_types)

    @property
    def synchronises(self) -> bool:
        """Whether some warps of a block wait for only some of its warps."""
        return any(path.events for path in self.paths)

    @property
    def warps_per_sm(self) -> int:
        """Occupancy of this launch: concurrent warps per SM."""
        return self.blocks_per_sm * self.warps_per_block
