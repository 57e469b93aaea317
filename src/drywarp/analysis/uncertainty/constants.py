"""Combines parts of uncertainty into one band, and finds the constants that a kernel's time may depend on."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec

from ...hardware import Gpu
from ...memory.behaviour import MemoryBehaviour
from ...models.base import Prediction
from ...models.throughput import LAUNCH
from ...pipeline.blocks import Share, share_of
from ...pipeline.extrapolate import StandIn, Trial, instructions
from ...workload.build import Workload
from ...workload.cost import BlockType, CostedWorkload
from ...workload.cost_model import Conditions, assign_costs
from ..prepared import Prepared
from ..result import Band, BandPart
from .uncertainty import Uncertainty

CLOCK = "clock"
DIGITS = 6
"""Decimal places of a factor: more would differ between mathematical libraries."""


def part(name: str, ratios: Sequence[float], reason: str) -> BandPart:
    """A part that spans these ratios to the nominal time and always includes 1."""
    return BandPart(name, round(min([1.0, *ratios]), DIGITS), round(max([1.0, *ratios]), DIGITS), reason)


def combine(
    time_s: float, level: float, parts: Sequence[BandPart], clock_hz: tuple[float, float] | None = None
) -> Band:
    """The band around a time: parts are independent, so their squares add up on a logarithmic scale.

    The ``clock`` part is a range without a probability distribution, so it is added in full to the rest; `clock_hz`
    gives its ends.
    """
    others = [p for p in parts if p.name != CLOCK]
    low, high = (
        round(math.exp(sign * math.hypot(*(math.log(side) for side in sides), 0.0)), DIGITS)
        for sign, sides in ((-1, [p.low for p in others]), (1, [p.high for p in others]))
    )
    clocks = [p for p in parts if p.name == CLOCK]
    slowest = math.prod(p.high for p in clocks)
    fastest = math.prod(p.low for p in clocks)
    return Band(
        level=level,
        low_s=time_s * low * fastest,
        high_s=time_s * high * slowest,
        low_at_clock_s=time_s * low,
        high_at_clock_s=time_s * high,
        clock_hz=clock_hz if clocks else None,
        parts=tuple(sorted(parts, key=lambda p: (p.low / p.high, p.name))),
    )


# The weakly sourced constants that a kernel's time may depend on, and a GPU with some of them scaled.

LEAST_USE = 0.5
"""A subsystem is ignored if its utilisation, slowed down by its uncertainty, is no higher than this."""
LEAST_WAIT = 0.05
"""Waiting for something is ignored if it takes no more than this share of warp time."""
_FAR = ("long_scoreboard", "lg_throttle")
_NEAR = ("short_scoreboard", "mio_throttle", "barrier", "membar", "drain")


@dataclass(frozen=True)
class Group:
    """Constants that are scaled together: `logs` maps dotted keys to each one's logarithmic half-width."""

    name: str
    logs: Mapping[str, float]
    reason: str


def weak_groups(gpu: Gpu, prediction: Prediction, classes: Collection[str], known: Uncertainty) -> list[Group]:
    """The GPU's weak constants that this kernel may depend on, grouped by what they describe.

    `classes` are the GPU file's classes of the kernel's instructions. A group is left out if its subsystem is little
    used, or if warps hardly wait.
    """
    logs = {key: log for key, fact in gpu.facts() if (log := known.of(key, fact)) > 0}
    groups = [
        _of(gpu, "DRAM bandwidth", logs, [k for k in logs if k.startswith("memory.dram.") and k.endswith("_gbs")]),
        _of(gpu, "L2 bandwidth", logs, [k for k in logs if k.startswith("memory.l2.bytes_per_cycle")]),
    ]
    interval = "device.block_launch_interval"
    groups.append(_of(gpu, "launch of blocks", logs, [interval] if interval in logs else []))
    used = {"DRAM bandwidth": "dram", "L2 bandwidth": "l2", "launch of blocks": LAUNCH}
    for name in gpu.subsystems:
        own = [f"classes.{c}.lambda" for c in classes if gpu.classes[c].subsystem == name]
        if name == "lsu":
            own += ["memory.l1.bytes_per_cycle", "memory.shared.bytes_per_cycle"]
        title = f"λ of the {name} pipe"
        groups.append(_of(gpu, title, logs, [key for key in own if key in logs]))
        used[title] = name
    busy = prediction.utilization
    rates = [g for g in groups if g.logs and busy.get(used[g.name], 0.0) * math.exp(max(g.logs.values())) > LEAST_USE]
    far = [key for key in logs if key.startswith(("memory.l2.", "memory.l3.", "memory.dram.")) and "latency" in key]
    near = [f"classes.{c}.latency" for c in classes]
    near += ["memory.l1.latency", "memory.shared.latency", "device.block_launch_latency"]
    waits = [
        (_of(gpu, "memory latency", logs, far), far_share(prediction)),
        (_of(gpu, "other latencies", logs, [key for key in near if key in logs]), _share(prediction, _NEAR)),
    ]
    return rates + [group for group, share in waits if group.logs and share > LEAST_WAIT]


def _of(gpu: Gpu, name: str, logs: Mapping[str, float], keys: Collection[str]) -> Group:
    kinds = sorted({gpu.fact(key).kind for key in keys})
    reason = f"{', '.join(sorted(keys)[:3])}{', …' if len(keys) > 3 else ''}: {' and '.join(kinds)}"
    return Group(name, {key: logs[key] for key in sorted(keys)}, reason)


def far_share(prediction: Prediction) -> float:
    """The share of warp time spent waiting for memory; 1 if the prediction has no stalls."""
    return _share(prediction, _FAR)


def _share(prediction: Prediction, reasons: Collection[str]) -> float:
    """The share of warp time spent on these stall reasons; 1 if the prediction has no stalls."""
    whole = sum(prediction.stalls.values())
    return sum(prediction.stalls.get(reason, 0.0) for reason in reasons) / whole if whole else 1.0


def scaled(gpu: Gpu, factors: Mapping[str, float]) -> Gpu:
    """The GPU with constants multiplied by factors, by dotted key."""
    classes, sections = dict(gpu.classes), dict(gpu.sections)
    for key, factor in factors.items():
        first, *rest = key.split(".")
        if first == "classes":
            name, field = rest
            classes[name] = _times(classes[name], [{"lambda": "lambda_"}.get(field, field)], factor)
        else:
            sections[first] = _times(sections[first], rest, factor)
    return replace(gpu, classes=classes, sections=sections)


def _times(section: Any, path: list[str], factor: float) -> Any:
    name, *rest = path
    held = getattr(section, name)
    return msgspec.structs.replace(section, **{name: _times(held, rest, factor) if rest else held * factor})


# A small stand-in for a launch, on which changed assumptions are simulated: the same code, fewer iterations and blocks.
#
# Only the ratio of two times of the same stand-in is meaningful.

WAVES = 2
"""Waves of blocks, plus the partial last one, before loops are shortened."""
BUDGET = 40_000
"""Target number of warp instructions of the stand-in: a few milliseconds."""
MOST = 3
"""Above this many budgets, only one wave is simulated."""
MOST_NODES = 400
"""No further block type is added once all paths together have this many nodes."""


@dataclass(frozen=True)
class Change:
    """Replacements for the launch's own assumptions; None: no change."""

    gpu: Gpu | None = None
    memory: MemoryBehaviour | None = None
    clock_mhz: float | None = None
    policy: str | None = None


NOTHING = Change()


class Probe:
    """The stand-in of one prepared kernel."""

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self.workload = few_kinds(prepared.workload)
        self.share, self._iterations = self._small(self._costed(NOTHING))

    def seconds(self, change: Change = NOTHING) -> float:
        """Time of the stand-in with this change."""
        alone = replace(change, policy=None) == NOTHING
        trial = self._own if alone else self._iterations.trial(self._costed(change))
        if change.policy is not None:
            trial = trial.under(change.policy)
        return trial.run(self.share).cycles / trial.whole.clock_hz

    @cached_property
    def _own(self) -> Trial:
        return self._iterations.trial(self._costed(NOTHING))

    def _costed(self, change: Change) -> CostedWorkload:
        prepared = self.prepared
        gpu, behaviour = change.gpu or prepared.gpu, change.memory or prepared.behaviour
        clock = change.clock_mhz or prepared.costed.clock_hz / 1e6
        conditions = Conditions(clock, prepared.costed.policy, prepared.costed.blocks_per_sm)
        return assign_costs(self.workload, behaviour, gpu, conditions)

    def _small(self, costed: CostedWorkload) -> tuple[Share, StandIn]:
        """Fewer blocks, of which the tail stays, and then fewer iterations."""
        whole = share_of(self.prepared.costed, self.prepared.costed.blocks_per_sm)
        total, resident = instructions(costed, whole.blocks), whole.resident
        if total <= BUDGET:
            return whole, StandIn(costed, 1.0)
        share = whole.shortened(_blocks(whole, max(WAVES, BUDGET * whole.blocks // (total * resident))))
        left = StandIn(costed, BUDGET / instructions(costed, share.blocks))
        few = left.instructions * share.blocks <= MOST * BUDGET
        return share if few else whole.shortened(_blocks(whole, 1)), left


def _blocks(whole: Share, waves: int) -> int:
    """Blocks of this many waves and the partial last one."""
    return min(whole.blocks, waves * whole.resident + whole.blocks % whole.resident)


def few_kinds(workload: Workload) -> Workload:
    """The workload with only its most frequent block types and their paths."""
    kinds: list[BlockType] = []
    kept: set[int] = set()
    for kind in sorted(workload.block_types, key=lambda kind: -kind.weight):
        if kinds and sum(len(workload.paths[path].nodes) for path in kept) >= MOST_NODES:
            break
        kinds.append(kind)
        kept |= set(kind.paths)
    place = {old: new for new, old in enumerate(sorted(kept))}
    return replace(
        workload,
        paths=tuple(workload.paths[path] for path in sorted(kept)),
        block_types=tuple(BlockType(tuple(place[path] for path in kind.paths), kind.weight) for kind in kinds),
    )
