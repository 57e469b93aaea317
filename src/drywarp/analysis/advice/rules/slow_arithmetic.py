"""Arithmetic that is slow: special functions and what refines their results, integer divisions, double precision."""

from __future__ import annotations

from ....kernel.dataflow import Dataflow
from ..case import Case, Setting
from ..whatif import as_class, dropped, lighter
from .base import Suspicion, rule

_LEAST_USE, _LEAST_SHARE, _FEWEST, _REACH = 0.4, 0.05, 4, 40
_REFINING = ("fp32", "fp32_compare", "int", "imad", "predicate", "sfu", "move")


@rule("sfu-bound")
def sfu_bound(case: Case) -> Suspicion | None:
    """Refinement around special functions (reciprocals, roots, exponentials, …) first, then their unit itself."""
    setting = case.setting
    own = set(setting.indices("sfu"))
    starts = division_starts(setting)
    found = sorted(own - division_instructions(setting, starts)) if starts else sorted(own)
    if not found:
        return None
    refining = refinement(setting, found)
    total = sum(setting.executions)
    share = sum(setting.executions[index] for index in refining) / total
    use = case.use_by("sfu")
    places = setting.places(sorted(found, key=lambda index: -setting.executions[index]))
    if share >= _LEAST_SHARE:
        return Suspicion(
            dropped(refining, "special functions without refinement"),
            places,
            f"{share:.0%} of the instructions refine quotients and roots; the unit is busy {use:.0%} of the time",
            "use rsqrtf, __fdividef or fast math where the last bit does not matter",
            share,
        )
    if use < _LEAST_USE:
        return None
    return Suspicion(
        lighter(frozenset(found), 0.0, "special functions at no cost"),
        places,
        f"the special function unit is busy {use:.0%} of the time",
        "compute fewer: rsqrtf for 1/sqrtf, one reciprocal for several quotients, polynomials for some calls",
        use / 2,
    )


def refinement(setting: Setting, functions: list[int]) -> frozenset[int]:
    """Instructions within reach on the same line that depend on special functions, except the last, which uses them."""
    code = setting.instructions
    producers = Dataflow(code, setting.profile.cfg).producers
    gone: set[int] = set()
    for start in functions:
        mine = [start]
        for index in range(start + 1, min(len(code), start + _REACH)):
            its = code[index]
            ours = its.source == code[start].source and its.class_ in _REFINING and setting.executions[index] > 0
            if ours and set(mine) & set(producers[index]):
                mine.append(index)
        followers = [index for index in mine[1:] if code[index].class_ != "sfu" or code[index].opcode == "FCHK"]
        if len(followers) >= _FEWEST:
            gone |= set(followers[:-1])
    return frozenset(gone)


# Integer divisions and remainders by values that are unknown at compile time.

_LONGEST = 48
"""A division ends within this many instructions of its first."""


@rule("integer-division")
def integer_division(case: Case) -> Suspicion | None:
    """The machine-code sequences that implement / and %, most often executed first."""
    setting = case.setting
    starts = division_starts(setting)
    if not starts:
        return None
    gone = division_instructions(setting, starts)
    spent = sum(setting.executions[index] for index in gone)
    return Suspicion(
        dropped(gone, "no integer divisions"),
        setting.places(sorted(starts, key=lambda index: -setting.executions[index])),
        f"{len(starts)} divisions take {spent / sum(setting.executions):.0%} of the instructions",
        "make the divisor a compile-time constant or a power of two, or use more grid dimensions",
        spent / sum(setting.executions),
    )


def division_starts(setting: Setting) -> list[int]:
    """Conversions of a divisor to floating point, rounded up, for its reciprocal."""
    return [
        n
        for n, ins in enumerate(setting.instructions)
        if ins.opcode.startswith("I2F") and "RP" in ins.modifiers and setting.executions[n]
    ]


def division_instructions(setting: Setting, starts: list[int]) -> frozenset[int]:
    """Instructions within reach on the same line that depend on these conversions, except memory and branches."""
    code = setting.instructions
    producers = Dataflow(code, setting.profile.cfg).producers
    gone: set[int] = set()
    for start in starts:
        mine = {start}
        for index in range(start + 1, min(len(code), start + _LONGEST * (3 if "U64" in code[start].modifiers else 1))):
            its = code[index]
            if its.memory or its.class_ in ("branch", "convergence", "barrier") or its.source != code[start].source:
                continue
            if mine & set(producers[index]):
                mine.add(index)
        gone |= mine
    return frozenset(gone)


# Double precision.

_LEAST_DOUBLES = 0.005


@rule("fp64")
def fp64(case: Case) -> Suspicion | None:
    """Double-precision instructions, costliest first."""
    setting = case.setting
    found = setting.indices("fp64")
    share = case.share_of(lambda instruction: instruction.class_ == "fp64")
    if not found or share < _LEAST_DOUBLES:
        return None
    use = case.use_by("fp64")
    return Suspicion(
        as_class(frozenset(found), "fp32", "single instead of double precision"),
        setting.places(case.costliest(found)),
        f"{share:.1%} of the instructions are double precision; their pipe is busy {use:.0%} of the time",
        "write constants with the f suffix, and use float where its precision suffices",
        max(use, share),
    )
