"""A GPU as the models see it: typed sections with plain values, and the fact behind each value.

The sections mirror those of a GPU file (see ``data/README.md``). Annotations give the units and the ranges that the
loader checks; `Gpu.facts` shows the units. SM times are in cycles, and λ is per warp instruction at the scope of its
subsystem. L2 and DRAM latencies are in nanoseconds, because they do not scale with the SM clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import msgspec

from ..errors import UsageError
from ..support.text import json_of
from .fact import Fact, Policy, Scope
from .occupancy import Count, OccupancyLimits

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
CLOCKS = ("base", "boost", "highest")
"""Clocks of a GPU file that have names."""
Rate = Annotated[float, msgspec.Meta(gt=0, lt=2, extra={"unit": "registers/cycle"})]
FmaRate = Annotated[float, msgspec.Meta(gt=0, extra={"unit": "FMA/cycle"})]


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of a GPU file."""


class Device(_Section, frozen=True):
    """`[device]`: properties of the product. `block_launch_latency` is Λ_launch: from a block's end to its successor.

    `block_launch_interval` is from the start of a block to that of the next one anywhere on the GPU; None: no limit.
    `kernel_start_ns` is the fixed overhead in a profiler's kernel duration beyond its blocks, `traced_start_ns` that in
    the duration of a trace (Nsight Systems, CUPTI, torch.profiler), whose stamps are closer; None if unknown.
    `tdp_w` is the board's thermal design power; None if unknown.
    `max_clock_mhz` is the highest clock that the GPU reaches on its own; None means the boost clock. `gpc_sms` are the
    SMs of each GPC, within which the blocks of a cluster lie, and `max_cluster_blocks` the most blocks of a cluster;
    None if unknown, or without clusters. `peer_gbs` is the rate of copies to another such GPU over NVLink, in one
    direction; None without that.
    """

    sm_count: Count
    base_clock_mhz: Megahertz
    boost_clock_mhz: Megahertz
    block_launch_latency: Cycles
    block_launch_interval: Cycles | None = None
    kernel_start_ns: Nanoseconds | None = None
    traced_start_ns: Nanoseconds | None = None
    tdp_w: Watts | None = None
    max_clock_mhz: Megahertz | None = None
    gpc_sms: tuple[Count, ...] | None = None
    max_cluster_blocks: Count | None = None
    peer_gbs: GigabytesPerSecond | None = None

    @property
    def highest_clock_mhz(self) -> float:
        """The highest clock that the GPU reaches on its own, in MHz."""
        return max(self.boost_clock_mhz, self.max_clock_mhz or 0.0)

    def clock_mhz(self, wanted: float | str | None) -> float:
        """A clock that is given in MHz or as one of `CLOCKS`; None is the boost clock. Raises UsageError otherwise."""
        if not isinstance(wanted, str):
            return wanted or self.boost_clock_mhz
        if wanted == "sustained":
            raise UsageError(
                "clock 'sustained': it depends on power and cooling, for which no published figures give a rule;"
                f" expected MHz as measured under load, or one of {', '.join(CLOCKS)}"
                f" ({self.base_clock_mhz:g}, {self.boost_clock_mhz:g}, {self.highest_clock_mhz:g} MHz here)"
            )
        if wanted not in CLOCKS:
            raise UsageError(f"clock {wanted!r}: expected MHz or one of {', '.join(CLOCKS)}")
        return {"base": self.base_clock_mhz, "boost": self.boost_clock_mhz, "highest": self.highest_clock_mhz}[wanted]


class Scheduler(_Section, frozen=True):
    """`[scheduler]`: `issue_per_cycle` is the issue limit of one partition; None means no limit.

    `slot_cycles` is the minimum time between two instructions of a warp: 1, or 4 if the partitions take turns to
    issue. Stall counts are in these slots. `read_cycles` is the time in which an instruction of fixed latency reads its
    registers, one per cycle from each of two banks; None means no limit. `taken_cycles` is the minimum time that a warp
    waits after a taken branch. `product_registers` is how many registers a cycle of these the sums of a warp-group
    product take while it is computed, and `product_queue` how many products a partition accepts before the oldest is
    done; None means none and no limit.
    """

    partitions: Count
    policy: Policy
    in_order: bool
    issue_per_cycle: IssueRate | None = None
    slot_cycles: Cycles = 1.0
    read_cycles: Cycles | None = None
    taken_cycles: Cycles | None = None
    product_registers: Rate | None = None
    product_queue: Count | None = None


class Subsystem(_Section, frozen=True):
    """`[subsystems]`: a pipeline, one per partition or one per SM.

    If not `upstream` (L2, DRAM), it is visited after the instruction has issued.
    """

    scope: Scope
    upstream: bool = True


class ClassCost(_Section, frozen=True, rename={"lambda_": "lambda"}):
    """`[classes.NAME]`: λ, Λ and subsystem of an instruction class, in cycles.

    A memory class has λ per wavefront and no Λ, which depends on the memory level that serves the access. The
    exception is `bulk_copy`, whose Λ is what the copy engine adds.
    `read_latency` is Λ_read, after which the source registers are free again, if known. `arithmetic_latency` is Λ
    towards an instruction of the CUDA cores, if it differs (Volkov 2016, §4.7). `block_latency` is Λ of a fence that
    orders a block's own accesses alone, if it differs.
    """

    subsystem: str
    lambda_: Cycles
    latency: Cycles | None = None
    read_latency: Cycles | None = None
    arithmetic_latency: Cycles | None = None
    block_latency: Cycles | None = None


class L1Level(_Section, frozen=True):
    """`[memory.l1]`, per SM: the data path, Λ of a hit, and the distinct lines looked up per cycle.

    `bytes` is its size if it is a separate memory. If shared memory is carved out of it, its size is what the
    carve-out leaves.
    """

    bytes_per_cycle: BytesPerCycle
    latency: Cycles
    tags_per_cycle: Count
    bytes: Size | None = None


class SharedLevel(_Section, frozen=True):
    """`[memory.shared]`, per SM: Λ of a load without bank conflicts, and the banks.

    `remote_latency` is Λ of a load from another SM's shared memory within a cluster, `remote_bytes_per_cycle` what one
    SM reads from there at most; None if unknown, or without clusters.
    """

    bytes_per_cycle: BytesPerCycle
    latency: Cycles
    banks: Count
    bank_bytes: Size
    remote_latency: Cycles | None = None
    remote_bytes_per_cycle: BytesPerCycle | None = None


class L2Level(_Section, frozen=True):
    """`[memory.l2]`: size and bandwidth of the whole GPU, and Λ of a hit in the near and the far half.

    `atomics_per_cycle` is the rate of lane atomics on a single address, `float_atomics_per_cycle` the same for
    floating-point numbers. An atomic keeps a slice busy for `atomic_sector_cycles` for each sector that its warp
    targets, or, if that is longer, for `double_atomic_lane_cycles` a lane if it adds to doubles. A slice
    holds `slice_bytes` in a row. None if unknown. `bytes_per_cycle_per_sm` is the maximum that one SM can receive; None
    if unknown. `dirty_share` is the fraction that may hold data not yet written to DRAM; None means all of it. Reads of
    a sector that follow another SM's within `merge_cycles` reach the L2 together with it, at most `merged_reads` as
    one; None if they do not, or if it is unknown.
    """

    bytes: Size
    bytes_per_cycle: BytesPerCycle
    near_latency_ns: Nanoseconds
    far_latency_ns: Nanoseconds
    bytes_per_cycle_per_sm: BytesPerCycle | None = None
    dirty_share: Fraction | None = None
    atomics_per_cycle: LaneRate | None = None
    float_atomics_per_cycle: LaneRate | None = None
    atomic_sector_cycles: Cycles | None = None
    double_atomic_lane_cycles: Cycles | None = None
    slice_bytes: Size | None = None
    merge_cycles: Cycles | None = None
    merged_reads: Count | None = None

    @property
    def latency_ns(self) -> float:
        """Mean Λ of a hit for data spread evenly over both halves, in nanoseconds."""
        return (self.near_latency_ns + self.far_latency_ns) / 2


class L3Level(_Section, frozen=True):
    """`[memory.l3]`: a GPU-wide cache between L2 and DRAM, if present; Λ of a hit that missed L2."""

    bytes: Size
    bytes_per_cycle: BytesPerCycle
    latency_ns: Nanoseconds


class InstructionCache(_Section, frozen=True):
    """`[memory.instructions]`: the last instruction cache before the L2.

    `l2_share` is the fraction of the code beyond its size that each pass of a thread block fetches from the L2: SMs
    that share the cache fetch code only once if they need it at about the same time.
    """

    bytes: Size
    l2_share: Fraction


class ConstantCache(_Section, frozen=True):
    """`[memory.constants]`: the first cache of constants for loads, and one for operands, taken to be as large.

    `ways` lines of `line_bytes` form a set. A load that misses takes `load_miss` longer; an instruction with an operand
    that misses issues `operand_miss` later, and its partition issues nothing for `operand_hold`.
    """

    bytes: Size
    line_bytes: Size
    ways: Count
    load_miss: Cycles
    operand_miss: Cycles
    operand_hold: Cycles


class DramLevel(_Section, frozen=True):
    """`[memory.dram]`: theoretical bandwidth, achieved read, write and copy bandwidth, and Λ of an L2 miss.

    `bytes` is the capacity; None if unknown. One open row of every bank group holds `row_bytes` in a row of addresses;
    sectors that lie farther apart come at `scattered_gbs`, since each opens a row (None: unknown).
    """

    peak_gbs: GigabytesPerSecond
    read_gbs: GigabytesPerSecond
    write_gbs: GigabytesPerSecond
    copy_gbs: GigabytesPerSecond
    latency_ns: Nanoseconds
    bytes: Size | None = None
    row_bytes: Size | None = None
    scattered_gbs: GigabytesPerSecond | None = None


class Memory(_Section, frozen=True):
    """`[memory]`: the memory levels, and the transfer units."""

    sector_bytes: Size
    line_bytes: Size
    l1: L1Level
    shared: SharedLevel
    l2: L2Level
    dram: DramLevel
    l3: L3Level | None = None
    instructions: InstructionCache | None = None
    constants: ConstantCache | None = None


class Host(_Section, frozen=True):
    """`[host]`: copies between host and device, one direction at a time, and what calls cost the host.

    `launch_ns` is the host's time for a call that submits work, `wait_ns` what waiting for it adds. Kernels reach host
    memory at the same rate as copies, with Λ `latency_ns`; None: with that of DRAM.
    """

    copy_gbs: GigabytesPerSecond
    launch_ns: Nanoseconds
    wait_ns: Nanoseconds
    latency_ns: Nanoseconds | None = None


class MachineCode(_Section, frozen=True, kw_only=True):
    """`[machine_code]`: lets a GPU from a paper run real kernels, using only its table of λ and Λ.

    Kernels are compiled for `arch`. `classes` maps instruction classes to those of the table (empty: not counted).
    `transaction_bytes` and `line_bytes` describe memory transfers; `l1_bytes` and `l2_bytes` are the cache sizes that
    determine which accesses reach memory.
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
    """A loaded GPU.

    `compute_capability` and `arch` (the compilation target) are empty for a GPU that runs abstract workloads only.
    Such a GPU may lack `device`, `occupancy` and `memory`; accessing them raises `UsageError`. `tensor` is the FMA per
    cycle of one tensor core by input type. `aliases` are further names of the product. `file_hash` is the
    SHA-256 of the content, including everything inherited.
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
    aliases: tuple[str, ...] = ()

    def __hash__(self) -> int:
        return hash(self.file_hash)

    @property
    def abstract_only(self) -> bool:
        """Whether it runs abstract workloads only, as `papers/*` do."""
        return not self.arch

    @property
    def machine_code(self) -> MachineCode | None:
        """How a GPU from a paper runs real kernels; None if it cannot, and for a product."""
        found: MachineCode | None = self.sections.get("machine_code")
        return found

    @property
    def code_arch(self) -> str:
        """The architecture that kernels are compiled for; empty if there is none."""
        return self.arch or (self.machine_code.arch if self.machine_code else "")

    @property
    def is_amd(self) -> bool:
        """Whether it runs AMD machine code."""
        return self.code_arch.startswith("gfx")

    @property
    def compiled_for_another(self) -> bool:
        """Whether kernels are compiled for a different architecture, `arch`, than this GPU's own, as for Volta."""
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
        """The occupancy limits of an SM."""
        limits: OccupancyLimits = self._section("occupancy")
        return limits

    @property
    def memory(self) -> Memory:
        """The memory levels."""
        memory: Memory = self._section("memory")
        return memory

    @property
    def host(self) -> Host | None:
        """The link to the host, and what calls cost there; None if the file does not say."""
        found: Host | None = self.sections.get("host")
        return found

    @property
    def parameters(self) -> Parameters:
        """The inputs of individual models; all None if the file has no such section."""
        parameters: Parameters = self.sections.get("parameters", Parameters())
        return parameters

    def with_sms(self, count: int) -> Gpu:
        """The same GPU with this many SMs that share what it has."""
        if count == self.device.sm_count:
            return self
        device = msgspec.structs.replace(self.device, sm_count=count)
        return replace(self, sections={**self.sections, "device": device})

    def parameter(self, name: str) -> float:
        """A value of `[parameters]` that a model requires. Raises `UsageError` if it is missing."""
        value: float | None = getattr(self.parameters, name)
        if value is None:
            raise UsageError(f"GPU {self.name} has no value for parameters.{name}")
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
            raise UsageError(f"GPU {self.name} has no value for {key}") from None

    def cycles(self, nanoseconds: float, clock_mhz: float | None = None) -> float:
        """Convert a time to SM cycles, at `clock_mhz` (default: the boost clock)."""
        return nanoseconds * (clock_mhz or self.device.boost_clock_mhz) / 1000

    def bytes_per_cycle(self, gbs: float, clock_mhz: float | None = None) -> float:
        """Convert a bandwidth of the whole GPU (10⁹ bytes/s) to bytes per SM cycle, at `clock_mhz` (default: boost)."""
        return gbs * 1000 / (clock_mhz or self.device.boost_clock_mhz)

    def tensor_lambda(self, input_type: str, m: int, n: int, k: int) -> float:
        """λ of a matrix instruction of shape m·n·k on one partition's tensor core, in cycles."""
        try:
            return m * n * k / self.tensor[input_type]
        except KeyError:
            known = ", ".join(self.tensor) or "none"
            raise UsageError(f"GPU {self.name} has no tensor rate for {input_type}; it has: {known}") from None

    def tensor_rate(self, input_type: str) -> float | None:
        """Multiply-adds a cycle of a partition's tensor core; None if unknown. `fp8_scaled` falls back on `fp8`."""
        return self.tensor.get(input_type, self.tensor.get("fp8") if input_type == "fp8_scaled" else None)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON; facts keyed by their dotted keys."""
        return {
            **json_of(self, "name title aliases compute_capability arch file_hash sources"),
            "subsystems": {name: json_of(subsystem, "scope upstream") for name, subsystem in self.subsystems.items()},
            "classes": {name: cost.subsystem for name, cost in self.classes.items()},
            "facts": json_of(self.known),
        }


# Section `[parameters]`: inputs of individual models beyond λ, Λ, memory levels and occupancy.
#
# The classic models use numbers that no other model has (departure delays, issue cycles, MSHRs). A GPU from a paper
# gives those printed there; every one is optional.

Whole = Annotated[int, msgspec.Meta(ge=1)]


Factor = Annotated[float, msgspec.Meta(gt=0)]


class Parameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of `[parameters]`, in the order of ``data/README.md``; None if a file does not give a key.

    Machine: `sm_count`, `clock_mhz` (of the processors), `warp_size`, `warp_schedulers`, `max_warps_per_sm`, and the
    lanes of an SM: `simd_width` (GPUPerf's name for its scalar processors), `sfu_width`. In MWP-CWP, `issue_cycles` is
    the time of one warp instruction on an SM, and `factor_…` multiplies it for slower instructions (M_Factor).

    Memory: `memory_gbs` is the theoretical bandwidth, `memory_reached_gbs` the highest measured one; `dram_latency`,
    `l1_latency`, `l2_latency` and the cache sizes; `transaction_bytes`. `departure_delay` is the time between two
    transactions of one SM, with `_coalesced` and `_uncoalesced` variants where a model distinguishes them. A warp's
    access takes `transactions_coalesced` or `transactions_uncoalesced` transactions; each one after the first adds
    `transaction_latency` to Λ. `mshrs` limits the outstanding transactions of one SM.

    Latencies: `fp_latency`; `ilp_latency` until the same warp's next independent instruction, and `store_ilp_latency`
    until its next store; `branch_taken_latency`, `branch_untaken_latency`; `block_launch_latency` (Λ_launch).

    Contention (Volkov §6.4): at throughput T, Λ of streaming access is `contention_latency` + `contention_slope` ·
    T / (`contention_gbs` − T); a fit with a second such term has the keys `contention_refined_…`. Synchronisation
    (GPUPerf Eq. 8): `sync_gamma` is Γ.
    """

    sm_count: Whole | None = None
    clock_mhz: Megahertz | None = None
    warp_size: Whole | None = None
    warp_schedulers: Whole | None = None
    max_warps_per_sm: Whole | None = None
    simd_width: Whole | None = None
    sfu_width: Whole | None = None
    issue_cycles: Cycles | None = None
    factor_fp_divide: Factor | None = None
    factor_int_multiply: Factor | None = None
    factor_int_divide: Factor | None = None
    factor_modulo: Factor | None = None
    memory_gbs: GigabytesPerSecond | None = None
    memory_reached_gbs: GigabytesPerSecond | None = None
    dram_latency: Cycles | None = None
    l1_latency: Cycles | None = None
    l2_latency: Cycles | None = None
    l1_bytes: Size | None = None
    l2_bytes: Size | None = None
    shared_bytes: Size | None = None
    transaction_bytes: Size | None = None
    departure_delay: Cycles | None = None
    departure_delay_coalesced: Cycles | None = None
    departure_delay_uncoalesced: Cycles | None = None
    transactions_coalesced: Whole | None = None
    transactions_uncoalesced: Whole | None = None
    transaction_latency: Cycles | None = None
    mshrs: Whole | None = None
    fp_latency: Cycles | None = None
    ilp_latency: Cycles | None = None
    store_ilp_latency: Cycles | None = None
    branch_taken_latency: Cycles | None = None
    branch_untaken_latency: Cycles | None = None
    block_launch_latency: Cycles | None = None
    contention_latency: Cycles | None = None
    contention_slope: Cycles | None = None
    contention_gbs: GigabytesPerSecond | None = None
    contention_refined_latency: Cycles | None = None
    contention_refined_slope: Cycles | None = None
    contention_refined_gbs: GigabytesPerSecond | None = None
    contention_refined_slope_2: Cycles | None = None
    contention_refined_gbs_2: GigabytesPerSecond | None = None
    sync_gamma: Factor | None = None
