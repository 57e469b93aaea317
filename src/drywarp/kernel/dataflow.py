"""Dependences between instructions: by registers (def-use), and by the scoreboards of the control bits."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from .cfg import ControlFlowGraph
from .instruction import Instruction
from .registers import Accessed, accessed

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
        """Reaching definitions: per instruction the earlier ones whose write of a place may still stand."""
        blocks = self.cfg.blocks
        incoming: list[dict[Hashable, frozenset[int]]] = [{} for _ in blocks]
        pending = [0]
        reached = {0}
        found: list[set[int]] = [set() for _ in self.instructions]
        while pending:
            block = blocks[pending.pop()]
            state = dict(incoming[block.index])
            for i in range(block.start, block.end):
                for place in reads(i):
                    found[i] |= state.get(place, frozenset())
                for place in ends(i):
                    state.pop(place, None)
                for place in writes(i):
                    state[place] = state.get(place, frozenset()) | {i}
            for successor in block.successors:
                target = incoming[successor]
                grown = False
                for place, writers in state.items():
                    joined = target.get(place, frozenset()) | writers
                    if joined != target.get(place):
                        target[place], grown = joined, True
                if grown or successor not in reached:
                    reached.add(successor)
                    if successor not in pending:
                        pending.append(successor)
        return tuple(tuple(sorted(producers)) for producers in found)
