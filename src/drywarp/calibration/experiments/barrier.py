"""The iterative barrier (§6.2): barriers one after the other over the size of the block."""

from __future__ import annotations

from ..fits.line import fit_line
from ..result import Curve, Findings
from ..session import Session

WARPS = (1, 2, 4, 8, 12, 16, 24, 32)


def measure(session: Session, findings: Findings) -> None:
    """Find ``classes.barrier``: g warps take Λ + (g − 1)·λ from one barrier to the next."""
    sms = session.device.attributes.sm_count
    arguments = {"every": 1, "a": 3, "b": 5, "out": None}
    points = [session.per_instruction("chain", {"OP_BAR": ""}, {"BAR": 1}, sms, g * 32, arguments) for g in WARPS]
    line = fit_line([g - 1 for g in WARPS], points)
    findings.add("classes.barrier.lambda", line.slope, "cycles", "barriers in turn, what each further warp adds")
    findings.add("classes.barrier.latency", line.intercept, "cycles", "barriers in turn, of one warp")
    findings.curves.append(
        Curve(
            "barrier",
            "Iterative barrier",
            "warps per block",
            "cycles per barrier",
            tuple(map(float, WARPS)),
            tuple(p.value for p in points),
            tuple(p.spread for p in points),
            tuple(line.at(g - 1) for g in WARPS),
            "Λ + (g − 1)·λ",
        )
    )
