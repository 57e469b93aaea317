"""Other unroll factors, compiled."""

from __future__ import annotations

from ..case import Case
from .base import Documentation, Suspicion, register


@register
class Unrolling:
    """Only with --advice, because the gain is unknown without compiling."""

    name = "unrolling"
    title = "another unroll factor is faster"
    documentation = Documentation(
        what="With --advice, recompiles a source that has #pragma unroll, or a macro with UNROLL in its name, with "
        "other factors.",
        why="Unrolling saves loop counters and branches, and lets loads of several iterations be in flight together. "
        "Too much of it costs registers, and with them occupancy.",
        evidence="The kernel is compiled, emulated and predicted with each factor; the gain is that of the best one.",
        change="Use the factor that is predicted to be fastest.",
        before="#pragma unroll\nfor (int k = 0; k < 64; ++k) sum += a[k] * b[k];",
        after="#pragma unroll 8\nfor (int k = 0; k < 64; ++k) sum += a[k] * b[k];",
    )

    def look(self, case: Case) -> Suspicion | None:
        """None: this rule needs compiling."""
        return None
