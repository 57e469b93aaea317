"""The L1 (Λ of a hit, λ of loads, stores and atomics, bandwidth), and shared memory."""

from __future__ import annotations

from math import gcd

from .chains import curve_of
from .device import Value, Zeros
from .fits import fit_boat_hull, fit_line
from .journal import Session
from .load import occupancies
from .result import Estimate, Findings

APART = 1024
CHAINS, CHAINS_IN_L1 = 16, 4
FULL = 32
"""Warps that saturate the data path."""
DATA = Zeros(APART * CHAINS * FULL + (1 << 16))
WIDE_BYTES = 32 * 8
"""Bytes moved by a load of 8 bytes per lane."""


def measure_caches(session: Session, findings: Findings) -> None:
    """Measure ``memory.l1`` and λ of ``classes.global_load``, ``global_store`` and ``global_atomic``."""
    most = min(FULL, session.device.attributes.max_warps_per_sm)
    warps = occupancies(most)
    sms = session.device.attributes.sm_count
    # Half of the lanes with 8 bytes each cover one line, which is one pass of the data path.
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
    # One SM alone with little data per instruction, so that neither the L2 nor the path to it is the limit.
    for macro, opcode, class_ in (("OP_STG", "STG", "global_store"), ("OP_ATOMG", "ATOMG", "global_atomic")):
        step = _step(session, macro, opcode, CHAINS, 1, FULL, 2, APART) / FULL
        findings.add(f"classes.{class_}.lambda", step, "cycles", f"{opcode} of two lanes, one SM with {FULL} warps")


def _step(
    session: Session, macro: str, opcode: str, chains: int, grid: int, warps: int, lanes: int, apart: int
) -> Estimate:
    arguments: dict[str, Value] = {"every": 1, "lanes": lanes, "stride": 8, "apart": apart, "data": DATA, "out": None}
    defines = {macro: "", "ILP": str(chains)}
    return session.per_instruction("cached", defines, {opcode: 1}, grid, warps * 32, arguments)


# Shared memory: Λ, λ of loads, stores and atomics, and bank conflicts of every degree.

STRIDES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
WORDS = 32 * 32
"""Words spanned by the lanes at the widest stride."""
CLEAR = 8
"""Degree from which the passes take longer than an access's own slot in the load-store unit."""
BANK_BYTES = 4
"""Word size in every kernel here; accesses to two 4-byte words of one bank conflict."""


def measure_conflicts(session: Session, findings: Findings) -> None:
    """Measure ``memory.shared.*`` and ``classes.shared_*.lambda``."""
    _latency(session, findings)
    _conflicts(session, findings)
    for macro, opcode, class_ in (("OP_STS", "STS", "shared_store"), ("OP_ATOMS", "ATOMS", "shared_atomic")):
        step = _shared_step(session, macro, opcode, FULL, 1)
        findings.add(f"classes.{class_}.lambda", step / FULL, "cycles", f"{opcode} of {FULL} warps without conflicts")


def _shared_step(session: Session, macro: str, opcode: str, warps: int, stride: int) -> Estimate:
    grid, block = session.occupancy(warps)
    arguments = {"every": 1, "stride": stride, "out": None}
    return session.per_instruction("shared", {macro: ""}, {opcode: 1}, grid, block, arguments, 4 * WORDS)


def _latency(session: Session, findings: Findings) -> None:
    warps = [n for n in occupancies(session.device.attributes.max_warps_per_sm) if n <= FULL]
    points = [_shared_step(session, "OP_LDS", "LDS", n, 1) for n in warps]
    hull = fit_boat_hull(warps, points)
    if hull.latency:
        findings.add("memory.shared.latency", hull.latency, "cycles", "chain of loads without conflicts, flat part")
    if hull.lambda_:
        findings.add("classes.shared_load.lambda", hull.lambda_, "cycles", "chain of loads, rising part")
    findings.curves.append(curve_of("shared_load", "Chain of LDS without conflicts", warps, points, hull))


def _conflicts(session: Session, findings: Findings) -> None:
    full = [_shared_step(session, "OP_LDS", "LDS", FULL, stride) / FULL for stride in STRIDES]
    alone = [_shared_step(session, "OP_LDS", "LDS", 1, stride) for stride in STRIDES]
    most = max(full, key=lambda each: each.value)
    # The number of banks is the smallest stride at which all lanes access the same bank.
    banks = next(s for s, each in zip(STRIDES, full, strict=True) if each.value > 0.9 * most.value)
    degrees = [gcd(stride, banks) for stride in STRIDES]
    findings.add("memory.shared.banks", Estimate(banks), "", "the stride in words at which conflicts are worst")
    several = [(d, each) for d, each in zip(degrees, full, strict=True) if d >= CLEAR]
    one_pass = fit_line([d for d, _ in several], [each for _, each in several])
    rate = one_pass.slope.into(banks * BANK_BYTES)
    findings.add("memory.shared.bytes_per_cycle", rate, "B/cycle", "cost of each additional pass of a conflict")
    further = fit_line([d - 1 for d in degrees], alone)
    findings.add(
        "Λ of a further conflict", further.slope, "cycles", "chain of one warp, per degree of conflict", in_file=False
    )
    by_degree = sorted(zip(degrees, full, alone, strict=True), key=lambda row: row[0])
    for name, title, ys, line, start in (
        ("conflicts", "Bank conflicts at full occupancy", [row[1] for row in by_degree], one_pass, 0),
        ("conflicts of one warp", "Λ with bank conflicts", [row[2] for row in by_degree], further, 1),
    ):
        x, fit = [row[0] for row in by_degree], [line.at(row[0] - start) for row in by_degree]
        told = f"{line.intercept.value:.2f} + {line.slope.value:.3f} · (degree{' − 1' if start else ''})"
        findings.plot(name, title, ("degree of conflict", "cycles per load"), x, ys, fit, told)
