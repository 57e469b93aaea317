"""How NVIDIA machine code branches, calls, exits and reconverges lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....errors import UnsupportedInstructionError
from ....kernel.cfg import ControlFlowGraph, jump_target
from ....kernel.instruction import PT, RZ, Immediate, Instruction, Label, Predicate, Register, Special
from ....kernel.isa.nvidia.opcodes import having
from ..flow import EXIT_BLOCK
from ..state import Batch, Flags, Lanes
from ..words import Branch, Call, Finish, Forget, Goto, Rejoin, Return, Scatter, Step
from .decoder import StaticDecoder

_SLOW = ("slowpath", "__internal_", "__cuda_sm20_")
"""Part of the names of functions that the compiler adds for operands that its inlined code cannot handle."""
_ZERO = np.uint16(0)
_CALLS, _RETURNS, _EXITS = having("call"), having("return"), having("exit")


class NvidiaWords:
    """Which instructions call, return and exit."""

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        self._count = len(instructions)

    def is_call(self, instruction: Instruction) -> bool:
        """Whether it calls a function; compilers also jump by CALL."""
        return instruction.opcode in _CALLS and not _jumps(instruction)

    def is_return(self, instruction: Instruction) -> bool:
        """Whether it returns to the caller."""
        return instruction.opcode in _RETURNS

    def is_exit(self, instruction: Instruction) -> bool:
        """Whether it ends lanes."""
        return instruction.opcode in _EXITS

    def callee(self, instruction: Instruction) -> int | None:
        """Index of the target instruction of a direct call."""
        target = jump_target(instruction) if self.is_call(instruction) else None
        return target // 16 if target is not None and target // 16 < self._count else None

    def is_slow(self, instruction: Instruction) -> bool:
        """Whether it calls a compiler-provided function for rare operands."""
        names = (o.name for o in instruction.operands if isinstance(o, Label))
        return instruction.opcode in _CALLS and any(word in name for name in names for word in _SLOW)


def _jumps(instruction: Instruction) -> bool:
    """Whether a CALL targets the same function: compilers end divergent loops so. It saves no return address."""
    labels = [o for o in instruction.operands if isinstance(o, Label)]
    return jump_target(instruction) is not None and labels[-1].name.startswith(".L_")


Test = Callable[[Batch], tuple[Lanes, Flags]]


class Finishes:
    """Builds the ends of blocks of one kernel."""

    def __init__(self, d: StaticDecoder, instructions: Sequence[Instruction], cfg: ControlFlowGraph) -> None:
        self.d = d
        self.instructions = instructions
        self.cfg = cfg
        self.words = NvidiaWords(instructions)

    def finish(self, block: int) -> Finish:
        """How a block ends."""
        i = self.instructions[self.cfg.blocks[block].end - 1]
        fall = block + 1 if block + 1 < len(self.cfg.blocks) else EXIT_BLOCK
        make: Any = getattr(self, f"_{i.opcode.lower()}", None) if i.opcode.isalpha() else None
        try:
            if make is not None and i.opcode in _MAKERS:
                result: Finish = make(i, fall, block)
                return result
        except UnsupportedInstructionError:
            pass
        return Goto(fall)

    def _block_at(self, target: int | None) -> int:
        if target is None or not 0 <= target // 16 < len(self.instructions):
            return EXIT_BLOCK
        return self.cfg.block_of[target // 16]

    def _condition(self, i: Instruction, extra: Predicate | None = None) -> Test | None:
        """Lanes whose guard, and whose extra predicate operand, hold; None where all do."""
        tests = [self.d.test(p) for p in (i.guard, extra) if p is not None and (p.index != PT or p.negate)]
        if not tests:
            return None

        def condition(batch: Batch) -> tuple[Lanes, Flags]:
            lanes = batch.spread(np.asarray(tests[0][0](batch)))
            flags = tests[0][1](batch)
            for value, flag in tests[1:]:
                # A known false stays false, whatever the other predicate is.
                other, also = batch.spread(np.asarray(value(batch))), flag(batch)
                known_false = (~lanes & (flags == _ZERO)) | (~other & (also == _ZERO))
                lanes, flags = lanes & other, np.where(known_false, _ZERO, flags | also)
            return lanes, batch.spread(np.asarray(flags, np.uint16))

        return condition

    def _settle(self, predicate: Predicate | None) -> Callable[[Batch, Lanes], None] | None:
        """Update a guard to the decision that was made."""
        if predicate is None or predicate.index in (PT, -1):
            return None
        file, index, negate = ("UP" if predicate.uniform else "P"), predicate.index, predicate.negate

        def settle(batch: Batch, taken: Lanes) -> None:
            value = ~taken if negate else taken
            if file == "P":
                batch.write(batch.P[index], value)
            else:
                leader = value[np.arange(batch.rows), batch.leader()][:, None]
                batch.write_uniform(batch.UP[index], leader)

        return settle

    def _bra(self, i: Instruction, fall: int, block: int) -> Finish:
        to = self._block_at(jump_target(i))
        if "DIV" in i.modifiers or "CONV" in i.modifiers:
            return Branch(self._present(i), to, fall)
        extra = next((o for o in i.operands if isinstance(o, Predicate)), None)
        test = self._condition(i, extra)
        if test is None:
            return Goto(to)
        guards = [p for p in (i.guard, extra) if p is not None and p.index != PT]
        return Branch(test, to, fall, self._settle(guards[0]) if len(guards) == 1 else None)

    def _jmp(self, i: Instruction, fall: int, block: int) -> Finish:
        if jump_target(i) is None:
            return self._brx(i, fall, block)
        return self._bra(i, fall, block)

    def _present(self, i: Instruction) -> Test:
        """BRA.DIV jumps if live lanes of the mask are elsewhere, BRA.CONV if all are here."""
        wanted = self._mask(i)
        divergent = "DIV" in i.modifiers

        def test(batch: Batch) -> tuple[Lanes, Flags]:
            away = (wanted(batch) & batch.state.live[batch.warps] & ~batch.there).any(axis=1, keepdims=True)
            return batch.spread(away if divergent else ~away), batch.spread(_ZERO)

        return test

    def _mask(self, i: Instruction) -> Callable[[Batch], Lanes]:
        """The lanes that a mask operand names; all of them if it depends on data."""
        operand = next((o for o in i.operands if isinstance(o, Register | Immediate)), None)
        if operand is None:
            return lambda batch: batch.spread(np.bool_(True))
        word = self.d.number(operand)

        def lanes(batch: Batch) -> Lanes:
            values = batch.spread(np.asarray(word(batch)))[np.arange(batch.rows), batch.leader()]
            found: Lanes = (values[:, None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1) != 0
            unsure: Lanes = batch.spread(np.asarray(self.d.operand_flags(batch, operand), np.uint16)) != 0
            return np.logical_or(found, unsure)

        return lanes

    def _exit(self, i: Instruction, fall: int, block: int) -> Finish:
        extra = next((o for o in i.operands if isinstance(o, Predicate)), None)
        test = self._condition(i, extra)
        return Goto(EXIT_BLOCK) if test is None else Branch(test, EXIT_BLOCK, fall, self._settle(i.guard))

    _kill = _exit

    def _ret(self, i: Instruction, fall: int, block: int) -> Finish:
        return Return(self._condition(i), fall)

    def _call(self, i: Instruction, fall: int, block: int) -> Finish:
        if _jumps(i):
            return self._bra(i, fall, block)
        registers = [o for o in i.operands if isinstance(o, Register)]
        to = None if registers or "ABS" in i.modifiers else self._block_at(jump_target(i))
        return Call(None if to == EXIT_BLOCK else to, fall, self._condition(i))

    def _brx(self, i: Instruction, fall: int, block: int) -> Finish:
        register = next(o for o in i.operands if isinstance(o, Register))
        offset = next((int(o.value) for o in i.operands if isinstance(o, Immediate)), 0)
        word, start = self.d.number(register), (i.pc + 16 + offset) & 0xFFFFFFFF
        choices = tuple(sorted(set(self.cfg.blocks[block].successors)))
        starts = {self.cfg.blocks[c].start * 16: c for c in choices}

        def target(batch: Batch) -> tuple[Any, Flags]:
            places = (np.asarray(word(batch)).astype(np.int64) + start) & 0xFFFFFFFF
            found = np.full(places.shape, -1, np.int64)
            for place, number in starts.items():
                found = np.where(places == place, number, found)
            flags = np.asarray(self.d.operand_flags(batch, register), np.uint16)
            return batch.spread(found), batch.spread(flags)

        return Scatter(target, choices)

    _brxu = _jmx = _jmxu = _brx

    def _bsync(self, i: Instruction, fall: int, block: int) -> Finish:
        return Rejoin(fall, _barrier(i))

    def _warpsync(self, i: Instruction, fall: int, block: int) -> Finish:
        return Rejoin(fall, None, self._mask(i))

    def _break(self, i: Instruction, fall: int, block: int) -> Finish:
        extra = next((o for o in i.operands if isinstance(o, Predicate)), None)
        beside = None
        if fall != EXIT_BLOCK and i.guard is not None:
            branch = self.instructions[self.cfg.blocks[fall].end - 1]
            if branch.opcode == "BRA" and branch.guard == i.guard:
                beside = fall
        return Forget(_barrier(i), fall, self._condition(i, extra), beside)


_MAKERS = having("finish")


def _barrier(i: Instruction) -> int:
    return next((_barrier_number(o) for o in i.operands if isinstance(o, Special) and o.name[0] == "B"), 0)


def _barrier_number(operand: Special) -> int:
    return int(operand.name[1:]) if operand.name[1:].isdigit() else 0


def _copy_barrier(target: int, source: int, clear: bool) -> Step:
    """Copy one convergence barrier to another; sm_87 clears them this way at the start."""

    def copy(batch: Batch) -> None:
        batch.state.barriers[target, batch.warps] = batch.state.barriers[source, batch.warps]
        if clear:
            batch.state.barriers[source, batch.warps] = False

    return copy


def convergence_step(d: StaticDecoder, i: Instruction) -> Step | None:
    """BSSY and BMOV, which determine who is waited for; None for other opcodes."""
    if i.opcode not in ("BSSY", "BMOV"):
        return None
    number = _barrier(i)

    def begin(batch: Batch) -> None:
        batch.state.barriers[number, batch.warps] |= batch.lanes()

    if i.opcode == "BSSY":
        return begin
    first = i.operands[0]
    if isinstance(first, Register):
        put, clear = d.writer(first), "CLEAR" in i.modifiers

        def save(batch: Batch) -> None:
            held = batch.state.barriers[number, batch.warps]
            put(batch, np.packbits(held, axis=1, bitorder="little").view(np.uint32))
            if first.index != RZ:
                batch.put_flags("U" if first.uniform else "R", first.index, _ZERO)
            if clear:
                batch.state.barriers[number, batch.warps] = False

        return save
    if len(i.operands) < 2:
        return None
    if isinstance(i.operands[1], Special):
        return _copy_barrier(number, _barrier_number(i.operands[1]), "CLEAR" in i.modifiers)
    word = d.number(i.operands[1])

    def restore(batch: Batch) -> None:
        values = batch.spread(np.asarray(word(batch)))[np.arange(batch.rows), batch.leader()]
        lanes = (values[:, None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1) != 0
        batch.state.barriers[number, batch.warps] = lanes & batch.state.live[batch.warps]

    return restore
