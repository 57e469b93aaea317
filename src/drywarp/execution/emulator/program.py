"""A kernel as the emulator runs it: basic blocks, decoded when first reached."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from ...errors import EmulationError
from ...kernel.cfg import BasicBlock, ControlFlowGraph, Loop, ends_block
from ...kernel.instruction import RZ, Address, Instruction
from ...kernel.isa.nvidia.registers import written
from .convergence import Finish, build_finish
from .decode import Decoder, Step
from .operands import Touched

HANDLER_MODULES = tuple(
    import_module(f".{name}", __package__)
    for name in (
        *("atomics", "barriers", "bitwise", "bulk_copy", "compare", "control", "convergence", "convert", "floating"),
        *("half", "integer", "mbarrier", "memory_ops", "packing", "tcgen05", "tensor", "tensor_memory", "texture_ops"),
        *("warp_ops", "wgmma"),
    )
)
"""Modules whose import registers the handlers of the opcodes."""
_ACTS = frozenset({"barrier", "mbarrier", "bulk_copy", "tcgen05"})
"""Classes of which a loop that only looks at memory has no instruction."""


@dataclass(frozen=True)
class DecodedBlock:
    """A basic block: `steps` and then `finish`; `spins` if it belongs to a loop that may wait for others."""

    index: int
    start: int
    length: int
    steps: tuple[Step, ...]
    finish: Finish
    touched: Touched
    spins: bool


class Program:
    """The blocks of a kernel, decoded lazily under one launch's constants."""

    def __init__(self, decoder: Decoder, cfg: ControlFlowGraph) -> None:
        self.decoder = decoder
        self.cfg = cfg
        self.instructions = decoder.kernel.instructions
        self._blocks: dict[int, DecodedBlock] = {}
        self.spinning = _spinning_blocks(self.instructions, cfg)

    def block_at(self, pc: int) -> DecodedBlock:
        """The block that starts at a byte offset. Raises EmulationError past the end of the code."""
        block = self._blocks.get(pc)
        if block is None:
            block = self._blocks[pc] = self._decode(self.basic_block(pc), pc // 16)
        return block

    def basic_block(self, pc: int) -> BasicBlock:
        """The basic block that a byte offset lies in. Raises EmulationError past the end of the code."""
        index = pc // 16
        if index >= len(self.instructions):
            raise EmulationError(f"{self.decoder.kernel.name} ran past its last instruction at {pc:#06x}")
        return self.cfg.blocks[self.cfg.block_of[index]]

    def spins_at(self, pc: int) -> bool:
        """Whether the block at a byte offset belongs to a loop that may wait for others."""
        return self.basic_block(pc).index in self.spinning

    def _decode(self, block: BasicBlock, start: int) -> DecodedBlock:
        # An indirect jump may enter a block in the middle, where the graph has no block start.
        body = self.instructions[start : block.end]
        decoder = self.decoder
        decoder.touched = Touched()
        last = body[-1]
        finish: Finish
        if ends_block(last):
            steps = tuple(decoder.decode(i) for i in body[:-1])
            finish = build_finish(decoder, last)
        else:
            steps = tuple(decoder.decode(i) for i in body)
            finish = _falls_to(block.end * 16)
        return DecodedBlock(
            block.index, start * 16, len(body), steps, finish, decoder.touched, block.index in self.spinning
        )


def _falls_to(pc: int) -> Finish:
    return lambda s, f: pc


def _may_wait(instruction: Instruction) -> bool:
    """Whether an instruction in a loop suggests that the loop waits for other threads."""
    names = instruction.modifiers
    # Not YIELD: the compiler puts one into any loop with atomics.
    if instruction.opcode == "NANOSLEEP":
        return "SYNCS" not in names
    if instruction.opcode == "SYNCS":
        return "PHASECHK" in names and "TRYWAIT" not in names
    if instruction.opcode.startswith("ATOM"):
        return "CAS" in names or "EXCH" in names or "CAST" in names
    return instruction.opcode in ("LDG", "LD", "LDS") and "STRONG" in names


def _polls(instructions: tuple[Instruction, ...], cfg: ControlFlowGraph, loop: Loop) -> bool:
    """Whether a loop only reads shared memory, as barrier waits there did before sm_90."""
    body = _body(instructions, cfg, loop)
    return all(i.opcode == "LDS" for i in body if i.memory is not None or i.class_ in _ACTS)


def _looks_again(instructions: tuple[Instruction, ...], cfg: ControlFlowGraph, loop: Loop) -> bool:
    """Whether a loop loads the same words in every iteration, which only a volatile flag in shared memory requires."""
    body = _body(instructions, cfg, loop)
    overwritten = {place for i in body for place in written(i)}
    return all(_address_places(i).isdisjoint(overwritten) for i in body if i.opcode == "LDS")


def _yields(instructions: tuple[Instruction, ...], cfg: ControlFlowGraph, loop: Loop) -> bool:
    """Whether a loop only yields to others, as compilers generate for waits on sm_75."""
    body = _body(instructions, cfg, loop)
    return any(i.opcode == "YIELD" for i in body) and not any(i.memory or i.class_ == "barrier" for i in body)


def _address_places(instruction: Instruction) -> set[tuple[str, int]]:
    address = next((o for o in instruction.operands if isinstance(o, Address)), None)
    registers = (address.base, address.uniform) if address is not None else ()
    return {("UR" if r.uniform else "R", r.index) for r in registers if r is not None and r.index != RZ}


def _body(instructions: tuple[Instruction, ...], cfg: ControlFlowGraph, loop: Loop) -> list[Instruction]:
    return [i for block in loop.blocks for i in instructions[cfg.blocks[block].start : cfg.blocks[block].end]]


def _spinning_blocks(instructions: tuple[Instruction, ...], cfg: ControlFlowGraph) -> frozenset[int]:
    """Blocks of the innermost loops with such instructions; inner loops are excluded if they do any work."""
    spinning: set[int] = set()
    arrives = any(i.opcode == "ATOMS" and "ARRIVE" in i.modifiers for i in instructions)
    known: dict[frozenset[int], bool] = {}

    def polls(loop: Loop) -> bool:
        if loop.blocks not in known:
            only = _polls(instructions, cfg, loop)
            known[loop.blocks] = only and (arrives or _looks_again(instructions, cfg, loop))
        return known[loop.blocks]

    for index, instruction in enumerate(instructions):
        block = cfg.block_of[index]
        if block in spinning or not (instruction.opcode == "LDS" or _may_wait(instruction)):
            continue
        loop = cfg.innermost_loop(block)
        if loop is None:
            continue
        if _may_wait(instruction) or polls(loop):
            inner = {b: cfg.innermost_loop(b) for b in loop.blocks}
            spinning |= {b for b, own in inner.items() if own == loop or (own and _yields(instructions, cfg, own))}
    return frozenset(spinning)
