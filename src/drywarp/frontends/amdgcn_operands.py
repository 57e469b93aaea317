"""Operands of AMD assembly as LLVM prints it, turned into plain data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..kernel.operand import Immediate, Label, Operand, RegisterRange, Special

_ONE = re.compile(r"^(v|s|a|ttmp)(\d+)$")
_SEVERAL = re.compile(r"^(v|s|a|ttmp)\[(\d+)(?::(\d+))?\]$")
_SPECIAL = re.compile(r"^(vcc|exec|flat_scratch|xnack_mask|tba|tma)(?:_(lo|hi))?$")
_SINGLE = {"m0", "scc", "vccz", "execz"}
_HEX = re.compile(r"^[-+]?0x[0-9a-f]+$")
_DECIMAL = re.compile(r"^[-+]?\d+$")
_REAL = re.compile(r"^[-+]?(\d+\.\d*|\d*\.\d+|\d+)(e[-+]?\d+)?$")
_WRAPPED = re.compile(r"^(abs|neg|sext)\((.*)\)$")


def split_operands(text: str) -> tuple[list[str], list[str]]:
    """The operands of an instruction, and the modifiers that follow the last one.

    `v[0:1], off offset:16 glc` is two operands and two modifiers. Brackets keep what is in them together.
    """
    parts = [part.strip() for part in _cut(text, ",")]
    if not parts or not parts[-1]:
        return [part for part in parts if part], []
    first, *modifiers = [word for word in _cut(parts[-1], " ") if word]
    if _is_modifier(first) and len(parts) == 1:
        return [], [first, *modifiers]
    return [*parts[:-1], first], modifiers


def _is_modifier(word: str) -> bool:
    return re.match(r"[a-z_0-9]+:", word) is not None


def _cut(text: str, separator: str) -> Iterator[str]:
    depth, start = 0, 0
    bars = False
    for position, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        bars ^= char == "|"
        if char == separator and depth == 0 and not bars:
            yield text[start:position]
            start = position + 1
    yield text[start:]


def parse_operand(text: str, labels: Mapping[str, int]) -> Operand:
    """One operand; `labels` maps the names of places in the code to byte offsets."""
    if register := register_range(text):
        return register
    if _HEX.match(text) or _DECIMAL.match(text):
        return Immediate(int(text, 0), text)
    if _REAL.match(text):
        return Immediate(float(text), text)
    if text in labels:
        return Label(text, labels[text])
    return Special(text)


def register_range(text: str, negate: bool = False, absolute: bool = False) -> RegisterRange | None:
    """`v7`, `s[4:5]`, `vcc_lo`, `-|v3|`; None for what is no register."""
    if wrapped := _WRAPPED.match(text):
        return register_range(wrapped[2], negate or wrapped[1] == "neg", absolute or wrapped[1] == "abs")
    if text.startswith("-") and not text[1:2].isdigit():
        return register_range(text[1:], True, absolute)
    if len(text) > 2 and text[0] == text[-1] == "|":
        return register_range(text[1:-1], negate, True)
    if one := _ONE.match(text):
        return RegisterRange(one[1], int(one[2]), 1, negate, absolute)
    if several := _SEVERAL.match(text):
        first, last = int(several[2]), int(several[3] or several[2])
        return RegisterRange(several[1], first, last - first + 1, negate, absolute) if last >= first else None
    if special := _SPECIAL.match(text):
        half = special[2]
        return RegisterRange(special[1], int(half == "hi"), 1 if half else 2, negate, absolute)
    return RegisterRange(text, 0, 1, negate, absolute) if text in _SINGLE else None
