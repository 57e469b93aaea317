"""Bounds of a time whose memory traffic could not be simulated in full, doubts, and the variants behind a band."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...hardware import Gpu
from ...kernel.kernel import Kernel
from ...kernel.launch.arguments import host_buffers
from ...kernel.profile import SPACE_GLOBAL, SPACE_SHARED
from ...memory.averaged import METHOD as AVERAGED
from ...memory.behaviour import SEPARATE, SEVERAL, AccessBehaviour, MemoryBehaviour, with_dram_reads, with_slower_host
from ...models.base import UNKNOWN_LIMIT, Model, Prediction
from ...pipeline.reasons import POLICIES
from ...support.text import bytes_text
from ...workload.cost_model import Conditions, assign_costs
from ..prepared import Prepared
from ..request import Options
from ..result import MemoryBounds
from .constants import CLOCK, LEAST_USE, LEAST_WAIT, Change, far_share, scaled, weak_groups
from .uncertainty import WEAK, Uncertainty


def bounds_of(prepared: Prepared, prediction: Prediction, model: Model) -> MemoryBounds | None:
    """The ranges of DRAM reads and time; None if all traffic was simulated, or a profile gives what was read.

    `prediction` is the model's prediction of the launch; the same model is run again at both ends.
    """
    ends = prepared.behaviour.dram_read_range
    if ends is None or prepared.behaviour.method == AVERAGED or prepared.gpu.machine_code is not None:
        return None
    found = [model.predict(_with_reads(prepared, read).costed, ()) for read in ends]
    times = [prediction.time_s, *(one.time_s for one in found)]
    limiters = dict.fromkeys(one.limiter for one in (found[0], prediction, found[1]))
    return MemoryBounds(ends[0], ends[1], min(times), max(times), tuple(limiters))


def within(prepared: Prepared, prediction: Prediction, bounds: MemoryBounds | None) -> Prediction:
    """The prediction; its limiter is unknown if either extreme contradicts it or blocks depend on each other."""
    if prepared.behaviour.dependent is None and (bounds is None or len(bounds.limiters) == 1):
        return prediction
    return replace(prediction, limiter=UNKNOWN_LIMIT)


def _with_reads(prepared: Prepared, read: float) -> Prepared:
    behaviour = with_dram_reads(prepared.behaviour, read)
    conditions = Conditions(prepared.costed.clock_hz / 1e6, prepared.costed.policy, prepared.fits.blocks_per_sm)
    return replace(
        prepared, behaviour=behaviour, costed=assign_costs(prepared.workload, behaviour, prepared.gpu, conditions)
    )


# Reasons to doubt an answer as a whole.


def doubts_of(prepared: Prepared) -> tuple[str, ...]:
    """Doubts to state before anything else about this kernel; often empty."""
    return (*prepared.profile.doubts, *_host_doubts(prepared), *_doubts(prepared.kernel, prepared.behaviour))


def _host_doubts(prepared: Prepared) -> Iterator[str]:
    names = host_buffers(prepared.kernel, prepared.launch)
    if names and prepared.gpu.host is None:
        yield (
            f"the time is a lower bound: {', '.join(names)} in host memory, which is modelled as device memory; "
            "accesses to it cross the bus to the host"
        )


def _doubts(kernel: Kernel, behaviour: MemoryBehaviour) -> Iterator[str]:
    if behaviour.dependent is not None:
        yield (
            f"not to be trusted: a block's work depends on what other blocks of the launch write"
            f"{_place(kernel, behaviour.dependent)}; each was predicted in isolation"
        )
    if behaviour.contended is not None:
        yield (
            f"the time is a lower bound: blocks contend for a compare-and-swap on one address"
            f"{_place(kernel, behaviour.contended)}; "
            "only the attempts of a block running alone are counted"
        )


def _place(kernel: Kernel, index: int) -> str:
    source = kernel.instructions[index].source
    return f" ({source})" if source else ""


def memory_doubt(behaviour: MemoryBehaviour) -> tuple[str, ...]:
    """The range of DRAM reads if sharing between blocks in the L2 could not be simulated in full."""
    if behaviour.dram_read_range is None:
        return ()
    least, most = (bytes_text(end) for end in behaviour.dram_read_range)
    return (f"the L2 could not be simulated in full: DRAM reads are between {least} and {most}",)


# Assumptions of a prediction, varied on a small stand-in for the launch: the parts of a band.

ATOMICS, SCATTERED = "atomics", "scattered accesses"
"""Names of parts."""
_MEMORY = ("l2", "l3", "dram", "host", "atomics")
LEAST_WARM = 0.05
"""A warm L2 is ignored if it would save no more than this share of the DRAM reads."""


@dataclass(frozen=True)
class Variant:
    """An assumption: `changes` to simulate instead, or `factors` of the time where no simulation is needed."""

    name: str
    reason: str
    changes: tuple[Change, ...] = ()
    factors: tuple[float, ...] = ()


def variants(
    prepared: Prepared,
    options: Options,
    prediction: Prediction,
    known: Uncertainty,
    bounds: MemoryBounds | None = None,
) -> Iterator[Variant]:
    """All assumptions that may matter to this launch; what the caller fixed (clock, scheduler, warm L2) is certain."""
    if bounds is not None:
        ends = bounds.fastest_s / prediction.time_s, bounds.slowest_s / prediction.time_s
        yield Variant("DRAM reads", "sharing between blocks in the L2 could not be simulated in full", factors=ends)
    yield from _start(prepared, prediction, known)
    yield from _compiler(prepared, prediction, known)
    yield from _accesses(prepared, prediction, known)
    yield from _others(prepared, known)
    yield from _scheduler(prepared, options)
    yield from _l2_state(prepared, options)
    yield from _l1(prepared, prediction, known)
    yield from _constant_misses(prepared, known)
    yield from _sampling(prepared, known)
    yield from _constants(prepared, prediction, known)
    yield from _clock(prepared, options)


def clock_range_mhz(gpu: Gpu, options: Options) -> tuple[float, float] | None:
    """The range of the GPU's clocks; None if the caller fixed the clock, or there is only one."""
    low, high = gpu.device.base_clock_mhz, gpu.device.highest_clock_mhz
    return (low, high) if options.clock_mhz is None and low < high else None


def _start(prepared: Prepared, prediction: Prediction, known: Uncertainty) -> Iterator[Variant]:
    share, factor = prepared.costed.start_s / prediction.time_s, known.launch.kernel_start.value
    if share:
        reason = f"kernel start and end take {1 / factor:.2f} to {factor:.2f} times the assumed time"
        yield Variant("kernel start", reason, factors=(1 - share + share / factor, 1 - share + share * factor))


def _compiler(prepared: Prepared, prediction: Prediction, known: Uncertainty) -> Iterator[Variant]:
    """Time limited by memory does not grow with the number of operations; the rest does."""
    if not prepared.compiled:
        return
    busy = max((prediction.utilization.get(name, 0.0) for name in _MEMORY), default=0.0)
    share = max(0.0, 1 - busy - prepared.costed.start_s / prediction.time_s)
    if share:
        factor = known.code.operations.value
        reason = f"another compiler's code executes {1 / factor:.2f} to {factor:.2f} times as many operations"
        yield Variant("compiler", reason, factors=(1 - share + share / factor, 1 - share + share * factor))


def _accesses(prepared: Prepared, prediction: Prediction, known: Uncertainty) -> Iterator[Variant]:
    behaviour, busy = prepared.behaviour, prediction.utilization
    atomics, scattered = known.accesses.atomics.value, known.accesses.scattered.value
    if busy.get("atomics", 0.0) * atomics > LEAST_USE:
        reason = f"atomic rates are known for some patterns only; may take up to {atomics:g} times as long"
        yield Variant(ATOMICS, reason, (Change(memory=with_slower_atomics(behaviour, atomics)),))
    share = scattered_share(behaviour) if prepared.gpu.memory.dram.scattered_gbs is None else 0.0
    if share and max(busy.get(name, 0.0) for name in ("lsu", "l2", "dram")) * scattered > LEAST_USE:
        reason = f"{share:.0%} of the sectors are scattered, and may take {scattered:g} times as long as a stream"
        yield Variant(SCATTERED, reason, factors=(1 + share * (scattered - 1),))
    together = with_writes_together(behaviour)
    if behaviour.method == "affine" and together != behaviour and busy.get("dram", 0.0) > LEAST_USE:
        reason = "sectors that strided stores write may leave the L2 together with their neighbours"
        yield Variant(SCATTERED, reason, (Change(memory=together),))


def _others(prepared: Prepared, known: Uncertainty) -> Iterator[Variant]:
    if prepared.behaviour.dependent is not None:
        factor = known.launch.dependent_blocks.value
        yield Variant("dependent blocks", "each block was predicted in isolation", factors=(1 / factor, factor))
    if prepared.behaviour.contended is not None:
        together = min(prepared.costed.blocks, prepared.costed.sm_count * prepared.costed.blocks_per_sm)
        reason = f"{together} concurrent blocks retry on one address; only one block's own attempts are counted"
        yield Variant("contention", reason, factors=(float(together),))
    behaviour = prepared.behaviour
    if behaviour.host_read_bytes + behaviour.host_write_bytes:
        factor = known.accesses.host.value
        changed = with_slower_host(behaviour, factor), with_slower_host(behaviour, cached=False)
        reason = f"the bus to the host may take {factor:g} times as long, and the L2 may not keep host memory"
        yield Variant("host memory", reason, tuple(Change(memory=memory) for memory in changed))


def _scheduler(prepared: Prepared, options: Options) -> Iterator[Variant]:
    costed, fact = prepared.costed, prepared.gpu.known.get("scheduler.policy")
    if options.scheduler is not None or fact is None or fact.kind not in WEAK:
        return
    if costed.warps_per_sm > costed.partitions:  # else no partition has two warps to choose from
        others = [name for name in POLICIES if name != costed.policy]
        changes = tuple(Change(policy=name) for name in others)
        yield Variant("scheduler", f"{', '.join(others)} instead of {costed.policy}", changes)


def _l2_state(prepared: Prepared, options: Options) -> Iterator[Variant]:
    behaviour = prepared.behaviour
    if options.warm_l2 or _measured(prepared):
        return
    spared = min(1.0, prepared.gpu.memory.l2.bytes / behaviour.dram_read_bytes) if behaviour.dram_read_bytes else 0.0
    if spared > LEAST_WARM:
        reason = f"{spared:.0%} of the DRAM reads may already be in the L2"
        warm = with_dram_reads(behaviour, behaviour.dram_read_bytes * (1 - spared))
        yield Variant("L2 state", reason, (Change(memory=warm),))


def _l1(prepared: Prepared, prediction: Prediction, known: Uncertainty) -> Iterator[Variant]:
    behaviour, factor = prepared.behaviour, known.caches.l1_misses.value
    if _measured(prepared):
        return
    matters = prediction.utilization.get("l2", 0.0) * factor > LEAST_USE or far_share(prediction) > LEAST_WAIT
    if matters and any(0 < access.l1_hit < 1 for access in behaviour.accesses.values()):
        changes = tuple(Change(memory=with_l1_misses(behaviour, times)) for times in (1 / factor, factor))
        yield Variant("L1 hit rate", f"{1 / factor:.2f} to {factor:.2f} times the misses", changes)


def _measured(prepared: Prepared) -> bool:
    """Whether the memory figures come from a profile."""
    return prepared.measured is not None and prepared.behaviour.method == AVERAGED


def _sampling(prepared: Prepared, known: Uncertainty) -> Iterator[Variant]:
    sampling = prepared.profile.sampling
    if prepared.workload.off != (1.0, 1.0):
        yield Variant("represented blocks", "blocks with very long paths differ", factors=prepared.workload.off)
    if sampling is not None and sampling.basis == "limited":
        (shortest, longest), alike = sampling.spread, sampling.blocks > 1 and sampling.spread == (1.0, 1.0)
        factor = (known.sampled.few_alike if alike else known.sampled.few_different).value
        ends = (min(shortest, 1 / factor), max(longest, factor))
        reason = f"{sampling.blocks} of {sampling.of} blocks were emulated: too few to know how much blocks differ"
        yield Variant("sampled blocks", reason, factors=ends)
    if sampling is None or sampling.low is None or sampling.high is None or sampling.estimate <= 0:
        return
    if sampling.low < sampling.high:
        ends = (max(sampling.low, 1.0) / sampling.estimate, sampling.high / sampling.estimate)
        reason = f"{sampling.blocks} of {sampling.of} blocks were emulated"
        yield Variant("sampled blocks", reason, factors=ends)


def _constants(prepared: Prepared, prediction: Prediction, known: Uncertainty) -> Iterator[Variant]:
    classes = sorted({node.class_ for path in prepared.costed.paths for node in path.nodes})
    for group in weak_groups(prepared.gpu, prediction, classes, known):
        changes = tuple(
            Change(gpu=scaled(prepared.gpu, {key: math.exp(sign * log) for key, log in group.logs.items()}))
            for sign in (-1, 1)
        )
        yield Variant(group.name, group.reason, changes)


def _clock(prepared: Prepared, options: Options) -> Iterator[Variant]:
    clocks = clock_range_mhz(prepared.gpu, options)
    if clocks is not None:
        usual = prepared.costed.clock_hz / 1e6
        changes = tuple(Change(clock_mhz=mhz) for mhz in clocks if mhz != usual)
        yield Variant(CLOCK, f"{clocks[0]:.0f} to {clocks[1]:.0f} MHz, from the GPU file", changes)


def _constant_misses(prepared: Prepared, known: Uncertainty) -> Iterator[Variant]:
    rates, factor = prepared.behaviour.constant_misses, known.caches.constant_misses.value
    if rates:
        reason = f"misses of constants: none, to {factor:g} times as long as that of one warp alone"
        changed = ({index: rate * times for index, rate in rates.items()} for times in (0.0, factor))
        behaviours = (replace(prepared.behaviour, constant_misses=some) for some in changed)
        yield Variant("constant misses", reason, tuple(Change(memory=memory) for memory in behaviours))


def with_l1_misses(behaviour: MemoryBehaviour, factor: float) -> MemoryBehaviour:
    """As if the L1 missed `factor` times as often, for accesses that hit it at all; DRAM traffic is unchanged."""

    def other(access: AccessBehaviour) -> AccessBehaviour:
        if access.space == SPACE_SHARED or not 0 < access.l1_hit < 1:
            return access
        missed = min(1.0, (1 - access.l1_hit) * factor)
        beyond = min(1.0, (1 - access.l2_hit) * (1 - access.l1_hit) / missed)
        return replace(access, l1_hit=1 - missed, l2_hit=1 - beyond)

    return replace(behaviour, accesses={index: other(access) for index, access in behaviour.accesses.items()})


def scattered_share(behaviour: MemoryBehaviour) -> float:
    """Share of the L2 sectors requested by accesses where nearly every lane needs a sector in a different line."""
    outside = [access for access in behaviour.accesses.values() if access.space == SPACE_GLOBAL]
    asked = [access.units * access.executions * (1 - access.l1_hit) for access in outside]
    alone = (
        sectors
        for sectors, access in zip(asked, outside, strict=True)
        if access.lines >= SEPARATE * access.units and access.units >= SEVERAL * access.requests
    )
    return sum(alone) / sum(asked) if sum(asked) else 0.0


def with_writes_together(behaviour: MemoryBehaviour) -> MemoryBehaviour:
    """As if no sector that leaves for DRAM opened a row of its own.

    The published rate holds for stores to random places. Where addresses follow from the thread's index, neighbouring
    blocks soon write the rest of a row.
    """

    def other(access: AccessBehaviour) -> AccessBehaviour:
        read = access.dram_read / (access.dram_read + access.dram_write) if access.dram_write else 1.0
        return replace(access, apart=access.apart * read)

    return replace(behaviour, accesses={index: other(access) for index, access in behaviour.accesses.items()})


def with_slower_atomics(behaviour: MemoryBehaviour, factor: float) -> MemoryBehaviour:
    """As if atomics kept the L2's units busy `factor` times as long."""

    def other(access: AccessBehaviour) -> AccessBehaviour:
        return replace(access, atomics_factor=factor) if access.lanes else access

    return replace(behaviour, accesses={index: other(access) for index, access in behaviour.accesses.items()})
