"""Λ_launch: from the end of a thread block to the start of the one that takes its place."""

from __future__ import annotations

from ..device import Program, Run
from ..fits.line import fit_line
from ..result import Curve, Findings
from ..session import Session

WAVES = (1, 2, 4, 8, 16, 32)
LENGTH, TURNS = 32, 2


def measure(session: Session, findings: Findings) -> None:
    """Find ``device.block_launch_latency``: each further block of an SM takes its own time and Λ_launch.

    Blocks of one warp take so much shared memory that an SM has room for a single one.
    """
    attributes = session.device.attributes
    program = Program("chain", (("OP_FFMA", ""), ("LENGTH", str(LENGTH))))
    session.check(program, {"FFMA": LENGTH})
    arguments = {"turns": TURNS, "every": 1, "a": 3, "b": 5, "out": None}
    shared = attributes.shared_bytes_per_block_optin
    points = [session.cycles(Run(program, waves * attributes.sm_count, 32, arguments, shared)) for waves in WAVES]
    line = fit_line([w - 1 for w in WAVES], points)
    findings.add(
        "device.block_launch_latency",
        line.slope - points[0],
        "cycles",
        "short blocks one after the other, less one's time",
    )
    findings.curves.append(
        Curve(
            "blocks",
            "Blocks one after the other",
            "blocks per SM",
            "cycles",
            tuple(map(float, WAVES)),
            tuple(p.value for p in points),
            tuple(p.spread for p in points),
            tuple(line.at(w - 1) for w in WAVES),
            f"each further block: {line.slope.value:.0f} cycles",
        )
    )
