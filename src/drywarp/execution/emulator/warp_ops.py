"""Exchange between the lanes of a warp: shuffles, votes, matches, reductions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...kernel.instruction import Instruction, Predicate, Register
from .bits import LANE, LANES, first_lane, pack
from .decode import Decoder, Step, opcode
from .floating import maximum, minimum
from .frame import Frame
from .operands import ZERO, Value, single_bits

_FIVE = np.uint32(31)
_LANE = LANE.astype(np.int64)


def shuffle_source(mode: str, b: Value, c: Value) -> tuple[Value, Value]:
    """Source lane of every lane, and whether it lies within the segment; `c` is clamp | segment mask << 8."""
    b, c = b & _FIVE, np.asarray(c)
    clamp, segment = (c & _FIVE).astype(np.int64), (c >> np.uint32(8) & _FIVE).astype(np.int64)
    b = np.asarray(b).astype(np.int64)
    lowest = _LANE & segment
    limit = lowest | (clamp & ~segment & 31)
    if mode == "UP":
        source = _LANE - b
        valid = source >= limit
    elif mode == "DOWN":
        source = _LANE + b
        valid = source <= limit
    elif mode == "BFLY":
        source = _LANE ^ b
        valid = source <= limit
    else:
        source = lowest | (b & ~segment & 31)
        valid = source <= limit
    return np.where(valid, source, _LANE), valid


@opcode("SHFL", "UP DOWN BFLY IDX")
def _shuffle(d: Decoder, i: Instruction) -> Step:
    put_valid = d.put_predicate(i.operands[0])
    destination, a_op, b_op, c_op = i.operands[1:5]
    put, a, b, c = d.put(destination), d.word(a_op), d.word(b_op), d.word(c_op)
    mode = i.modifiers[0]
    known_b, known_c = d.known(b_op), d.known(c_op)
    if known_b is not None and known_c is not None:
        source, valid = shuffle_source(mode, np.uint32(known_b), np.uint32(known_c))
        fixed_source, fixed_valid = np.broadcast_to(source, LANES).copy(), np.broadcast_to(valid, LANES).copy()

        def exchange_fixed(f: Frame) -> None:
            put(f, f.spread(a(f))[:, fixed_source])
            put_valid(f, fixed_valid)

        return exchange_fixed

    def exchange(f: Frame) -> None:
        source, valid = shuffle_source(mode, b(f), c(f))
        shape = (f.rows, LANES)
        put(f, np.take_along_axis(np.broadcast_to(a(f), shape), np.broadcast_to(source, shape), axis=1))
        put_valid(f, valid)

    return exchange


@opcode("VOTE VOTEU", "ANY ALL EQ")
def _vote(d: Decoder, i: Instruction) -> Step:
    operands = list(i.operands)
    put_mask = d.put(operands.pop(0)) if isinstance(operands[0], Register) else None
    put_answer = d.put_predicate(operands.pop(0)) if len(operands) > 1 else None
    test = d.predicate(operands[0])
    mode = i.modifiers[0] if i.modifiers else "ALL"

    def vote(f: Frame) -> None:
        active = f.words()
        ballot = pack(f.spread(test(f)) & f.lanes())
        if put_mask is not None:
            put_mask(f, ballot[:, None])
        if put_answer is not None:
            everyone = ballot == active
            answer = ballot != ZERO if mode == "ANY" else everyone if mode == "ALL" else everyone | (ballot == ZERO)
            put_answer(f, answer[:, None])

    return vote


@opcode("MATCH", "ANY ALL U64")
def _match(d: Decoder, i: Instruction) -> Step:
    operands = list(i.operands)
    put_same = d.put_predicate(operands.pop(0)) if isinstance(operands[0], Predicate) else None
    put = d.put(operands[0])
    value = d.pair(operands[1]) if "U64" in i.modifiers else d.word(operands[1])
    all_of = "ALL" in i.modifiers

    def match(f: Frame) -> None:
        values, lanes = f.spread(value(f)), f.lanes()
        equal = (values[:, :, None] == values[:, None, :]) & lanes[:, None, :]
        mask = pack(equal.reshape(-1, LANES)).reshape(f.rows, LANES)
        if all_of:
            active = f.words()[:, None]
            same = mask == active
            # Either all executing lanes agree or none of them sees a full match.
            mask = np.where(same, active, ZERO)
            if put_same is not None:
                put_same(f, same)
        put(f, mask)

    return match


_REDUCTIONS: dict[str, tuple[Callable[..., Value], int]] = {
    "AND": (np.bitwise_and.reduce, 0xFFFFFFFF),
    "OR": (np.bitwise_or.reduce, 0),
    "XOR": (np.bitwise_xor.reduce, 0),
    "SUM": (np.add.reduce, 0),
    "MIN": (np.minimum.reduce, 0xFFFFFFFF),
    "MAX": (np.maximum.reduce, 0),
}


@opcode("REDUX CREDUX", "AND OR XOR SUM MIN MAX MINABS MAXABS S32 F32 NAN")
def _reduce(d: Decoder, i: Instruction) -> Step:
    """A reduction over the executing lanes into a uniform register."""
    if "F32" in i.modifiers:
        return _reduce_floats(d, i)
    name = next((n for n in i.modifiers if n in _REDUCTIONS), "AND")
    reduce, neutral = _REDUCTIONS[name]
    put, source = d.put(i.operands[0]), d.word(i.operands[1])
    # Signed minima become unsigned ones with the sign bit flipped.
    flip = np.uint32(0x80000000 if "S32" in i.modifiers and name in ("MIN", "MAX") else 0)
    rest = np.uint32(neutral)

    def run(f: Frame) -> None:
        values = np.where(f.lanes(), source(f) ^ flip, rest)
        put(f, reduce(values, axis=1, dtype=np.uint32)[:, None] ^ flip)

    return run


def _reduce_floats(d: Decoder, i: Instruction) -> Step:
    """The smallest or largest float32 of the executing lanes; NaN is ignored, or wins (`.NAN`)."""
    put, source = d.put(i.operands[0]), d.f32(i.operands[1])
    kind, quiet = i.modifiers[0], "NAN" not in i.modifiers
    choose = {"MIN": minimum, "MINABS": minimum, "MAX": maximum, "MAXABS": maximum}[kind]

    def run(f: Frame) -> None:
        values = f.spread(source(f))
        if kind.endswith("ABS"):
            values = np.abs(values)
        # Inactive lanes repeat the first active one, which changes nothing.
        result = values[np.arange(f.rows), f.leader()]
        for lane in range(LANES):
            result = np.where(f.lanes()[:, lane], choose(result, values[:, lane], quiet), result)
        put(f, single_bits(result)[:, None])

    return run


@opcode("MOVM", "16 MT88")
def _transpose(d: Decoder, i: Instruction) -> Step:
    """Transpose an 8x8 tile of 16-bit elements: lane l holds row l / 4, columns 2 (l % 4) and the next."""
    put, source = d.put(i.operands[0]), d.word(i.operands[1])

    def run(f: Frame) -> None:
        words = np.ascontiguousarray(f.spread(source(f)))
        tile = words.view(np.uint16).reshape(f.rows, 8, 8)
        put(f, np.ascontiguousarray(tile.transpose(0, 2, 1)).reshape(f.rows, 64).view(np.uint32))

    return run


@opcode("ELECT")
def _elect(d: Decoder, i: Instruction) -> Step:
    """One of the executing lanes with a true predicate is elected; the lowest."""
    put, put_lane, test = d.put_predicate(i.operands[0]), d.put(i.operands[1]), d.predicate(i.operands[2])
    old = d.word(i.operands[1])

    def elect(f: Frame) -> None:
        words = pack(f.spread(test(f)) & f.lanes())
        lane = first_lane(words)[:, None]
        put(f, (lane == _LANE) & (words != ZERO)[:, None])
        put_lane(f, np.where((words != ZERO)[:, None], lane.astype(np.uint32), old(f)))

    return elect
