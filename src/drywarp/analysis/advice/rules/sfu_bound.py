"""A busy special function unit, and instructions that refine its results."""

from __future__ import annotations

from ....kernel.dataflow import Dataflow
from ..case import Case, Setting
from ..whatif import dropped, lighter
from .base import Documentation, Suspicion, register
from .integer_division import division_instructions, division_starts

_LEAST_USE, _LEAST_SHARE, _FEWEST, _REACH = 0.4, 0.05, 4, 40
_REFINING = ("fp32", "fp32_compare", "int", "imad", "predicate", "sfu", "move")


@register
class SfuBound:
    """Utilization of the special function unit (reciprocals, roots, exponentials, …), and refinement around it."""

    name = "sfu-bound"
    title = "special functions: the unit is busy, or its results are refined to full precision"
    documentation = Documentation(
        what="Finds kernels that use the special function unit at least 40 % of the time, or spend 5 % of their "
        "instructions or more on full-precision quotients and square roots.",
        why="The unit computes reciprocals, square roots, exponentials, logarithms and sines at an eighth to a "
        "quarter of the multiply-add rate. Its results have 22 to 23 bits; / and sqrtf add about eight "
        "instructions and a branch to get the last bit right.",
        evidence="The utilization of the unit or the share of the refinement instructions, and the lines. The gain "
        "comes from simulating the kernel without refinement or, if there is none, with special functions that take "
        "no time in their unit, which is an upper bound.",
        change="Use rsqrtf instead of 1 / sqrtf, __fdividef or one reciprocal for several quotients, -use_fast_math "
        "where the last bit does not matter, exp2f with a folded constant, or polynomials on the multiply-add "
        "pipes for some of the calls.",
        before="sum += mass / sqrtf(square);",
        after="sum += mass * rsqrtf(square);",
    )

    def look(self, case: Case) -> Suspicion | None:
        """Check the refinement first, then the unit itself."""
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
