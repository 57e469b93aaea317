"""Single precision two at a time (sm_100 and later), and with one operand in half precision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...errors import UnsupportedInstructionError
from ...kernel.instruction import RZ, Instruction, Operand, Register
from .decode import Decoder, Step, opcode
from .floating import rounding_of
from .frame import Frame
from .half import half_source
from .operands import Fetch, Value, flush_denormals, single_bits
from .rounding import narrow, sum_directed

_PAIRS = {"F32x2.HI_LO": (0, 1), "F32x2.LO_HI": (1, 0)}
"""The register of a pair that each half uses; `.F32` is one number for both."""
_ROUNDED = "RN RM RP RZ FTZ"


def _halves(d: Decoder, operand: Operand, flush: bool) -> tuple[Fetch, Fetch]:
    """The lower and the upper number of a source."""
    select = operand.select if isinstance(operand, Register) else ""
    if not isinstance(operand, Register) or select == "F32" or operand.index == RZ:
        plain = replace(operand, select="") if isinstance(operand, Register) else operand
        both = d.f32(plain, flush)
        return both, both
    if select not in _PAIRS:
        raise UnsupportedInstructionError(f"selector .{select} on a pair of floats")
    low, high = (d.f32(replace(operand, index=operand.index + part, select=""), flush) for part in _PAIRS[select])
    return low, high


def _double(value: Value) -> Value:
    return np.asarray(value).astype(np.float64)


@opcode("FADD2 FMUL2 FFMA2", _ROUNDED)
def _packed(d: Decoder, i: Instruction) -> Step:
    """The operation on each half of pairs of registers."""
    flush, rounding = "FTZ" in i.modifiers, rounding_of(i.modifiers)
    sources = [_halves(d, operand, flush) for operand in i.operands[1:]]
    puts = [d.put(i.operands[0], part) for part in range(2)]

    def result(numbers: list[Value]) -> Value:
        if i.opcode == "FMUL2":
            value = narrow(_double(numbers[0]) * _double(numbers[1]), rounding)
        else:
            first = _double(numbers[0]) if i.opcode == "FADD2" else _double(numbers[0]) * _double(numbers[1])
            last = _double(numbers[-1])
            value = sum_directed(first, last, rounding)
        return flush_denormals(value) if flush else value

    def run(f: Frame) -> None:
        values = [result([source[part](f) for source in sources]) for part in range(2)]
        for put, value in zip(puts, values, strict=True):
            put(f, single_bits(value))

    return run


@opcode("FHADD FHFMA", _ROUNDED + " BF16_V2 BF16 SAT")
def _mixed(d: Decoder, i: Instruction) -> Step:
    """Half-precision factors, or one addend, and a float32 that is added last: exact except for one rounding."""
    flush, rounding = "FTZ" in i.modifiers, rounding_of(i.modifiers)
    *halves, last = i.operands[1:]
    bf16, saturate = "BF16_V2" in i.modifiers or "BF16" in i.modifiers, "SAT" in i.modifiers
    sources = [half_source(d, operand, bf16) for operand in halves]
    addend, put = d.f32(last, flush), d.put(i.operands[0])

    def run(f: Frame) -> None:
        # Without a selector, the lower half is used.
        first = sources[0](f)[..., 0]
        for source in sources[1:]:
            first = first * source(f)[..., 0]
        second = _double(addend(f))
        value = sum_directed(first, second, rounding)
        value = flush_denormals(value) if flush else value
        put(f, single_bits(np.fmin(np.fmax(value, np.float32(0)), np.float32(1)) if saturate else value))

    return run
