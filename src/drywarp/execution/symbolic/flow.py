"""The structure of a kernel's control flow, as far as a walk without data needs it.

The loops, the branch that decides each loop's trip count, and the role of every other conditional branch: an early-exit
guard, a detour to a compiler-generated slow path, or a choice between two sides. Functions in the kernel's section are
separate graphs: control continues after a call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median

from ...kernel.cfg import BasicBlock, ControlFlowGraph, dominators_of, loops_of
from ...kernel.instruction import Instruction, SourceLine
from .words import ControlWords

_SMALL = 4
"""A side with less than 1/4 of the other's instructions is the minor one."""
_EARLY = 3
"""A guard is early if at least 1/3 of the kernel follows it."""


@dataclass(frozen=True)
class StaticLoop:
    """A natural loop: `name` L1, L2, … in address order, `index` counts from 0 in that order.

    `main` is the block whose branch decides the trip count, None if only an exit from the kernel ends the loop;
    `at_end` says that this branch follows the body, so the loop runs at least once. `copies` is the unroll factor: how
    many iterations of the source loop one iteration covers, if a remainder loop reveals it.
    """

    index: int
    header: int
    blocks: frozenset[int]
    parent: int | None
    main: int | None
    at_end: bool
    source: SourceLine | None
    last_line: int
    copies: int = 1

    @property
    def name(self) -> str:
        """As --trip names it."""
        return f"L{self.index + 1}"


@dataclass(frozen=True, slots=True)
class LoopExit:
    """A branch that exits loop `loop` by going to block `leaving`; `main` if it decides the trip count."""

    loop: int
    leaving: int
    main: bool


@dataclass(frozen=True, slots=True)
class Avoid:
    """A branch whose successor `side` is avoided unless the condition is known; `reason` says why."""

    side: int
    reason: str


EXIT_BLOCK = -1
"""Represents the end of the thread among a branch's sides."""


class Flow:
    """Loops and roles of branches of one kernel."""

    def __init__(self, instructions: Sequence[Instruction], cfg: ControlFlowGraph, words: ControlWords) -> None:
        self.instructions = instructions
        self.blocks = cfg.blocks
        self.words = words
        entries = {0, *(cfg.block_of[t] for i in instructions if (t := words.callee(i)) is not None)}
        # Block n is number n + 1 here; number 0 leads to every entry, so that all of them are reachable.
        own = [BasicBlock(b.index + 1, 0, 0, tuple(s + 1 for s in self._next(b))) for b in cfg.blocks]
        self._graph = (BasicBlock(0, 0, 0, tuple(sorted(e + 1 for e in entries))), *own)
        self._dominators = dominators_of(self._graph)
        self._behind: dict[tuple[int, int], Mapping[SourceLine, int]] = {}
        self._own = {b.index: tuple(s - 1 for s in self._graph[b.index + 1].successors) for b in cfg.blocks}

    def last(self, block: int) -> Instruction:
        """The instruction that ends a block."""
        return self.instructions[self.blocks[block].end - 1]

    def successors(self, block: int) -> tuple[int, ...]:
        """Blocks that may follow within the same function."""
        return self._own[block]

    def _next(self, block: BasicBlock) -> tuple[int, ...]:
        last = self.instructions[block.end - 1]
        if self.words.is_call(last):
            # A call whose return is unknown continues after itself.
            return (block.index + 1,) if block.index + 1 < len(self.blocks) else ()
        if self.words.is_return(last):
            return (block.index + 1,) if last.guard is not None and block.index + 1 < len(self.blocks) else ()
        return block.successors

    def _reached(self, block: int) -> bool:
        return self._dominators[block + 1] >= 0

    def _dominates(self, above: int, below: int) -> bool:
        at = below + 1
        while at not in (above + 1, 0) and self._dominators[at] >= 0:
            at = self._dominators[at]
        return at == above + 1

    # Loops ----------------------------------------------------------------------------------------

    @cached_property
    def loops(self) -> tuple[StaticLoop, ...]:
        """All loops, in the order of their first instruction; if two begin together, the outer one comes first."""
        found = [loop for loop in loops_of(self._graph, self._dominators) if loop.header]
        order = sorted(range(len(found)), key=lambda n: (found[n].header, -len(found[n].blocks)))
        place = {old: new for new, old in enumerate(order)}
        loops = []
        for new, old in enumerate(order):
            body = frozenset(b - 1 for b in found[old].blocks)
            header = found[old].header - 1
            outer = [n for n in order if n != old and found[n].blocks > found[old].blocks]
            parent = min(outer, key=lambda n: len(found[n].blocks), default=None)
            main = self._main_exit(header, body)
            source, last_line = self._lines(body, main)
            loops.append(
                StaticLoop(
                    index=new,
                    header=header,
                    blocks=body,
                    parent=None if parent is None else place[parent],
                    main=main,
                    at_end=main is not None and self._at_end(header, body, main),
                    source=source,
                    last_line=last_line,
                )
            )
        return tuple(replace(loop, copies=self._copies(loop, loops)) for loop in loops)

    def _copies(self, loop: StaticLoop, loops: Sequence[StaticLoop]) -> int:
        """How often the compiler repeated the body: the remainder loop, at the same line, contains it once."""
        if loop.source is None:
            return 1
        mine = self._work(self._own_blocks(loop, loops))
        rests = [self._own_blocks(o, loops) for o in loops if o.index != loop.index and o.source == loop.source]
        # A remainder of one or two iterations may follow the loop as straight-line code.
        for block in range(len(self.blocks)):
            if block not in loop.blocks and self._reached(block) and self.last(block).source == loop.source:
                region = self.skipped(block)
                if region and not region & loop.blocks:
                    rests.append(region)
        copies = 1
        for rest in rests:
            ratios = [mine[key] / count for key, count in self._work(rest).items() if mine[key]]
            if ratios:
                copies = max(copies, round(median(ratios)))
        return copies

    def _own_blocks(self, loop: StaticLoop, loops: Sequence[StaticLoop]) -> set[int]:
        inner = [other.blocks for other in loops if other.blocks < loop.blocks]
        return {b for b in loop.blocks if not any(b in blocks for blocks in inner)}

    def _work(self, blocks: Iterable[int]) -> Counter[tuple[int, str]]:
        """Memory and floating-point instructions of some blocks, by line and opcode."""
        return Counter(
            (i.source.line, i.opcode)
            for b in blocks
            for i in self._code(b)
            if i.source and (i.memory is not None or i.class_.startswith("fp") or i.class_ == "tensor")
        )

    def skipped(self, block: int) -> set[int]:
        """Blocks that a branch may skip: those on one side if the other side is the join point."""
        sides, join = self.successors(block), self._join[block]
        if len(sides) != 2 or join not in sides or self.words.is_call(self.last(block)):
            return set()
        return self._region(sides[0] if sides[1] == join else sides[1], join)

    def join(self, block: int) -> int:
        """Where both sides of the branch at the end of a block meet, or EXIT_BLOCK."""
        return self._join[block]

    def loops_behind(self, block: int, side: int) -> Mapping[SourceLine, int]:
        """Source lines of the loops on one side of a branch before both join, and their largest unroll factors."""
        key = (block, side)
        if key not in self._behind:
            region = self._region(side, self._join[block]) if side >= 0 else set()
            found: dict[SourceLine, int] = {}
            for loop in self.loops:
                if loop.source and loop.header in region and block not in loop.blocks:
                    found[loop.source] = max(found.get(loop.source, 0), loop.copies)
            self._behind[key] = found
        return self._behind[key]

    @cached_property
    def loop_at(self) -> Mapping[int, tuple[int, ...]]:
        """For each block, the indices of the loops that contain it, inner first."""
        held: dict[int, list[int]] = {}
        for loop in sorted(self.loops, key=lambda loop: len(loop.blocks)):
            for block in loop.blocks:
                held.setdefault(block, []).append(loop.index)
        return {block: tuple(held.get(block, ())) for block in range(len(self.blocks))}

    @cached_property
    def headers(self) -> Mapping[int, int]:
        """Loop index by header block."""
        return {loop.header: loop.index for loop in self.loops}

    def _main_exit(self, header: int, body: frozenset[int]) -> int | None:
        """The block that decides the trip count: a conditional backward jump at the end, else the first exit."""
        out = [b for b in sorted(body) if self._leaves(b, body)]
        latches = [b for b in sorted(body) if header in self.successors(b)]
        ends = [b for b in out if b in latches]
        if ends:
            return ends[-1]
        always = [b for b in out if all(self._dominates(b, latch) for latch in latches)]
        return next(iter(always or out), None)

    def _leaves(self, block: int, body: frozenset[int]) -> bool:
        """Whether a block may either stay in a loop or leave it."""
        if self.words.is_exit(self.last(block)):
            return self.last(block).guard is not None
        after = self.successors(block)
        return any(s in body for s in after) and any(s not in body for s in after)

    def _at_end(self, header: int, body: frozenset[int], main: int) -> bool:
        if header in self.successors(main):
            return True
        behind = sum(self._size(b) for b in body if b not in (main, header) and self._dominates(main, b))
        return behind * _SMALL <= sum(self._size(b) for b in body)

    def _lines(self, body: frozenset[int], main: int | None) -> tuple[SourceLine | None, int]:
        """The loop's source position: the line of the deciding branch, and the body's last line."""
        inside = [i.source for b in sorted(body) for i in self._code(b) if i.source]
        if not inside:
            return None, 0
        source = (self.last(main).source if main is not None else None) or inside[0]
        return source, max(s.line for s in inside if s.file == source.file)

    def _code(self, block: int) -> Sequence[Instruction]:
        return self.instructions[self.blocks[block].start : self.blocks[block].end]

    def _size(self, block: int) -> int:
        return self.blocks[block].end - self.blocks[block].start

    # Branches -------------------------------------------------------------------------------------

    @cached_property
    def roles(self) -> Mapping[int, LoopExit | Avoid]:
        """The role of the conditional branch at the end of a block, unless it is a free choice."""
        found: dict[int, LoopExit | Avoid] = {}
        for block in range(len(self.blocks)):
            if self._reached(block):
                role = self._role(block)
                if role is not None:
                    found[block] = role
        return found

    def _role(self, block: int) -> LoopExit | Avoid | None:
        last = self.last(block)
        around = self.loop_at[block]
        if self.words.is_exit(last):
            if last.guard is None:
                return None
            if around and self.loops[around[0]].main == block:
                return LoopExit(around[0], EXIT_BLOCK, True)
            return Avoid(EXIT_BLOCK, "a guard that exits the kernel") if self._early(block + 1) else None
        if self.words.is_return(last):
            return None if last.guard is None else Avoid(EXIT_BLOCK, "a guard that returns from a function")
        sides = self.successors(block)
        if len(sides) != 2 or self.words.is_call(last):
            return None
        for index in around:
            inside = [s in self.loops[index].blocks for s in sides]
            if inside[0] != inside[1]:
                return LoopExit(index, sides[inside[0]], self.loops[index].main == block)
        return self._lesser(block, sides)

    def _lesser(self, block: int, sides: tuple[int, ...]) -> Avoid | None:
        join = self._join[block]
        regions = [self._region(s, join) for s in sides]
        slow = [self._goes_slow(s, join) for s in sides]
        if slow[0] != slow[1]:
            return Avoid(sides[slow[1]], "a slow path generated by the compiler")
        if join != EXIT_BLOCK:
            return None
        sizes = [sum(self._size(b) for b in region) for region in regions]
        for this, other in ((0, 1), (1, 0)):
            idle = not any(self._leaves_traces(b) for b in regions[this])
            if idle and sizes[this] * _SMALL <= sizes[other] and self._early(sides[other]):
                return Avoid(sides[this], "an early-exit guard")
        return None

    def _leaves_traces(self, block: int) -> bool:
        """Whether anything in a block writes to memory."""
        return any(i.memory is not None and i.memory.kind != "load" for i in self._code(block))

    def _early(self, block: int) -> bool:
        """Whether enough of the kernel follows a block for a guard ahead of it to count as early."""
        if block >= len(self.blocks):
            return False
        return sum(self._size(b) for b in self._region(block, EXIT_BLOCK)) * _EARLY >= self._total

    @cached_property
    def _total(self) -> int:
        """Instructions of the kernel itself, without the functions that it calls."""
        return sum(self._size(b) for b in self._region(0, EXIT_BLOCK))

    def _goes_slow(self, side: int, join: int) -> bool:
        """Whether a side inevitably leads to a slow path."""
        seen: set[int] = set()
        while side != join and side not in seen:
            if self.words.is_slow(self.last(side)):
                return True
            seen.add(side)
            after = self.successors(side)
            if len(after) != 1:
                return False
            side = after[0]
        return False

    def _region(self, start: int, join: int) -> set[int]:
        """Blocks between a side of a branch and the point where both sides join."""
        seen: set[int] = set()
        stack = [start] if start != join else []
        while stack:
            block = stack.pop()
            if block not in seen:
                seen.add(block)
                stack.extend(s for s in self.successors(block) if s != join)
        return seen

    @cached_property
    def _join(self) -> tuple[int, ...]:
        """Where both sides of each block's branch join: its immediate post-dominator, or EXIT_BLOCK."""
        backwards: list[list[int]] = [[] for _ in self._graph]
        for block in self._graph[1:]:
            after = block.successors
            for successor in after or (0,):
                backwards[successor].append(block.index)
        # An endless loop has no path to the end: its blocks are connected to it.
        graph = tuple(BasicBlock(n, 0, 0, tuple(before)) for n, before in enumerate(backwards))
        after_all = dominators_of(graph)
        return tuple(max(after_all[n + 1], 0) - 1 for n in range(len(self.blocks)))
