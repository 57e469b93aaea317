"""Integers packed into a word: halves or bytes added, and their minima and maxima."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernel.instruction import Instruction
from ..kernel.operand import Constant, Operand, Predicate, Register
from .decode import Decoder, Step
from .frame import Frame
from .operands import Fetch, Value

PARTS: dict[str, Any] = {
    "U16x2": np.uint16, "S16x2": np.int16, "U8x4": np.uint8, "S8x4": np.int8, "16x2": np.uint16, "8x4": np.uint8,
}  # fmt: skip
"""Modifiers that say how a word is divided, and the parts' type."""


def parts_of(i: Instruction) -> Any:
    """The type of an instruction's parts; None for one that works on whole words."""
    return next((PARTS[name] for name in i.modifiers if name in PARTS), None)


def _parts(d: Decoder, operand: Operand, kind: Any) -> Fetch:
    """A word as its parts, shape (rows, 32 · parts); a minus sign is each part's."""
    negate = isinstance(operand, Register | Constant) and operand.negate
    fetch = d.raw(operand)

    def load(f: Frame) -> Value:
        value = np.ascontiguousarray(f.spread(fetch(f))).view(kind)
        return np.negative(value) if negate else value

    return load


def _sources(i: Instruction) -> tuple[list[Operand], list[Operand], list[Operand]]:
    """Predicates before the sources, the sources, and predicates after them."""
    rest = list(i.operands[1:])
    before: list[Operand] = []
    after: list[Operand] = []
    while rest and isinstance(rest[0], Predicate):
        before.append(rest.pop(0))
    while rest and isinstance(rest[-1], Predicate):
        after.insert(0, rest.pop())
    return before, rest, after


def packed_add(d: Decoder, i: Instruction) -> Step:
    """Sums of the parts of two words, each modulo its own size."""
    kind = parts_of(i)
    _, (a_op, b_op), _ = _sources(i)
    put, a, b = d.put(i.operands[0]), _parts(d, a_op, kind), _parts(d, b_op, kind)
    return lambda f: put(f, (a(f) + b(f)).view(np.uint32))


def packed_minimum(d: Decoder, i: Instruction, adds: bool = False) -> Step:
    """Minima or maxima of the parts of two or three words; with `adds` the first two are added up before.

    Predicates before the sources, the lowest part's first, tell where the first word's part was taken.
    """
    kind = parts_of(i)
    told, sources, choices = _sources(i)
    put = d.put(i.operands[0])
    fetches = [_parts(d, operand, kind) for operand in sources]
    smallest = [d.predicate(choices[0]), d.predicate(choices[-1])]
    put_told = [d.put_predicate(p) for p in told]
    relu = "RELU" in i.modifiers
    count = 4 // np.dtype(kind).itemsize

    def chosen(f: Frame, which: int, x: Value, y: Value) -> Value:
        return np.where(np.repeat(f.spread(smallest[which](f)), count, axis=1), np.minimum(x, y), np.maximum(x, y))

    def run(f: Frame) -> None:
        first, *others = [fetch(f) for fetch in fetches]
        if adds:
            first = first + others.pop(0)
        value = first
        for which, other in enumerate(others):
            value = chosen(f, which, value, other)
        taken = (value == first).reshape(f.rows, -1, count)
        if relu:
            value = np.maximum(value, kind(0))
        put(f, np.ascontiguousarray(value).view(np.uint32))
        for part, put_part in enumerate(put_told):
            put_part(f, taken[..., part])

    return run
