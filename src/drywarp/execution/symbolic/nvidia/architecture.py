"""A kernel of NVIDIA machine code, prepared for a walk."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import numpy as np

from ....errors import UnsupportedInstructionError
from ....kernel.instruction import PT, Address, Instruction, Predicate
from ....kernel.isa.nvidia.registers import Place, accessed
from ...emulator.machine import BARRIER_REGISTERS, PREDICATES, TENSOR_UNIT, register_counts, thread_registers
from ...emulator.tcgen05_form import FORMATS, form_of
from ..flow import Flow
from ..state import DATA, Batch, FileShape, State, Value
from ..words import Architecture, Pair, Step, Walked, safely
from .compare import guarded, places, shares_of_compares, value_step
from .control import Finishes, NvidiaWords, convergence_step
from .decoder import FILES, StaticBanks, StaticDecoder, joined_flags, stand_in
from .memory import MemorySteps
from .needed import address_pairs, needed_instructions, shape_place, wide_loads


class Nvidia(NvidiaWords, Architecture):
    """The code of one kernel under one launch."""

    convergence_barriers = BARRIER_REGISTERS

    def __init__(self, walked: Walked) -> None:
        Architecture.__init__(self, walked)
        NvidiaWords.__init__(self, self.instructions)
        general, uniform = register_counts(self.instructions)
        self.files = {
            "R": FileShape(general, np.uint32, True),
            "U": FileShape(uniform, np.uint32, False),
            "P": FileShape(PREDICATES, np.bool_, True),
            "UP": FileShape(PREDICATES, np.bool_, False),
        }
        places, wide = len(walked.given.places) + 1, wide_loads(self.instructions)
        self._decoder = StaticDecoder(self.kernel, StaticBanks(self.kernel, walked.given))
        self._memory = MemorySteps(self._decoder, walked.record, walked.patterns, places, wide)
        self.unsure, self.untracked = self._memory.unsure, self._memory.copies.untracked
        self.finish = Finishes(self._decoder, self.instructions, self.cfg).finish
        self._needed = needed_instructions(self.instructions)
        self._shares = shares_of_compares(self.instructions, walked.shares)
        self.loop_blocks = [loop.blocks for loop in Flow(self.instructions, self.cfg, self).loops]

    def written(self, number: int) -> Iterable[Place]:
        """Relevant registers that an instruction writes."""
        writes = accessed(self.instructions[number]).writes if number in self._needed else ()
        return [(FILES[file], index) for file, index in writes]

    def halves(self, number: int) -> Iterable[Pair]:
        """Register pairs that hold addresses."""
        return [((file, low), (file, low + 1)) for file, low in address_pairs(self.instructions[number])]

    def inside(self, loop: int) -> Iterable[int]:
        """The whole kernel if the loop calls functions."""
        own = super().inside(loop)
        calls = any(self.is_call(self.instructions[number]) for number in own)
        return range(len(self.instructions)) if calls else own

    def start(self, state: State) -> None:
        """Set the special registers that identify each lane's thread."""
        launch, per_block = state.launch, state.launch.warps_per_block
        lane = np.broadcast_to(np.arange(state.lanes, dtype=np.uint32), state.in_block.shape)
        ranks = [launch.members(launch.cluster_of(block)).index(block) for block in state.blocks]
        warps = np.arange(state.warps, dtype=np.uint32) % np.uint32(per_block)
        state.special |= thread_registers(launch, state.in_block.astype(np.uint32), lane)
        state.special |= {
            "SR_VIRTID": (warps << np.uint32(8))[:, None],
            "SR_CgaCtaId": np.repeat(np.array(ranks, np.uint32), per_block)[:, None],
        }
        places = np.array([state.launch.coordinates(block) for block in state.blocks], np.uint32)
        for axis, name in enumerate("XYZ"):
            state.special[f"SR_CTAID.{name}"] = np.repeat(places[:, axis], per_block)[:, None]

    def step(self, i: Instruction) -> Step | None:
        """An instruction as a step; None if it affects no address or branch."""
        number = i.pc // 16
        needed = number in self._needed
        step = convergence_step(self._decoder, i) or phase_step(self._decoder, i)
        if step is None and i.memory is not None:
            step = self._memory.step(i, needed)
        elif step is None and needed:
            step = safely(value_step(self._decoder, i, self._shares), unknown_step(i))
        if (note := _tensor_use_step(i, self)) is not None:
            step = note if step is None else _in_order(note, step)
        return None if step is None else guarded(self._decoder, i, step, self.counts)


def _tensor_use_step(i: Instruction, architecture: Architecture) -> Step | None:
    """What an instruction takes from a register of its use of tensor memory, where it is known; None for others."""
    place = shape_place(i)
    if place is None:
        return None
    number, scaled = i.pc // 16, sum(isinstance(o, Address) for o in i.operands) > 5

    def note(batch: Batch) -> None:
        words, flags = batch.U[place[1]], batch.flags["U"][place[1]]
        known = batch.lanes().any(axis=1, keepdims=True) & (flags & DATA == 0)
        for word in np.unique(words[known]).tolist():
            if i.opcode not in FORMATS:
                architecture.tensor_columns = max(architecture.tensor_columns, TENSOR_UNIT * word)
                continue
            with suppress(UnsupportedInstructionError):
                architecture.products.setdefault(number, set()).add(form_of(word, i.opcode, scaled).stated)

    return note


def _in_order(first: Step, second: Step) -> Step:
    """Two steps of one instruction."""

    def both(batch: Batch) -> None:
        first(batch)
        second(batch)

    return both


def phase_step(d: StaticDecoder, i: Instruction) -> Step | None:
    """A test of a barrier in shared memory, whose phase is always assumed complete; None for other opcodes."""
    if i.opcode != "SYNCS" or "PHASECHK" not in i.modifiers or not isinstance(i.operands[0], Predicate):
        return None
    put = d.writer(i.operands[0])
    file, index = ("UP" if i.operands[0].uniform else "P"), i.operands[0].index

    def complete(batch: Batch) -> None:
        put(batch, np.True_)
        if index != PT:
            batch.put_flags(FILES[file], index, np.uint16(0))

    return complete


def unknown_step(i: Instruction) -> Step:
    """Results that cannot be computed."""
    sources, results = places(i)

    def run(batch: Batch) -> None:
        flags: Value = joined_flags(batch, sources, DATA)
        stand_in(batch, sources, results)
        for file, index in results:
            batch.put_flags(FILES[file], index, flags)

    return run
