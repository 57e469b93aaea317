"""The L1: Λ of a hit, λ of loads, stores and atomics, and its data path."""

from __future__ import annotations

from ..device import Value, Zeros
from ..estimate import Estimate
from ..fits.boat_hull import fit_boat_hull
from ..result import Findings
from ..session import Session
from .chains import curve_of
from .occupancies import occupancies

APART = 1024
CHAINS, CHAINS_IN_L1 = 16, 4
FULL = 32
"""Warps, and chains of each where a long Λ has to be hidden."""
DATA = Zeros(APART * CHAINS * FULL + (1 << 16))
WIDE_BYTES = 32 * 8
"""What a load of 8 bytes by every lane moves."""


def measure(session: Session, findings: Findings) -> None:
    """Find ``memory.l1`` and λ of ``classes.global_load``, ``global_store`` and ``global_atomic``."""
    most = min(FULL, session.device.attributes.max_warps_per_sm)
    warps = occupancies(most)
    sms = session.device.attributes.sm_count
    # Half of the lanes with 8 bytes each are one line, one pass of the data path.
    points = [_step(session, "OP_LDG", "LDG", 1, sms, n, 16, 0) for n in warps]
    hull = fit_boat_hull(warps, points)
    line = _step(session, "OP_LDG", "LDG", CHAINS_IN_L1, sms, most, 16, 0) / most
    how = f"loads of one line that hit the L1, {most} warps with {CHAINS_IN_L1} chains each"
    findings.add("classes.global_load.lambda", line, "cycles", how)
    findings.curves.append(curve_of("global_load", "Chain of LDG that hits the L1", warps, points, hull))
    alone = _step(session, "OP_LDG", "LDG", 1, sms, 1, 1, 0)
    findings.add("memory.l1.latency", alone, "cycles", "chain of loads of one lane that hit the L1")
    wide = _step(session, "OP_LDG", "LDG", 2, sms, most, 32, 0) / most
    findings.add("memory.l1.bytes_per_cycle", wide.into(WIDE_BYTES), "B/cycle", "loads of two lines that hit the L1")
    # One SM alone with little data for each instruction: the L2 and what leads there are not what limits it.
    for macro, opcode, class_ in (("OP_STG", "STG", "global_store"), ("OP_ATOMG", "ATOMG", "global_atomic")):
        step = _step(session, macro, opcode, CHAINS, 1, FULL, 2, APART) / FULL
        findings.add(f"classes.{class_}.lambda", step, "cycles", f"{opcode} of two lanes, one SM with {FULL} warps")


def _step(
    session: Session, macro: str, opcode: str, chains: int, grid: int, warps: int, lanes: int, apart: int
) -> Estimate:
    arguments: dict[str, Value] = {"every": 1, "lanes": lanes, "stride": 8, "apart": apart, "data": DATA, "out": None}
    defines = {macro: "", "ILP": str(chains)}
    return session.per_instruction("cached", defines, {opcode: 1}, grid, warps * 32, arguments)
