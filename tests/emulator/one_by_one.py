"""Instructions one by one on chosen values: all of a table in one emulation, each on the same registers.

The thread's values stand in R8 to R15, the first operand in R8 (a pair in R8, R9), the second in R10 and so
on; lane 0's are in UR8 to UR15 too; c[0x3] holds CONSTANTS. Before every instruction R20 to R22 hold MARK and
P0 to P6 are what BEFORE says; the instruction writes to them. What stands there afterwards is stored.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from drywarp.execution.emulator import emulate
from drywarp.frontends.binary.sass import parse_listing
from drywarp.kernel.kernel import Kernel, Parameter, Resources
from drywarp.kernel.launch.launch import Launch, array_buffer

from ..listing import listing
from . import exact

Words = npt.NDArray[np.uint32]
THREADS = 640
MARK = 0x5EED5EED
CONSTANTS = [0x00000003, 0x80000000, 0xFFFFFFFF, 0x3FF80000, 0xBF800000, 0x40400000, 0x3C00BE00, 0x00000021]
BEFORE = np.random.default_rng(3).integers(0, 128, THREADS, dtype=np.uint32)
"""Bit k is what P`k` holds."""
POSITIONS = "abcd"


@dataclass(frozen=True)
class Case:
    """An instruction, or several parted by `;`, and what it leaves in the registers and predicates it writes.

    `results` are names as R20 (a word), L20 (64 bits), F20, D20, H20, N20 (single, double, two halves, a half in
    the lower bits: any NaN is as good as another) and P0; `answer` gives their values of those of the operands.
    """

    text: str
    results: tuple[str, ...]
    operands: tuple[tuple[str, str], ...]
    answer: Callable[..., Any]
    guard: str = ""
    uniform: bool = False


@dataclass(frozen=True)
class Row:
    """Cases that a line of a table stands for: `names` of opcodes, one template of operands.

    A place `{x}` of the template takes every form of kind x in turn, the other places registers. `brief`:
    only registers. `uniform` adds the twin on the uniform datapath, with `U` before its name.
    """

    names: str
    template: str
    results: str
    answer: Callable[..., Any]
    brief: bool = False
    uniform: bool = False


_INTEGERS = ("0x1f", "-0x1", "0x80000000")
_FLOATS = ("1.5", "-0", "+INF", "-QNAN", "1.4012984643248170709e-45", "-3")
FORMS: dict[str, tuple[str, ...]] = {
    # Integers: without modifiers, negated, inverted, as addends with carries out and in, and 64 bits wide.
    "n": ("R", "UR", "RZ", "C0", "C1", *_INTEGERS),
    "i": ("R", "-R", "UR", "-UR", "RZ", "-RZ", "C0", "-C1", *_INTEGERS),
    "v": ("R", "~R", "UR", "~UR", "RZ", "~RZ", "C2", "~C0", *_INTEGERS),
    "+": ("R", "-R", "UR", "-UR", "RZ", "-RZ", "C1", "-C0", *_INTEGERS),
    # Negated and then shifted: the answer is given the number itself.
    "m": ("-R", "-UR", "-C1"),
    "x": ("R", "~R", "-R", "UR", "~UR", "RZ", "~RZ", "C1", "~C0", *_INTEGERS),
    "l": ("R", "UR", "RZ", "C0", "C2"),
    "q": ("R", "-R", "UR", "RZ", "C0", "C2"),
    "y": ("R", "R.B1", "R.B2", "R.B3"),
    "t": ("R", "R.H1"),
    "f": ("R", "-R", "|R|", "-|R|", "UR", "-UR", "RZ", "-RZ", "C4", "-C5", "|C4|", "-|C4|", *_FLOATS),
    "g": ("R", "-R", "|R|", "-|R|", "UR", "RZ", "-RZ", "C4", "-C5", "|C4|", "1.5", "-0", "-QNAN", "4.29e-19"),
    # Hexadecimal text of a double immediate is its upper half.
    "d": (
        *("R", "-R", "|R|", "-|R|", "UR", "RZ", "-RZ", "C2", "-C4", "|C4|"),
        *("1.5", "-0", "+INF", "-QNAN", "-3", "0x3ff80000"),
    ),
    "h": ("R", "-R", "|R|", "-|R|", "R.H0_H0", "-R.H1_H1", "|R|.H1_H1", "UR", "RZ", "-RZ", "C6", "-C6"),
    "b": ("R", "-R", "|R|", "R.H0_H0", "-R.H1_H1", "UR", "RZ", "C6"),
    "e": ("R.H0_H0", "R.H1_H1", "-R.H0_H0", "|R|.H1_H1"),
    "2": ("R.F32x2.HI_LO", "R.F32x2.LO_HI", "-R.F32x2.HI_LO", "R.F32", "RZ", "1.5"),
    "p": ("P", "!P", "PT", "!PT"),
}
"""Forms of operands by kind; R, UR and P get the number of their place, C a word of CONSTANTS."""
_PREDICATE_OF = {"a": 1, "b": 2, "c": 4, "d": 5}


def _spelled(form: str, position: str) -> str:
    number = 8 + 2 * POSITIONS.index(position[0])
    if form in ("P", "!P"):
        return f"{form}{_PREDICATE_OF[position[-1]]}"
    if "PT" in form or form[0] == "0" or "RZ" in form:
        return form
    if match := re.search(r"C(\d)", form):
        return form.replace(match[0], f"c[0x3][{4 * int(match[1]):#x}]")
    return re.sub(r"(U?R)(?!Z)", rf"\g<1>{number}", form) if "R" in form and form[-1] != "Z" else form


def cases(rows: Sequence[Row]) -> Iterator[Case]:
    """All cases of a table."""
    for row in rows:
        for number, name in enumerate(row.names.split()):
            yield from _cases_of(row, name, number > 0)
            if row.uniform:
                yield from _twins(row, name)


def _places(template: str) -> list[tuple[str, str]]:
    """Position and kind of every place: words are a, b, c in turn, predicates their own a, b, c."""
    counts = {False: itertools.count(), True: itertools.count()}
    kinds = re.findall(r"\{(.)\}", template)
    return [(POSITIONS[next(counts[kind == "p"])], kind) for kind in kinds]


def _filled(template: str, forms: Sequence[str]) -> str:
    parts = iter(forms)
    return re.sub(r"\{.\}", lambda _: next(parts), template)


def _cases_of(row: Row, name: str, brief: bool) -> Iterator[Case]:
    places = _places(row.template)
    base = [FORMS[kind][0] for _, kind in places]
    choices = [base]
    for at, (_, kind) in enumerate(places):
        forms = FORMS[kind][1:] if not (brief or row.brief) else FORMS[kind][1:2] if kind == "p" else ()
        choices += [[*base[:at], form, *base[at + 1 :]] for form in forms]
    for number, forms in enumerate(choices):
        spelled = [_spelled(form, position) for form, (position, _) in zip(forms, places, strict=True)]
        operands = tuple((kind, text) for text, (_, kind) in zip(spelled, places, strict=True))
        text = f"{name} {_filled(row.template, spelled)}"
        for guard in ("", "@P6 ", "@!P6 ") if number == 0 and not brief else ("",):
            yield Case(text, tuple(row.results.split()), operands, row.answer, guard)


def _twins(row: Row, name: str) -> Iterator[Case]:
    """On the uniform datapath: registers, and an immediate in the second place of words."""
    places = _places(row.template)
    template = re.sub(r"\b(?=R20|P0|P3|PT)", "U", row.template)
    base = [{"p": "P", "m": "-UR"}.get(kind, "UR") for _, kind in places]
    choices = [base]
    for at, (position, kind) in enumerate(places):
        if kind == "p":
            choices.append([*base[:at], "!PT", *base[at + 1 :]])
        elif kind in "niv+x":
            other = {"i": "-UR", "+": "-UR", "v": "~UR", "x": "~UR"}.get(kind, "URZ")
            choices.append([*base[:at], other, *base[at + 1 :]])
            if position == "b":
                choices.append([*base[:at], "0x1f", *base[at + 1 :]])
    for forms in choices:
        spelled = [
            re.sub("(?=P)", "U", _spelled(form, position)) if kind == "p" else _spelled(form, position)
            for form, (position, kind) in zip(forms, places, strict=True)
        ]
        operands = tuple((kind, text) for text, (_, kind) in zip(spelled, places, strict=True))
        yield Case(f"U{name} {_filled(template, spelled)}", tuple(row.results.split()), operands, row.answer, "", True)


# Running them -------------------------------------------------------------------------------------

_START = (
    "S2R R16, SR_TID.X",
    "IMAD.WIDE.U32 R2, R16, 0x10, c[0x0][0x168]",
    "IMAD.WIDE.U32 R6, R16, 0x20, c[0x0][0x160]",
    "LDG.E.128 R8, [R6.64]",
    "LDG.E.128 R12, [R6.64+0x10]",
    "IMAD.WIDE.U32 R18, R16, 0x10, c[0x0][0x178]",
    "IMAD.WIDE.U32 R6, R16, 0x4, c[0x0][0x170]",
    "LDG.E R4, [R6.64]",
    "IMAD.SHL.U32 R16, R16, 0x10, RZ",
    f"MOV R5, {MARK:#x}",
    *(f"R2UR UR{k}, R{k}" for k in (4, 5, *range(8, 16))),
    *(f"ULOP3.LUT UP{k}, URZ, UR4, {1 << k:#x}, URZ, 0xc0, !UPT" for k in range(7)),
    "R2P PR, R4, 0x7f",
)
"""R2, R3: where the thread's results go; R16: 16 bytes of shared memory of its own; R18, R19: of global memory."""
_UNIFORM_BEFORE = (
    "UMOV UR20, UR5",
    "UMOV UR21, UR5",
    *(f"ULOP3.LUT UP{k}, URZ, UR4, {1 << k:#x}, URZ, 0xc0, !UPT" for k in (0, 3)),
)
_UNIFORM_AFTER = ("MOV R20, UR20", "MOV R21, UR21", "UP2UR UR22, UPR, URZ, 0x7f", "MOV R22, UR22")


def outcome(table: Sequence[Case], values: Words, compiled: bool) -> Words:
    """R20, R21, R22 and the predicates after each case: shape (cases, 4, THREADS). `values`: (8, THREADS)."""
    lines = list(_START)
    for number, case in enumerate(table):
        lines += [f"MOV R{k}, R5" for k in (20, 21, 22)] + ["R2P PR, R4, 0x7f"]
        lines += _UNIFORM_BEFORE if case.uniform else ()
        lines += [case.guard + part for part in case.text.split("; ")]
        lines += _UNIFORM_AFTER if case.uniform else ()
        lines += ["P2R R23, PR, RZ, 0x7f", f"STG.E.128 [R2.64+{number * THREADS * 16:#x}], R20"]
    code = parse_listing(listing(*lines, "EXIT"))["k"].instructions
    parameters = tuple(Parameter(n, 8 * n, 8, name) for n, name in enumerate(("values", "out", "flags", "scratch")))
    bank = {3: np.array(CONSTANTS, np.uint32).tobytes()}
    kernel = Kernel("k", "k", "sm_80", code, parameters, 0x160, Resources(32, 16 * THREADS), constant_banks=bank)
    given = np.ascontiguousarray(values.T), np.zeros((len(table), THREADS, 4), np.uint32), BEFORE
    buffers = tuple(array_buffer(array) for array in (*given, np.zeros((THREADS, 4), np.uint32)))
    launch = Launch((1, 1, 1), (THREADS, 1, 1), buffers)
    run = emulate(kernel, launch, blocks="all", compiled=compiled)
    out: Words = run.buffer(1).transpose(0, 2, 1)
    return out


# What they should give ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Values:
    """The registers that a table runs on, and what operands of it are worth."""

    words: Words
    cache: dict[tuple[str, str, bool], list[Any]] = field(default_factory=dict)
    answers: dict[int, list[list[int]]] = field(default_factory=dict)

    def expected(self, case: Case) -> list[list[int]]:
        """Words R20, R21, R22 and predicates after a case, by thread."""
        if id(case) not in self.answers:
            self.answers[id(case)] = _expected(case, self)
        return self.answers[id(case)]

    def of(self, kind: str, text: str, uniform: bool) -> list[Any]:
        """What an operand is in every thread: an integer, a number, a pair of numbers, or a truth."""
        key = (kind, text, uniform)
        if key not in self.cache:
            self.cache[key] = self._predicate(text) if kind == "p" else self._number(kind, text, uniform)
        return self.cache[key]

    def _predicate(self, text: str) -> list[Any]:
        bare = text.lstrip("!U")
        flags = BEFORE[::32].repeat(32) if "U" in text else BEFORE
        holds = np.ones(THREADS, bool) if bare == "PT" else (flags >> np.uint32(int(bare[1])) & 1).astype(bool)
        return (holds ^ ("!" in text)).tolist()

    def _raw(self, text: str, wide: bool) -> list[int]:
        """The bits of a register, a constant or an immediate, 64 of them if `wide`."""
        if match := re.search(r"c\[0x3\]\[(0x\w+)\]", text):
            at = int(match[1], 16) // 4
            return [CONSTANTS[at] | (CONSTANTS[at + 1] << 32 if wide else 0)] * THREADS
        if "RZ" in text:
            return [0] * THREADS
        match = re.search(r"(U?)R(\d+)", text)
        assert match, text
        low = self.words[int(match[2]) - 8].astype(object)
        bits = low + (self.words[int(match[2]) - 7].astype(object) << 32) if wide else low
        return (bits[::32].repeat(32) if match[1] else bits).tolist()

    def _number(self, kind: str, text: str, uniform: bool) -> list[Any]:
        if kind in "fdheb2":
            return self._float(kind, text)
        if kind == "g":
            return self._bits_with_sign(text)
        wide = kind in "lq"
        mask = exact.M64 if wide else exact.M32
        if re.match(r"-?0x", text):
            return [int(text, 16) & mask] * THREADS
        bits = self._raw(text, wide)
        if match := re.search(r"\.([BH])(\d)", text):
            return [x >> int(match[2]) * (8 if match[1] == "B" else 16) for x in bits]
        if kind == "m":
            return bits
        if text[0] == "-":
            # An addend's carry counts the one that two's complement adds; where a carry comes in, there is none.
            return [(x ^ mask) + 1 if kind == "+" else x ^ mask if kind == "x" else -x & mask for x in bits]
        return [x ^ mask for x in bits] if text[0] == "~" else bits

    def _bits_with_sign(self, text: str) -> list[int]:
        """Single precision as bits, on which signs work whatever the number is."""
        bare = text.lstrip("-").replace("|", "")
        if not re.match(r"[cUR]", bare):
            number = exact.bits_of(exact.converted(float(bare.replace("QNAN", "nan")), exact.SINGLE), exact.SINGLE)
            return [number ^ (text[0] == "-") << 31] * THREADS
        bits = [x & (0x7FFFFFFF if "|" in text else exact.M32) for x in self._raw(bare, False)]
        return [x ^ (text[0] == "-") << 31 for x in bits]

    def _float(self, kind: str, text: str) -> list[Any]:
        bare = text.lstrip("-").replace("|", "")
        if bare[:2] == "0x":
            return [exact.double(int(bare, 16) << 32)] * THREADS
        if not re.match(r"[cUR]", bare):
            number = float(text.replace("QNAN", "nan"))
            number = exact.converted(number, exact.DOUBLE if kind == "d" else exact.SINGLE)
            return [(number, number) if kind == "2" else number] * THREADS
        bits = self._raw(bare, kind == "d")

        def signs(x: float) -> float:
            x = abs(x) if "|" in text else x
            return -x if text[0] == "-" else x

        if kind == "2":
            numbers = [[signs(exact.single(word)) for word in self._raw(name, False)] for name in _pair(bare)]
            return list(zip(*numbers, strict=True))
        if kind in "fd":
            read = exact.single if kind == "f" else exact.double
            return [signs(read(x)) for x in bits]
        read = exact.brain if kind == "b" else exact.half
        pairs = [(signs(read(x)), signs(read(x >> 16))) for x in bits]
        if "H0" in text:
            pairs = [(low, low) for low, _ in pairs]
        elif "H1" in text:
            pairs = [(high, high) for _, high in pairs]
        return [low for low, _ in pairs] if kind == "e" else pairs


def _pair(text: str) -> tuple[str, str]:
    """The registers of the lower and of the upper number of a pair."""
    match = re.match(r"(U?R)(\d+)\.F32x2", text)
    if not match:
        return text, text
    names = tuple(f"{match[1]}{int(match[2]) + k}" for k in range(2))
    return (names[1], names[0]) if "LO_HI" in text else (names[0], names[1])


_FORMATS = {"F": exact.SINGLE, "D": exact.DOUBLE, "N": exact.HALF, "M": exact.BRAIN}


def _expected(case: Case, values: Values) -> list[list[int]]:
    """What a case does not write is as before."""
    flags = BEFORE[::32].repeat(32) if case.uniform else BEFORE
    left = [[MARK] * THREADS for _ in range(3)] + [BEFORE.tolist()]
    if case.uniform:
        left[2] = flags.tolist()
    predicates = left[2] if case.uniform else left[3]
    guard = [True] * THREADS if not case.guard else values.of("p", case.guard.strip(" @"), False)
    columns = [values.of(kind, text, case.uniform) for kind, text in case.operands]
    rows = list(zip(*columns, strict=True)) if columns else [(t,) for t in range(THREADS)]
    threads = [thread for thread in range(THREADS) if guard[thread]]
    answers = [case.answer(*rows[thread]) for thread in threads]
    each = zip(*answers, strict=True) if len(case.results) > 1 else (answers,)
    for name, column in zip(case.results, each, strict=True):
        kind, number = name[0], int(name[1:])
        if kind == "P":
            for thread, value in zip(threads, column, strict=True):
                predicates[thread] = predicates[thread] & ~(1 << number) | bool(value) << number
            continue
        if kind in "LD":
            words = [exact.bits_of(value, exact.DOUBLE) for value in column] if kind == "D" else column
            for thread, value in zip(threads, words, strict=True):
                left[number - 19][thread] = value >> 32 & exact.M32
        elif kind in "HB":
            form = exact.HALF if kind == "H" else exact.BRAIN
            words = [exact.joined([exact.bits_of(part, form) for part in value], 16) for value in column]
        else:
            words = [exact.bits_of(value, _FORMATS[kind]) for value in column] if kind in _FORMATS else column
        for thread, value in zip(threads, words, strict=True):
            left[number - 20][thread] = value & exact.M32
    return left


def settled(case: Case, found: Words) -> Words:
    """What a case left, with every NaN made the one of `exact.bits_of`."""
    found = found.copy()
    for name in case.results:
        kind, number = name[0], int(name[1:]) - 20
        if kind == "D":
            pair = found[number].astype(np.uint64) | found[number + 1].astype(np.uint64) << np.uint64(32)
            nan = np.isnan(pair.view(np.float64))
            found[number][nan], found[number + 1][nan] = exact.M32, exact.M32 >> 1
        elif kind == "F":
            found[number][np.isnan(found[number].view(np.float32))] = exact.M32 >> 1
        elif kind in "HBNM":
            halves = found[number].view(np.uint16)
            exponent = 0x7C00 if kind in "HN" else 0x7F80
            halves[(halves & 0x7FFF) > exponent] = 0x7FFF
    return found


def failures(table: Sequence[Case], values: Words, compiled: bool) -> list[str]:
    """Cases that do not give what they should, each with the first thread that shows it."""
    given = Values(values)
    pairs = zip(table, outcome(table, values, compiled), strict=True)
    return [text for case, left in pairs for text in _failure(case, left, given, compiled)]


def _failure(case: Case, left: Words, given: Values, compiled: bool) -> Iterator[str]:
    want = np.array(given.expected(case), np.uint32)
    found = settled(case, left)
    wrong = np.flatnonzero((found != want).any(axis=0))
    if wrong.size:
        thread = int(wrong[0])
        inputs = ", ".join(f"R{8 + k} {int(x):#x}" for k, x in enumerate(given.words[:, thread]))
        yield (
            f"{case.guard}{case.text} ({'compiled' if compiled else 'by NumPy'}, {wrong.size} threads, the first"
            f" {thread}) on {inputs}, P {int(BEFORE[thread]):07b}: {[hex(x) for x in found[:, thread]]},"
            f" not {[hex(x) for x in want[:, thread]]}"
        )


class Table:
    """Rows on values: all of them run together, compiled and by the handlers, when the first is asked for."""

    def __init__(self, rows: Sequence[Row], values: Words) -> None:
        self._cases = list(cases(rows))
        self._values = Values(values)

    @cached_property
    def _outcomes(self) -> dict[bool, Words]:
        return {compiled: outcome(self._cases, self._values.words, compiled) for compiled in (True, False)}

    def opcodes(self) -> list[str]:
        return sorted({_opcode(case) for case in self._cases})

    def failures(self, opcode: str) -> list[str]:
        """Cases of an opcode that do not give what they should, with the first thread that shows it."""
        return [
            text
            for number, case in enumerate(self._cases)
            if _opcode(case) == opcode
            for compiled, left in self._outcomes.items()
            for text in _failure(case, left[number], self._values, compiled)
        ]


def _opcode(case: Case) -> str:
    return case.text.split()[0].split(".")[0]


def assert_none(failures: Sequence[str]) -> None:
    """That there are none; a few of them say what is wrong."""
    if failures:
        raise AssertionError("\n".join([f"{len(failures)} failures", *failures[:5]]))
