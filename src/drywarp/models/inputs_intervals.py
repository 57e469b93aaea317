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
            self._items(loop.body)
            rest = loop.count - turn - 1
            if rest <= 0 or self._state() != before:
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
            self._shift(rest * passed)
            return

    def _shift(self, ticks: int) -> None:
        self.now += ticks
        self.last += ticks
        self.ready = [ready + ticks for ready in self.ready]

    def _state(self) -> tuple[int, ...]:
        return tuple(max(0, ready - self.now) for ready in self.ready)

    def _issue(self, index: int) -> None:
        node = self.path.nodes[index]
        waited = max(node.waits, key=lambda slot: self.ready[slot], default=-1)
        start = max(self.now, self.ready[waited]) if waited >= 0 else self.now
        if start > self.now and self.open:
            stall = (start - self.now) / TICKS_PER_CYCLE
            self.closed.append(Interval(self.open, stall, 1, self.from_memory[waited]))
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
            self._pause(start + node.stall_ticks)
        if ready > self.last:
            self.last, self.last_memory = ready, memory

    def _pause(self, until: int) -> None:
        self.closed.append(Interval(self.open, (until - self.now) / TICKS_PER_CYCLE))
        self.open = 0
        self.now = until


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
