"""Running blocks for where they reach in global memory, and for nothing else.

What computes neither an address nor where a warp goes is left out, which takes a tenth of the time. Where loops run one
iteration too, it is less than a hundredth: a caller learns how the first accesses of every loop move from block to
block; that later ones move alike is for the caller to show on blocks whose loops were run to their ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..errors import DrywarpError
from ..kernel.cfg import ControlFlowGraph, Loop, jump_target
from ..kernel.dataflow import Dataflow
from ..kernel.instruction import Instruction
from ..kernel.kernel import Kernel
from ..kernel.launch import Launch
from ..kernel.operand import Label
from ..kernel.profile import Profile
from ..kernel.registers import address_places
from .limits import Limits
from .session import Session

_COMPUTES = frozenset(
    "fp32 fp32_compare fp16 fp64 int imad imad_wide shift move bit sfu convert convert_fast predicate vote shuffle"
    " reduce uniform special_register constant_load tensor wgmma".split()
)
"""Classes whose instructions do nothing but write their results."""
_WITHIN_A_BLOCK = frozenset({"shared", "local"})


class Skim:
    """Runs blocks of a launch, the loops of `once` for one iteration where it is clear how to leave them.

    `once` then are those of which it is.
    """

    def __init__(
        self, kernel: Kernel, launch: Launch, cfg: ControlFlowGraph, limits: Limits, once: Sequence[Loop] = ()
    ) -> None:
        code, self.once = skimmed(kernel, cfg, once)
        self._kernel, self._launch, self._cfg = replace(kernel, instructions=code), launch, cfg
        self._limits = limits

    def __call__(self, blocks: Sequence[int]) -> Profile | None:
        """What these blocks do; None where what is left of the kernel cannot run, or not within the limits."""
        try:
            session = Session(self._kernel, self._launch, self._limits, cfg=self._cfg)
            session.run(blocks)
            return session.finish(dict.fromkeys(blocks, 1.0), "chosen").profile
        except DrywarpError:
            return None


def skimmed(
    kernel: Kernel, cfg: ControlFlowGraph, once: Sequence[Loop]
) -> tuple[tuple[Instruction, ...], tuple[Loop, ...]]:
    """The code of a brief run, as long as the kernel's, and those of the loops that it runs once."""
    code = list(kernel.instructions)
    left = []
    for loop in once:
        changed = _without_back_edges(code, cfg, loop)
        if changed is not None:
            left.append(loop)
            for index, instruction in changed.items():
                code[index] = instruction
    for index in _unneeded(code, cfg):
        code[index] = _nothing(code[index])
    return tuple(code), tuple(left)


def _without_back_edges(
    code: Sequence[Instruction], cfg: ControlFlowGraph, loop: Loop
) -> dict[int, Instruction] | None:
    """The branches back to the loop's header made to leave it; None where it is not clear where they would go."""
    header = cfg.blocks[loop.header].start * 16
    exits = {s for b in loop.blocks for s in cfg.blocks[b].successors if s not in loop.blocks}
    changed: dict[int, Instruction] = {}
    for block in (cfg.blocks[b] for b in loop.blocks if loop.header in cfg.blocks[b].successors):
        last = code[block.end - 1]
        if last.opcode != "BRA" or jump_target(last) != header:
            return None
        if len(block.successors) > 1:
            changed[block.end - 1] = _nothing(last)  # falls through
        elif len(exits) == 1:
            target = cfg.blocks[next(iter(exits))].start * 16
            operands = tuple(replace(o, target=target) if isinstance(o, Label) else o for o in last.operands)
            changed[block.end - 1] = replace(last, operands=operands)
        else:
            return None
    return changed or None


def _nothing(instruction: Instruction) -> Instruction:
    return replace(instruction, opcode="NOP", modifiers=(), operands=(), guard=None, class_="nop", memory=None)


def _unneeded(code: Sequence[Instruction], cfg: ControlFlowGraph) -> list[int]:
    """Indices of instructions that reach no address in global memory and no branch, whatever is computed from them.

    What global memory is given is not followed.
    """
    flow = Dataflow(code, cfg)
    needed: set[int] = set()
    pending = [index for index, i in enumerate(code) if _stays(i)]
    spaces: set[str] = set()
    while pending:
        index = pending.pop()
        if index in needed:
            continue
        needed.add(index)
        memory = code[index].memory
        given = memory is not None and memory.kind in ("store", "reduction") and memory.space in ("global", "generic")
        pending += flow.producers_of(index, address_places(code[index]) if given else None)
        if memory is not None and memory.kind in ("load", "atomic") and memory.space not in spaces:
            # What is loaded from the block's own memory was stored there.
            own = {"shared", "local"} if memory.space == "generic" else {memory.space} & _WITHIN_A_BLOCK
            spaces |= own
            pending += [k for k, other in enumerate(code) if other.memory is not None and other.memory.space in own]
    return [index for index in range(len(code)) if index not in needed]


def _stays(instruction: Instruction) -> bool:
    """Whether an instruction is run whatever its results are for."""
    memory = instruction.memory
    if memory is not None and memory.space in _WITHIN_A_BLOCK:
        return memory.kind not in ("load", "store")
    return instruction.class_ not in _COMPUTES
