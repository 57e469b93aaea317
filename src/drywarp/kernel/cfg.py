"""Control-flow graph of a kernel: basic blocks, dominators, natural loops.

A basic block here ends after every instruction at which a warp may branch, diverge, reconverge or wait for others.
The emulator can thus run a block without interruption, and the path of a warp is a list of blocks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from .instruction import Instruction, Label, Register
from .isa.amd import is_amd
from .isa.amd import opcodes as flow
from .isa.nvidia.opcodes import having

_JUMPS = having("jump")
_ENDS = _JUMPS | having("ends")
_DIRECT, _CALLS, _RETURNS = having("direct"), having("call"), having("return")
_INDIRECT, _EXITS = having("indirect"), having("exit")
T = TypeVar("T")
MOST_KEPT = 300_000
"""Most instructions of all code for which something is kept: what follows from each takes some hundred bytes."""


@dataclass(frozen=True, slots=True)
class BasicBlock:
    """Instruction indices `start` to `end` (exclusive), and the possible successor blocks."""

    index: int
    start: int
    end: int
    successors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop: header block, all its blocks, and the index of the enclosing loop (or None)."""

    header: int
    blocks: frozenset[int]
    parent: int | None


@dataclass(frozen=True)
class ControlFlowGraph:
    """Blocks in address order, the block of each instruction, immediate dominators, and loops, inner loops first."""

    blocks: tuple[BasicBlock, ...]
    block_of: tuple[int, ...]
    dominators: tuple[int, ...]
    loops: tuple[Loop, ...]

    def innermost_loop(self, block: int) -> Loop | None:
        """The innermost loop that contains a block."""
        return next((loop for loop in self.loops if block in loop.blocks), None)

    def loops_by_depth(self) -> Iterator[tuple[Loop, ...]]:
        """All loops (there may be none), then those inside others, then those inside these, and so on."""
        inside = self.loops
        yield inside
        while inside := tuple(loop for loop in inside if loop.parent is not None and self.loops[loop.parent] in inside):
            yield inside


class Kept:
    """What follows from code alone, for the code that was asked for last: a program launches its kernels many times.

    Code is recognised as the same tuple, which is held so that no other takes its place.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[Hashable, ...], tuple[object, int, Any]] = OrderedDict()
        self._size = 0

    def get(
        self, code: Sequence[Instruction], cfg: ControlFlowGraph | None, what: Hashable, find: Callable[[], T]
    ) -> T:
        """See `kept_for`."""
        if not isinstance(code, tuple):
            return find()
        key = id(code), id(cfg), what
        held = self._known.pop(key, None)
        if held is None:
            held = (code, cfg), len(code), find()
            self._size += held[1]
        self._known[key] = held
        while self._size > MOST_KEPT and len(self._known) > 1:
            self._size -= self._known.popitem(last=False)[1][1]
        found: T = held[2]
        return found


_kept = Kept()


def kept_for(code: Sequence[Instruction], cfg: ControlFlowGraph, what: Hashable, find: Callable[[], T]) -> T:
    """What `find` returns, which must depend on code, control flow and `what` only: found once for a tuple of code."""
    return _kept.get(code, cfg, what, find)


def jump_target(instruction: Instruction) -> int | None:
    """Byte offset of the target of a direct branch or call; None for indirect ones and other opcodes."""
    if is_amd(instruction.opcode):
        if not flow.is_jump(instruction.opcode):
            return None
    elif instruction.opcode not in _DIRECT | _CALLS:
        return None
    elif instruction.opcode != "BRA" and any(isinstance(o, Register) for o in instruction.operands):
        return None  # `CALL.REL R8 (kernel)`: the register holds the target, relative to the label
    labels = [o for o in instruction.operands if isinstance(o, Label)]
    return labels[-1].target if labels and labels[-1].target >= 0 else None


def function_start(instruction: Instruction) -> int:
    """Byte offset from which a return's or a computed call's register counts: 0 but for functions beyond a kernel."""
    labels = [o for o in instruction.operands if isinstance(o, Label)]
    return labels[-1].target if labels and labels[-1].target > 0 else 0


def ends_block(instruction: Instruction) -> bool:
    """Whether a warp may branch, diverge, reconverge or wait at this instruction."""
    if instruction.opcode in _ENDS or (is_amd(instruction.opcode) and flow.ends_block(instruction.opcode)):
        return True
    return instruction.opcode == "SYNCS" and "TRYWAIT" in instruction.modifiers


def _successors(
    instructions: Sequence[Instruction], last: int, returns: Sequence[int], targets: Sequence[int]
) -> list[int]:
    """Instruction indices that may run after instruction `last`, the end of a block.

    `returns` are the possible targets of a return, `targets` those of a computed branch or call without labels.
    """
    instruction = instructions[last]
    opcode = instruction.opcode
    target = jump_target(instruction)
    following = [last + 1] if last + 1 < len(instructions) else []
    if is_amd(opcode):
        here = [target // 16] if target is not None else []
        return sorted({*here, *(following if flow.falls_through(opcode) else [])})
    conditional = instruction.guard is not None or any(
        not isinstance(o, Label) for o in instruction.operands if opcode == "BRA"
    )
    if opcode in _EXITS:
        return following if conditional else []
    if opcode in _RETURNS:
        return sorted({*returns, *(following if conditional else [])})
    if opcode in _INDIRECT:
        labels = [o.target // 16 for o in instruction.operands if isinstance(o, Label) and o.target >= 0]
        return sorted({*(labels or targets), *(following if conditional else [])})
    if opcode in _DIRECT | _CALLS:
        here = [target // 16] if target is not None else list(targets)
        return sorted({*here, *(following if conditional or opcode in _CALLS else [])})
    return following


def build_cfg(instructions: Sequence[Instruction], indirect_targets: Sequence[int] = ()) -> ControlFlowGraph:
    """Build the graph; `indirect_targets` are byte offsets that computed branches and calls may reach.

    The kernel's own entry among them is ignored, because no kernel calls itself.

    Unreachable blocks (code after the last EXIT) stay, without predecessors.
    """
    targets = tuple(indirect_targets)
    return _kept.get(instructions, None, ("graph", targets), lambda: _built(instructions, targets))


def _built(instructions: Sequence[Instruction], indirect_targets: Sequence[int]) -> ControlFlowGraph:
    count = len(instructions)
    starts = {0, *(t // 16 for t in indirect_targets if 0 <= t // 16 < count)}
    for index, instruction in enumerate(instructions):
        target = jump_target(instruction)
        if target is not None and 0 <= target // 16 < count:
            starts.add(target // 16)
        for operand in instruction.operands:
            if isinstance(operand, Label) and 0 <= operand.target // 16 < count:
                starts.add(operand.target // 16)
        if ends_block(instruction) and index + 1 < count:
            starts.add(index + 1)
    order = sorted(starts)
    block_of = [0] * count
    bounds = list(zip(order, [*order[1:], count], strict=True))
    for number, (start, end) in enumerate(bounds):
        block_of[start:end] = [number] * (end - start)
    # A return may go to the instruction after any call; a computed branch may go to any indirect target.
    returns = [i + 1 for i, ins in enumerate(instructions[:-1]) if ins.opcode in _CALLS]
    targets = sorted({t // 16 for t in indirect_targets if 0 < t // 16 < count})
    blocks = tuple(
        BasicBlock(n, s, e, tuple(sorted({block_of[i] for i in _successors(instructions, e - 1, returns, targets)})))
        for n, (s, e) in enumerate(bounds)
    )
    dominators = dominators_of(blocks)
    return ControlFlowGraph(blocks, tuple(block_of), dominators, loops_of(blocks, dominators))


def _predecessors(blocks: Sequence[BasicBlock]) -> list[list[int]]:
    before: list[list[int]] = [[] for _ in blocks]
    for block in blocks:
        for successor in block.successors:
            before[successor].append(block.index)
    return before


def dominators_of(blocks: Sequence[BasicBlock]) -> tuple[int, ...]:
    """Immediate dominators (Cooper, Harvey and Kennedy's algorithm); -1 for blocks unreachable from block 0."""
    order: list[int] = []
    seen: set[int] = set()
    stack: list[tuple[int, int]] = [(0, 0)]
    seen.add(0)
    while stack:
        block, child = stack.pop()
        if child < len(blocks[block].successors):
            stack.append((block, child + 1))
            successor = blocks[block].successors[child]
            if successor not in seen:
                seen.add(successor)
                stack.append((successor, 0))
        else:
            order.append(block)
    rank = {block: number for number, block in enumerate(order)}
    idom = [-1] * len(blocks)
    idom[0] = 0
    before = _predecessors(blocks)
    changed = True
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            known = [p for p in before[block] if idom[p] >= 0]
            best = known[0]
            for other in known[1:]:
                a, b = best, other
                while a != b:
                    while rank[a] < rank[b]:
                        a = idom[a]
                    while rank[b] < rank[a]:
                        b = idom[b]
                best = a
            if idom[block] != best:
                idom[block], changed = best, True
    return tuple(idom)


def _dominates(idom: Sequence[int], above: int, below: int) -> bool:
    while below not in (above, 0) and idom[below] >= 0:
        below = idom[below]
    return below == above


def loops_of(blocks: Sequence[BasicBlock], idom: Sequence[int]) -> tuple[Loop, ...]:
    """Natural loops of the back edges; loops with the same header are merged. Smallest first."""
    bodies: dict[int, set[int]] = {}
    before = _predecessors(blocks)
    for block in blocks:
        for header in block.successors:
            if idom[block.index] < 0 or not _dominates(idom, header, block.index):
                continue
            body = bodies.setdefault(header, {header})
            stack = [block.index]
            while stack:
                member = stack.pop()
                if member not in body:
                    body.add(member)
                    stack.extend(p for p in before[member] if idom[p] >= 0)
    ordered = sorted(bodies.items(), key=lambda item: (len(item[1]), item[0]))
    loops = []
    for number, (header, body) in enumerate(ordered):
        outer = (n for n in range(number + 1, len(ordered)) if body <= ordered[n][1])
        loops.append(Loop(header, frozenset(body), next(outer, None)))
    return tuple(loops)
