"""The number of partitions of an SM, their issue rate, and the cost of a taken branch, a barrier and a block launch.

Independent chains of FFMA in one warp keep its partition as busy as one warp can; more warps increase the rate until
every partition has one. Several kinds of instructions on several pipes demand more than the issue limit allows.
"""

from __future__ import annotations

from .device import Program, Run, Value, Zeros
from .fits import fit_line
from .journal import Session, cycles_between_loads, loop_of
from .result import Estimate, Findings

ARGUMENTS: dict[str, Value] = {"every": 1, "a": 3, "b": 5, "out": None}
FFMA = {"FFMA": 1}
TWO = {**FFMA, "SHF": 1}
THREE = {**TWO, "HADD2|HFMA2": 1}
"""Instructions that alternate in the kernels that measure the issue limit."""
CHAINS = 8
"""Independent chains per warp, more than any Λ / λ of FFMA."""


def measure_issue(session: Session, findings: Findings) -> None:
    """Measure ``scheduler.partitions``, ``issue_per_cycle`` and ``taken_cycles``, and one warp's issue distance."""
    _partitions(session, findings)
    _issue_limit(session, findings)
    _taken_branch(session, findings)


def _partitions(session: Session, findings: Findings) -> None:
    sms, warps = session.device.attributes.sm_count, [1, 2, 3, 4, 5, 6, 8, 12, 16]
    defines = {"OP_FFMA": "", "ILP": str(CHAINS)}
    taken = [session.per_instruction("chain", defines, {"FFMA": 1}, sms, n * 32, ARGUMENTS) for n in warps]
    rates = [t.into(n) for n, t in zip(warps, taken, strict=True)]
    best = max(rates, key=lambda rate: rate.value)
    count = best.value / rates[0].value
    rounded = max(1, round(count))
    findings.add(
        "scheduler.partitions", Estimate(rounded), "", f"FFMA rate of many warps over that of one: {count:.2f}"
    )
    how = "between independent FFMA of one warp"
    findings.add("issue distance of one warp", taken[0], "cycles", how, in_file=False)
    labels = "warps per SM", "warp instructions per cycle and SM"
    fit = [rates[0].value * n / -(-n // rounded) for n in warps]
    told = f"{rounded} partitions, limited by the fullest"
    findings.plot("partitions", "Independent FFMA of few warps", labels, warps, rates, fit, told)


def _issue_limit(session: Session, findings: Findings) -> None:
    """The highest rate of one, two or three kinds of instruction, because it is unknown here which share a pipe."""
    attributes = session.device.attributes
    grid, block = session.occupancy(attributes.max_warps_per_sm)
    partitions = findings.value("scheduler.partitions", 4)
    rates: dict[str, Estimate] = {}
    for kinds, template, macro in ((FFMA, "chain", "OP_FFMA"), (TWO, "mix", "TWO"), (THREE, "mix", "THREE")):
        arguments = ARGUMENTS if template == "chain" else {k: v for k, v in ARGUMENTS.items() if k != "every"}
        a_round = session.per_instruction(template, {macro: ""}, kinds, grid, block, arguments)
        rates[", ".join(kinds)] = a_round.into(len(kinds) * attributes.max_warps_per_sm / partitions)
    best = max(rates, key=lambda name: rates[name].value)
    how = f"{best.replace('|', ' or ')} at full occupancy, per partition"
    findings.add("scheduler.issue_per_cycle", rates[best], "warp instructions/cycle", how)


def _taken_branch(session: Session, findings: Findings) -> None:
    """A loop of one FFMA: its time beyond the distances scheduled in its code is the branch cost."""
    program = Program("chain", (("OP_FFMA", ""), ("LENGTH", "1")))
    session.check(program, {"FFMA": 1})
    loop = loop_of(session.device.code(program))
    sms, iterations = session.device.attributes.sm_count, (64, 576)
    times = [session.cycles(Run(program, sms, 32, {"iterations": t, **ARGUMENTS})) for t in iterations]
    iteration = (times[1] - times[0]) / (iterations[1] - iterations[0])
    stated = sum(max(i.control.stall, 1) for i in loop if i.opcode != "BRA")
    findings.add(
        "scheduler.taken_cycles", iteration - stated, "cycles", "a short loop, minus the distances in its code"
    )


# The iterative barrier (§6.2): consecutive barriers for different block sizes.

WARPS = (1, 2, 4, 8, 12, 16, 24, 32)


def measure_barrier(session: Session, findings: Findings) -> None:
    """Measure ``classes.barrier``: g warps take Λ + (g − 1)·λ from one barrier to the next."""
    sms = session.device.attributes.sm_count
    arguments = {"every": 1, "a": 3, "b": 5, "out": None}
    points = [session.per_instruction("chain", {"OP_BAR": ""}, {"BAR": 1}, sms, g * 32, arguments) for g in WARPS]
    line = fit_line([g - 1 for g in WARPS], points)
    findings.add("classes.barrier.lambda", line.slope, "cycles", "consecutive barriers, cost of each additional warp")
    findings.add("classes.barrier.latency", line.intercept, "cycles", "consecutive barriers, of one warp")
    labels, fit = ("warps per block", "cycles per barrier"), [line.at(g - 1) for g in WARPS]
    findings.plot("barrier", "Iterative barrier", labels, WARPS, points, fit, "Λ + (g − 1)·λ")


# Γ: what a barrier adds to each warp, in DRAM latencies times the share of memory instructions (GPUPerf, Eqs. 7, 8).
#
# Sim et al. chose 64 for their GPU "based on microarchitecture simulations" without saying which. Here warps load fresh
# memory, compute on it, and meet at a barrier, or not; the block fills its SM, so that no other block hides the wait.

COMPUTING = (16, 64, 128, 256)
"""Dependent FFMA between two loads."""
ROUNDS = (8, 40)
"""Loads of a warp in the two launches, whose difference excludes all other costs."""
UNROLLED = 4


def measure_synchronisation(session: Session, findings: Findings) -> None:
    """Measure ``parameters.sync_gamma``: what barriers add, over what they would with Γ = 1, in all mixes."""
    attributes = session.device.attributes
    warps = min(attributes.max_warps_per_sm, attributes.max_threads_per_block // 32)
    loads = [_loads(length, synchronised=False) for length in COMPUTING]
    alone = _round(session, loads[0], 1) - cycles_between_loads(session.device.code(loads[0]), "LDG")
    added, unit = Estimate(0.0), []
    points = []
    for length, plain in zip(COMPUTING, loads, strict=True):
        wait = _round(session, _loads(length, synchronised=True), warps) - _round(session, plain, warps)
        unit.append(alone.value * UNROLLED / len(loop_of(session.device.code(plain))))
        points.append(wait / warps)
        added += points[-1]
    gamma = added / sum(unit)
    how = f"barriers of {warps} warps between loads and {COMPUTING[0]} to {COMPUTING[-1]} FFMA, against no barriers"
    findings.add("parameters.sync_gamma", gamma, "F_sync / (avg_DRAM_lat · memory share)", how)
    labels = "DRAM latency times the share of memory instructions, cycles", "cycles per warp and barrier"
    title, fit = "What a barrier adds to each warp of an SM", [gamma.value * x for x in unit]
    told = f"F_sync = Γ · avg_DRAM_lat · #mem_insts / #insts: Γ = {gamma.value:.3g}"
    findings.plot("synchronisation", title, labels, unit, points, fit, told)


def _loads(length: int, synchronised: bool) -> Program:
    return Program("sync", (("LENGTH", str(length)), *((("SYNC", ""),) if synchronised else ())))


def _round(session: Session, program: Program, warps: int) -> Estimate:
    """Cycles from one load of a warp to the next."""
    length = int(dict(program.defines)["LENGTH"])
    session.check(program, {"LDG": UNROLLED, "FFMA": UNROLLED * length}, at_most=12 * UNROLLED)
    sms = session.device.attributes.sm_count
    data = Zeros(sms * warps * 128 * (ROUNDS[1] + 1))
    times = [
        session.cycles(Run(program, sms, warps * 32, {"steps": steps, "data": data, "out": Zeros(64)}))
        for steps in ROUNDS
    ]
    return (times[1] - times[0]) / (ROUNDS[1] - ROUNDS[0])


# Λ_launch: from the end of a thread block to the start of its successor.

WAVES = (1, 2, 4, 8, 16, 32)
LENGTH, ITERATIONS = 32, 2


def measure_block_launch(session: Session, findings: Findings) -> None:
    """Measure ``device.block_launch_latency``: each additional block of an SM takes its own time plus Λ_launch.

    Each one-warp block uses so much shared memory that only one fits on an SM.
    """
    attributes = session.device.attributes
    program = Program("chain", (("OP_FFMA", ""), ("LENGTH", str(LENGTH))))
    session.check(program, {"FFMA": LENGTH})
    arguments = {"iterations": ITERATIONS, "every": 1, "a": 3, "b": 5, "out": None}
    shared = attributes.shared_bytes_per_block_optin
    points = [session.cycles(Run(program, waves * attributes.sm_count, 32, arguments, shared)) for waves in WAVES]
    line = fit_line([w - 1 for w in WAVES], points)
    how = "short consecutive blocks, minus the time of one"
    findings.add("device.block_launch_latency", line.slope - points[0], "cycles", how)
    told, fit = f"each additional block: {line.slope.value:.0f} cycles", [line.at(w - 1) for w in WAVES]
    findings.plot("blocks", "Consecutive blocks", ("blocks per SM", "cycles"), WAVES, points, fit, told)
