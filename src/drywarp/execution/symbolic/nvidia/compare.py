"""Instructions as functions of a batch, and the lanes for which predicates with unknown values are assumed to hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ....kernel.instruction import PT, Constant, Instruction, Operand, Predicate, Special
from ....kernel.isa.nvidia.opcodes import having
from ....kernel.isa.nvidia.registers import Place, accessed
from ...emulator.compare import boolean_op
from ..state import (
    ASSUMED,
    DATA,
    ITERATIONS,
    UNSURE,
    VARYING,
    Batch,
    Compared,
    Lanes,
    Value,
    even_iterations,
    non_affine_flags,
)
from ..words import Step
from .decoder import FILES, StaticDecoder, joined_flags, stand_in
from .needed import non_affine

DEFAULT_SHARE = 0.5
"""Share of threads for which a data-dependent condition is assumed to hold."""

_LOOK_AHEAD = 128
_TURNS = 16
"""Executions after which warps alternate again in decisions on which all lanes of a warp must agree."""

COMPARES = having("compare")
_INTEGER = frozenset({"ISETP", "UISETP"})
_ORDER = {"LT": True, "LE": True, "GT": False, "GE": False}
"""Whether the compare holds if the right side is larger than any number."""


def _users(after: Sequence[Instruction], predicate: Predicate) -> Iterator[tuple[int, Predicate]]:
    """Instructions that run under a predicate, and how they read it, until it is overwritten."""
    for i in after:
        read = [p for p in (i.guard, *i.operands) if isinstance(p, Predicate)]
        if i.opcode in COMPARES and i.guard is None:
            read = list(read[2:])
        elif i.guard is None and i.opcode not in ("BRA", "EXIT", "SEL", "FSEL"):
            read = []
        for p in read:
            if (p.index, p.uniform) == (predicate.index, predicate.uniform):
                yield i.pc // 16, p
        written = i.operands[:1] if i.opcode in COMPARES else ()
        if any(isinstance(p, Predicate) and p.index == predicate.index for p in written):
            return


def lanes_of_share(batch: Batch, share: float, varying: Value, instruction: int) -> Lanes:
    """Lanes for which a condition holds that a share of threads satisfies.

    If lanes may differ, they are spread evenly over the warp; if all lanes of a warp must agree, warps alternate, and a
    single warp alternates over time.
    """
    count = batch.state.lanes
    by_lane = (_mirrored(np.arange(count), count) + 0.5) / count < share
    turn = (batch.warps + batch.executions(instruction)) % _TURNS
    by_warp = (_mirrored(turn, _TURNS) + 0.5) / _TURNS < share
    return np.asarray(np.where(batch.spread(varying) != 0, by_lane[None, :], by_warp[:, None]))


def _mirrored(numbers: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """Numbers below a power of two with their bits reversed: any first few of them are evenly spread."""
    bits = count.bit_length() - 1
    mirrored = np.zeros_like(numbers)
    for k in range(bits):
        mirrored |= ((numbers >> k) & 1) << (bits - 1 - k)
    return mirrored


def shares_of_compares(instructions: Sequence[Instruction], stated: Mapping[int, float]) -> dict[int, float]:
    """Shares of threads for which compares hold, from the instruction that first depends on each of them.

    `stated` shares are by instruction: the branch's, or the instruction's under a predicate, else the compare's.
    """
    found: dict[int, float] = {}
    if not stated:
        return found
    for index, compare in enumerate(instructions):
        if compare.opcode not in COMPARES or not isinstance(compare.operands[0], Predicate):
            continue
        user, guard = next(
            _users(instructions[index + 1 : index + 1 + _LOOK_AHEAD], compare.operands[0]), (index, None)
        )
        share = stated.get(user, stated.get(index))
        if share is not None:
            found[index] = 1 - share if guard is not None and guard.negate else share
    return found


def compare_step(d: StaticDecoder, i: Instruction, run: Step | None, share: float) -> Step:
    """Compare, and replace unknown values by an assumption; the flags of both sides are those of the result."""
    operands = list(i.operands)
    number = i.pc // 16
    first = operands[0]
    second = operands[1] if len(operands) > 1 and isinstance(operands[1], Predicate) else None
    sides, given, low = _parts(i)
    put = d.writer(first) if isinstance(first, Predicate) else None
    put_other = d.writer(second) if second is not None and i.opcode != "FCHK" else None
    given_value, given_flags = d.test(given) if given is not None else (lambda f: np.bool_(True), lambda b: 0)
    low_flags: Callable[[Batch], Value] = d.test(low)[1] if low is not None else (lambda b: 0)
    combine = boolean_op(next((m for m in i.modifiers if m in ("AND", "OR", "XOR")), "AND"))
    order = next((_ORDER[m] for m in i.modifiers if m in _ORDER), None) if i.opcode in _INTEGER else None
    how = next((m for m in i.modifiers if m in _ORDER or m in ("EQ", "NE")), "")
    equality = i.opcode in _INTEGER and how in ("EQ", "NE")
    plain = i.opcode in _INTEGER and not {"S64", "U64"} & set(i.modifiers)
    sides_words = [d.number(s) for s in sides[:2]] if plain and how else []
    words = sides_words if order is not None else []
    kind = np.uint32 if "U32" in i.modifiers else np.int32
    floating = i.opcode in ("FSETP", "DSETP", "HSETP2")
    rare = i.opcode == "FCHK"
    width = 8 if {"S64", "U64"} & set(i.modifiers) or i.opcode == "DSETP" else 4
    targets = [d.place_of(o) for o in (first, second) if isinstance(o, Predicate)]

    def step(batch: Batch) -> None:
        flags = [d.operand_flags(batch, s, width) for s in sides]
        tested: Value = low_flags(batch)
        for flag in flags:
            tested = tested | flag
        # Before the results are written: the input predicate may be one of them.
        also, also_flags = given_value(batch), given_flags(batch)
        also = np.array(also)
        unsure = batch.spread(np.asarray(tested, np.uint16) & UNSURE) != 0
        test: Lanes | None = None
        if unsure.any() and put is not None:
            data = batch.spread(np.asarray(tested, np.uint16) & DATA) != 0
            chosen = lanes_of_share(batch, 0.0 if rare else share, np.asarray(tested, np.uint16) & VARYING, number)
            test = np.where(data, chosen, False)
            replaced = data
            if order is not None:
                left, right = (batch.spread(np.asarray(f, np.uint16) & ASSUMED) != 0 for f in flags[:2])
                values = [batch.spread(np.asarray(w(batch))).view(np.int32) for w in words]
                for mine, other, value, holds in ((right, left, values[1], order), (left, right, values[0], not order)):
                    # A number that was not given is larger than any other, or smaller if it is negative.
                    alone = mine & ~other & ~data
                    test = np.where(alone, holds ^ (value < 0), test)
                    replaced = replaced | alone
        if order is None and not equality:
            tested = non_affine_flags(tested)
        batch.rely_on(tested)
        if sides_words and np.ndim(tested) and (tested >= ITERATIONS[0]).any():
            lanes = batch.lanes() & batch.spread(even_iterations(tested) & (tested & UNSURE == 0))
            if lanes.any():
                left, right = (batch.spread(np.asarray(w(batch)).view(kind)).astype(np.int64) for w in sides_words)
                batch.state.compared.append(Compared(number, how, batch.warps, lanes, left - right))
        if run is not None and not (floating and (np.asarray(tested, np.uint16) & DATA).all()):
            run(batch)
        if test is not None and put is not None:
            saved = batch.narrow(batch.lanes() & replaced)
            true, false = combine(test, also), combine(~test, also)
            if isinstance(first, Predicate) and first.uniform:
                # All lanes of a warp hold the same numbers, so what is assumed of one is assumed of the warp.
                true, false = np.atleast_2d(true)[:, :1], np.atleast_2d(false)[:, :1]
            put(batch, true)
            if put_other is not None:
                put_other(batch, false)
            batch.restore(saved)
        total = tested | also_flags
        for place in targets:
            if place is not None:
                batch.put_flags(place[0], place[1], total)

    return step


def _parts(i: Instruction) -> tuple[list[Operand], Predicate | None, Predicate | None]:
    """The sides of a compare, the predicate that it is combined with, and the compare of the lower halves."""
    if i.opcode in ("LOP3", "ULOP3"):
        return list(i.operands[2:5]), None, None
    if i.opcode == "FCHK":
        return list(i.operands[1:3]), None, None
    rest = list(i.operands[2:])
    after = [o for o in rest if isinstance(o, Predicate)]
    sides: list[Operand] = [o for o in rest if not isinstance(o, Predicate)]
    low = after[1] if "EX" in i.modifiers and len(after) > 1 else None
    return sides, (after[0] if after else None), low


# An instruction as a function of a batch: its values and what is known about them.

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
