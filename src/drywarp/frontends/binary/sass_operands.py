"""Parse one operand of nvdisasm's output."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping

from ...kernel.instruction import (
    PT,
    RZ,
    URZ,
    Address,
    Constant,
    Immediate,
    Label,
    Operand,
    Predicate,
    Register,
    Special,
)

_SUFFIXES = r"((?:\.[A-Z0-9][A-Z0-9_x]*+)*+)"
_REGISTER = re.compile(rf"^([-~!]?)(\|?)(U?)R(\d{{1,3}}|Z){_SUFFIXES}(?:\|{_SUFFIXES})?$")
_PREDICATE = re.compile(r"^([!~]?)(U?)P(\d{1,3}|T|R)((?:\.B\d)?)$")
_CONSTANT = re.compile(r"^([-~]?)(\|?)c(x?)\[([^\]]+)\]\s*\[([^\]]+)\](\|?)((?:\.[A-Z][A-Z0-9_x]*)*)$")
_INTEGER = re.compile(r"^-?0x[0-9a-f]+$")
_FLOAT = re.compile(r"^[+-]?(\d+(\.\d*)?([eE][+-]?\d+)?|INF|QNAN|SNAN)$")
_HALF = re.compile(r"^(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)\.H([01])$")
"""One half of the bits of a single-precision number: how two scale factors in an immediate are printed."""
_NAME = re.compile(r"^(SR_[\w.]+|SRZ|B\d+|SB\d+|gsb\d|Rpc\.\w+|\{[\d,]*\}|[A-Z][A-Z0-9_.]*|[1-3]D\w*)$")
_LONGEST, _LONGEST_WITH_LABEL = 200, 20_000
"""Length limit of an operand in characters; a label may be as long as a mangled name."""


def _register(text: str) -> Register | None:
    match = _REGISTER.match(text)
    if match is None:
        return None
    sign, bar, uniform, number, suffix, suffix_after = match.groups()
    names = [name for name in (suffix + (suffix_after or "")).split(".") if name and name != "reuse"]
    index = _index(number, URZ if uniform else RZ)
    return Register(index, bool(uniform), sign == "-", bool(bar), sign in ("~", "!"), ".".join(names))


def _index(number: str, zero: int) -> int:
    index = zero if number == "Z" else int(number)
    if index > zero:
        raise ValueError(f"register {index}")
    return index


def parse_operand(text: str, labels: Mapping[str, int]) -> Operand:
    """Parse one operand; `labels` maps labels to byte offsets. Raises ValueError for invalid text."""
    if len(text) > (_LONGEST_WITH_LABEL if "`(" in text else _LONGEST):
        raise ValueError(f"operand {text[:20]}… of {len(text)} characters")
    text = text.replace(".reuse", "")
    if register := _register(text):
        return register
    if match := _PREDICATE.match(text):
        number = {"T": PT, "R": -1}.get(match[3])
        index = int(match[3]) if number is None else number
        if index > PT:
            raise ValueError(f"predicate {index}")
        return Predicate(index, bool(match[2]), match[1] != "")
    if match := _CONSTANT.match(text):
        return _constant(match)
    if _INTEGER.match(text):
        return Immediate(int(text, 16), text)
    if _FLOAT.match(text):
        value = float(text.lstrip("+-").lstrip("QS"))  # of QNAN and SNAN too
        return Immediate(-value if text.startswith("-") else value, text)
    if match := _HALF.match(text):
        bits = int.from_bytes(struct.pack("<f", float(match[1])), "little")
        return Immediate(bits >> 16 * int(match[2]) & 0xFFFF, text)
    if text.startswith(("[", "desc[", "gdesc[", "idesc[", "tmem[")):
        return _address(text)
    if "`(" in text or "@" in text:
        name = text.rpartition("(")[2].strip("`()[] ")
        return Label(name, labels.get(name, -1))
    if _NAME.match(text):
        return Special(text)
    raise ValueError(f"operand {text}")


def _constant(match: re.Match[str]) -> Constant:
    sign, bar, bindless, bank, inner, _, suffix = match.groups()
    bank_register = _register(bank) if bindless or bank.startswith("UR") else None
    register, offset = None, 0
    for part in re.split(r"\+(?!-)|\+(?=-)", inner):
        if found := _register(part):
            register = None if found.index == RZ else found
        elif _INTEGER.match(part):
            offset += int(part, 16)
        elif "`(" not in part:
            raise ValueError(f"constant offset {part}")
    return Constant(
        bank=0 if bank_register else int(bank, 16),
        offset=offset,
        register=register,
        bank_register=bank_register,
        negate=sign == "-",
        absolute=bool(bar),
        invert=sign == "~",
        select=suffix.lstrip("."),
    )


_TERM = re.compile(r"^(U?)R(\d{1,3}|Z)((?:\.\w++)*+)$")


def _address(text: str) -> Address:
    descriptor = None
    marks: tuple[str, ...] = ()
    if match := re.match(r"^(?:[gi]?desc|tmem)\[(UR\w+(?=[+\]]))?(\+?-?0x[0-9a-f]+)?\]((?:\.\w+)*)(.*)$", text):
        descriptor = _register(match[1] or "URZ")
        marks = tuple(match[3].split(".")[1:])
        text = match[4] or f"[RZ+{match[2] or '0x0'}]".replace("++", "+")
    inner = text.strip()
    if not (inner.startswith("[") and inner.endswith("]")):
        raise ValueError(f"address {text}")
    base: Register | None = None
    uniform: Register | None = None
    wide = uniform_wide = unsigned32 = False
    scale, offset, symbol = 1, 0, ""
    for term in _terms(inner[1:-1]):
        if match := _TERM.match(term):
            suffixes = match[3].split(".")[1:]
            if match[1]:
                uniform = Register(_index(match[2], URZ), True)
                uniform_wide = "64" in suffixes
            else:
                base = Register(_index(match[2], RZ))
                wide = "64" in suffixes
                unsigned32 = "U32" in suffixes
                for suffix in suffixes:
                    if suffix.startswith("X") and suffix[1:].isdigit():
                        scale = int(suffix[1:])
        elif _INTEGER.match(term):
            offset += int(term, 16)
        elif "`(" in term or "@" in term:
            symbol, _, addend = term.rpartition("(")[2].strip("`() ").partition(" + ")
            offset += int(addend, 16) if addend else 0
        else:
            raise ValueError(f"address term {term}")
    return Address(base, wide, unsigned32, scale, uniform, uniform_wide, offset, descriptor, symbol, marks)


def _terms(text: str) -> list[str]:
    """Split `R0.X4+UR5+-0x8` at plus signs outside parentheses."""
    terms, depth, start = [], 0, 0
    for position, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "+" and depth == 0:
            terms.append(text[start:position].strip())
            start = position + 1
    terms.append(text[start:].strip())
    return [t for t in terms if t]
