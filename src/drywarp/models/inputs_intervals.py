"""The intervals of a warp, as GPUMech cuts it: instructions that issue one a cycle, then a stall.

Huang, Lee, Kim, Lee, "GPUMech: GPU performance modeling technique based on interval analysis" (2014), as
Volkov describes it (§7.6). The warp runs alone and in program order, an instruction a cycle, and stalls
where an operand is not ready; the last stall lasts until all results are there. Loops are not unrolled:
once a turn begins as the one before it did, the rest is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..bound import TICKS_PER_CYCLE, BoundPath, Item, Repeat

MOST_TURNS = 1000
"""Turns of a loop after which the rest is taken to be like the last one, should they still differ."""


@dataclass(frozen=True, slots=True)
class Interval:
    """So many instructions at one a cycle, then `stall` cycles in which the warp issues nothing.

    It comes `times` times. `memory` says whether the stall waits for a memory instruction.
    """

    instructions: int
    stall: float
    times: int = 1
    memory: bool = False


def intervals(path: BoundPath, memory: Sequence[bool], memory_only: bool = False) -> tuple[Interval, ...]:
    """The intervals of a warp on `path`; `memory` marks its memory instructions.

    With `memory_only` no other instruction takes longer than its cycle of issue.
    """
    return _Walk(path, memory, memory_only).run()


class _Walk:
    """A warp on its way: times are ticks, and those of the slots count from the next issue."""

    def __init__(self, path: BoundPath, memory: Sequence[bool], memory_only: bool) -> None:
        self.path, self.memory, self.memory_only = path, memory, memory_only
        self.now = 0
        self.open = 0
        self.earliest = 0
        self.last = 0
        self.last_memory = False
        self.ready = [0] * path.slots
        self.from_memory = [False] * path.slots
        self.closed: list[Interval] = []

    def run(self) -> tuple[Interval, ...]:
        self._items(self.path.program)
        if self.open:
            stall = max(0, self.last - self.now)
            self.closed.append(Interval(self.open, stall / TICKS_PER_CYCLE, 1, self.last_memory and stall > 0))
        return tuple(_joined(self.closed))

    def _items(self, program: Sequence[Item]) -> None:
        for item in program:
            if isinstance(item, Repeat):
                self._loop(item)
            else:
                self._issue(item)

    def _loop(self, loop: Repeat) -> None:
        for turn in range(loop.count):
            before, open_, now, count = self._state(), self.open, self.now, len(self.closed)
            outer, outer_memory, self.last = self.last, self.last_memory, 0
            self._items(loop.body)
            inner, inner_memory = self.last, self.last_memory
            self._end(outer, outer_memory, inner, inner_memory)
            rest = loop.count - turn - 1
            if rest <= 0 or (self._state() != before and turn < MOST_TURNS):
                continue
            if len(self.closed) == count:
                # No stall: the open interval grows by the same in each turn.
                grown, passed = self.open - open_, self.now - now
                self.open += rest * grown
            elif self.open == open_:
                passed = self.now - now
                again = [Interval(i.instructions, i.stall, i.times * rest, i.memory) for i in self.closed[count:]]
                self.closed += again
            else:
                continue
            ticks = rest * passed
            self.now += ticks
            self.earliest += ticks
            self.ready = [ready + ticks for ready in self.ready]
            self._end(outer, outer_memory, inner + ticks, inner_memory)
            return

    def _end(self, outer: int, outer_memory: bool, inner: int, inner_memory: bool) -> None:
        """When all results so far are there: those of before a turn, and the turn's own."""
        self.last, self.last_memory = (inner, inner_memory) if inner > outer else (outer, outer_memory)

    def _state(self) -> tuple[int, ...]:
        """What the turns to come depend on, as seen from now."""
        return (self.earliest - self.now, *(max(0, ready - self.now) for ready in self.ready), *self.from_memory)

    def _issue(self, index: int) -> None:
        node = self.path.nodes[index]
        waited = max(node.waits, key=lambda slot: self.ready[slot], default=-1)
        ready = self.ready[waited] if waited >= 0 else 0
        start = max(self.now, self.earliest, ready)
        if start > self.now:
            memory = ready > max(self.now, self.earliest) and self.from_memory[waited]
            self.closed.append(Interval(self.open, (start - self.now) / TICKS_PER_CYCLE, 1, memory))
            self.open = 0
        memory = self.memory[index]
        latency = node.latency_ticks if memory or not self.memory_only else 0
        self.open += 1
        self.now = start + TICKS_PER_CYCLE
        ready = start + latency
        if node.async_result:
            ready = self.now
        if node.sets >= 0:
            self.ready[node.sets] = max(self.ready[node.sets], ready)
            self.from_memory[node.sets] = memory
        if node.stall_ticks > TICKS_PER_CYCLE and not self.memory_only:
            # The compiler's distance to the next instruction, where it tells the fixed latencies.
            self.earliest = start + node.stall_ticks
        else:
            self.earliest = self.now
        if ready > self.last:
            self.last, self.last_memory = ready, memory


def _joined(closed: Sequence[Interval]) -> list[Interval]:
    """Equal neighbours as one."""
    joined: list[Interval] = []
    for interval in closed:
        if joined and (last := joined[-1]) and _alike(last, interval):
            joined[-1] = Interval(last.instructions, last.stall, last.times + interval.times, last.memory)
        else:
            joined.append(interval)
    return joined


def _alike(one: Interval, other: Interval) -> bool:
    return (one.instructions, one.stall, one.memory) == (other.instructions, other.stall, other.memory)
