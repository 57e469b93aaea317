"""Counters of outstanding accesses, as read by AMD's `s_waitcnt`, turned into dependences of one warp path.

A counter holds the number of outstanding accesses of a kind; `s_waitcnt vmcnt(2)` lets the warp continue when at most
two remain. Accesses of a counter complete in issue order, so the wait is for all but the latest two. Following a path
with a queue per counter identifies these instructions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..kernel.cfg import ControlFlowGraph
from ..kernel.instruction import Instruction

_MOST = 63
"""The maximum of the largest counter: a warp with more outstanding accesses waits anyway."""

Queues = tuple[tuple[str, tuple[int, ...]], ...]
"""Outstanding instructions of each counter, oldest first."""


@dataclass(frozen=True)
class Dependences:
    """Slots of one path: `sets` by instruction that raises a counter, `waits` by waiting instruction."""

    sets: dict[int, int]
    waits: dict[int, tuple[int, ...]]
    slots: int
    taken: frozenset[int]
    """Branches that are mostly taken."""


def counts_accesses(instructions: Sequence[Instruction]) -> bool:
    """Whether this is machine code that counts outstanding accesses."""
    return any(i.counting is not None for i in instructions)


def dependences(instructions: Sequence[Instruction], cfg: ControlFlowGraph, blocks: Sequence[int]) -> Dependences:
    """What each wait on a path of basic blocks waits for.

    Each instruction has one slot for all iterations of a loop. If a wait requires an earlier iteration's access but may
    leave a later one's of the same instruction outstanding, the more frequent case along the path decides.
    """
    follow = _Follower(instructions, cfg)
    times: Counter[tuple[int, Queues]] = Counter()
    state: Queues = ()
    elsewhere: Counter[int] = Counter()
    for position, block in enumerate(blocks):
        times[block, state] += 1
        state = follow.after(block, state)
        if position + 1 < len(blocks):
            elsewhere[block] += 1 if blocks[position + 1] != block + 1 else -1
    must: Counter[tuple[int, int]] = Counter()
    may: Counter[tuple[int, int]] = Counter()
    for (block, before), count in times.items():
        for wait, needed, left in follow.waits(block, before):
            for producer in needed:
                must[wait, producer] += count
            for producer in left:
                may[wait, producer] += count
    raisers = sorted({i for block in set(blocks) for i in follow.raisers(block)})
    slot = {instruction: number for number, instruction in enumerate(raisers)}
    waits: dict[int, list[int]] = {}
    for (wait, producer), count in must.items():
        if count >= may[wait, producer]:
            waits.setdefault(wait, []).append(slot[producer])
    taken = frozenset(cfg.blocks[block].end - 1 for block, more in elsewhere.items() if more > 0)
    return Dependences(slot, {wait: tuple(sorted(slots)) for wait, slots in waits.items()}, len(raisers), taken)


class _Follower:
    """Follows the queues through basic blocks; each pair of block and queues is processed once."""

    def __init__(self, instructions: Sequence[Instruction], cfg: ControlFlowGraph) -> None:
        self._instructions, self._cfg = instructions, cfg
        self._after: dict[tuple[int, Queues], Queues] = {}

    def raisers(self, block: int) -> list[int]:
        """Instructions of a block that raise a counter."""
        span = range(self._cfg.blocks[block].start, self._cfg.blocks[block].end)
        return [i for i in span if (c := self._instructions[i].counting) is not None and c.raises]

    def after(self, block: int, before: Queues) -> Queues:
        """The queues at the end of a block."""
        known = self._after.get((block, before))
        if known is None:
            *_, known = self._run(block, before)
            self._after[block, before] = known
        return known

    def waits(self, block: int, before: Queues) -> list[tuple[int, frozenset[int], frozenset[int]]]:
        """Each wait of a block: its instruction, what must be complete, and what may stay outstanding."""
        found, _ = self._run(block, before)
        return found

    def _run(self, block: int, before: Queues) -> tuple[list[tuple[int, frozenset[int], frozenset[int]]], Queues]:
        queues = {name: list(queue) for name, queue in before}
        found = []
        for index in range(self._cfg.blocks[block].start, self._cfg.blocks[block].end):
            counting = self._instructions[index].counting
            if counting is None:
                continue
            for name, most in counting.waits:
                queue = queues.get(name, [])
                split = max(len(queue) - most, 0)
                if queue:
                    found.append((index, frozenset(queue[:split]), frozenset(queue[split:])))
                queues[name] = queue[split:]
            for name in counting.raises:
                queues.setdefault(name, []).append(index)
                del queues[name][:-_MOST]
        return found, tuple((name, tuple(queue)) for name, queue in sorted(queues.items()) if queue)
