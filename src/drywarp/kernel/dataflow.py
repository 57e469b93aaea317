"""Dependences between instructions: by registers (def-use), and by the scoreboards of the control bits."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush

from .cfg import ControlFlowGraph
from .instruction import Instruction
from .registers import Accessed, Place, accessed, written

SCOREBOARDS = 6


@dataclass(frozen=True)
class Dataflow:
    """Which instructions another may depend on, over all paths; indices into `instructions`."""

    instructions: Sequence[Instruction]
    cfg: ControlFlowGraph

    @cached_property
    def accesses(self) -> tuple[Accessed, ...]:
        """Places read and written, by instruction."""
        return tuple(accessed(instruction) for instruction in self.instructions)

    @cached_property
    def producers(self) -> tuple[tuple[int, ...], ...]:
        """For each instruction, those whose results it may read: def-use by reaching definitions.

        A guarded write does not end the life of an earlier one.
        """
        return self._reaching(
            reads=lambda i: self.accesses[i].reads,
            writes=lambda i: self.accesses[i].writes,
            ends=lambda i: self.accesses[i].writes if self.instructions[i].guard is None else (),
        )

    def producers_of(self, index: int, places: Iterable[Place] | None = None) -> tuple[int, ...]:
        """As `producers` of one instruction, found backwards from it: quicker where only a few are asked for.

        `places` are those of the places it reads that matter; all unless said.
        """
        block = self.cfg.block_of[index]
        found: set[int] = set()
        if block not in self._predecessors:
            return ()
        for place in accessed(self.instructions[index]).reads if places is None else places:
            writers = self._writers.get(place, {})
            if not writers:
                continue
            before = [i for i in writers.get(block, ()) if i < index]
            pending = [block] if self._latest(before, found) else []
            seen: set[int] = set()
            while pending:
                for earlier in self._predecessors[pending.pop()]:
                    if earlier not in seen:
                        seen.add(earlier)
                        if self._latest(writers.get(earlier, ()), found):
                            pending.append(earlier)
        return tuple(sorted(found))

    def _latest(self, writers: Sequence[int], found: set[int]) -> bool:
        """Add the last of the writers of a block to `found`, down to one that ends earlier ones; whether none does."""
        for i in reversed(writers):
            found.add(i)
            if self.instructions[i].guard is None:
                return False
        return True

    @cached_property
    def _writers(self) -> dict[Place, dict[int, list[int]]]:
        """By place and block: instructions that write there, in order."""
        found: dict[Place, dict[int, list[int]]] = {}
        for i, instruction in enumerate(self.instructions):
            for place in written(instruction):
                found.setdefault(place, {}).setdefault(self.cfg.block_of[i], []).append(i)
        return found

    @cached_property
    def _predecessors(self) -> dict[int, list[int]]:
        """By block that can be reached from the first: those, of the same, that may come before it."""
        found: dict[int, list[int]] = {0: []}
        pending = [0]
        while pending:
            block = pending.pop()
            for successor in self.cfg.blocks[block].successors:
                if successor not in found:
                    found[successor] = []
                    pending.append(successor)
                found[successor].append(block)
        return found

    @cached_property
    def scoreboard_producers(self) -> tuple[tuple[int, ...], ...]:
        """For each instruction, those that set a scoreboard which its wait mask names.

        A wait ends what was outstanding; two producers without a wait between them are both waited for.
        """
        control = [instruction.control for instruction in self.instructions]

        def waits(i: int) -> Iterable[int]:
            return (b for b in range(SCOREBOARDS) if control[i].wait_mask >> b & 1)

        def sets(i: int) -> Iterable[int]:
            return (b for b in (control[i].write_barrier, control[i].read_barrier) if b is not None)

        return self._reaching(reads=waits, writes=sets, ends=waits)

    def _reaching(
        self,
        reads: Callable[[int], Iterable[Hashable]],
        writes: Callable[[int], Iterable[Hashable]],
        ends: Callable[[int], Iterable[Hashable]],
    ) -> tuple[tuple[int, ...], ...]:
        """Reaching definitions: per instruction the earlier ones whose write of a place may still stand.

        The writers of a place are numbered, a set of them is a bit mask, and what is new at a block's start
        is handed on to its successors once: kernels of ten thousand instructions take seconds.
        """
        blocks = self.cfg.blocks
        writers: dict[Hashable, list[int]] = {}
        bit: dict[tuple[Hashable, int], int] = {}
        for i in range(len(self.instructions)):
            for place in writes(i):
                numbered = writers.setdefault(place, [])
                bit[place, i] = 1 << len(numbered)
                numbered.append(i)

        def step(state: dict[Hashable, int], i: int) -> None:
            for place in ends(i):
                state.pop(place, None)
            for place in writes(i):
                state[place] = state.get(place, 0) | bit[place, i]

        incoming: list[dict[Hashable, int]] = [{} for _ in blocks]
        fresh: list[dict[Hashable, int]] = [{} for _ in blocks]
        made: dict[int, dict[Hashable, int]] = {}
        ended = [{place for i in range(b.start, b.end) for place in ends(i)} for b in blocks]
        # Address order is nearly the order of flow, so that most blocks wait until all before them are done.
        pending, waiting = [0], {0}
        while pending:
            index = heappop(pending)
            waiting.discard(index)
            news, fresh[index] = fresh[index], {}
            out = {place: mask for place, mask in news.items() if place not in ended[index]}
            if index not in made:
                made[index] = {}
                for i in range(blocks[index].start, blocks[index].end):
                    step(made[index], i)
                for place, mask in made[index].items():
                    out[place] = out.get(place, 0) | mask
            for successor in blocks[index].successors:
                known, add = incoming[successor], fresh[successor]
                for place, mask in out.items():
                    if new := mask & ~known.get(place, 0):
                        known[place] = known.get(place, 0) | new
                        add[place] = add.get(place, 0) | new
                if successor not in waiting and (add or successor not in made):
                    waiting.add(successor)
                    heappush(pending, successor)

        found: list[set[int]] = [set() for _ in self.instructions]
        for index in made:
            state = dict(incoming[index])
            for i in range(blocks[index].start, blocks[index].end):
                for place in reads(i):
                    if mask := state.get(place, 0):
                        found[i].update(_numbered(writers[place], mask))
                step(state, i)
        return tuple(tuple(sorted(producers)) for producers in found)


def _numbered(writers: Sequence[int], mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield writers[low.bit_length() - 1]
        mask ^= low
