"""Which way lanes go at a branch, from what is known: the rules of docs/static.md.

Known conditions are followed, lane by lane. A loop whose end is unknown runs a stated or a default number of
iterations; a guard whose condition is unknown lets every thread pass; a slow path is not taken.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .flow import Avoid, Flow, LoopExit, StaticLoop
from .state import ASSUMED, DATA, UNSURE, Flags, Lanes

DEFAULT_TRIPS = 16
"""Default trip count of a source loop that is neither stated nor derivable from the code."""


@dataclass
class LoopCount:
    """The trip count found for a loop: `iterations` summed over `runs` threads, and how it is known."""

    iterations: int = 0
    runs: int = 0
    fewest: int = 0
    most: int = 0
    kinds: set[str] = field(default_factory=set)

    def add(self, iterations: npt.NDArray[np.int64], kind: str) -> None:
        """Record threads that have run the loop this many times."""
        low, high = int(iterations.min()), int(iterations.max())
        self.fewest = low if not self.runs else min(self.fewest, low)
        self.most = max(self.most, high)
        self.iterations += int(iterations.sum())
        self.runs += len(iterations)
        self.kinds.add(kind)

    def join(self, other: LoopCount) -> None:
        """Add the findings of another walk."""
        if other.runs:
            self.fewest = min(self.fewest, other.fewest) if self.runs else other.fewest
            self.most = max(self.most, other.most)
            self.iterations += other.iterations
            self.runs += other.runs
            self.kinds |= other.kinds


@dataclass(frozen=True, order=True)
class Guess:
    """An assumption made at an instruction."""

    instruction: int
    what: str
    assumed: str


class Decider:
    """Decides branches for all warps of one state, and counts loop iterations."""

    def __init__(
        self,
        flow: Flow,
        warps: int,
        lanes: int,
        trips: Mapping[int, int],
        default: int = DEFAULT_TRIPS,
        stated: Collection[int] = (),
        seen: Mapping[int, int] | None = None,
    ) -> None:
        self.flow = flow
        self.trips = trips
        self._default = default
        self._seen = seen or {}
        """Iterations that an emulation has run of loops, by their first basic block."""
        self._chosen = {n for n in stated if n < len(flow.instructions)}
        """Branches for which a user has stated the share of threads that take them."""
        self.hurry = False
        """Set if the walk takes too long: every loop is left at the first opportunity."""
        self.counts = {loop.index: LoopCount() for loop in flow.loops}
        self.guesses: set[Guess] = set()
        self._iteration = np.zeros((len(flow.loops), warps, lanes), np.int32)
        self.limits: dict[int, int] = {}
        """Iterations after which a loop with a stated or assumed trip count is left."""
        self._stated: set[int] = set()
        """Loops that were left after a stated or assumed number of iterations."""
        self._ran = np.zeros(self._iteration.shape, np.bool_)
        """Lanes that have reached a loop since the last iteration of the enclosing loop."""
        self._inner = {
            loop.index: [other.index for other in flow.loops if other.blocks < loop.blocks] for loop in flow.loops
        }

    def passes(self, block: int, to: int, rows: npt.NDArray[np.int64], there: Lanes) -> None:
        """Record that lanes go from one block to another: loops begin or iterate there."""
        index = self.flow.headers.get(to)
        if index is None:
            return
        iteration = self._iteration[index, rows]
        again = block in self.flow.loops[index].blocks
        self._iteration[index, rows] = np.where(there, iteration + 1 if again else 0, iteration)
        self._ran[index, rows] |= there
        for inner in self._inner[index]:
            self._ran[inner, rows] &= ~there

    def iterations(self, index: int, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Completed iterations of a loop, shape (rows, lanes)."""
        iterations: npt.NDArray[np.int32] = self._iteration[index, rows]
        return iterations

    def skip(self, index: int, rows: npt.NDArray[np.int64], there: Lanes, iterations: int) -> None:
        """Add this many iterations of a loop for some lanes."""
        self._iteration[index, rows] += np.where(there, np.int32(iterations), np.int32(0))

    def endless(self, to: int, rows: npt.NDArray[np.int64], there: Lanes) -> bool:
        """Whether lanes have run a loop without an exit branch as often as assumed."""
        index = self.flow.headers.get(to)
        if index is None or self.flow.loops[index].main is not None:
            return False
        wanted = 1 if self.hurry else self.trips.get(index, self._usual(self.flow.loops[index], 1))
        self.limits[index] = wanted
        done = self._iteration[index, rows]
        if not (done >= wanted)[there].any():
            return False
        self.counts[index].add(done[there], "given" if index in self.trips else "assumed")
        return True

    def decide(
        self, block: int, taken_side: int, rows: npt.NDArray[np.int64], there: Lanes, test: Lanes, flags: Flags
    ) -> Lanes:
        """Lanes of `there` that take the branch at the end of a block, to its side `taken_side`."""
        role = self.flow.roles.get(block)
        test, flags = np.broadcast_to(test, there.shape), np.broadcast_to(flags, there.shape)
        unsure = (flags & UNSURE != 0) & there
        number = self.flow.blocks[block].end - 1
        if isinstance(role, LoopExit):
            toward = role.leaving == taken_side
            leaves = self._leaves(role, number, rows, there, test == toward, unsure)
            gone: Lanes = there & (leaves == toward)
            return gone
        if not unsure.any():
            return there & test
        if isinstance(role, Avoid) and number not in self._chosen:
            self._guess(number, "branch", f"not taken: {role.reason}" if role.side == taken_side else role.reason)
            return there & np.where(unsure, role.side != taken_side, test)
        if number not in self._chosen and (way := self._loop_way(block, rows, there)) is not None:
            side, reason = way
            self._guess(number, "branch", reason)
            return there & np.where(unsure, side == taken_side, test)
        if (flags[unsure] & DATA).any():
            share = float(test[unsure].mean())
            self._guess(number, "branch", f"depends on data: taken by {share:.0%} of the threads")
        elif (flags[unsure] & ASSUMED).any():
            self._guess(number, "branch", "decided with the assumed arguments")
        return there & test

    def _loop_way(self, block: int, rows: npt.NDArray[np.int64], there: Lanes) -> tuple[int, str] | None:
        """The side to take at a branch that asks whether a loop runs at all, or what remains of it; and the reason."""
        flow = self.flow
        sides, here = flow.successors(block), flow.last(block).source
        if len(sides) != 2:
            return None
        # Loops that just ran a stated or assumed number of iterations run no more: neither in a remainder loop at the
        # same line, nor in a part at that line that may be skipped.
        over = {
            flow.loops[index].source
            for index in self._stated
            if block not in flow.loops[index].blocks and self._ran[index, rows][there].any()
        }
        nothing = "no iterations are left for the remainder of an unrolled loop"
        again = [bool(flow.loops_behind(block, side).keys() & over) for side in sides]
        if again[0] != again[1]:
            return sides[again[0]], nothing
        if here in over and flow.skipped(block):
            return flow.join(block), nothing
        if here is None or here in over:
            return None
        copies = [flow.loops_behind(block, side).get(here, 0) for side in sides]
        if copies[0] != copies[1]:
            return sides[copies[1] > copies[0]], "a loop runs at least once"
        return None

    def _leaves(
        self, role: LoopExit, number: int, rows: npt.NDArray[np.int64], there: Lanes, leaves: Lanes, unsure: Lanes
    ) -> Lanes:
        loop = self.flow.loops[role.loop]
        done = self._iteration[role.loop, rows] + loop.at_end
        given = self.trips.get(role.loop)
        default = self._usual(loop, loop.copies)
        if not role.main:
            if not unsure.any():
                leaves = leaves & there
                if leaves.any():
                    self.counts[role.loop].add(self._iteration[role.loop, rows][leaves], "derived")
                return leaves
            self._guess(number, "loop", f"{loop.name} does not exit here")
            return there & leaves & ~unsure
        if given is not None:
            kind, leaves = "given", done >= given
            self.limits[role.loop] = given
        elif unsure.any():
            kind, leaves = "assumed", np.where(unsure, done >= default, leaves)
            self.limits[role.loop] = default
        else:
            kind = "derived"
            self.limits.pop(role.loop, None)
        if self.hurry:
            leaves = np.ones_like(there)
        leaves = leaves & there
        if kind != "derived" and loop.source is not None:
            self._stated.add(role.loop)
        if leaves.any():
            self.counts[role.loop].add(done[leaves], kind)
        return leaves

    def _usual(self, loop: StaticLoop, copies: int) -> int:
        """Iterations of a loop whose end is unknown; each is `copies` iterations of the source loop."""
        return self._seen.get(loop.header) or max(-(-self._default // copies), 1)

    def _guess(self, instruction: int, what: str, assumed: str) -> None:
        self.guesses.add(Guess(instruction, what, assumed))
