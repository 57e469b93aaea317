"""Another unroll factor, compiled."""

from __future__ import annotations

from ..case import Case
from .base import Documentation, Suspicion, register


@register
class Unrolling:
    """Only with --advice: nothing can be said of it without compiling."""

    name = "unrolling"
    title = "another unroll factor is faster"
    documentation = Documentation(
        what="With --advice, compiles a source that has #pragma unroll, or a macro with UNROLL in its name, with other "
        "factors.",
        why="Unrolling saves counters and jumps and lets loads of several turns be in flight together; too much of it "
        "takes registers, and with them occupancy.",
        evidence="The kernel compiled, emulated and predicted with each factor; the best of them is the gain.",
        change="State the factor that is predicted to be the fastest.",
        before="#pragma unroll\nfor (int k = 0; k < 64; ++k) sum += a[k] * b[k];",
        after="#pragma unroll 8\nfor (int k = 0; k < 64; ++k) sum += a[k] * b[k];",
    )

    def look(self, case: Case) -> Suspicion | None:
        """Nothing without compiling."""
        return None
