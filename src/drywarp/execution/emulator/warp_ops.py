"""Exchange between the lanes of a warp: shuffles, votes, matches, reductions; and what a warp knows of itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...errors import EmulationError, UnsupportedInstructionError
from ...kernel.instruction import Instruction, Label, Predicate, Register, Special
from ...kernel.isa.nvidia.opcodes import having
from .bits import LANE, LANES, first_lane, pack
from .constants import SHARED_WINDOW
from .decode import Decoder, Step, opcode, place
from .floating import maximum, minimum
from .frame import Frame
from .machine import PREDICATES
from .operands import ZERO, Fetch, Value, constant, single_bits

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


# Special registers, moves between the general and the uniform registers, and opcodes without effect.

_CLOCKS = ("SR_CLOCKLO", "SR_CLOCKHI", "SR_GLOBALTIMERLO", "SR_GLOBALTIMERHI")
_ZERO_REGISTERS = ("SRZ", "SR_VIRTUALSMID", "SR_SMID", "SR_NSMID", "SR_VIRTCFG", "SR_CTXADDR")
_PER_THREAD = ("TID", "LANEID", "LTMASK", "LEMASK", "EQMASK", "GTMASK", "GEMASK", "CTAID", "VIRTID", "CgaCtaId")


def _special(d: Decoder, i: Instruction) -> Fetch:
    operand = i.operands[1]
    if not isinstance(operand, Special):
        raise UnsupportedInstructionError(f"special register {operand}")
    name = operand.name
    if name in _ZERO_REGISTERS:
        # Every block runs on SM 0.
        return constant(ZERO)
    if name == "SR_SWINHI":
        return constant(np.uint32(SHARED_WINDOW >> 32))
    if name == "SR_CgaSize":
        return constant(np.uint32(1))
    if name in _CLOCKS:
        return _clock(name)
    if name.removeprefix("SR_").split(".")[0] in _PER_THREAD:
        return lambda f: f.machine.special[name][f.index]
    raise UnsupportedInstructionError(f"special register {name}")


def _clock(name: str) -> Fetch:
    """Clocks count emulated steps: they increase, and nothing more is guaranteed."""

    def read(f: Frame) -> object:
        f.machine.notes.add("the kernel reads a clock; emulated clock values differ from a GPU's")
        return np.uint32(f.machine.clock >> 32 if name.endswith("HI") else f.machine.clock & 0xFFFFFFFF)

    return read


@opcode("S2R S2UR")
def _read_special(d: Decoder, i: Instruction) -> Step:
    put, source = d.put(i.operands[0]), _special(d, i)
    return lambda f: put(f, source(f))


@opcode("CS2R CS2UR", "32")
def _read_counter(d: Decoder, i: Instruction) -> Step:
    """Without .32 two registers are written: `CS2R R4, SRZ` is the idiom that clears a pair."""
    source = _special(d, i)
    puts = [d.put(i.operands[0])]
    if "32" not in i.modifiers:
        puts.append(d.put(i.operands[0], 1))

    def read(f: Frame) -> None:
        value = source(f)
        puts[0](f, value)
        for put in puts[1:]:
            put(f, ZERO)

    return read


@opcode("R2UR", "OR FILL BROADCAST")
def _to_uniform(d: Decoder, i: Instruction) -> Step:
    """The value of the first executing lane.

    A predicate reports the lanes whose value differs; with .OR it keeps what it held before. Compilers iterate over
    differing values with it: the lanes that agree act, the others come back.
    """
    differs = i.operands[0] if isinstance(i.operands[0], Predicate) else None
    put, source = d.put(i.operands[-2]), d.word(i.operands[-1])
    put_differs = d.put_predicate(differs) if differs is not None else None
    before = d.predicate(differs) if differs is not None and "OR" in i.modifiers else None

    def move(f: Frame) -> None:
        value = f.spread(source(f))
        chosen = value[:, :1] if f.exec is None else value[np.arange(f.rows), f.leader()][:, None]
        put(f, chosen)
        if put_differs is not None:
            others = value != chosen
            put_differs(f, others if before is None else others | before(f))

    return move


@opcode("UP2UR")
def _uniform_predicates(d: Decoder, i: Instruction) -> Step:
    """The uniform predicates whose bit in the mask is set, in the low bits; the other bits from a register."""
    operands = [o for o in i.operands if not isinstance(o, Predicate)]
    put, base, mask = d.put(operands[0]), d.word(operands[1]), d.word(operands[-1])
    predicates = [d.predicate(Predicate(n, True)) for n in range(PREDICATES)]

    def move(f: Frame) -> None:
        bits: Value = ZERO
        for number, predicate in enumerate(predicates):
            bits = bits | np.asarray(predicate(f), np.uint32) << np.uint32(number)
        chosen = mask(f)
        put(f, (base(f) & ~chosen) | (bits & chosen))

    return move


@opcode("RPCMOV", "32")
def _counter_move(d: Decoder, i: Instruction) -> Step:
    """Moves to and from the halves of a program counter register, which compilers use as a spare register."""
    to, source = i.operands
    if isinstance(to, Special):
        half, value = to.name, d.word(source)

        def save(f: Frame) -> None:
            held = f.machine.program_counters[half][f.index]
            held[...] = np.where(f.lanes(), value(f), held)

        return save
    if not isinstance(source, Special):
        raise UnsupportedInstructionError(f"operands {i.text}")
    put, name = d.put(to), source.name
    return lambda f: put(f, f.machine.program_counters[name][f.index])


@opcode("LEPC")
def _program_counter(d: Decoder, i: Instruction) -> Step:
    """Code addresses are offsets in the kernel's section."""
    labels = [o.target for o in i.operands if isinstance(o, Label)]
    put, high = d.put(i.operands[0]), d.put(i.operands[0], 1)
    value = np.uint32(labels[0] if labels and labels[0] >= 0 else i.pc)

    def read(f: Frame) -> None:
        put(f, value)
        high(f, ZERO)

    return read


@opcode("BPT", "TRAP DRAIN PAUSE")
def _trap(d: Decoder, i: Instruction) -> Step:
    """A trap: `assert` and `__trap` end here, when any lane reaches it."""
    where = place(d.kernel, i)

    def trap(f: Frame) -> None:
        row, lane = (int(x[0]) for x in np.nonzero(f.lanes()))
        raise EmulationError(f"{where}: trap by {f.machine.thread_name(int(f.warps[row]), lane)}")

    return trap


@opcode(" ".join(having("idle")), None)
def _no_effect(d: Decoder, i: Instruction) -> Step:
    return lambda f: None
