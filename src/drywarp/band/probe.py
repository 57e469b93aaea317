"""A small stand-in for a launch, on which a change of an assumption is tried: the same code, fewer turns and blocks.

Only the ratio of two times of the same stand-in means anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from ..binding import Binding, bind
from ..bound import BlockType, BoundWorkload
from ..hardware import Gpu
from ..memory.behaviour import MemoryBehaviour
from ..pipeline.blocks import Share, share_of
from ..pipeline.extrapolate import instructions, shorten, simulate
from ..pipeline.simulate import Program
from ..ready import BoundKernel
from ..workload import Workload

WAVES = 2
"""Waves of blocks, beside the partial last one, before loops are shortened."""
BUDGET = 40_000
"""Warp instructions that the stand-in is to have: a few milliseconds."""
MOST = 3
"""Budgets from which on there is one wave alone."""
MOST_NODES = 400
"""Nodes of all its paths together from which on no further kind of block is taken in."""
FEWEST_TURNS = 3
"""Turns that a loop keeps at least."""


@dataclass(frozen=True)
class Change:
    """What is tried in place of the launch's own; None: no change."""

    gpu: Gpu | None = None
    memory: MemoryBehaviour | None = None
    clock_mhz: float | None = None
    policy: str | None = None


NOTHING = Change()


class Probe:
    """The stand-in of one ready kernel."""

    def __init__(self, ready: BoundKernel) -> None:
        self.ready = ready
        self.workload = few_kinds(ready.workload)
        self.share = share_of(ready.bound, ready.bound.blocks_per_sm)

    def seconds(self, change: Change = NOTHING) -> float:
        """Time of the stand-in with this change."""
        if replace(change, policy=None) == NOTHING:
            program, share = self._own
        else:
            program, share = self._prepared(change)
        if change.policy is not None:
            program = program.under(change.policy)
        return simulate(program.workload, share, stalls=False, program=program).cycles / program.workload.clock_hz

    @cached_property
    def _own(self) -> tuple[Program, Share]:
        return self._prepared(NOTHING)

    def _prepared(self, change: Change) -> tuple[Program, Share]:
        ready = self.ready
        gpu, behaviour = change.gpu or ready.gpu, change.memory or ready.behaviour
        clock = change.clock_mhz or ready.bound.clock_hz / 1e6
        binding = Binding(clock, ready.bound.policy, ready.bound.blocks_per_sm)
        small, share = self._small(bind(self.workload, behaviour, gpu, binding))
        return Program(small), share

    def _small(self, bound: BoundWorkload) -> tuple[BoundWorkload, Share]:
        whole = self.share
        total, resident = instructions(bound, whole.blocks), whole.resident
        if total <= BUDGET:
            return bound, whole
        share = whole.shortened(_blocks(whole, max(WAVES, BUDGET * whole.blocks // (total * resident))))
        total = instructions(bound, share.blocks)
        if total > BUDGET and not bound.synchronises:  # turns left out of one warp's loop would be missed by another's
            bound = shorten(bound, BUDGET / total, FEWEST_TURNS)
            total = instructions(bound, share.blocks)
        return bound, share if total <= MOST * BUDGET else whole.shortened(_blocks(whole, 1))


def _blocks(whole: Share, waves: int) -> int:
    """Blocks of so many waves and the partial last one."""
    return min(whole.blocks, waves * whole.resident + whole.blocks % whole.resident)


def few_kinds(workload: Workload) -> Workload:
    """The workload with its most frequent kinds of blocks alone, and the paths that these take."""
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
