"""Special registers, moves between the general and the uniform registers, and opcodes without effect."""

from __future__ import annotations

import numpy as np

from ...errors import EmulationError, UnsupportedInstructionError
from ...kernel.instruction import Instruction, Label, Predicate, Special
from ...kernel.isa.nvidia.opcodes import having
from .constants import SHARED_WINDOW
from .decode import Decoder, Step, opcode, place
from .frame import Frame
from .machine import PREDICATES
from .operands import ZERO, Fetch, Value, constant

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
