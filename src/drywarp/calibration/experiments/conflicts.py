"""Shared memory: Λ, λ of loads, stores and atomics, and bank conflicts of every degree."""

from __future__ import annotations

from math import gcd

from ..estimate import Estimate
from ..fits.boat_hull import fit_boat_hull
from ..fits.line import fit_line
from ..result import Curve, Findings
from ..session import Session
from .chains import curve_of
from .occupancies import occupancies

STRIDES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
WORDS = 32 * 32
"""Words that lanes at the widest stride reach over."""
FULL = 32
"""Warps of the block that saturates the data path."""
CLEAR = 8
"""Degrees from which on the passes outlast an access's own slot of the load-store unit."""
BANK_BYTES = 4
"""Words are of this size in every kernel here; two 4-byte words of a bank are what conflicts."""


def measure(session: Session, findings: Findings) -> None:
    """Find ``memory.shared.*`` and ``classes.shared_*.lambda``."""
    _latency(session, findings)
    _conflicts(session, findings)
    for macro, opcode, class_ in (("OP_STS", "STS", "shared_store"), ("OP_ATOMS", "ATOMS", "shared_atomic")):
        step = _step(session, macro, opcode, FULL, 1)
        findings.add(f"classes.{class_}.lambda", step / FULL, "cycles", f"{opcode} of {FULL} warps without conflicts")


def _step(session: Session, macro: str, opcode: str, warps: int, stride: int) -> Estimate:
    grid, block = session.occupancy(warps)
    arguments = {"every": 1, "stride": stride, "out": None}
    return session.per_instruction("shared", {macro: ""}, {opcode: 1}, grid, block, arguments, 4 * WORDS)


def _latency(session: Session, findings: Findings) -> None:
    warps = [n for n in occupancies(session.device.attributes.max_warps_per_sm) if n <= FULL]
    points = [_step(session, "OP_LDS", "LDS", n, 1) for n in warps]
    hull = fit_boat_hull(warps, points)
    if hull.latency:
        findings.add("memory.shared.latency", hull.latency, "cycles", "chain of loads without conflicts, flat part")
    if hull.lambda_:
        findings.add("classes.shared_load.lambda", hull.lambda_, "cycles", "chain of loads, rising part")
    findings.curves.append(curve_of("shared_load", "Chain of LDS without conflicts", warps, points, hull))


def _conflicts(session: Session, findings: Findings) -> None:
    full = [_step(session, "OP_LDS", "LDS", FULL, stride) / FULL for stride in STRIDES]
    alone = [_step(session, "OP_LDS", "LDS", 1, stride) for stride in STRIDES]
    most = max(full, key=lambda each: each.value)
    # The stride at which all lanes first meet in one bank is the number of banks.
    banks = next(s for s, each in zip(STRIDES, full, strict=True) if each.value > 0.9 * most.value)
    degrees = [gcd(stride, banks) for stride in STRIDES]
    findings.add("memory.shared.banks", Estimate(banks), "", "the stride in words at which conflicts are worst")
    several = [(d, each) for d, each in zip(degrees, full, strict=True) if d >= CLEAR]
    one_pass = fit_line([d for d, _ in several], [each for _, each in several])
    rate = one_pass.slope.into(banks * BANK_BYTES)
    findings.add("memory.shared.bytes_per_cycle", rate, "B/cycle", "what each further pass of a conflict adds")
    further = fit_line([d - 1 for d in degrees], alone)
    findings.add(
        "Λ of a further conflict", further.slope, "cycles", "chain of one warp, per degree of conflict", in_file=False
    )
    by_degree = sorted(zip(degrees, full, alone, strict=True), key=lambda row: row[0])
    for name, title, column, line, start in (
        ("conflicts", "Bank conflicts at full occupancy", 1, one_pass, 0),
        ("conflicts of one warp", "Λ with bank conflicts", 2, further, 1),
    ):
        ys = [row[column] for row in by_degree]
        findings.curves.append(
            Curve(
                name,
                title,
                "degree of conflict",
                "cycles per load",
                tuple(float(row[0]) for row in by_degree),
                tuple(y.value for y in ys),  # type: ignore[union-attr]
                tuple(y.spread for y in ys),  # type: ignore[union-attr]
                tuple(line.at(row[0] - start) for row in by_degree),
                f"{line.intercept.value:.2f} + {line.slope.value:.3f} · (degree{' − 1' if start else ''})",
            )
        )
