"""How many partitions an SM has, how many instructions they issue, and what a taken branch costs.

Independent chains of FFMA in one warp keep its partition as busy as one warp can; more warps bring more until every
partition has one. Several kinds of instructions on several pipes ask for more than the issue limit lets through.
"""

from __future__ import annotations

from ..device import Program, Run, Value
from ..estimate import Estimate
from ..machine_code import loop_of
from ..result import Curve, Findings
from ..session import Session

ARGUMENTS: dict[str, Value] = {"every": 1, "a": 3, "b": 5, "out": None}
FFMA = {"FFMA": 1}
TWO = {**FFMA, "SHF": 1}
THREE = {**TWO, "HADD2|HFMA2": 1}
"""What is in turn in the kernels that look for the issue limit."""
CHAINS = 8
"""Independent chains of a warp, more than any Λ over λ of FFMA."""


def measure(session: Session, findings: Findings) -> None:
    """Find ``scheduler.partitions``, ``issue_per_cycle`` and ``taken_cycles``, and one warp's issue distance."""
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
    findings.add("scheduler.partitions", Estimate(rounded), "", f"FFMA of many warps over those of one: {count:.2f}")
    findings.add(
        "issue distance of one warp",
        taken[0],
        "cycles",
        "independent FFMA of one warp, each from the next",
        in_file=False,
    )
    fit = tuple(rates[0].value * n / -(-n // rounded) for n in warps)
    findings.curves.append(
        Curve(
            "partitions",
            "Independent FFMA of few warps",
            "warps per SM",
            "warp instructions per cycle and SM",
            tuple(map(float, warps)),
            tuple(r.value for r in rates),
            tuple(r.spread for r in rates),
            fit,
            f"{rounded} partitions, the fullest decides",
        )
    )


def _issue_limit(session: Session, findings: Findings) -> None:
    """The most that one, two or three kinds of instruction reach: which of them share a pipe is not known here."""
    attributes = session.device.attributes
    grid, block = session.occupancy(attributes.max_warps_per_sm)
    partitions = findings.value("scheduler.partitions", 4)
    rates: dict[str, Estimate] = {}
    for kinds, template, macro in ((FFMA, "chain", "OP_FFMA"), (TWO, "mix", "TWO"), (THREE, "mix", "THREE")):
        arguments = ARGUMENTS if template == "chain" else {k: v for k, v in ARGUMENTS.items() if k != "every"}
        a_round = session.per_instruction(template, {macro: ""}, kinds, grid, block, arguments)
        rates[", ".join(kinds)] = a_round.into(len(kinds) * attributes.max_warps_per_sm / partitions)
    best = max(rates, key=lambda name: rates[name].value)
    how = f"{best.replace('|', ' or ')} at full occupancy, of one partition"
    findings.add("scheduler.issue_per_cycle", rates[best], "warp instructions/cycle", how)


def _taken_branch(session: Session, findings: Findings) -> None:
    """A loop of one FFMA: what it takes beyond the distances that its code states is the branch's."""
    program = Program("chain", (("OP_FFMA", ""), ("LENGTH", "1")))
    session.check(program, {"FFMA": 1})
    loop = loop_of(session.device.code(program))
    sms, turns = session.device.attributes.sm_count, (64, 576)
    times = [session.cycles(Run(program, sms, 32, {"turns": t, **ARGUMENTS})) for t in turns]
    turn = (times[1] - times[0]) / (turns[1] - turns[0])
    stated = sum(max(i.control.stall, 1) for i in loop if i.opcode != "BRA")
    findings.add("scheduler.taken_cycles", turn - stated, "cycles", "a short loop, less the distances in its code")
