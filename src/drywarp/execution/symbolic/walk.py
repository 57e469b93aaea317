"""Walks warps through a kernel's blocks without data: lanes diverge and reconverge as the machine code specifies.

Warps at the same block walk together as one crowd. The crowd at the lowest address goes first, so that those behind
catch up; groups of one warp merge only at convergence barriers, as in the emulator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .decide import Decider, Guess
from .flow import EXIT_BLOCK, Flow
from .forward import Crowd, Forward
from .report import Record
from .state import DATA, UNSURE, Batch, Lanes, State
from .words import Architecture, Branch, Call, Finish, Forget, Goto, Rejoin, Return, Scatter
from .written_out import MOST_ACCESSES

_BATCH_STEPS = 10
"""The cost of forming a batch, in steps of instructions."""

Index = npt.NDArray[np.int64]
Way = tuple[int, Lanes, tuple[int, ...]]
"""Target block, lanes that go there, shape (rows, lanes), and the call stack there."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much a walk may cost: steps of instructions over all crowds; and whether repeating iterations are skipped.

    `accesses` is how many rows of the access log are written out.
    """

    steps: int = 150_000
    forward: bool = True
    accesses: int = MOST_ACCESSES


class Walk:
    """One walk of the warps of a state, from the kernel's first block until every lane has left."""

    def __init__(
        self, state: State, architecture: Architecture, flow: Flow, decider: Decider, record: Record, effort: Effort
    ) -> None:
        self.state = state
        self.architecture = architecture
        self.flow = flow
        self.decider = decider
        self.record = record
        self.effort = effort
        self.steps = 0
        self.warp_steps = 0
        self.cut_short = False
        self.forward = Forward(self)
        self._crowds: list[Crowd] = []
        self._waiting: dict[tuple[int, int, tuple[int, ...]], Lanes] = {}
        self._needed: dict[tuple[int, int, tuple[int, ...]], Lanes] = {}

    def run(self) -> None:
        """Walk to the end. Never raises; a walk that takes too long is cut short and reports it."""
        every = np.flatnonzero(self.state.live.any(axis=1))
        self._crowds.append(Crowd(0, every, self.state.live[every].copy()))
        with np.errstate(all="ignore"):
            while True:
                crowd = self._next()
                if crowd is None:
                    if not self._let_go():
                        return
                    continue
                self._advance(crowd)
                if self.steps > self.effort.steps:
                    if self.decider.hurry and self.steps > 2 * self.effort.steps:
                        return
                    self.decider.hurry = self.cut_short = True

    def _next(self) -> Crowd | None:
        """The crowd at the lowest block, joined with others there that hold other warps."""
        if not self._crowds:
            return None
        first = min(self._crowds, key=lambda crowd: crowd.block)
        self._crowds.remove(first)
        for other in [c for c in self._crowds if c.block == first.block and c.stack == first.stack]:
            if not np.intersect1d(first.rows, other.rows, assume_unique=True).size:
                self._crowds.remove(other)
                rows = np.concatenate([first.rows, other.rows])
                order = np.argsort(rows)
                there = np.concatenate([first.there, other.there])[order]
                first = Crowd(first.block, rows[order], there, first.stack)
        return first

    def _advance(self, crowd: Crowd) -> None:
        """Run a crowd until it splits, waits, or another one is as far behind."""
        batch = Batch(self.state, crowd.rows, crowd.there)
        self.steps += _BATCH_STEPS
        warps = (crowd.rows + self.record.first_warp).astype(np.int32)
        active = crowd.there.sum(axis=1).astype(np.uint8)
        block = crowd.block
        while True:
            loop = self.flow.headers.get(block)
            if loop is not None and self.effort.forward:
                self.forward.arrive(loop, crowd, batch)
            code = self.architecture.code(block)
            size = self.flow.blocks[block].end - self.flow.blocks[block].start
            self.record.block(block, warps, active)
            self.steps += len(code.steps) + 2
            self.warp_steps += size * len(warps)
            self.state.clock += size
            for step in code.steps:
                step(batch)
            ways = [self._counting(block, way, crowd.rows) for way in self._ways(block, code.finish, batch, crowd)]
            other = min((c.block for c in self._crowds), default=len(self.flow.blocks))
            alone = len(ways) == 1 and ways[0][2] == crowd.stack and ways[0][0] != EXIT_BLOCK
            if not alone or ways[0][0] >= other or ways[0][1] is not crowd.there or self.steps > self.effort.steps:
                break
            block = ways[0][0]
        batch.write_back()
        for to, lanes, stack in ways:
            if to == EXIT_BLOCK:
                self._leave(crowd.rows, lanes)
            else:
                some = lanes.any(axis=1)
                if some.any():
                    self._crowds.append(Crowd(to, crowd.rows[some], lanes[some], stack))

    def _counting(self, block: int, way: Way, rows: Index) -> Way:
        """Count an iteration of a loop that begins at the target; an infinite loop ends the thread."""
        to, lanes, stack = way
        self.decider.passes(block, to, rows, lanes)
        if self.decider.endless(to, rows, lanes):
            return EXIT_BLOCK, lanes, stack
        return way

    # Ends of blocks -------------------------------------------------------------------------------

    def _ways(self, block: int, finish: Finish, batch: Batch, crowd: Crowd) -> list[Way]:
        there, stack = crowd.there, crowd.stack
        if isinstance(finish, Goto):
            return [(finish.to, there, stack)]
        if isinstance(finish, Branch):
            return self._branch(block, finish, batch, crowd)
        if isinstance(finish, Rejoin):
            return self._rejoin(finish, batch, crowd)
        if isinstance(finish, Forget):
            return self._forget(finish, batch, crowd)
        if isinstance(finish, Call):
            return self._call(block, finish, batch, crowd)
        if isinstance(finish, Return):
            return self._return(block, finish, batch, crowd)
        return self._scatter(block, finish, batch, crowd)

    def _branch(self, block: int, finish: Branch, batch: Batch, crowd: Crowd) -> list[Way]:
        test, flags = finish.test(batch)
        batch.rely_on(np.asarray(flags))
        taken = self.decider.decide(block, finish.taken, crowd.rows, crowd.there, test, flags)
        if finish.settle is not None and (np.broadcast_to(flags, taken.shape)[crowd.there] & UNSURE).any():
            finish.settle(batch, taken)
        return self._two(crowd, taken, finish.taken, finish.fall)

    def _two(self, crowd: Crowd, taken: Lanes, to: int, fall: int) -> list[Way]:
        there, stack = crowd.there, crowd.stack
        count = int(np.count_nonzero(taken))
        if count == 0:
            return [(fall, there, stack)]
        if count == int(np.count_nonzero(there)):
            return [(to, there, stack)]
        return [(to, taken, stack), (fall, there & ~taken, stack)]

    def _call(self, block: int, finish: Call, batch: Batch, crowd: Crowd) -> list[Way]:
        there, stack = crowd.there, crowd.stack
        called = there
        if finish.test is not None:
            test, flags = finish.test(batch)
            unsure = (np.broadcast_to(flags, there.shape) & UNSURE) != 0
            called = there & np.broadcast_to(test, there.shape) & ~unsure
        number = self.flow.blocks[block].end - 1
        entered = (finish.to or 0) in stack[::2]
        if finish.to is None or entered:
            why = "a recursive function is followed once" if entered else "not followed"
            self.decider.guesses.add(Guess(number, "call", why))
            return [(finish.back, there, stack)]
        deeper = (finish.to, finish.back, *stack)
        ways = [(finish.to, called, deeper), (finish.back, there & ~called, stack)]
        return [way for way in ways if way[1].any()]

    def _return(self, block: int, finish: Return, batch: Batch, crowd: Crowd) -> list[Way]:
        there, stack = crowd.there, crowd.stack
        if finish.test is not None:
            test, flags = finish.test(batch)
            leaves = self.decider.decide(block, EXIT_BLOCK, crowd.rows, there, test, flags)
            if not leaves.any():
                return [(finish.fall, there, stack)]
            if (there & ~leaves).any():
                back = stack[1] if stack else EXIT_BLOCK
                return [(back, leaves, stack[2:]), (finish.fall, there & ~leaves, stack)]
        return [(stack[1] if stack else EXIT_BLOCK, there, stack[2:])]

    def _scatter(self, block: int, finish: Scatter, batch: Batch, crowd: Crowd) -> list[Way]:
        """Known targets lane by lane; if the index depends on data, every choice is equally likely."""
        there, stack = crowd.there, crowd.stack
        target, flags = finish.target(batch)
        target = np.broadcast_to(target, there.shape).copy()
        unsure = ((np.broadcast_to(flags, there.shape) & UNSURE) != 0) | (target < 0)
        number = self.flow.blocks[block].end - 1
        if (unsure & there).any():
            if not finish.choices:
                self.decider.guesses.add(Guess(number, "branch", "the target is not known: the thread ends"))
                return [(EXIT_BLOCK, there, stack)]
            share = f"each of its {len(finish.choices)} targets is equally likely"
            self.decider.guesses.add(Guess(number, "branch", share))
            spread = batch.executions(number) + crowd.rows[:, None]
            if (np.broadcast_to(flags, there.shape) & DATA).any():
                spread = spread + np.arange(there.shape[1])
            target[unsure] = np.array(finish.choices)[np.broadcast_to(spread, there.shape) % len(finish.choices)][
                unsure
            ]
        return [(to, lanes, stack) for to in np.unique(target[there]).tolist() for lanes in [there & (target == to)]]

    def _leave(self, rows: Index, lanes: Lanes) -> None:
        self.state.live[rows] &= ~lanes
        self._release(rows)

    # Convergence ----------------------------------------------------------------------------------

    def _rejoin(self, finish: Rejoin, batch: Batch, crowd: Crowd) -> list[Way]:
        rows, there, stack = crowd.rows, crowd.there, crowd.stack
        live = self.state.live[rows]
        if finish.barrier is not None:
            needed = self.state.barriers[finish.barrier, rows]
        else:
            needed = finish.needed(batch) if finish.needed else live
        missing = needed & live & ~there
        if not missing.any():
            if finish.barrier is not None:
                self.state.barriers[finish.barrier, rows] = needed & ~there
            return [(finish.to, there, stack)]
        key = (-1 if finish.barrier is None else finish.barrier, finish.to, stack)
        shape = self.state.live.shape
        waiting = self._waiting.setdefault(key, np.zeros(shape, np.bool_))
        waiting[rows] |= there
        if finish.barrier is None:
            self._needed.setdefault(key, np.zeros(shape, np.bool_))[rows] = needed
        batch.write_back()
        self._release(rows)
        return []

    def _forget(self, finish: Forget, batch: Batch, crowd: Crowd) -> list[Way]:
        there = crowd.there
        lanes = there
        if finish.test is not None:
            test, flags = finish.test(batch)
            lanes = there & test
            if (flags[there] & UNSURE).any():
                lanes = lanes & ((flags & UNSURE) == 0)
                branch = None if finish.beside is None else self.architecture.code(finish.beside).finish
                if isinstance(branch, Branch) and finish.beside is not None:
                    lanes = self.decider.decide(finish.beside, branch.taken, crowd.rows, there, test, flags)
        self.state.barriers[finish.barrier, crowd.rows] &= ~lanes
        self._release(crowd.rows)
        return [(finish.to, there, crowd.stack)]

    def _release(self, rows: Index) -> None:
        """Resume what waits in these warps and no longer lacks any lane."""
        for key in list(self._waiting):
            waiting = self._waiting[key][rows]
            if waiting.any():
                barrier = key[0]
                needed = self.state.barriers[barrier, rows] if barrier >= 0 else self._needed[key][rows]
                others = waiting.copy()
                if barrier >= 0:
                    for held in [k for k in self._waiting if k[0] == barrier]:
                        others |= self._waiting[held][rows]
                ready = waiting.any(axis=1) & ~(needed & self.state.live[rows] & ~others).any(axis=1)
                self._go_on(key, rows[ready])

    def _go_on(self, key: tuple[int, int, tuple[int, ...]], rows: Index) -> None:
        if not len(rows):
            return
        there = self._waiting[key][rows].copy()
        self._waiting[key][rows] = False
        if key[0] >= 0:
            self.state.barriers[key[0], rows] &= ~there
        self.decider.passes(key[1] - 1, key[1], rows, there)
        self._crowds.append(Crowd(key[1], rows, there, key[2]))

    def _let_go(self) -> bool:
        """Resume the lowest of those that wait for each other; False if none waits."""
        stuck = [key for key, waiting in self._waiting.items() if waiting.any()]
        if not stuck:
            return False
        key = min(stuck, key=lambda k: k[1])
        self._go_on(key, np.flatnonzero(self._waiting[key].any(axis=1)))
        return True
