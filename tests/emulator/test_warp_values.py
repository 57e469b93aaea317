"""Exchange between lanes, special registers, constants and the memories, on boundary values and in both loops.

The answers are arrays by thread, worked out in Python; what runs is under a guard that half of the lanes hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

from . import exact
from .exact import M32, M64, signed
from .one_by_one import BEFORE, CONSTANTS, THREADS, Case, Words, assert_none, failures
from .test_float_values import doubles, singles
from .test_integer_values import words

WARPS = [range(start, start + 32) for start in range(0, THREADS, 32)]
GUARDS = {"": [True] * THREADS, "@P6 ": [bool(x >> 6 & 1) for x in BEFORE.tolist()]}
GUARDS["@!P6 "] = [not holds for holds in GUARDS["@P6 "]]


def lanes() -> Words:
    """R8: any words, with a few repeated; R10: lanes and distances; R12: clamps and segments; R14: votes by warp."""
    rng = np.random.default_rng(12)
    values = words(13)
    values[0] = np.where(rng.random(THREADS) < 0.5, values[0], rng.integers(0, 4, THREADS))
    values[1] = rng.integers(0, 2, THREADS)
    values[2] = rng.integers(0, 40, THREADS)
    values[4] = np.where(
        rng.random(THREADS) < 0.5, 31, rng.choice([0, 0x1C1F, 0x101F, 0x1803, 0x1E00, 15, 0x180F], THREADS)
    )
    # Votes: nobody, everybody, one alone, all but one, and anything, warp by warp.
    votes = np.array([0, M32, 1 << 31, M32 ^ 1, 0x12345678] * len(WARPS), np.uint32)[: len(WARPS)]
    values[6] = (votes.repeat(32) >> np.tile(np.arange(32, dtype=np.uint32), len(WARPS))) & 1
    # Warps that agree.
    for warp in WARPS[::3]:
        values[:2, warp] = values[:2, warp[:1]]
    return values


LANES = lanes()
R8, R9, R10, R12, R14 = (LANES[k].tolist() for k in (0, 1, 2, 4, 6))
P = [[bool(x >> k & 1) for x in BEFORE.tolist()] for k in range(7)]


def by_warp(function: Callable[[list[int]], object], guard: str) -> list[object]:
    """What a warp's executing threads give, for each of its threads; zero where there is none."""
    result: list[object] = []
    for warp in WARPS:
        executing = [t for t in warp if GUARDS[guard][t]]
        result += [function(executing) if executing else 0] * 32
    return result


def ballot(threads: Sequence[int]) -> int:
    return sum(1 << t % 32 for t in threads)


def case(text: str, results: str, answers: Sequence[object], guard: str = "") -> Case:
    return Case(text, tuple(results.split()), (), lambda t: answers[t], guard)


def shuffled(mode: str, value: list[int], amount: list[int], control: list[int]) -> list[object]:
    """The rule that the PTX manual prints for shfl: the source of each lane, and whether it is in its segment."""
    result: list[object] = []
    for t in range(THREADS):
        lane, step, clamp, segment = t % 32, amount[t] & 31, control[t] & 31, control[t] >> 8 & 31
        lowest, limit = lane & segment, lane & segment | clamp & ~segment & 31
        source = {"UP": lane - step, "DOWN": lane + step, "BFLY": lane ^ step, "IDX": lowest | step & ~segment & 31}[
            mode
        ]
        valid = source >= limit if mode == "UP" else source <= limit
        result.append((value[t - lane + (source if valid else lane)], valid))
    return result


def exchange() -> Iterator[Case]:
    for mode in ("UP", "DOWN", "BFLY", "IDX"):
        for b, amount in (("R10", R10), ("0x1", [1] * THREADS), ("0x11", [17] * THREADS), ("RZ", [0] * THREADS)):
            for c, control in (
                ("R12", R12),
                ("0x1f", [31] * THREADS),
                ("0x181f", [0x181F] * THREADS),
                ("RZ", [0] * THREADS),
            ):
                answers = shuffled(mode, R8, amount, control)
                yield case(f"SHFL.{mode} P0, R20, R8, {b}, {c}", "R20 P0", answers)
    for guard in GUARDS:
        for mode in ("ANY", "ALL", "EQ"):
            for name, holds in (
                ("P1", P[1]),
                ("!P2", [not x for x in P[2]]),
                ("PT", [True] * THREADS),
                ("!PT", [False] * THREADS),
            ):
                yield from votes(mode, name, "", holds, guard)
            yield from votes(mode, "P4", "ISETP.NE.AND P4, PT, R14, RZ, PT; ", [x != 0 for x in R14], guard)
        yield from matches(guard)
        yield from reductions(guard)


def votes(mode: str, name: str, before: str, holds: Sequence[bool], guard: str) -> Iterator[Case]:
    def answer(threads: list[int]) -> tuple[int, bool]:
        mine = [holds[t] for t in threads]
        told = {"ANY": any(mine), "ALL": all(mine), "EQ": all(mine) or not any(mine)}[mode]
        return ballot([t for t in threads if holds[t]]), told

    answers = by_warp(answer, guard)
    if not before:
        yield case(f"VOTE.{mode} R20, P0, {name}", "R20 P0", answers, guard)
        yield case(f"VOTEU.{mode} UR6, UPT, {name}; MOV R20, UR6", "R20", [a and a[0] for a in answers], guard)
        yield case(f"VOTE.{mode} P0, {name}", "P0", [a and a[1] for a in answers], guard)
    elif not guard:
        yield case(
            f"{before}VOTE.{mode} R20, P0, {name}", "P4 R20 P0", [(holds[t], *answers[t]) for t in range(THREADS)]
        )


def matches(guard: str) -> Iterator[Case]:
    pairs = [low | high << 32 for low, high in zip(R8, R9, strict=True)]
    for suffix, values in (("", R8), (".U64", pairs)):
        groups = by_warp(
            lambda threads, v=values: {x: ballot([t for t in threads if v[t] == x]) for x in {v[t] for t in threads}},
            guard,
        )
        found = [group and group.get(values[t]) for t, group in enumerate(groups)]
        yield case(f"MATCH.ANY{suffix} R20, R8", "R20", found, guard)
        same = [group and (next(iter(group.values())) if len(group) == 1 else 0, len(group) == 1) for group in groups]
        yield case(f"MATCH.ALL{suffix} P0, R20, R8", "R20 P0", same, guard)


def reductions(guard: str) -> Iterator[Case]:
    folds: dict[str, Callable[[list[int]], int]] = {
        ".OR": lambda x: int(np.bitwise_or.reduce(x)),
        "": lambda x: int(np.bitwise_and.reduce(x)),
        ".XOR": lambda x: int(np.bitwise_xor.reduce(x)),
        ".SUM": sum,
        ".SUM.S32": sum,
        ".MIN": min,
        ".MAX": max,
        ".MIN.S32": lambda x: min(x, key=signed),
        ".MAX.S32": lambda x: max(x, key=signed),
    }
    for suffix, fold in folds.items():
        answers = by_warp(lambda threads, f=fold: f([R8[t] for t in threads]) & M32, guard)
        opcode = "CREDUX" if suffix.endswith("MAX.S32") else "REDUX"
        yield case(f"{opcode}{suffix} UR6, R8; MOV R20, UR6", "R20", answers, guard)
    first = by_warp(lambda threads: R8[threads[0]], guard)
    yield case("R2UR UR6, R8; MOV R20, UR6", "R20", first, guard)
    told = [(R8[t] != first[t], first[t]) for t in range(THREADS)]
    yield case("R2UR P0, UR6, R8; MOV R20, UR6", "P0 R20", told, guard)
    yield case(
        "R2UR.OR P1, UR6, R8; MOV R20, UR6", "P1 R20", [(x or P[1][t], y) for t, (x, y) in enumerate(told)], guard
    )
    holding = by_warp(lambda threads: next((t for t in threads if P[1][t]), None), guard)
    elected = [(t == x, x and x % 32 if x is not None else exact_mark()) for t, x in enumerate(holding)]
    yield case("ELECT P0, R20, P1", "P0 R20", elected, guard)


def exact_mark() -> int:
    """What R20 holds before."""
    return 0x5EED5EED


def predicates() -> Iterator[Case]:
    every = BEFORE.tolist()
    for mask in (0x7F, 0x15, 0x40, 0x0):
        for name, shift in (("R20", 0), ("R20.B1", 8), ("R20.B2", 16), ("R20.B3", 24)):
            answers = [R8[t] & ~(mask << shift) | (every[t] & mask) << shift for t in range(THREADS)]
            yield case(f"P2R {name}, PR, R8, {mask:#x}", "R20", answers)
            source = name.replace("20", "8")
            fields = [every[t] & ~mask | R8[t] >> shift & mask for t in range(THREADS)]
            bits = [tuple(bool(x >> k & 1) for k in range(7)) for x in fields]
            for guard in GUARDS:
                yield case(f"R2P PR, {source}, {mask:#x}", " ".join(f"P{k}" for k in range(7)), bits, guard)
    # Uniform predicates hold for all lanes of a warp, or for none.
    uniform = [bool(every[t // 32 * 32] >> 5 & 1) for t in range(THREADS)]
    for name, holds in (("UP5", uniform), ("!UP5", [not x for x in uniform])):
        chosen = [R8[t] if holds[t] else R10[t] for t in range(THREADS)]
        yield case(f"SEL R20, R8, R10, {name}", "R20", chosen)
        yield case(f"MOV R20, R10; @{name} MOV R20, R8", "R20", chosen)
    yield case("P2R R20, PR, RZ, 0x55", "R20", [x & 0x55 for x in every], "@P6 ")
    yield case(
        "UP2UR UR6, UPR, UR8, 0x2a; MOV R20, UR6",
        "R20",
        [R8[t // 32 * 32] & ~0x2A | every[t // 32 * 32] & 0x2A for t in range(THREADS)],
    )
    registers: dict[str, Callable[[int], int]] = {
        "TID.X": lambda t: t, "TID.Y": lambda t: 0, "LANEID": lambda t: t % 32, "CTAID.X": lambda t: 0,
        "LTMASK": lambda t: (1 << t % 32) - 1, "LEMASK": lambda t: (2 << t % 32) - 1, "EQMASK": lambda t: 1 << t % 32,
        "GTMASK": lambda t: M32 - ((2 << t % 32) - 1), "GEMASK": lambda t: M32 - ((1 << t % 32) - 1),
    }  # fmt: skip
    for name, register in registers.items():
        for guard in GUARDS:
            yield case(f"S2R R20, SR_{name}", "R20", [register(t) for t in range(THREADS)], guard)
    yield case("CS2R R20, SRZ", "L20", [0] * THREADS, "@P6 ")
    yield case("CS2R.32 R20, SRZ", "R20", [0] * THREADS)
    tile = np.array(R8, np.uint32).view(np.uint16).reshape(-1, 8, 8).transpose(0, 2, 1)
    yield case("MOVM.16.MT88 R20, R8", "R20", np.ascontiguousarray(tile).reshape(-1).view(np.uint32).tolist())


SIZES = {".U8": (1, False), ".S8": (1, True), ".U16": (2, False), ".S16": (2, True)}


def loads_and_stores() -> Iterator[Case]:
    """Bytes, halves and vectors: 16 bytes of four registers are stored, and some of them loaded, or the other way."""
    rows = [b"".join(LANES[k, t].tobytes() for k in (0, 1, 2, 3)) for t in range(THREADS)]
    spaces = {"S": ("R16", ""), "G.E": ("R18.64", ""), ".E": ("R18.64", ""), "L": ("RZ", "")}
    for space, (base, _) in spaces.items():
        opcode, _, more = space.partition(".")
        more = f".{more}" if more else ""
        fill = f"ST{opcode}{more}.128 [{base}], R8; "
        for guard in ("", "@P6 "):
            for suffix, (size, is_signed) in SIZES.items():
                for at in range(0, 16, size):
                    if at not in (0, size, 16 - size) and guard:
                        continue
                    answers = [int.from_bytes(row[at : at + size], "little", signed=is_signed) for row in rows]
                    text = f"LD{opcode}{more}{suffix} R20, [{base}+{at:#x}]"
                    yield case(fill + text, "R20", answers, guard)
            for suffix, size, result in (("", 4, "R20"), (".64", 8, "L20")):
                for at in range(0, 16, size):
                    answers = [int.from_bytes(row[at : at + size], "little") for row in rows]
                    yield case(f"{fill}LD{opcode}{more}{suffix} R20, [{base}+{at:#x}]", result, answers, guard)
            for suffix, size in ((".U8", 1), (".U16", 2), ("", 4), (".64", 8)):
                for at in (0, 8 - size):
                    answers = []
                    for t, row in enumerate(rows):
                        new = LANES[2:4, t].tobytes()[:size]
                        answers.append(int.from_bytes((row[:at] + new + row[at + size :])[:8], "little"))
                    text = f"{fill}ST{opcode}{more}{suffix} [{base}+{at:#x}], R10; LD{opcode}{more}.64 R20, [{base}]"
                    yield case(text, "L20", answers, guard)
    four = [tuple(int.from_bytes(row[k : k + 4], "little") for k in (0, 4, 8)) for row in rows]
    yield case("STS.128 [R16], R8; LDS.128 R20, [R16]", "R20 R21 R22", four)
    yield case("STG.E.128 [R18.64], RZ; LDG.E.128 R20, [R18.64]", "R20 R21 R22", [(0, 0, 0)] * THREADS)
    # Scaled bases, an address in a uniform register, and one of 32 bits beside one of 64.
    yield case("STS.64 [R16], R8; SHF.R.U32.HI R7, RZ, 0x2, R16; LDS R20, [R7.X4+0x4]", "R20", R9)
    yield case("STS.64 [R16], R8; UMOV UR6, 0x20; IADD3 R7, R16, -0x10, RZ; LDS R20, [R7+UR6+-0xc]", "R20", R9)
    yield case(
        "STG.E.64 [R18.64], R8; R2UR UR6, R18; R2UR UR7, R19; S2R R7, SR_LANEID; SHF.L.U32 R7, R7, 0x4, RZ;"
        " LDG.E R20, [R7.U32+UR6+0x4]",
        "R20",
        R9,
    )
    # Loads of constants from an address in a register.
    bank = np.array(CONSTANTS, np.uint32).tobytes()
    index = "S2R R7, SR_LANEID; LOP3.LUT R7, R7, 0x3, RZ, 0xc0, !PT; SHF.L.U32 R7, R7, 0x2, RZ"
    for suffix, (size, is_signed) in {**SIZES, "": (4, False)}.items():
        offset = 4 if size == 4 else 3 * size
        answers = [
            int.from_bytes(bank[4 * (t % 4) + offset :][:size], "little", signed=is_signed) for t in range(THREADS)
        ]
        yield case(f"{index}; LDC{suffix} R20, c[0x3][R7+{offset:#x}]", "R20", answers)
    answers = [int.from_bytes(bank[8 * (t % 2) + 8 :][:8], "little") for t in range(THREADS)]
    pairs = "S2R R7, SR_LANEID; LOP3.LUT R7, R7, 0x1, RZ, 0xc0, !PT; SHF.L.U32 R7, R7, 0x3, RZ"
    yield case(f"{pairs}; LDC.64 R20, c[0x3][R7+0x8]", "L20", answers)
    yield case(
        "ULDC.64 UR6, c[0x3][0x8]; MOV R20, UR6; MOV R21, UR7", "R20 R21", [(CONSTANTS[2], CONSTANTS[3])] * THREADS
    )
    yield case("ULDC.U8 UR6, c[0x3][0x7]; MOV R20, UR6", "R20", [0x80] * THREADS)
    yield case("ULDC.S8 UR6, c[0x3][0x7]; MOV R20, UR6", "R20", [-0x80] * THREADS)


def updates(bits: int) -> dict[str, Callable[[int, int], int]]:
    """What atomics make of an old value and an operand."""
    kind = {32: ("", ".S32"), 64: (".64", ".S64")}[bits]
    table: dict[str, Callable[[int, int], int]] = {
        f"ADD{kind[0]}": lambda old, a: old + a,
        f"MIN{kind[0]}": min,
        f"MAX{kind[0]}": max,
        f"MIN{kind[1]}": lambda old, a: min(old, a, key=lambda x: signed(x, bits)),
        f"MAX{kind[1]}": lambda old, a: max(old, a, key=lambda x: signed(x, bits)),
        f"AND{kind[0]}": lambda old, a: old & a,
        f"OR{kind[0]}": lambda old, a: old | a,
        f"XOR{kind[0]}": lambda old, a: old ^ a,
        f"EXCH{kind[0]}": lambda old, a: a,
    }
    if bits == 32:
        table["INC"] = lambda old, a: 0 if old >= a else old + 1
        table["DEC"] = lambda old, a: a if old == 0 or old > a else old - 1
    return table


def atomics(values: Words) -> Iterator[Case]:
    """Every thread on memory of its own: what stood there, and what stands there then."""
    v = [row.tolist() for row in values]
    pairs = [[low | high << 32 for low, high in zip(v[k], v[k + 1], strict=True)] for k in (0, 2, 4)]
    for name, update in updates(32).items():
        both = [(x, update(x, y) & M32) for x, y in zip(v[0], v[2], strict=True)]
        left = [y for _, y in both]
        for guard in ("", "@P6 "):
            yield case(f"STS [R16], R8; ATOMS.{name} R20, [R16], R10; LDS R21, [R16]", "R20 R21", both, guard)
            yield case(
                f"STG.E [R18.64], R8; ATOMG.E.{name}.STRONG.GPU PT, R20, [R18.64], R10; LDG.E R21, [R18.64]",
                "R20 R21",
                both,
                guard,
            )
        yield case(f"STG.E [R18.64], R8; RED.E.{name}.STRONG.GPU [R18.64], R10; LDG.E R20, [R18.64]", "R20", left)
        yield case(
            f"STG.E [R18.64], R8; ATOM.E.{name}.STRONG.GPU P0, R20, [R18.64], R10; LDG.E R21, [R18.64]",
            "P0 R20 R21",
            [(True, *x) for x in both],
        )
    for name, update in updates(64).items():
        left = [update(x, y) & M64 for x, y in zip(pairs[0], pairs[1], strict=True)]
        yield case(f"STG.E.64 [R18.64], R8; RED.E.{name}.STRONG.GPU [R18.64], R10; LDG.E.64 R20, [R18.64]", "L20", left)
        yield case(f"STG.E.64 [R18.64], R8; ATOMG.E.{name}.STRONG.GPU PT, R20, [R18.64], R10", "L20", pairs[0])
        yield case(f"STS.64 [R16], R8; ATOMS.{name} R20, [R16], R10; LDS.64 R20, [R16]", "L20", left)
    swapped = [(x, z if x == y else x, x == y) for x, y, z in zip(v[0], v[2], v[4], strict=True)]
    yield case(
        "STS [R16], R8; ATOMS.CAS R20, [R16], R10, R12; LDS R21, [R16]", "R20 R21", [x[:2] for x in swapped], "@!P6 "
    )
    yield case(
        "STG.E [R18.64], R8; ATOMG.E.CAS.STRONG.GPU P0, R20, [R18], R10, R12; LDG.E R21, [R18.64]",
        "R20 R21 P0",
        swapped,
    )
    long = [z if x == y else x for x, y, z in zip(*pairs, strict=True)]
    yield case(
        "STG.E.64 [R18.64], R8; ATOMG.E.CAS.64.STRONG.GPU PT, R20, [R18], R10, R12; LDG.E.64 R20, [R18.64]", "L20", long
    )
    spun = [(x == y, z if x == y else x) for x, y, z in zip(v[0], v[2], v[4], strict=True)]
    yield case("STS [R16], R8; ATOMS.CAST.SPIN R20, [R16], R10, R12; LDS R21, [R16]", "R20 R21", spun)
    # All threads of a warp count in one place.
    counted = [x for warp in WARPS for x in [sum(GUARDS["@P6 "][t] for t in warp)] * 32]
    alone = "LOP3.LUT R7, R16, 0xfffffe00, RZ, 0xc0, !PT; STS [R7], RZ; ATOMS.POPC.INC.32 RZ, [R7]; LDS R20, [R7]"
    yield case(alone, "R20", counted, "@P6 ")
    order = [sum(GUARDS["@P6 "][s] for s in range(t // 32 * 32, t)) for t in range(THREADS)]
    yield case(
        alone.replace("POPC.INC.32 RZ, [R7]", "ADD R21, [R7], R5"),
        "R20 R21",
        [(n * 0x5EED5EED, o * 0x5EED5EED) for n, o in zip(counted, order, strict=True)],
        "@P6 ",
    )


def float_atomics(values: Words, bits: int) -> Iterator[Case]:
    read, form = (exact.single, exact.SINGLE) if bits == 32 else (exact.double, exact.DOUBLE)
    v = [row.tolist() for row in values]
    old, given = ((v[k] if bits == 32 else [x | y << 32 for x, y in zip(v[k], v[k + 1], strict=True)]) for k in (0, 2))
    sums = [exact.added(read(x), read(y), form) for x, y in zip(old, given, strict=True)]
    flat = [
        exact.flushed(exact.added(exact.flushed(read(x)), exact.flushed(read(y)), form))
        for x, y in zip(old, given, strict=True)
    ]
    wide, result = ("", "F20") if bits == 32 else (".64", "D20")
    for opcode, head in (("RED", ""), ("ATOMG", "PT, RZ, ")):
        for ftz, answers in ((".FTZ", flat), ("", sums)) if bits == 32 else (("", sums),):
            text = f"STG.E{wide} [R18.64], R8; {opcode}.E.ADD.F{bits}{ftz}.RN.STRONG.GPU {head}[R18.64], R10"
            yield case(f"{text}; LDG.E{wide} R20, [R18.64]", result, answers)


def least_floats() -> Iterator[Case]:
    values = [exact.single(x) for x in singles()[0].tolist()]
    for guard in GUARDS:
        for name, choose in (("MIN", exact.least), ("MAX", exact.largest)):
            for suffix in ("", ".NAN"):
                for size in ("", "ABS"):

                    def fold(threads: list[int], f=choose, wins=suffix != "", sized=size != "") -> float:
                        numbers = [abs(values[t]) if sized else values[t] for t in threads]
                        result = numbers[0]
                        for number in numbers[1:]:
                            result = f(result, number, wins)
                        return result

                    yield case(
                        f"CREDUX.{name}{size}.F32{suffix} UR6, R8; MOV R20, UR6", "F20", by_warp(fold, guard), guard
                    )


TABLES: dict[str, tuple[list[Case], Words]] = {
    "exchange": (list(exchange()), LANES),
    "predicates and special registers": (list(predicates()), LANES),
    "loads and stores": (list(loads_and_stores()), LANES),
    "atomics": (list(atomics(words(14))), words(14)),
    "atomics on floats": (list(float_atomics(singles(), 32)), singles()),
    "atomics on doubles": (list(float_atomics(doubles(), 64)), doubles()),
    "reductions of floats": (list(least_floats()), singles()),
}


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("table", TABLES)
def test_threads_find_what_they_should(table: str, compiled: bool) -> None:
    cases, values = TABLES[table]
    assert_none(failures(cases, values, compiled))
