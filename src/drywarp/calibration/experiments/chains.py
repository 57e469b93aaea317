"""λ and Λ of the classes of arithmetic: dependent chains over all occupancies, fitted by the boat hull."""

from __future__ import annotations

from ..device import Program
from ..estimate import Estimate
from ..fits.boat_hull import BoatHull, fit_boat_hull
from ..machine_code import waits_for_result
from ..result import Curve, Findings
from ..session import SHORT, Session
from .occupancies import occupancies
from .operations import Operation, for_architecture

ARGUMENTS = {"a": 3, "b": 5, "out": None}
WARPS_OF_PART = 8
"""Warps of one partition alone that tell whether a pipe is the partition's or the SM's."""
HIDDEN = 1.03
"""A flat part that is no longer than this many times the λ of one partition may be that λ, with Λ hidden below."""


def measure(session: Session, findings: Findings) -> None:
    """Find ``classes.*.lambda`` and ``latency`` of what `operations.OPERATIONS` lists for this architecture."""
    for operation in for_architecture(session.device.attributes.arch):
        _chain(session, findings, operation)


def _chain(session: Session, findings: Findings, operation: Operation) -> None:
    warps = occupancies(session.device.attributes.max_warps_per_sm)
    defines, opcodes = {operation.macro: ""}, dict(operation.opcodes)

    def step(grid: int, block: int, every: int) -> Estimate:
        arguments = {"every": every, **ARGUMENTS}
        taken = session.per_instruction("chain", defines, opcodes, grid, block, arguments, others=operation.others)
        return taken / operation.count

    points = [step(*session.occupancy(n), 1) for n in warps]
    hull = fit_boat_hull(warps, points)
    partitions = round(findings.value("scheduler.partitions", 4))
    part = step(session.device.attributes.sm_count, WARPS_OF_PART * partitions * 32, partitions)
    scope = scope_of(hull, part, WARPS_OF_PART, partitions)
    findings.scopes[operation.class_] = scope
    program = Program("chain", ((operation.macro, ""), ("LENGTH", str(SHORT))))
    if not waits_for_result(session.device.code(program), operation.opcodes[0][0]):
        findings.distances.add(operation.class_)
    note(findings, operation.class_, hull, scope, partitions, operation.pure)
    findings.curves.append(curve_of(operation.class_, f"Chain of {operation.opcodes[0][0]}", warps, points, hull))


def scope_of(hull: BoatHull, part: Estimate, warps: int, partitions: int) -> str:
    """``partition`` or ``sm``: which of the two the cycles of `warps` warps of one partition alone fit better."""
    if hull.lambda_ is None:
        return "sm"
    flat, slope = (hull.latency.value if hull.latency else 0.0), hull.lambda_.value
    own, shared = max(flat, warps * partitions * slope), max(flat, warps * slope)
    return "partition" if abs(part.value - own) <= abs(part.value - shared) else "sm"


def note(findings: Findings, class_: str, hull: BoatHull, scope: str, partitions: int, pure: bool = True) -> None:
    """Write a hull down as λ (at the scope of the pipe) and Λ of a class."""
    own = partitions if scope == "partition" else 1
    if hull.lambda_:
        how = "dependent chain over all occupancies, rising part" + (", of one partition" if own > 1 else "")
        findings.add(f"classes.{class_}.lambda", hull.lambda_ * own, "cycles", how)
    else:
        findings.silent[f"classes.{class_}.lambda"] = "Λ is longer than all warps together take"
    if not pure:
        findings.silent[f"classes.{class_}.latency"] = "the chain holds other instructions too"
    elif hull.latency is None or (hull.lambda_ and hull.latency.value <= HIDDEN * own * hull.lambda_.value):
        findings.silent[f"classes.{class_}.latency"] = "no longer than λ, which hides it"
    else:
        how = "dependent chain, flat part"
        if class_ in findings.distances:
            how += "; the distance that the compiler leaves, as nothing waits for a scoreboard"
        findings.add(f"classes.{class_}.latency", hull.latency, "cycles", how)


def curve_of(name: str, title: str, warps: list[int], points: list[Estimate], hull: BoatHull) -> Curve:
    """The boat hull as a curve."""
    latency = f"Λ = {hull.latency.value:.2f}" if hull.latency else "Λ not reached"
    slope = f"λ = {hull.lambda_.value:.3f}" if hull.lambda_ else "λ not reached"
    return Curve(
        f"chain {name}",
        title,
        "warps per SM",
        "cycles for an instruction of each",
        tuple(map(float, warps)),
        tuple(p.value for p in points),
        tuple(p.spread for p in points),
        tuple(hull.at(n) for n in warps),
        f"max(Λ, n·λ): {latency}, {slope} of the SM",
    )
