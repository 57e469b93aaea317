"""Blocks that draw their work from a counter: persistent kernels whose loop ends by what an atomic addition found.

A sampled block would draw all the work, as no other runs beside it. So draws are handed out in turn: the n-th draw of a
block finds what it would if all blocks drew one after the other, n times before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .cfg import ControlFlowGraph, Loop, kept_for
from .dataflow import Dataflow
from .instruction import RZ, Instruction, Register
from .kernel import Kernel

IN_TURN = "IN_TURN"
"""Marks an atomic, among its modifiers, whose results are handed out in turn."""
NOTE = "blocks draw their work from a counter: draws are handed out in turn, as if all blocks were equally fast"


def with_draws_in_turn(kernel: Kernel, cfg: ControlFlowGraph) -> Kernel:
    """The kernel with a mark on each of its draws."""
    code = kernel.instructions
    if not (draws := draws_of(code, cfg)):
        return kernel
    marked = kept_for(code, cfg, "draws, marked", lambda: _marked(code, draws))
    return replace(kernel, instructions=marked)


def _marked(code: Sequence[Instruction], draws: frozenset[int]) -> tuple[Instruction, ...]:
    return tuple(replace(i, modifiers=(*i.modifiers, IN_TURN)) if index in draws else i for index, i in enumerate(code))


def draws_of(code: Sequence[Instruction], cfg: ControlFlowGraph) -> frozenset[int]:
    """Indices of additions to a counter in global memory that decide whether the loop around them goes on.

    Where compilers have moved a loop's first draw before it, that one too.
    """
    return kept_for(code, cfg, "draws", lambda: _draws(code, cfg))


def _draws(code: Sequence[Instruction], cfg: ControlFlowGraph) -> frozenset[int]:
    candidates = {index for index, i in enumerate(code) if _may_draw(i)}
    found: set[int] = set()
    flow = Dataflow(code, cfg)
    for loop in cfg.loops if candidates else ():
        inside = {index for index in candidates if cfg.block_of[index] in loop.blocks}
        if inside & flow.slice_of((index, None) for index in _exits(code, cfg, loop)):
            entry = _before(cfg, loop)
            found |= candidates & flow.slice_of((index, None) for index in (*_exits(code, cfg, loop), *entry))
    return frozenset(found)


def _may_draw(instruction: Instruction) -> bool:
    """Whether this adds integers to global memory and reads what was there."""
    if instruction.opcode not in ("ATOM", "ATOMG") or "ADD" not in instruction.modifiers:
        return False
    result = next((o for o in instruction.operands if isinstance(o, Register)), None)
    return result is not None and result.index != RZ and not {"F32", "F64", "F16x2"} & set(instruction.modifiers)


def _exits(code: Sequence[Instruction], cfg: ControlFlowGraph, loop: Loop) -> list[int]:
    """The instructions by which a loop is left, or the kernel from within it."""
    blocks = [cfg.blocks[number] for number in loop.blocks]
    ends = {block.end - 1 for block in blocks if any(one not in loop.blocks for one in block.successors)}
    return sorted(ends | {block.end - 1 for block in blocks if code[block.end - 1].opcode == "EXIT"})


def _before(cfg: ControlFlowGraph, loop: Loop) -> list[int]:
    """The last instructions of the blocks that always run before a loop."""
    found, block = [], loop.header
    while block:
        block = cfg.dominators[block]
        found.append(cfg.blocks[block].end - 1)
    return found
