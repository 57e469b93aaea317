"""Latency under load and what limits the accesses under way (Volkov, §6.4), over occupancies and independent chains."""

from __future__ import annotations

from ..device import Program, Run, Zeros
from ..estimate import Estimate
from ..fits.contention import fit_contention
from ..fits.steps import in_flight, limit_of
from ..machine_code import cycles_between_loads
from ..result import Curve, Findings
from ..session import Session

STEPS = (16, 48)
WARPS = (1, 2, 4, 8, 16, 24, 32)
CHAINS = (1, 4)
BYTES = 128
"""What a warp's access of 4 bytes a lane moves."""


def measure(session: Session, findings: Findings) -> None:
    """Find ``parameters.contention_*``; look for a limit of accesses under way."""
    attributes = session.device.attributes
    sms = attributes.sm_count
    points: list[tuple[float, float, float, float]] = []
    for chains in CHAINS:
        program = Program("load", (("ILP", str(chains)),))
        session.check(program, {"LDG": 4 * chains}, at_most=12 * 4 * chains)
        for warps in (n for n in WARPS if n <= attributes.max_warps_per_sm):
            data = Zeros(sms * warps * BYTES * chains * (STEPS[1] + 1))
            arguments = {"data": data, "out": Zeros(64)}
            times = [session.cycles(Run(program, sms, warps * 32, {"steps": s, **arguments})) for s in STEPS]
            step = (times[1] - times[0]) / (STEPS[1] - STEPS[0])
            accesses = warps * chains
            gbs = sms * accesses * BYTES / step.value * findings.clock_mhz / 1000
            points.append((accesses, gbs, step.value, step.spread))
    points.sort()
    # What the compiler leaves between a load's result and the next address is no latency.
    alone = session.device.code(Program("load", (("ILP", "1"),)))
    _contention(findings, points, cycles_between_loads(alone, "LDG"))
    asked = [p[0] for p in points]
    base = points[0][2]
    reached = in_flight([p[0] / p[2] for p in points], [base] * len(points))
    limit = limit_of(asked, reached)
    if limit is None:
        findings.silent["limit of accesses under way"] = "none shows: more are under way the more are asked for"
    else:
        how = "Little's law with Λ of one warp; at the bandwidth of DRAM this is no more than that"
        findings.add("accesses under way", Estimate(limit), "warp accesses per SM", how, in_file=False)


def _contention(findings: Findings, points: list[tuple[float, float, float, float]], between: float) -> None:
    throughput, latency = [p[1] for p in points], [p[2] - between for p in points]
    fit = fit_contention(throughput, latency)
    error = fit.error
    how = f"latency over throughput, mean error of the fit {error:.1%}"
    for key, value, unit in (
        ("contention_latency", fit.a, "cycles"),
        ("contention_slope", fit.b, "cycles"),
        ("contention_gbs", fit.c, "GB/s"),
    ):
        findings.add(f"parameters.{key}", Estimate(value, value * error), unit, how, in_file=value > 0)
    order = sorted(points, key=lambda p: p[1])
    findings.curves.append(
        Curve(
            "load",
            "Latency under load",
            "throughput, GB/s",
            "cycles from a load to its result",
            tuple(p[1] for p in order),
            tuple(p[2] - between for p in order),
            tuple(p[3] for p in order),
            tuple(fit.at(p[1]) for p in order),
            f"a + b · x / (c − x): a = {fit.a:.1f} cycles, b = {fit.b:.2f} cycles, c = {fit.c:.1f} GB/s",
        )
    )
