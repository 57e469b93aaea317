"""Memory under load: mean latency and accesses in flight, single latencies, and occupancy over time (Volkov)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, quantiles

from .device import LATENCIES, Program, Run, Value, Zeros
from .fits import best_model, fit_contention, in_flight, limit_of, two_with_issue_limit
from .journal import Session, cycles_between_loads
from .result import Estimate, Findings

STEPS = (16, 48)
WARPS = (1, 2, 4, 8, 16, 24, 32)
CHAINS = (1, 4)
BYTES = 128
"""Bytes moved by a warp's access of 4 bytes per lane."""


def measure_load(session: Session, findings: Findings) -> None:
    """Measure ``parameters.contention_*``, and look for a limit of accesses in flight."""
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
    # The compiler's distance between a load's result and the next address is not latency.
    alone = session.device.code(Program("load", (("ILP", "1"),)))
    _contention(findings, points, cycles_between_loads(alone, "LDG"))
    asked = [p[0] for p in points]
    base = points[0][2]
    reached = in_flight([p[0] / p[2] for p in points], [base] * len(points))
    limit = limit_of(asked, reached)
    if limit is None:
        findings.silent["limit of accesses in flight"] = (
            "no limit: the number in flight rises with the number requested"
        )
    else:
        how = "Little's law with Λ of one warp; may only reflect the DRAM bandwidth"
        findings.add("accesses in flight", Estimate(limit), "warp accesses per SM", how, in_file=False)


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
    labels, at = ("throughput, GB/s", "cycles from a load to its result"), [p[1] for p in order]
    told = f"a + b · x / (c − x): a = {fit.a:.1f} cycles, b = {fit.b:.2f} cycles, c = {fit.c:.1f} GB/s"
    taken = [Estimate(p[2] - between, p[3]) for p in order]
    findings.plot("load", "Latency under load", labels, at, taken, [fit.at(x) for x in at], told)


# Latencies of single accesses (Volkov, §6.6 and Table 6.6): one of eight is timed, in one warp of each block.

TIMED_STEPS, LOADS_A_STEP, WORDS = 24, 8, 64
SINGLE_WARPS = (1, 4, 16, 32, 64)
PERCENTILES = (5, 25, 50, 75, 95)


def measure_latencies(session: Session, findings: Findings) -> None:
    """Record how latencies are distributed at some occupancies, for the report only."""
    attributes = session.device.attributes
    sms, program = attributes.sm_count, Program("latency")
    session.check(program, {"LDG": LOADS_A_STEP}, at_most=60)
    for warps in (n for n in SINGLE_WARPS if n <= attributes.max_warps_per_sm):
        block = max(1, warps // 16)  # as an SM holds 16 blocks at least
        given: dict[str, Value] = {
            "steps": TIMED_STEPS,
            "data": Zeros(sms * warps * BYTES * (TIMED_STEPS * LOADS_A_STEP + 1)),
            "out": Zeros(64),
            LATENCIES: Zeros(4 * WORDS * sms * warps // block),
        }
        seen = session.watch(Run(program, sms * warps // block, 32 * block, given))
        took = seen.latencies
        cut = quantiles(took, n=100, method="inclusive")
        low, *_, high = told = [cut[percent - 1] for percent in PERCENTILES]
        cycles = max(end for _, end in seen.warps)
        gbs = sms * warps * BYTES * TIMED_STEPS * LOADS_A_STEP / cycles * findings.clock_mhz / 1000
        listed = ", ".join(f"{percent} % {value:.0f}" for percent, value in zip(PERCENTILES, told, strict=True))
        # The 5th and the 95th percentile of a normal distribution are 3.29 standard deviations apart.
        spread = Estimate(cut[49], (high - low) / 3.29)
        how = f"{gbs:.0f} GB/s; min {took[0]:.0f}, {listed}, max {took[-1]:.0f}; spread of single accesses"
        findings.add(f"latency of single accesses, {warps} warps", spread, "cycles", how, in_file=False)
        title = f"Latency of single accesses at {warps} warps per SM, {gbs:.0f} GB/s"
        shares = [Estimate((number + 1) / 100) for number in range(99)]
        findings.plot(f"latencies-{warps}", title, ("cycles", "share of accesses that take no longer"), cut, shares)


# Occupancy over time (Volkov, §5.6 and §5.8): when each warp starts and ends.

ROUNDS, BLOCK_WARPS = 4, (4, 17)
"""Blocks that follow each other on each SM, and warps of a block: 17 leave one of four schedulers with one more."""
OCCUPANCY_LENGTH, OCCUPANCY_ITERATIONS = 64, 4


def occupancy_over_time(lives: Sequence[tuple[float, float]]) -> tuple[list[float], list[int]]:
    """The moments at which the number of active warps changes, and that number from each of them on."""
    changes: dict[float, int] = {}
    for start, end in lives:
        changes[start] = changes.get(start, 0) + 1
        changes[end] = changes.get(end, 0) - 1
    moments = [moment for moment, change in sorted(changes.items()) if change or moment == 0]
    active, now = [], 0
    for moment in moments:
        now += changes[moment]
        active.append(now)
    return moments, active


def measure_occupancy(session: Session, findings: Findings) -> None:
    """Record active warps over time, for the report only: MUFU chains, one block on an SM at a time and many."""
    attributes = session.device.attributes
    program = Program("chain", (("OP_MUFU", ""), ("LENGTH", str(OCCUPANCY_LENGTH))))
    session.check(program, {"MUFU": OCCUPANCY_LENGTH})
    arguments = {"iterations": OCCUPANCY_ITERATIONS, "every": 1, "a": 3, "b": 5, "out": None}
    for block in BLOCK_WARPS:
        alone = block == BLOCK_WARPS[-1]
        resident = 1 if alone else attributes.max_warps_per_sm // block
        shared = attributes.shared_bytes_per_block_optin if alone else 0
        run = Run(program, ROUNDS * resident * attributes.sm_count, 32 * block, arguments, shared)
        lives = session.watch(run).warps
        moments, active = occupancy_over_time(lives)
        most, last = max(active), max(end for _, end in lives)
        mean_active = sum(end - start for start, end in lives) / last
        spans = [after - before for before, after in pairwise(moments)]
        full = sum(span for span, now in zip(spans, active, strict=False) if now == most) / last
        name = f"active warps, blocks of {block}"
        how = (
            f"at most {most}, which is {full:.0%} of the time; a warp takes {fmean(e - s for s, e in lives):.0f} cycles"
        )
        findings.add(name, Estimate(mean_active), "warps per SM", how, in_file=False)
        title, labels = f"Occupancy over time, blocks of {block} warps", ("cycles", "active warps per SM")
        steps = [float(now) for now in active for _ in range(2)][:-1]
        x = [moment for moment in moments for _ in range(2)][1:]
        findings.plot(f"occupancy-{block}", title, labels, x, [*map(Estimate, steps)], steps)


# The occupancies to measure.


def occupancies(most: int) -> list[int]:
    """Warps per SM from 1 to `most`, denser where the cusp of a boat hull may be."""
    return [n for n in (1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64) if n <= most]


# Λ towards other consumers: chains that alternate between two classes.
#
# Such a chain shows the sum of Λ from the first to the second class and back; the figure is the excess over the two
# classes' own Λ.

CLASSES = {"FFMA": "fp32", "MUFU": "sfu", "IMAD": "imad", "SHF": "shift", "POPC": "bit", "SHFL": "shuffle"}
PAIRS = (*(("FFMA", other) for other in ("SHF", "IMAD", "MUFU", "SHFL")), ("SHF", "POPC"), ("MUFU", "SHFL"))


def measure_round_trips(session: Session, findings: Findings) -> None:
    """Record each pair's round trip for the report only: the GPU file has one Λ per class."""
    attributes = session.device.attributes
    for first, second in PAIRS:
        defines, opcodes, sms = {"FIRST": first, "SECOND": second}, {first: 1, second: 1}, attributes.sm_count
        step = session.per_instruction("pair", defines, opcodes, sms, 32, {"a": 3, "b": 5, "out": None})
        name = f"Λ {first} to {second} and back"
        own = [findings.figures.get(f"classes.{CLASSES[op]}.latency") for op in (first, second)]
        known = [figure.value for figure in own if figure]
        how = "alternating chain of the two"
        if len(known) == 2:
            how += f"; {step.value - sum(known):+.2f} compared with the two classes' own Λ"
        findings.add(name, step, "cycles", how, in_file=False)


# β ALU instructions to one SFU at full occupancy: one pipe, two, or two behind an issue limit (§4.2, Eq. 43-45).

BETAS = (1, 2, 3, 4, 5, 6, 8, 12)


def measure_mix(session: Session, findings: Findings) -> None:
    """Compare the three equations, for the report only."""
    most = session.device.attributes.max_warps_per_sm
    grid, block = session.occupancy(most)
    rounds = []
    for beta in BETAS:
        opcodes = {"FFMA": beta, "MUFU": 1}
        taken = session.per_instruction("mix", {"BETA": str(beta)}, opcodes, grid, block, {"a": 3, "b": 5, "out": None})
        rounds.append(taken / most)
    partitions = round(findings.value("scheduler.partitions", 4))
    limit = findings.value("scheduler.issue_per_cycle", 1.0) * partitions
    lambda_1 = findings.value("classes.fp32.lambda", 0.0) / partitions
    lambda_2 = findings.value("classes.sfu.lambda", 0.0) / partitions
    fit: tuple[float, ...] = ()
    formula = ""
    if lambda_1 and lambda_2:
        name, errors = best_model(BETAS, [r.value for r in rounds], lambda_1, lambda_2, limit)
        fit = tuple(two_with_issue_limit(b, lambda_1, lambda_2, limit) for b in BETAS)
        told = ", ".join(f"{model} {error:.1%}" for model, error in errors.items())
        formula = f"best fit: {name}. Mean errors: {told}. Plotted: two subsystems with issue limit"
    else:
        findings.silent["subsystems of FFMA and MUFU"] = "needs λ of both: run `chains` too"
    findings.plot("mix", "β FFMA to one MUFU", ("β", "cycles per round and SM"), BETAS, rounds, fit, formula)
