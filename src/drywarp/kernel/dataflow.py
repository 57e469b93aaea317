"""Dependences between instructions: through registers (def-use), and through the scoreboards in the control bits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush

from .cfg import ControlFlowGraph
from .instruction import Address, Instruction
from .isa.nvidia.registers import Accessed, Place, accessed, written

SCOREBOARDS = 6
STACK = 1
"""Number of the register that holds the stack pointer."""


@dataclass(frozen=True)
class Dataflow:
    """The possible dependences of each instruction over all paths, as indices into `instructions`."""

    instructions: Sequence[Instruction]
    cfg: ControlFlowGraph

    @cached_property
    def accesses(self) -> tuple[Accessed, ...]:
        """Places read and written, by instruction."""
        return tuple(accessed(instruction) for instruction in self.instructions)

    @cached_property
    def producers(self) -> tuple[tuple[int, ...], ...]:
        """For each instruction, those whose results it may read: def-use by reaching definitions.

        A guarded write does not kill an earlier definition.
        """
        return self._reaching(
            reads=lambda i: self.accesses[i].reads,
            writes=lambda i: self.accesses[i].writes,
            ends=lambda i: self.accesses[i].writes if self.instructions[i].guard is None else (),
        )

    def producers_of(
        self, index: int, places: Iterable[Place] | None = None, same_guard: bool = False
    ) -> tuple[int, ...]:
        """Like `producers` for one instruction, found by searching backwards: faster if only a few are needed.

        `places` restricts the places that the instruction reads (default: all). With `same_guard`, a write in the same
        basic block under the instruction's own guard kills earlier definitions, which is tighter than `producers`.
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
            if same_guard and (sure := [i for i in before if self._guarded_alike(i, index)]):
                found.update(i for i in before if i >= sure[-1])
                continue
            pending = [block] if self._latest(before, found) else []
            seen: set[int] = set()
            while pending:
                for earlier in self._predecessors[pending.pop()]:
                    if earlier not in seen:
                        seen.add(earlier)
                        if self._latest(writers.get(earlier, ()), found):
                            pending.append(earlier)
        return tuple(sorted(found))

    def slice_of(self, ends: Iterable[tuple[int, Iterable[Place] | None]], apart: Collection[int] = ()) -> set[int]:
        """Backward slice: instructions whose results reach the ends, including through shared and local memory.

        An end is an instruction and the relevant places that it reads, as in `producers_of`. `apart` are stores that
        are known to write elsewhere than is read.
        """
        pending = [producer for index, places in ends for producer in self.producers_of(index, places, same_guard=True)]
        found: set[int] = set()
        spaces: set[str] = set()
        while pending:
            index = pending.pop()
            if index in found:
                continue
            found.add(index)
            pending += self.producers_of(index, same_guard=True)
            memory = self.instructions[index].memory
            if memory is not None and memory.kind in ("load", "atomic"):
                own = {"shared", "local"} if memory.space == "generic" else {memory.space} & {"shared", "local"}
                if own == {"local"} and (slot := self._slot(index)) is not None:
                    # A value that was spilled: what lies in other slots of the frame does not matter.
                    pending += [k for word in (None, *slot) for k in self._spilled.get(word, ())]
                    own = set()
                reached = own - spaces | {"generic"} if own - spaces else set()
                spaces |= own
                pending += [k for k, other in enumerate(self.instructions) if other.memory is not None
                            and other.memory.space in reached and other.memory.kind != "load"
                            and k not in apart]  # fmt: skip
        return found

    def reached_by(self, sources: Iterable[int]) -> set[int]:
        """Forward slice: instructions that the results of others reach through registers."""
        consumers: dict[int, list[int]] = {}
        for consumer in range(len(self.instructions)):
            for producer in self.producers_of(consumer, same_guard=True):
                consumers.setdefault(producer, []).append(consumer)
        found: set[int] = set()
        pending = [*sources]
        while pending:
            new = [consumer for consumer in consumers.get(pending.pop(), ()) if consumer not in found]
            found.update(new)
            pending += new
        return found

    def _slot(self, index: int) -> range | None:
        """The words of the frame that an access to local memory touches; None if they are not known beforehand."""
        if self.instructions[index].opcode not in ("LDL", "STL"):
            return None
        address = next((o for o in self.instructions[index].operands if isinstance(o, Address)), None)
        if address is None or address.base is None or address.uniform is not None or address.symbol:
            return None
        if not self._frame_stays or address.base.uniform or address.base.index != STACK or address.scale != 1:
            return None
        memory = self.instructions[index].memory
        return range(address.offset // 4, -(-(address.offset + memory.width) // 4)) if memory else None

    @cached_property
    def _frame_stays(self) -> bool:
        """Whether the stack pointer is only written at the start of the kernel, before any access to local memory."""
        writers = [k for k in range(len(self.instructions)) if ("R", STACK) in written(self.instructions[k])]
        local = (k for k, i in enumerate(self.instructions) if i.memory is not None and i.memory.space == "local")
        entry = self.cfg.blocks[0]
        looped = any(0 in block.successors for block in self.cfg.blocks)
        return not looped and all(k < min(entry.end, next(local, entry.end)) for k in writers[-1:])

    @cached_property
    def _spilled(self) -> dict[int | None, list[int]]:
        """The instructions that may write each word of the frame; None: any of them."""
        found: dict[int | None, list[int]] = {}
        for k, i in enumerate(self.instructions):
            if i.memory is not None and i.memory.kind != "load" and i.memory.space in ("local", "generic"):
                slot = self._slot(k) if i.memory.space == "local" else None
                for word in [None] if slot is None else slot:
                    found.setdefault(word, []).append(k)
        return found

    def _guarded_alike(self, first: int, second: int) -> bool:
        """Whether two instructions of a block run under one guard, whose predicate stays as it is in between."""
        guard = self.instructions[first].guard
        if guard is None or guard != self.instructions[second].guard:
            return False
        place = ("UP" if guard.uniform else "P", guard.index)
        return not any(first <= i < second for block in self._writers.get(place, {}).values() for i in block)

    def _latest(self, writers: Sequence[int], found: set[int]) -> bool:
        """Add a block's reaching writers to `found`, latest first; returns whether those of earlier blocks do too."""
        for i in reversed(writers):
            found.add(i)
            if self.instructions[i].guard is None:
                return False
        return True

    @cached_property
    def _writers(self) -> dict[Place, dict[int, list[int]]]:
        """The instructions that write a place, by place and block, in order."""
        found: dict[Place, dict[int, list[int]]] = {}
        for i, instruction in enumerate(self.instructions):
            for place in written(instruction):
                found.setdefault(place, {}).setdefault(self.cfg.block_of[i], []).append(i)
        return found

    @cached_property
    def _predecessors(self) -> dict[int, list[int]]:
        """The reachable predecessors of each block that is reachable from the first."""
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
        """For each instruction, those that set a scoreboard in its wait mask.

        A wait clears everything outstanding; the wait covers all producers since the previous wait.
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
        """Reaching definitions: for each instruction, the earlier ones whose write of a place may still be visible.

        The writers of a place are numbered, and a set of them is a bit mask. New definitions at a block's start are
        propagated to its successors only once; otherwise, kernels of ten thousand instructions would take too long.
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
        # Address order is close to control-flow order, so that most blocks run after all of their predecessors.
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
