"""A rule of the advice: conversions between number formats."""

from __future__ import annotations

from drywarp.analysis.advice.case import Case
from drywarp.analysis.advice.rules.base import Documentation, Suspicion, register
from drywarp.analysis.advice.whatif import as_class


@register
class Conversions:
    """Instructions that convert."""

    name = "conversions"
    title = "conversions between number formats"
    documentation = Documentation(
        what="Finds instructions that convert between integers and floating-point numbers, or between precisions.",
        why="They run at a quarter of the rate of arithmetic in single precision, or less.",
        evidence="Their share of all instructions. The gain is that of simulating them at the cost of additions.",
        change="Convert once, outside the loop, or keep the index in the format that the arithmetic needs.",
        before="for (int i = 0; i < n; i++) sum += (float)i * step;",
        after="float x = 0; for (int i = 0; i < n; i++) { sum += x * step; x += 1; }",
    )

    def look(self, case: Case) -> Suspicion | None:
        """The conversions, the costliest first."""
        found = case.setting.indices("conversion")
        share = case.share_of(lambda instruction: instruction.class_ == "conversion")
        if share < 0.05:
            return None
        return Suspicion(
            as_class(frozenset(found), "fp32", "no conversions"),
            case.setting.places(case.costliest(found)),
            f"{share:.1%} of the instructions convert between number formats",
            "convert outside the loop",
            share,
        )
