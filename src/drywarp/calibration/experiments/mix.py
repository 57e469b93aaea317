"""β ALU instructions to one SFU at full occupancy: one pipe, two, or two behind an issue limit (§4.2, Eq. 43-45)."""

from __future__ import annotations

from ..fits.mix import best_model, two_with_issue_limit
from ..result import Curve, Findings
from ..session import Session

BETAS = (1, 2, 3, 4, 5, 6, 8, 12)


def measure(session: Session, findings: Findings) -> None:
    """Compare the three equations; nothing of it goes to the file."""
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
        formula = f"nearest: {name}. Mean errors: {told}. Drawn: two subsystems with issue limit"
    else:
        findings.silent["subsystems of FFMA and MUFU"] = "λ of both is needed: run `chains` too"
    findings.curves.append(
        Curve(
            "mix",
            "β FFMA to one MUFU",
            "β",
            "cycles of a round and SM",
            tuple(map(float, BETAS)),
            tuple(r.value for r in rounds),
            tuple(r.spread for r in rounds),
            fit,
            formula,
        )
    )
