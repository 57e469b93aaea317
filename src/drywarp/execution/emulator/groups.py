"""The position of every warp: its groups of lanes, their PCs, and what they wait for.

A divergent warp is several groups, each with a PC and a mask. The groups of all warps are stored in arrays of shape
(slot, warp), so those at one PC are found and moved together. Groups merge only where the code requires it: at
convergence barriers (BSSY ... BSYNC) and WARPSYNC.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...kernel.instruction import PT
from ...kernel.profile import SYNC_KIND
from .bits import LANES, popcount
from .machine import BARRIER_REGISTERS, BLOCK_BARRIERS, Machine

EMPTY, RUN, AT_CONVERGENCE, AT_WARPSYNC, AT_BARRIER, AT_PHASE = range(6)
WAITS_FOR = {
    AT_CONVERGENCE: "for other lanes of its warp at a convergence barrier",
    AT_WARPSYNC: "for other lanes of its warp at a warp synchronisation",
    AT_BARRIER: "for other warps of its block at a barrier",
    AT_PHASE: "for a phase of a barrier in shared memory (mbarrier), or of the one of their cluster, to complete",
}
FAR = np.int64(1) << np.int64(40)
U32 = npt.NDArray[np.uint32]
Index = npt.NDArray[np.int64]


@dataclass
class PhaseWait:
    """A group that waits for phases of barriers in shared memory.

    `barriers` holds for each barrier, by block and address, how many phases must have completed, and the lanes that
    wait for it. `predicate` reports success to them (-1: the wait never times out), `event` is the record of the wait.
    """

    barriers: dict[tuple[int, int], tuple[int, npt.NDArray[np.bool_]]]
    predicate: int
    event: list[int]


class Groups:
    """The groups of all warps of a machine.

    `pc`, `mask`, `state` and `argument` have shape (slots, warps). `argument` says which convergence barrier, which
    lanes (a mask) or which block barrier (id | threads << 8) a group waits for; `pc` of a waiting group is where it
    resumes. `stamp` is when a group last ran.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        warps = machine.warps
        self.pc = np.zeros((1, warps), np.int64)
        self.mask: U32 = machine.live[None, :].copy()
        self.state = np.full((1, warps), RUN, np.int8)
        self.argument = np.zeros((1, warps), np.int64)
        self.stamp = np.zeros((1, warps), np.int64)
        self.every = np.arange(warps)
        self.live_version = 0
        # Lanes that arrived without waiting (BAR.ARV), how often a warp's did before, and predicates passed to barrier
        # reductions.
        self.arrived: U32 = np.zeros((BLOCK_BARRIERS, warps), np.uint32)
        self.earlier = np.zeros((BLOCK_BARRIERS, warps), np.int64)
        self.votes: U32 = np.zeros((BLOCK_BARRIERS, warps), np.uint32)
        self.reduction = [""] * BLOCK_BARRIERS
        self.phase_waits: dict[tuple[int, int], PhaseWait] = {}
        """What groups in state AT_PHASE wait for, by slot and warp."""
        self.passed: Callable[[list[int], int], None] | None = None
        """Told which warps of a block pass which of its barriers together; None if nobody asks."""

    # Placing groups -------------------------------------------------------------------------------

    def set(self, warps: Index, slots: Index, pc: Any, mask: U32, state: int = RUN, argument: Any = 0) -> None:
        """Put groups into slots; a group without lanes empties its slot."""
        self.pc[slots, warps] = pc
        self.mask[slots, warps] = mask
        self.state[slots, warps] = np.where(mask == 0, EMPTY, state)
        self.argument[slots, warps] = argument

    def add(self, warps: Index, pc: Any, mask: U32, state: int = RUN, argument: Any = 0) -> None:
        """Add a group to each of some warps, in its first empty slot."""
        free = self.state[:, warps] == EMPTY
        if not free.any(axis=0).all():
            self.grow()
            free = self.state[:, warps] == EMPTY
        slots = free.argmax(axis=0)
        self.stamp[slots, warps] = 0
        self.set(warps, slots, pc, mask, state, argument)

    def grow(self) -> None:
        """Double the number of slots."""
        count = len(self.pc)
        for name in ("pc", "mask", "state", "argument", "stamp"):
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.zeros_like(array[:count])]))

    # Lanes leaving --------------------------------------------------------------------------------

    def retire(self, warps: Index, lanes: U32) -> None:
        """Remove exiting lanes from everything that may wait for them."""
        self.machine.live[warps] &= ~lanes
        self.machine.barriers[:, warps] &= ~lanes
        self.live_version += 1

    # Releases -------------------------------------------------------------------------------------

    def release(self, warps: Index) -> None:
        """Resume what no longer needs to wait in these warps; call after anything has arrived or left."""
        states = self.state[:, warps]
        if (states == AT_CONVERGENCE).any():
            self._release_convergence(warps)
        if (states == AT_WARPSYNC).any():
            self._release_warpsync(warps)

    def _release_convergence(self, warps: Index) -> None:
        live, barriers = self.machine.live, self.machine.barriers
        for number in range(BARRIER_REGISTERS):
            waits = (self.state[:, warps] == AT_CONVERGENCE) & (self.argument[:, warps] == number)
            some = waits.any(axis=0)
            if not some.any():
                continue
            here, waits = warps[some], waits[:, some]
            # A group whose lanes are not in the barrier waits for an outer use of it, whose lanes a called function has
            # saved and will restore.
            waits &= (self.mask[:, here] & barriers[number, here]) != 0
            waiting = np.bitwise_or.reduce(np.where(waits, self.mask[:, here], np.uint32(0)), axis=0)
            needed = barriers[number, here] & live[here] & ~self.machine.yielded[here]
            ready = ((needed & ~waiting) == 0) & (waiting != 0)
            if not ready.any():
                continue
            here, waits, waiting = here[ready], waits[:, ready], waiting[ready]
            # Lanes that were not waited for must not be waited for later either.
            barriers[number, here] &= ~(waiting | self.machine.yielded[here])
            self._merge(here, waits)

    def break_convergence(self) -> bool:
        """Resume the lowest groups that wait at convergence barriers on their own; False if there are none.

        Breaks circular waits among lanes, which calls in divergent code can cause. Warps with lanes at a block barrier
        are not touched: their wait is genuine.
        """
        waits = (self.state == AT_CONVERGENCE) & ~(self.state == AT_BARRIER).any(axis=0)
        if not waits.any():
            return False
        places = np.where(waits, self.pc, FAR)
        self.state[places == places.min()] = RUN
        return True

    def _release_warpsync(self, warps: Index) -> None:
        live = self.machine.live
        for slot in range(len(self.pc)):
            some = self.state[slot, warps] == AT_WARPSYNC
            here = warps[some]
            if not len(here):
                continue
            waits = (self.state[:, here] == AT_WARPSYNC) & (self.pc[:, here] == self.pc[slot, here])
            waits &= self.argument[:, here] == self.argument[slot, here]
            waiting = np.bitwise_or.reduce(np.where(waits, self.mask[:, here], np.uint32(0)), axis=0)
            needed = self.argument[slot, here].astype(np.uint32) & live[here]
            ready = (needed & ~waiting) == 0
            self._merge(here[ready], waits[:, ready])

    def _merge(self, warps: Index, which: npt.NDArray[np.bool_]) -> None:
        """Make the groups `which`, shape (slots, warps), run again, merging those of a warp with the same PC."""
        if len(self.pc) == 1:
            self.state[0, warps] = RUN
            return
        left = which.copy()
        while True:
            some = left.any(axis=0)
            if not some.any():
                return
            warps, left = warps[some], left[:, some]
            first = left.argmax(axis=0)
            same = left & (self.pc[:, warps] == self.pc[first, warps])
            mask = np.bitwise_or.reduce(np.where(same, self.mask[:, warps], np.uint32(0)), axis=0)
            slots, columns_of = np.nonzero(same)
            self.state[slots, warps[columns_of]] = EMPTY
            self.mask[slots, warps[columns_of]] = 0
            self.mask[first, warps] = mask
            self.state[first, warps] = RUN
            left = left & ~same

    def arrive(self, number: npt.NDArray[np.int64], warps: Index, words: U32) -> None:
        """Lanes, a word per warp, arrive at these barriers without waiting; lanes that have arrived count again."""
        self.earlier[number, warps] += (self.arrived[number, warps] & words) != 0
        self.arrived[number, warps] |= words

    def release_barriers(self, warps: Index) -> None:
        """Release those of these warps' blocks that have fully arrived at a barrier."""
        machine = self.machine
        waits = self.state == AT_BARRIER
        if not waits.any():
            return
        per_block = machine.warps_per_block
        for key in np.unique(self.argument[waits]).tolist():
            number, threads = key & 255, key >> 8
            at = waits & (self.argument == key)
            waiting = np.bitwise_or.reduce(np.where(at, self.mask, np.uint32(0)), axis=0)
            there = (waiting | self.arrived[number]).reshape(-1, per_block)
            live = machine.live.reshape(-1, per_block)
            ready = ((live & ~there) == 0).all(axis=1)
            if threads:
                # A stated count is met by whole warps: each counts as 32 threads, full or not. It counts once more if
                # it waits after it arrived: a warp may meet itself.
                twice = (waiting & self.arrived[number]) != 0
                more = (self.earlier[number] + twice).reshape(-1, per_block)
                ready = ((there != 0) + more).sum(axis=1) * LANES >= threads
            ready &= waiting.reshape(-1, per_block).any(axis=1)
            if not ready.any():
                continue
            if self.reduction[number]:
                self._reduce(number, ready, waiting)
            machine.barrier_phases[number, ready] += 1
            released = np.repeat(ready, per_block)
            if self.passed:
                for block in np.flatnonzero(ready).tolist():
                    warps = np.arange(block * per_block, (block + 1) * per_block)
                    self.passed((warps[there[block] != 0] if threads else warps).tolist(), number)
            self.arrived[number, released] = 0
            self.earlier[number, released] = 0
            self.votes[number, released] = 0
            self.state[at & released] = RUN

    def release_phases(self) -> None:
        """Resume the groups whose phases have completed."""
        phases = self.machine.phases
        for key, wait in list(self.phase_waits.items()):
            if all(phases.get(barrier, 0) >= needed for barrier, (needed, _) in wait.barriers.items()):
                del self.phase_waits[key]
                self.state[key] = RUN

    def time_out_phases(self) -> bool:
        """Resume all groups whose waits for phases may time out, without success; False if there are none.

        Here they do when nothing else can run.
        """
        phases = self.machine.phases
        found = {key: wait for key, wait in self.phase_waits.items() if wait.predicate >= 0}
        for key, wait in found.items():
            for barrier, (needed, lanes) in wait.barriers.items():
                if phases.get(barrier, 0) < needed and wait.predicate != PT:
                    self.machine.predicates[wait.predicate, key[1]] &= ~lanes
            wait.event[SYNC_KIND] = 0
            self.state[key] = RUN
            del self.phase_waits[key]
        return bool(found)

    def _reduce(self, number: int, blocks: npt.NDArray[np.bool_], waiting: U32) -> None:
        """Store the results of a reduction for B2R to read until the block's next reduction."""
        per_block = self.machine.warps_per_block
        votes = popcount(self.votes[number]).reshape(-1, per_block).sum(axis=1)
        kind = self.reduction[number]
        result = votes
        if kind == "AND":
            result = votes == popcount(waiting).reshape(-1, per_block).sum(axis=1)
        elif kind == "OR":
            result = votes > 0
        self.machine.barrier_result[blocks] = result[blocks]
