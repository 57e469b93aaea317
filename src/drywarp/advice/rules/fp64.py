"""Double precision where it is slow."""

from __future__ import annotations

from ..case import Case
from ..whatifs.as_class import as_class
from .base import Documentation, Suspicion, register

_LEAST_SHARE = 0.005


@register
class DoublePrecision:
    """Instructions in double precision."""

    name = "fp64"
    title = "arithmetic in double precision"
    documentation = Documentation(
        what="Finds arithmetic in double precision that takes time, often from a constant without an f.",
        why="GPUs for consumers do double precision at 1/32 or 1/64 of the rate of single precision, those for "
        "data centres at 1/2; a constant such as 0.5 makes a whole expression double.",
        evidence="The share of such instructions and the use of their pipe. The gain is that of simulating them at the "
        "cost of single precision; that data would take half of the bytes as well is not counted.",
        change="Write 0.5f and sqrtf, compute in float where its 24 bits suffice, or keep only sums in double "
        "precision.",
        before="y[i] = 0.5 * x[i] + 1.0;          // two conversions, one DFMA",
        after="y[i] = 0.5f * x[i] + 1.0f;        // one FFMA",
    )

    def look(self, case: Case) -> Suspicion | None:
        """The instructions, the costliest first."""
        setting = case.setting
        found = setting.indices("fp64")
        share = case.share_of(lambda instruction: instruction.class_ == "fp64")
        if not found or share < _LEAST_SHARE:
            return None
        use = case.use_by("fp64")
        return Suspicion(
            as_class(frozenset(found), "fp32", "single instead of double precision"),
            setting.places(case.costliest(found)),
            f"{share:.1%} of the instructions are in double precision; their pipe is in use {use:.0%} of the time",
            "write constants with an f, and use float where its precision suffices",
            max(use, share),
        )
