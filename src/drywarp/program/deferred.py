"""Launches that are computed only if the host reads what they write (``--sampled``).

Such a launch is predicted from a sample of its blocks, and deferred. It may touch every allocation that its arguments
lead to, directly or through pointers in memory. When the host reads one of these, all deferred launches connected
with it are computed in order: the copies and fills in between are first undone, then redone in their place. Launches
whose results nobody has read by the end remain sampled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..execution.emulator.constants import names_outside
from ..kernel.launch.launch import Launch
from .asked import Asked, Outcome
from .heap import Allocation, Heap
from .keep import given_to, pointed_to, reached
from .launches import Launches

_MOST_UNDONE = 1 << 30
"""Maximum bytes kept to undo copies; beyond that, deferred launches are computed."""


@dataclass
class Step:
    """A deferred launch, or bytes that were written in the meantime; `touches` are addresses of allocations.

    `place` is the launch's position in the list of all; -1 for a write, which holds the previous bytes.
    """

    touches: frozenset[int]
    asked: Asked | None = None
    launch: Launch | None = None
    outcome: Outcome | None = None
    place: int = -1
    address: int = 0
    content: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))


class Deferred:
    """The deferred launches of a process. `done` is called with each that is computed after all."""

    def __init__(self, heap: Heap, launches: Launches, done: Callable[[Step, Outcome], None]) -> None:
        self._heap, self._launches, self._done = heap, launches, done
        self._waiting: list[Step] = []
        self._doomed: set[int] = set()
        self._leads: dict[int, tuple[int, int, frozenset[int]]] = {}
        self._known: dict[int, tuple[bool, bool]] = {}

    def launch(self, asked: Asked, place: int) -> Outcome:
        """Predict a launch and defer it, or compute it at once if the host may see its results without a call."""
        code = asked.code
        variables, functions = self._known.get(id(code)) or self._known.setdefault(id(code), names_outside(code))
        touched = self._touched(asked, variables)
        kinds = {one.kind for start in touched if (one := self._heap.at(start))}
        if functions or kinds & {"pinned", "managed"}:
            self.settle(touched)
            return self._launches.run(asked, self._heap)
        outcome, launch = self._launches.later(asked, self._heap, lambda: self.settle(touched))
        if launch is not None:
            self._waiting.append(Step(touched, asked, launch, outcome, place))
        return outcome

    def read(self, address: int) -> None:
        """The host, or a copy, reads memory from this address on."""
        if (held := self._heap.at(address)) and self._waits(held.start):
            self.settle({held.start})

    def write(self, address: int, size: int) -> None:
        """Bytes are about to change, other than by a launch."""
        held = self._heap.at(address)
        if held is None or not self._waits(held.start):
            return
        if size + sum(len(step.content) for step in self._waiting) > _MOST_UNDONE:
            self.settle({held.start})
            return
        content = self._heap.view(address, size).copy()
        self._waiting.append(Step(frozenset((held.start,)), address=address, content=content))

    def free(self, start: int) -> bool | None:
        """Free an allocation that deferred launches use, once none does any longer; None if none uses it."""
        if start in self._doomed:
            return False
        held = self._heap.at(start)
        if held is None or held.start != start or not self._waits(start):
            return None
        self._doomed.add(start)
        self._heap.used[held.device] -= held.size
        steps, touched = self._connected({start})
        if touched <= self._doomed:
            self._forget(steps)
            self._bury()
        return True

    def settle(self, starts: set[int] | frozenset[int]) -> None:
        """Compute the deferred launches that are connected with these allocations."""
        steps, _ = self._connected(set(starts))
        if not steps:
            return
        self._forget(steps)
        for step in reversed([step for step in steps if step.asked is None]):
            self._swap(step)
        for step in steps:
            if step.asked is None:
                self._swap(step)
            else:
                assert step.launch
                assert step.outcome
                outcome = self._launches.compute(step.asked, step.launch, self._heap, step.outcome)
                if not outcome.computed:
                    for one in filter(None, map(self._heap.at, step.touches)):
                        one.lost, one.written = f"launch {step.asked.number} ({step.asked.kernel.name})", True
                self._done(step, outcome)
        self._bury()

    def _swap(self, step: Step) -> None:
        """Restore the bytes that a write replaced, and keep those that it wrote; or vice versa."""
        view = self._heap.view(step.address, len(step.content))
        step.content, view[:] = view.copy(), step.content
        if held := self._heap.at(step.address):
            held.version = 0

    def _waits(self, start: int) -> bool:
        return any(start in step.touches for step in self._waiting)

    def _connected(self, starts: set[int]) -> tuple[list[Step], set[int]]:
        """The steps that share allocations with these, directly or by way of others; and all of their allocations."""
        size = -1
        while size != len(starts):
            size = len(starts)
            for step in self._waiting:
                if not step.touches.isdisjoint(starts):
                    starts |= step.touches
        return [step for step in self._waiting if not step.touches.isdisjoint(starts)], starts

    def _forget(self, steps: list[Step]) -> None:
        gone = {id(step) for step in steps}
        self._waiting = [step for step in self._waiting if id(step) not in gone]

    def _bury(self) -> None:
        """Free what the program has freed and no deferred launch uses."""
        for start in [start for start in self._doomed if not self._waits(start)]:
            self._doomed.discard(start)
            if held := self._heap.at(start):
                self._heap.used[held.device] += held.size
                self._heap.free(start)

    def _touched(self, asked: Asked, variables: bool) -> frozenset[int]:
        """Addresses of the allocations that a launch may touch."""
        heap = self._heap
        given = [*given_to(heap, asked.parameters), *([heap.at(asked.variables)] if variables else [])]
        return frozenset(reached(filter(None, given), lambda one: filter(None, map(heap.at, self._pointers(one)))))

    def _pointers(self, one: Allocation) -> frozenset[int]:
        """Starts of the allocations that pointers in one point to."""
        # The host writes to some memory unseen.
        if one.version == 0 or one.kind in ("pinned", "managed"):
            one.version = self._heap.version_of()
        number, version, found = self._leads.get(one.start, (-1, -1, frozenset[int]()))
        if (number, version) != (one.number, one.version):
            found = frozenset(other.start for other in pointed_to(self._heap, one))
            self._leads[one.start] = one.number, one.version, found
        return found
