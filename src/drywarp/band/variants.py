"""What a prediction takes for granted, tried the other way on a small stand-in of the launch: the parts of a band."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..hardware import Gpu
from ..kernel.profile import SPACE_SHARED
from ..memory.averaged import METHOD as AVERAGED
from ..memory.behaviour import AccessBehaviour, MemoryBehaviour, with_dram_reads
from ..models.base import Prediction
from ..pipeline.policies import POLICIES
from ..ready import BoundKernel, Options
from ..result import MemoryBounds
from .combine import CLOCK
from .constants import LEAST_USE, LEAST_WAIT, far_share, scaled, weak_groups
from .probe import Change
from .uncertainty import WEAK, Uncertainty

LEAST_WARM = 0.05
"""Share of the reads from DRAM up to which a warm L2 is taken not to matter."""


@dataclass(frozen=True)
class Variant:
    """Something taken for granted: `changes` to try instead, or `factors` of the time where no trial is needed."""

    name: str
    reason: str
    changes: tuple[Change, ...] = ()
    factors: tuple[float, ...] = ()


def variants(
    ready: BoundKernel,
    options: Options,
    prediction: Prediction,
    known: Uncertainty,
    bounds: MemoryBounds | None = None,
) -> Iterator[Variant]:
    """All that may matter to this launch; what the caller fixed (clock, scheduler, warm L2) is certain."""
    if bounds is not None:
        ends = bounds.fastest_s / prediction.time_s, bounds.slowest_s / prediction.time_s
        yield Variant("DRAM reads", "what blocks share in the L2 could not be followed", factors=ends)
    yield from _start(ready, prediction, known)
    yield from _others(ready, known)
    yield from _scheduler(ready, options)
    yield from _l2_state(ready, options)
    yield from _l1(ready, prediction, known)
    yield from _sampling(ready)
    yield from _constants(ready, prediction, known)
    yield from _clock(ready, options)


def clock_range_mhz(gpu: Gpu, options: Options) -> tuple[float, float] | None:
    """The clocks that the GPU may run at; None where the caller named one, or there is only one."""
    low, high = gpu.device.base_clock_mhz, max(gpu.device.max_clock_mhz or 0.0, gpu.device.boost_clock_mhz)
    return (low, high) if options.clock_mhz is None and low < high else None


def _start(ready: BoundKernel, prediction: Prediction, known: Uncertainty) -> Iterator[Variant]:
    share, factor = ready.bound.start_s / prediction.time_s, known.launch.kernel_start.value
    if share:
        reason = f"a kernel starts and ends within {1 / factor:.2f} to {factor:.2f} times what is taken for it"
        yield Variant("kernel start", reason, factors=(1 - share + share / factor, 1 - share + share * factor))


def _others(ready: BoundKernel, known: Uncertainty) -> Iterator[Variant]:
    if ready.behaviour.dependent is not None:
        factor = known.launch.dependent_blocks.value
        yield Variant("dependent blocks", "blocks were predicted as if each were alone", factors=(1 / factor, factor))
    if ready.behaviour.contended is not None:
        together = min(ready.bound.blocks, ready.bound.sm_count * ready.bound.blocks_per_sm)
        reason = f"{together} blocks at once repeat their attempts at one address; one block's own are counted"
        yield Variant("contention", reason, factors=(float(together),))


def _scheduler(ready: BoundKernel, options: Options) -> Iterator[Variant]:
    bound, fact = ready.bound, ready.gpu.known.get("scheduler.policy")
    if options.scheduler is not None or fact is None or fact.kind not in WEAK:
        return
    if bound.warps_per_sm > bound.partitions:  # else no partition has two warps to choose from
        others = [name for name in POLICIES if name != bound.policy]
        changes = tuple(Change(policy=name) for name in others)
        yield Variant("scheduler", f"{', '.join(others)} instead of {bound.policy}", changes)


def _l2_state(ready: BoundKernel, options: Options) -> Iterator[Variant]:
    behaviour = ready.behaviour
    if options.warm_l2 or _measured(ready):
        return
    spared = min(1.0, ready.gpu.memory.l2.bytes / behaviour.dram_read_bytes) if behaviour.dram_read_bytes else 0.0
    if spared > LEAST_WARM:
        reason = f"{spared:.0%} of the reads from DRAM may be in the L2 beforehand"
        warm = with_dram_reads(behaviour, behaviour.dram_read_bytes * (1 - spared))
        yield Variant("L2 state", reason, (Change(memory=warm),))


def _l1(ready: BoundKernel, prediction: Prediction, known: Uncertainty) -> Iterator[Variant]:
    behaviour, factor = ready.behaviour, known.caches.l1_misses.value
    if _measured(ready):
        return
    matters = prediction.utilization.get("l2", 0.0) * factor > LEAST_USE or far_share(prediction) > LEAST_WAIT
    if matters and any(0 < access.l1_hit < 1 for access in behaviour.accesses.values()):
        changes = tuple(Change(memory=with_l1_misses(behaviour, times)) for times in (1 / factor, factor))
        yield Variant("L1 hit rate", f"{1 / factor:.2f} to {factor:.2f} times the misses", changes)


def _measured(ready: BoundKernel) -> bool:
    """Whether the figures of memory are those of a profile."""
    return ready.measured is not None and ready.behaviour.method == AVERAGED


def _sampling(ready: BoundKernel) -> Iterator[Variant]:
    sampling = ready.profile.sampling
    if sampling is None or sampling.low is None or sampling.high is None or sampling.estimate <= 0:
        return
    if sampling.low < sampling.high:
        ends = (max(sampling.low, 1.0) / sampling.estimate, sampling.high / sampling.estimate)
        reason = f"{sampling.blocks} of {sampling.of} blocks were emulated"
        yield Variant("sampled blocks", reason, factors=ends)


def _constants(ready: BoundKernel, prediction: Prediction, known: Uncertainty) -> Iterator[Variant]:
    classes = sorted({node.class_ for path in ready.bound.paths for node in path.nodes})
    for group in weak_groups(ready.gpu, prediction, classes, known):
        changes = tuple(
            Change(gpu=scaled(ready.gpu, {key: math.exp(sign * log) for key, log in group.logs.items()}))
            for sign in (-1, 1)
        )
        yield Variant(group.name, group.reason, changes)


def _clock(ready: BoundKernel, options: Options) -> Iterator[Variant]:
    clocks = clock_range_mhz(ready.gpu, options)
    if clocks is not None:
        usual = ready.bound.clock_hz / 1e6
        changes = tuple(Change(clock_mhz=mhz) for mhz in clocks if mhz != usual)
        yield Variant(CLOCK, f"{clocks[0]:.0f} to {clocks[1]:.0f} MHz, from the GPU's file", changes)


def with_l1_misses(behaviour: MemoryBehaviour, factor: float) -> MemoryBehaviour:
    """As if the L1 missed `factor` times as often where it hits at all; DRAM gets no more and no less."""

    def other(access: AccessBehaviour) -> AccessBehaviour:
        if access.space == SPACE_SHARED or not 0 < access.l1_hit < 1:
            return access
        missed = min(1.0, (1 - access.l1_hit) * factor)
        beyond = min(1.0, (1 - access.l2_hit) * (1 - access.l1_hit) / missed)
        return replace(access, l1_hit=1 - missed, l2_hit=1 - beyond)

    return replace(behaviour, accesses={index: other(access) for index, access in behaviour.accesses.items()})
