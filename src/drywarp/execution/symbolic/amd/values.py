"""Instructions that touch no memory, as steps of a walk: their values, and what is known about them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ....kernel.instruction import Instruction, Operand, RegisterRange
from ....kernel.isa.amd.registers import result_count
from ..nvidia.compare import DEFAULT_SHARE, lanes_of_share
from ..state import ASSUMED, DATA, UNSURE, VARYING, Batch, Lanes, Value
from ..words import Step
from .functions import COMPARES, SCALAR, VECTOR, as_compared
from .iterations import note_compare
from .operands import EXEC, NOT_KNOWN, SCC, Operands, active, lanes_of, over_lanes, put, range_places, word_of

_CARRY = re.compile(r"v_(add|sub|subrev|addc|subb|subbrev)_(?:co_)?u32$")
_COMPARE = re.compile(r"v_cmpx?_(\w+?)_([iuf]\d+)$")
_SCALAR_COMPARE = re.compile(r"s_cmpk?_(\w+?)_([iu]\d+)$")
_SAVE_EXEC = re.compile(r"s_(\w+?)_(saveexec|wrexec)_b64$")
_MASKS: dict[str, Callable[[Any, Any], Any]] = {
    "and": lambda s, e: s & e, "or": lambda s, e: s | e, "xor": lambda s, e: s ^ e, "nand": lambda s, e: ~(s & e),
    "nor": lambda s, e: ~(s | e), "xnor": lambda s, e: ~(s ^ e), "andn2": lambda s, e: s & ~e,
    "orn2": lambda s, e: s | ~e, "andn1": lambda s, e: ~s & e, "orn1": lambda s, e: ~s | e,
}  # fmt: skip
_ORDER = {"lt": True, "le": True, "gt": False, "ge": False}
"""Whether the compare holds if the right side is larger than any number."""


class Values:
    """Builds the steps of one kernel; `shares` are stated shares of threads by instruction."""

    def __init__(self, operands: Operands, shares: Mapping[int, float]) -> None:
        self.o = operands
        self.shares = shares

    def step(self, i: Instruction) -> Step:
        """The step of an instruction; results without a rule are marked as unknown."""
        for make in (self._compare, self._carry, self._special, self._vector, self._scalar):
            step = make(i)
            if step is not None:
                return step
        return self.unknown(i)

    def unknown(self, i: Instruction) -> Step:
        """Results that cannot be computed: the first source represents them."""
        results = i.operands[: result_count(i)]
        sources = [o for o in i.operands[len(results) :] if isinstance(o, RegisterRange)]
        fetch = self.o.word(sources[0]) if sources else None
        known = self.o.flags(i.operands[len(results) :])
        targets = [place for o in results if isinstance(o, RegisterRange) for place in range_places(o)]

        def run(b: Batch) -> None:
            value = fetch(b).copy() if fetch is not None else np.uint32(0)
            flags = known(b) | NOT_KNOWN
            for file, index in targets:
                if file == "s":
                    put(b, file, index, value, over_lanes(b, flags))
                else:
                    put(b, file, index, value, flags | np.uint16(VARYING))

        return run

    # Sources and results by signature -------------------------------------------------------------

    def _fetch(self, letter: str, operand: Operand, i: Instruction, position: int) -> Callable[[Batch], Value]:
        if letter == "q":
            return self.o.pair(operand)
        if letter == "d":
            return self.o.double(operand)
        return self.o.real(operand, i, position) if letter == "f" else self.o.word(operand, i, position)

    def _store(self, letter: str, operand: Operand) -> Callable[[Batch, Value, Value], None]:
        if letter == "q":
            return self.o.put_pair(operand)
        if letter == "d":
            write = self.o.put_pair(operand)
            return lambda b, value, flags: write(b, np.ascontiguousarray(value, np.float64).view(np.uint64), flags)
        word = self.o.put_word(operand)
        if letter == "f":
            return lambda b, value, flags: word(b, np.ascontiguousarray(value, np.float32).view(np.uint32), flags)
        return lambda b, value, flags: word(b, np.asarray(value, np.uint32), flags)

    def _vector(self, i: Instruction) -> Step | None:
        if i.opcode not in VECTOR or not i.operands or not _plain(i):
            return None
        signature, function = VECTOR[i.opcode]
        result, _, letters = signature.partition(":")
        sources = i.operands[1 : 1 + len(letters)]
        if len(sources) < len(letters):
            return None
        fetches = [self._fetch(letter, o, i, n) for n, (letter, o) in enumerate(zip(letters, sources, strict=True))]
        store, known = self._store(result, i.operands[0]), self.o.flags(sources)
        across = "dpp" in i.modifiers

        def run(b: Batch) -> None:
            flags = known(b)
            if across:
                # A lane's neighbour: its value is not computed.
                flags = flags | NOT_KNOWN
            store(b, function(*(fetch(b) for fetch in fetches)), flags)

        return run

    def _scalar(self, i: Instruction) -> Step | None:
        if i.opcode not in SCALAR or not i.operands:
            return None
        signature, function, condition = SCALAR[i.opcode]
        result, _, letters = signature.partition(":")
        sources = i.operands[1 : 1 + len(letters)]
        if len(sources) < len(letters):
            return None
        fetches = [self._fetch(letter, o, i, n) for n, (letter, o) in enumerate(zip(letters, sources, strict=True))]
        store, known = self._store(result, i.operands[0]), self.o.flags(sources)

        def run(b: Batch) -> None:
            values = [fetch(b) for fetch in fetches]
            flags = known(b)
            found = function(*values)
            code = condition(found, *values)
            store(b, found, flags)
            if code is not None:
                put(b, "s", SCC, np.asarray(code).astype(np.uint32), flags)

        return run

    # Carries --------------------------------------------------------------------------------------

    def _carry(self, i: Instruction) -> Step | None:
        match = _CARRY.match(i.opcode)
        if match is None or len(i.operands) < 4:
            return None
        kind = match[1]
        result, carry, left, right = i.operands[:4]
        carried = self.o.mask(i.operands[4]) if kind in ("addc", "subb", "subbrev") and len(i.operands) > 4 else None
        a, c = self.o.word(left, i, 0), self.o.word(right, i, 1)
        known = self.o.flags(i.operands[2:])
        store, store_carry = self.o.put_word(result), self.o.put_mask(carry)
        adds, reverse = kind in ("add", "addc"), kind in ("subrev", "subbrev")

        def run(b: Batch) -> None:
            x, y = (np.asarray(f(b), np.uint32).astype(np.int64) for f in ((c, a) if reverse else (a, c)))
            extra = carried(b).astype(np.int64) if carried is not None else np.int64(0)
            total = x + y + extra if adds else x - y - extra
            over = np.broadcast_to((total >> 32) != 0, (b.rows, b.state.lanes)) & active(b)
            flags = known(b)
            store(b, (total & 0xFFFFFFFF).astype(np.uint32), flags)
            store_carry(b, over, flags)

        return run

    # Compares -------------------------------------------------------------------------------------

    def _compare(self, i: Instruction) -> Step | None:
        if match := _COMPARE.match(i.opcode):
            return self._vector_compare(i, match[1], match[2]) if match[1] in COMPARES else None
        if match := _SCALAR_COMPARE.match(i.opcode):
            return self._scalar_compare(i, match[1], match[2])
        return None

    def _vector_compare(self, i: Instruction, relation: str, kind: str) -> Step:
        letter, seen = as_compared(kind)
        target, sources = i.operands[0], i.operands[1:3]
        fetches = [self._fetch(letter, o, i, n) for n, o in enumerate(sources)]
        known = [self.o.flags([o]) for o in sources]
        store, function, number = self.o.put_mask(target), COMPARES[relation], i.pc // 16
        share, order = self.shares.get(number, DEFAULT_SHARE), _ORDER.get(relation) if kind[0] != "f" else None
        sets_exec = i.opcode.startswith("v_cmpx_")

        def run(b: Batch) -> None:
            values = [seen(fetch(b)) for fetch in fetches]
            test = np.broadcast_to(function(*values), (b.rows, b.state.lanes))
            flags = [flag(b) for flag in known]
            note_compare(b, number, relation, values, flags, active(b), kind[0] != "f")
            test = _assumed(b, test, values, flags, share, order, number) & active(b)
            total = flags[0] | flags[1]
            store(b, test, total)
            if sets_exec:
                _put_exec(b, word_of(test)[:, None], over_lanes(b, total))

        return run

    def _scalar_compare(self, i: Instruction, relation: str, kind: str) -> Step | None:
        if relation not in COMPARES or len(i.operands) < 2:
            return None
        letter, seen = as_compared(kind)
        fetches = [self._fetch(letter, o, i, n) for n, o in enumerate(i.operands[:2])]
        known = [self.o.flags([o]) for o in i.operands[:2]]
        function, number = COMPARES[relation], i.pc // 16
        share, order = self.shares.get(number, DEFAULT_SHARE), _ORDER.get(relation)

        def run(b: Batch) -> None:
            values = [seen(fetch(b)) for fetch in fetches]
            test = np.broadcast_to(function(*values), (b.rows, b.state.lanes))
            flags = [flag(b) for flag in known]
            note_compare(b, number, relation, values, flags, b.lanes(), True)
            test = _assumed(b, test, values, flags, share, order, number)
            put(b, "s", SCC, test[:, :1].astype(np.uint32), flags[0] | flags[1])

        return run

    # The rest -------------------------------------------------------------------------------------

    def _special(self, i: Instruction) -> Step | None:
        opcode, operands = i.opcode, i.operands
        if match := _SAVE_EXEC.match(opcode):
            return self._save_exec(i, match[1], match[2] == "wrexec") if match[1] in _MASKS else None
        makers: dict[str, Callable[[Instruction], Step]] = {
            "v_cndmask_b32": self._choose, "s_cselect_b32": self._select, "s_cselect_b64": self._select,
            "s_cmov_b32": self._select, "s_cmov_b64": self._select, "s_cmovk_i32": self._select,
            "s_addc_u32": self._scalar_carry, "s_subb_u32": self._scalar_carry, "s_addk_i32": self._in_place,
            "s_mulk_i32": self._in_place, "v_readfirstlane_b32": self._first_lane, "v_readlane_b32": self._lane,
            "v_mbcnt_lo_u32_b32": self._below, "v_mbcnt_hi_u32_b32": self._below, "s_bitcmp0_b32": self._bit,
            "s_bitcmp1_b32": self._bit, "v_mac_f32": self._accumulate, "v_fmac_f32": self._accumulate,
            "v_fmac_f64": self._accumulate, "v_fmaak_f32": self._literal, "v_madak_f32": self._literal,
            "v_fmamk_f32": self._literal, "v_madmk_f32": self._literal, "v_mad_u64_u32": self._wide_product,
            "v_mad_i64_i32": self._wide_product, "v_pk_mov_b32": self._move_two,
        }  # fmt: skip
        make = makers.get(opcode)
        return make(i) if make is not None and operands and _plain(i) else None

    def _save_exec(self, i: Instruction, how: str, writes_result: bool) -> Step:
        combine, source = _MASKS[how], self.o.pair(i.operands[1])
        known, store = self.o.flags(i.operands[1:2]), self.o.put_pair(i.operands[0])

        def run(b: Batch) -> None:
            before, flags = _exec(b)
            found = combine(np.asarray(source(b), np.uint64), before)
            total = known(b) | flags
            store(b, found if writes_result else before, total if writes_result else flags)
            _put_exec(b, found, total)
            put(b, "s", SCC, (found != 0).astype(np.uint32), total)

        return run

    def _choose(self, i: Instruction) -> Step:
        a, c = self.o.word(i.operands[1], i, 0), self.o.word(i.operands[2], i, 1)
        mask, known, store = self.o.mask(i.operands[3]), self.o.flags(i.operands[1:]), self.o.put_word(i.operands[0])
        return lambda b: store(b, np.where(mask(b), c(b), a(b)), known(b))

    def _select(self, i: Instruction) -> Step:
        """s_cselect and s_cmov: one of two scalars by the condition code."""
        wide = i.opcode.endswith("b64")
        fetch = self.o.pair if wide else self.o.word
        store = self.o.put_pair(i.operands[0]) if wide else self.o.put_word(i.operands[0])
        first = fetch(i.operands[1])
        other = fetch(i.operands[2]) if len(i.operands) > 2 else fetch(i.operands[0])
        known = self.o.flags(i.operands[1:] if len(i.operands) > 2 else i.operands)

        def run(b: Batch) -> None:
            code: Any = b.s
            store(b, np.where(code[SCC] != 0, first(b), other(b)), known(b) | b.flags["s"][SCC])

        return run

    def _scalar_carry(self, i: Instruction) -> Step:
        a, c = self.o.word(i.operands[1]), self.o.word(i.operands[2])
        known, store, adds = self.o.flags(i.operands[1:]), self.o.put_word(i.operands[0]), "add" in i.opcode

        def run(b: Batch) -> None:
            file: Any = b.s
            x, y, extra = (np.asarray(v, np.uint32).astype(np.int64) for v in (a(b), c(b), file[SCC]))
            total = x + y + extra if adds else x - y - extra
            flags = known(b) | b.flags["s"][SCC]
            store(b, (total & 0xFFFFFFFF).astype(np.uint32), flags)
            put(b, "s", SCC, np.broadcast_to((total >> 32) != 0, (b.rows, 1)).astype(np.uint32), flags)

        return run

    def _in_place(self, i: Instruction) -> Step:
        a, c, multiplies = self.o.word(i.operands[0]), self.o.word(i.operands[1]), "mul" in i.opcode
        known, store = self.o.flags(i.operands), self.o.put_word(i.operands[0])
        return lambda b: store(b, a(b) * c(b) if multiplies else a(b) + c(b), known(b))

    def _first_lane(self, i: Instruction) -> Step:
        fetch, known, store = self.o.word(i.operands[1]), self.o.flags(i.operands[1:]), self.o.put_word(i.operands[0])

        def run(b: Batch) -> None:
            value = b.spread(np.asarray(fetch(b)))
            store(b, value[np.arange(b.rows), active(b).argmax(axis=1)][:, None], over_lanes(b, known(b)))

        return run

    def _lane(self, i: Instruction) -> Step:
        fetch, which = self.o.word(i.operands[1]), self.o.word(i.operands[2])
        known, store = self.o.flags(i.operands[1:]), self.o.put_word(i.operands[0])

        def run(b: Batch) -> None:
            value = b.spread(np.asarray(fetch(b)))
            lane = np.broadcast_to(np.asarray(which(b)), (b.rows, 1))[:, 0] % b.state.lanes
            flags = b.spread(np.asarray(known(b), np.uint16))
            rows = np.arange(b.rows)
            store(b, value[rows, lane][:, None], flags[rows, lane][:, None])

        return run

    def _below(self, i: Instruction) -> Step:
        """Set bits of a mask below each lane: how a lane finds its own number."""
        mask, start = self.o.word(i.operands[1]), self.o.word(i.operands[2])
        known, store, high = self.o.flags(i.operands[1:]), self.o.put_word(i.operands[0]), "_hi_" in i.opcode

        def run(b: Batch) -> None:
            lane = np.arange(b.state.lanes, dtype=np.int64) - (32 if high else 0)
            below = ((np.uint64(1) << np.clip(lane, 0, 32).astype(np.uint64)) - np.uint64(1)).astype(np.uint32)
            count = np.bitwise_count(np.asarray(mask(b), np.uint32) & below).astype(np.uint32)
            store(b, count + start(b), known(b))

        return run

    def _bit(self, i: Instruction) -> Step:
        a, at, wanted = self.o.word(i.operands[0]), self.o.word(i.operands[1]), np.uint32("bitcmp1" in i.opcode)
        known = self.o.flags(i.operands)

        def run(b: Batch) -> None:
            bit = (a(b) >> (at(b) & np.uint32(31))) & np.uint32(1)
            put(b, "s", SCC, np.broadcast_to(bit == wanted, (b.rows, 1)).astype(np.uint32), known(b))

        return run

    def _accumulate(self, i: Instruction) -> Step:
        letter = "d" if i.opcode.endswith("f64") else "f"
        order = [i.operands[1], i.operands[2], i.operands[0]]
        x, y, z = (self._fetch(letter, o, i, n) for n, o in enumerate(order))
        store, known = self._store(letter, i.operands[0]), self.o.flags(order)
        return lambda b: store(b, x(b) * y(b) + z(b), known(b))

    def _literal(self, i: Instruction) -> Step:
        """The multiply-adds with a literal: `ak` adds the last operand, `mk` multiplies by the second."""
        sources = list(i.operands[1:4])
        x, y, z = (self._fetch("f", o, i, n) for n, o in enumerate(sources))
        store, known = self._store("f", i.operands[0]), self.o.flags(sources)
        return lambda b: store(b, x(b) * y(b) + z(b), known(b))

    def _move_two(self, i: Instruction) -> Step:
        """One half of each of two pairs; `op_sel:[0,1]` says which halves."""
        chosen = next((m[len("op_sel:[") : -1].split(",") for m in i.modifiers if m.startswith("op_sel:[")), ["0", "0"])
        halves = [self.o.pair(o) for o in i.operands[1:3]]
        shifts = [np.uint64(32 * int(bit)) for bit in chosen[:2]]
        known, store = self.o.flags(i.operands[1:3]), self.o.put_pair(i.operands[0])
        low = np.uint64(0xFFFFFFFF)

        def run(b: Batch) -> None:
            first, second = (half(b) >> shift & low for half, shift in zip(halves, shifts, strict=True))
            store(b, first | second << np.uint64(32), known(b))

        return run

    def _wide_product(self, i: Instruction) -> Step:
        """A product of 64 bits and a sum; the carry, the second result, is rarely used and assumed to be zero."""
        _, function = VECTOR[i.opcode]
        sources = i.operands[2:5]
        a, c, d = self.o.word(sources[0]), self.o.word(sources[1]), self.o.pair(sources[2])
        store, carry, known = self.o.put_pair(i.operands[0]), self.o.put_mask(i.operands[1]), self.o.flags(sources)

        def run(b: Batch) -> None:
            flags = known(b)
            found = function(a(b), c(b), d(b))
            store(b, found, flags)
            carry(b, np.zeros((b.rows, b.state.lanes), np.bool_), flags)

        return run


def _plain(i: Instruction) -> bool:
    """Whether the opcode's result is unmodified."""
    parts = [m for m in i.modifiers if m.startswith(("dst_sel:", "omod", "mul:", "div:")) or m == "clamp"]
    return all(m == "dst_sel:DWORD" for m in parts) and not any("sext(" in m for m in i.modifiers)


def _exec(b: Batch) -> tuple[Value, Value]:
    file: Any = b.s
    known = b.flags["s"]
    word = file[EXEC].astype(np.uint64) | file[EXEC + 1].astype(np.uint64) << np.uint64(32)
    return word, known[EXEC] | known[EXEC + 1]


def _put_exec(b: Batch, word: Value, flags: Value) -> None:
    whole = np.asarray(word, np.uint64)
    put(b, "s", EXEC, (whole & np.uint64(0xFFFFFFFF)).astype(np.uint32), flags)
    put(b, "s", EXEC + 1, (whole >> np.uint64(32)).astype(np.uint32), flags)


def _assumed(
    b: Batch, test: Lanes, values: list[Value], flags: list[Value], share: float, order: bool | None, number: int
) -> Lanes:
    """A compare's result, with assumptions in place of unknown values.

    If it depends on data, a share of the threads satisfies it; a number that was not given is assumed larger than any
    other, or smaller if it is negative.
    """
    tested = np.asarray(flags[0] | flags[1], np.uint16)
    if not (tested & UNSURE).any():
        return test
    data = b.spread(tested & DATA) != 0
    if data.any():
        test = np.where(data, lanes_of_share(b, share, tested & VARYING, number), test)
    if order is not None:
        left, right = (b.spread(np.asarray(f, np.uint16) & ASSUMED) != 0 for f in flags)
        for mine, other, value, holds in ((right, left, values[1], order), (left, right, values[0], not order)):
            alone = mine & ~other & ~data
            test = np.where(alone, holds ^ (b.spread(np.asarray(value)) < 0), test)
    return test


def settled_exec(b: Batch, taken: Lanes, while_nonzero: bool) -> None:
    """Make exec agree with a decision to stay in a loop although no lane was left in it.

    `taken` are the lanes that take the branch; `while_nonzero` says whether that side is the one with exec not empty.
    """
    stay = taken.any(axis=1) if while_nonzero else ~taken.any(axis=1)
    word, flags = _exec(b)
    empty = (lanes_of(word, b) & b.there).any(axis=1) == 0
    again = (stay & empty)[:, None]
    if again.any():
        _put_exec(b, np.where(again, word_of(b.there)[:, None], word), flags)
