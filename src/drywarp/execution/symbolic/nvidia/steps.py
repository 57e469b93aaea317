"""An instruction as a function of a batch: its values and what is known about them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ....kernel.instruction import PT, Constant, Instruction, Predicate, Special
from ....kernel.isa.nvidia.opcodes import having
from ....kernel.isa.nvidia.registers import Place, accessed
from ..state import DATA, VARYING, Batch, Value
from ..words import Step
from .compare import COMPARES, DEFAULT_SHARE, compare_step
from .decoder import FILES, StaticDecoder, joined_flags, stand_in
from .needed import non_affine

_PER_LANE = ("TID", "LANEID", "LTMASK", "LEMASK", "EQMASK", "GTMASK", "GEMASK")
_NOT_KNOWN = ("CLOCK", "GLOBALTIMER", "SMID", "VIRTUALSMID", "VIRTID", "VIRTCFG", "NSMID")
_OVER_LANES, _SAME_IN_ALL = having("lanes"), having("alike")


def value_step(d: StaticDecoder, i: Instruction, shares: Mapping[int, float]) -> Step:
    """The step of an instruction that does not touch memory, without its guard."""
    run = d.values(i)
    if i.opcode in COMPARES and isinstance(i.operands[0], Predicate):
        step = compare_step(d, i, run, shares.get(i.pc // 16, DEFAULT_SHARE))
        return step if i.opcode not in ("LOP3", "ULOP3") else _also_register(d, i, step)
    sources, results = places(i)
    constant = _constant_flags(d, i)
    known = run is not None
    floating = i.class_.startswith(("fp", "sfu", "tensor"))
    non_affine_at = non_affine(d, i)
    over_lanes, same = i.opcode in _OVER_LANES, i.opcode in _SAME_IN_ALL

    def step_with_flags(batch: Batch) -> None:
        flags: Value = joined_flags(batch, sources, constant)
        if over_lanes and np.ndim(flags):
            gathered = np.bitwise_or.reduce(np.where(batch.lanes(), flags, 0), axis=1, keepdims=True)
            flags = gathered & ~np.uint16(VARYING) if same else gathered | np.uint16(VARYING)
        flags = non_affine_at(batch, flags)
        if floating and np.ndim(flags) and (flags & DATA).all():
            # Numbers computed from data are irrelevant: they decide nothing.
            pass
        elif run is not None:
            run(batch)
        else:
            stand_in(batch, sources, results)
        if not known:
            flags = flags | np.uint16(DATA)
        for file, index in results:
            batch.put_flags(FILES[file], index, flags)

    return step_with_flags


def _also_register(d: StaticDecoder, i: Instruction, step: Step) -> Step:
    """A logic operation that writes a register in addition to its predicate."""
    sources, results = places(i)
    constant = _constant_flags(d, i)
    registers = [(file, index) for file, index in results if file in ("R", "UR")]

    def both(batch: Batch) -> None:
        flags: Value = joined_flags(batch, sources, constant)
        step(batch)
        for file, index in registers:
            batch.put_flags(FILES[file], index, flags)

    return both


def places(i: Instruction) -> tuple[list[Place], list[Place]]:
    """What an instruction reads, apart from its guard, and what it writes."""
    touched = accessed(i)
    guard: set[Place] = set()
    if i.guard is not None:
        guard = {("UP" if i.guard.uniform else "P", i.guard.index)}
        # A predicate that is also read as an operand stays.
        guard -= {("UP" if o.uniform else "P", o.index) for o in i.operands if isinstance(o, Predicate)}
    return sorted(touched.reads - guard), sorted(touched.writes)


def _constant_flags(d: StaticDecoder, i: Instruction) -> int:
    flags = 0
    for position, operand in enumerate(i.operands):
        if isinstance(operand, Constant):
            flags |= d.constant_flags(operand, _width(i, position))
        elif isinstance(operand, Special):
            name = operand.name.removeprefix("SR_").split(".")[0]
            if name in _PER_LANE:
                flags |= VARYING
            elif name.startswith(_NOT_KNOWN):
                flags |= DATA
    return flags


def _width(i: Instruction, position: int) -> int:
    """Bytes of a constant operand."""
    names = set(i.modifiers)
    if "128" in names:
        return 16
    if {"64", "S64", "U64", "F64"} & names or i.opcode in ("DADD", "DMUL", "DFMA"):
        return 8
    registers = [n for n, o in enumerate(i.operands) if not isinstance(o, Predicate)]
    wide = i.opcode in ("IMAD", "UIMAD") and i.modifiers[:1] in (("WIDE",), ("HI",))
    return 8 if wide and registers[-1:] == [position] else 4


def guarded(d: StaticDecoder, i: Instruction, step: Step, counts: npt.NDArray[np.int64]) -> Step:
    """A step under its instruction's guard; `counts` of executing lanes have shape (instructions, warps)."""
    guard = i.guard
    if guard is None or (guard.index == PT and not guard.negate):
        return step
    value, flags = d.test(guard)
    number = i.pc // 16
    results = [(FILES[file], index) for file, index in accessed(i).writes if file == "R"]

    def run(batch: Batch) -> None:
        lanes = batch.spread(np.asarray(value(batch)))
        if batch.exec is not None:
            lanes = lanes & batch.exec
        executing = np.count_nonzero(lanes, axis=1)
        counts[number, batch.warps] += executing
        if not executing.any():
            return
        saved = batch.narrow(lanes)
        try:
            step(batch)
        finally:
            batch.restore(saved)
        if results and (np.asarray(flags(batch)) & VARYING).any():
            for file, index in results:
                row = batch.flags[file][index]
                batch.write(row, row | np.uint16(VARYING))

    return run
