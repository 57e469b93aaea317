"""A GPU as the models see it: typed sections with plain values, and the fact behind every one of them.

The sections mirror those of a GPU file (see ``data/README.md``). Units stand in the annotations: the
loader checks ranges by them and `Gpu.facts` shows them. Times of the SM are in cycles, and λ is per
warp instruction at the scope of its subsystem; L2 and DRAM latencies are in nanoseconds, because they
do not follow the SM clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec

from ..errors import UsageError
from .fact import Fact
from .occupancy import Count, OccupancyLimits
from .parameters import Parameters
from .vocabulary import Policy, Scope

Cycles = Annotated[float, msgspec.Meta(gt=0, extra={"unit": "cycles"})]
Nanoseconds = Annotated[float, msgspec.Meta(gt=0, extra={"unit": "ns"})]
Megahertz = Annotated[float, msgspec.Meta(gt=0, extra={"unit": "MHz"})]
GigabytesPerSecond = Annotated[float, msgspec.Meta(gt=0, extra={"unit": "GB/s"})]
BytesPerCycle = Annotated[float, msgspec.Meta(gt=0, extra={"unit": "B/cycle"})]
Size = Annotated[int, msgspec.Meta(ge=1, extra={"unit": "bytes"})]
IssueRate = Annotated[float, msgspec.Meta(gt=0, extra={"unit": "warp instructions/cycle"})]
LaneRate = Annotated[float, msgspec.Meta(gt=0, extra={"unit": "lanes/cycle"})]
Fraction = Annotated[float, msgspec.Meta(ge=0, le=1, extra={"unit": ""})]
Watts = Annotated[float, msgspec.Meta(gt=0, extra={"unit": "W"})]
FmaRate = Annotated[float, msgspec.Meta(gt=0, extra={"unit": "FMA/cycle"})]


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of a GPU file."""


class Device(_Section, frozen=True):
    """`[device]`: what the product has. `block_launch_latency` is Λ_launch: from a block's end to its successor.

    `kernel_start_ns` is what a profiler's duration of a kernel holds beyond its blocks; None where no source is known.
    `tdp_w` is the board's thermal design power, None where no source is known.
    `max_clock_mhz` is the highest clock that it reaches by itself; None: the boost clock.
    """

    sm_count: Count
    base_clock_mhz: Megahertz
    boost_clock_mhz: Megahertz
    block_launch_latency: Cycles
    kernel_start_ns: Nanoseconds | None = None
    tdp_w: Watts | None = None
    max_clock_mhz: Megahertz | None = None


class Scheduler(_Section, frozen=True):
    """`[scheduler]`: `issue_per_cycle` is the issue limit of one partition; None means that there is no valve.

    `slot_cycles` is how long a warp waits at least between two of its instructions: 1, or 4 where the
    partitions take turns to issue. Stall counts are in these slots. `read_cycles` is the time within which an
    instruction of fixed latency reads its registers, of each of two banks one a cycle; None: as many as it likes.
    `taken_cycles` is how long a warp waits at least behind a branch that it takes.
    """

    partitions: Count
    policy: Policy
    in_order: bool
    issue_per_cycle: IssueRate | None = None
    slot_cycles: Cycles = 1.0
    read_cycles: Cycles | None = None
    taken_cycles: Cycles | None = None


class Subsystem(_Section, frozen=True):
    """`[subsystems]`: a pipeline, one in each partition or one for the SM.

    One that is not `upstream` (L2, DRAM) is visited after the instruction has issued.
    """

    scope: Scope
    upstream: bool = True


class ClassCost(_Section, frozen=True, rename={"lambda_": "lambda"}):
    """`[classes.NAME]`: λ, Λ and subsystem of an instruction class, in cycles.

    A memory class gives λ per wavefront and no Λ: that depends on where the data is found. `bulk_copy` alone
    gives one, which is what the copy engine adds to that.
    `read_latency` is Λ_read, after which the source registers are free again, where it is known.
    """

    subsystem: str
    lambda_: Cycles
    latency: Cycles | None = None
    read_latency: Cycles | None = None


class L1Level(_Section, frozen=True):
    """`[memory.l1]`, per SM: the data path, Λ of a hit, and the distinct lines looked up a cycle.

    `bytes` is its size where it is a memory of its own; where shared memory is carved out of it, it has what
    the carve-out leaves.
    """

    bytes_per_cycle: BytesPerCycle
    latency: Cycles
    tags_per_cycle: Count
    bytes: Size | None = None


class SharedLevel(_Section, frozen=True):
    """`[memory.shared]`, per SM: Λ of a load without conflicts, and the banks."""

    bytes_per_cycle: BytesPerCycle
    latency: Cycles
    banks: Count
    bank_bytes: Size


class L2Level(_Section, frozen=True):
    """`[memory.l2]`: size and bandwidth of the whole GPU, Λ of a hit in the near and in the far half.

    `atomics_per_cycle` is how many lanes' atomics on one and the same address it does; None where no source is known.
    `bytes_per_cycle_per_sm`, the most that one SM can take in, is None where no source is known. `dirty_share` is the
    part of it that may hold what DRAM does not have yet; None: all of it.
    """

    bytes: Size
    bytes_per_cycle: BytesPerCycle
    near_latency_ns: Nanoseconds
    far_latency_ns: Nanoseconds
    bytes_per_cycle_per_sm: BytesPerCycle | None = None
    dirty_share: Fraction | None = None
    atomics_per_cycle: LaneRate | None = None

    @property
    def latency_ns(self) -> float:
        """Λ of a hit over data that lies evenly in both halves, in nanoseconds."""
        return (self.near_latency_ns + self.far_latency_ns) / 2


class L3Level(_Section, frozen=True):
    """`[memory.l3]`: a cache of the whole GPU between L2 and DRAM, where there is one; Λ of a hit that missed L2."""

    bytes: Size
    bytes_per_cycle: BytesPerCycle
    latency_ns: Nanoseconds


class InstructionCache(_Section, frozen=True):
    """`[memory.instructions]`: the last cache of instructions before the L2.

    `l2_share` is the part of the code beyond it, per pass of a thread block, that is fetched from the L2: SMs that
    share the cache fetch once what they want at about the same time.
    """

    bytes: Size
    l2_share: Fraction


class DramLevel(_Section, frozen=True):
    """`[memory.dram]`: theoretical bandwidth, what reading, writing and copying reach, and Λ of a miss in L2.

    `bytes` is how much there is; None where no source is known.
    """

    peak_gbs: GigabytesPerSecond
    read_gbs: GigabytesPerSecond
    write_gbs: GigabytesPerSecond
    copy_gbs: GigabytesPerSecond
    latency_ns: Nanoseconds
    bytes: Size | None = None


class Memory(_Section, frozen=True):
    """`[memory]`: the levels, and the units of a transfer."""

    sector_bytes: Size
    line_bytes: Size
    l1: L1Level
    shared: SharedLevel
    l2: L2Level
    dram: DramLevel
    l3: L3Level | None = None
    instructions: InstructionCache | None = None


class MachineCode(_Section, frozen=True, kw_only=True):
    """`[machine_code]`, of a GPU of the papers that takes real kernels too, by its table of λ and Λ alone.

    `arch` is what kernels are compiled for; `classes` maps instruction classes to those of the table (empty: not
    counted). `transaction_bytes` and `line_bytes` are those of memory, and `l1_bytes`, `l2_bytes` the caches that
    decide what goes there.
    """

    arch: str
    classes: dict[str, str]
    transaction_bytes: Size
    line_bytes: Size
    shared_banks: Count
    l1_bytes: Size
    l2_bytes: Size


@dataclass(frozen=True)
class Gpu:
    """A GPU, ready for use.

    `compute_capability` and `arch` (what kernels are compiled for) are empty for a GPU that takes
    abstract workloads only; such a one may lack `device`, `occupancy` and `memory`, and asking for
    them raises `UsageError`. `tensor` is FMA a cycle of one tensor core per input type. `file_hash`
    is the SHA-256 of the content with everything inherited.
    """

    name: str
    title: str
    compute_capability: str
    arch: str
    scheduler: Scheduler
    subsystems: Mapping[str, Subsystem]
    classes: Mapping[str, ClassCost]
    tensor: Mapping[str, float]
    sources: Mapping[str, str]
    file_hash: str
    sections: Mapping[str, Any] = field(repr=False)
    known: Mapping[str, Fact] = field(repr=False)

    def __hash__(self) -> int:
        return hash(self.file_hash)

    @property
    def abstract_only(self) -> bool:
        """Whether it takes abstract workloads only, as `papers/*` do."""
        return not self.arch

    @property
    def machine_code(self) -> MachineCode | None:
        """How real kernels run on a GPU of the papers; None where none can, and for a product."""
        found: MachineCode | None = self.sections.get("machine_code")
        return found

    @property
    def code_arch(self) -> str:
        """What kernels are compiled for; empty where none can be."""
        return self.arch or (self.machine_code.arch if self.machine_code else "")

    @property
    def is_amd(self) -> bool:
        """Whether it takes AMD machine code."""
        return self.code_arch.startswith("gfx")

    @property
    def compiled_for_another(self) -> bool:
        """Whether kernels are compiled for another architecture than this GPU's, as for Volta: `arch` says which."""
        if self.is_amd:
            return False
        digits = self.arch.removeprefix("sm_").rstrip("af")
        return bool(digits) and f"{digits[:-1]}.{digits[-1]}" != self.compute_capability

    @property
    def device(self) -> Device:
        """SMs, clocks and Λ_launch."""
        device: Device = self._section("device")
        return device

    @property
    def occupancy(self) -> OccupancyLimits:
        """What an SM has room for."""
        limits: OccupancyLimits = self._section("occupancy")
        return limits

    @property
    def memory(self) -> Memory:
        """The memory levels."""
        memory: Memory = self._section("memory")
        return memory

    @property
    def parameters(self) -> Parameters:
        """What single models ask for; all None where the file has no such section."""
        parameters: Parameters = self.sections.get("parameters", Parameters())
        return parameters

    def parameter(self, name: str) -> float:
        """A value of `[parameters]` that a model cannot do without; `UsageError` where it is absent."""
        value: float | None = getattr(self.parameters, name)
        if value is None:
            raise UsageError(f"GPU {self.name} does not give parameters.{name}")
        return value

    def _section(self, name: str) -> Any:
        try:
            return self.sections[name]
        except KeyError:
            raise UsageError(f"GPU {self.name} takes abstract workloads only: it has no [{name}]") from None

    def facts(self) -> Iterator[tuple[str, Fact]]:
        """Every value with its dotted key, section by section."""
        yield from self.known.items()

    def fact(self, key: str) -> Fact:
        """The fact of a dotted key, such as ``classes.fp32.lambda``."""
        try:
            return self.known[key]
        except KeyError:
            raise UsageError(f"GPU {self.name} states nothing for {key}") from None

    def cycles(self, nanoseconds: float, clock_mhz: float | None = None) -> float:
        """A time in SM cycles, at the boost clock unless told."""
        return nanoseconds * (clock_mhz or self.device.boost_clock_mhz) / 1000

    def bytes_per_cycle(self, gbs: float, clock_mhz: float | None = None) -> float:
        """A bandwidth of the whole GPU (10⁹ bytes a second) in bytes per SM cycle, at the boost clock unless told."""
        return gbs * 1000 / (clock_mhz or self.device.boost_clock_mhz)

    def tensor_lambda(self, input_type: str, m: int, n: int, k: int) -> float:
        """λ of a matrix instruction of shape m·n·k on one partition's tensor core, in cycles."""
        try:
            return m * n * k / self.tensor[input_type]
        except KeyError:
            known = ", ".join(self.tensor) or "none"
            raise UsageError(f"GPU {self.name} has no tensor rate for {input_type}: it knows {known}") from None

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON; facts keyed by their dotted keys."""
        return {
            "name": self.name,
            "title": self.title,
            "compute_capability": self.compute_capability,
            "arch": self.arch,
            "file_hash": self.file_hash,
            "subsystems": {
                name: {"scope": subsystem.scope, "upstream": subsystem.upstream}
                for name, subsystem in self.subsystems.items()
            },
            "classes": {name: cost.subsystem for name, cost in self.classes.items()},
            "sources": dict(self.sources),
            "facts": {
                key: {
                    "value": list(fact.value) if isinstance(fact.value, tuple) else fact.value,
                    "unit": fact.unit,
                    "source": fact.source,
                    "kind": fact.kind,
                    "note": fact.note,
                    "file": fact.file,
                }
                for key, fact in self.known.items()
            },
        }
