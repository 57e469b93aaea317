"""One pipe, two pipes, or two pipes behind an issue limit: the instruction mix.

Lemeire, Cornelis and Konstantinidis, "Analysis of the analytical performance models for GPUs and extracting the
underlying Pipeline model", §4.2, Eq. 43 to 45: β instructions with λ_1 and one with λ_2, over and over, at full
occupancy. Here as cycles of a round, of one SM, instead of the IPC of the first kind.
"""

from __future__ import annotations

from collections.abc import Sequence


def one_subsystem(beta: float, lambda_1: float, lambda_2: float) -> float:
    """Eq. 43: both kinds share a pipe."""
    return beta * lambda_1 + lambda_2


def two_subsystems(beta: float, lambda_1: float, lambda_2: float) -> float:
    """Eq. 44: a pipe each, and no issue limit."""
    return max(beta * lambda_1, lambda_2)


def two_with_issue_limit(beta: float, lambda_1: float, lambda_2: float, issue_limit: float) -> float:
    """Eq. 45: a pipe each, and `issue_limit` instructions a cycle of all kinds together."""
    return max(beta * lambda_1, lambda_2, (beta + 1) / issue_limit)


def best_model(
    betas: Sequence[float], cycles: Sequence[float], lambda_1: float, lambda_2: float, issue_limit: float
) -> tuple[str, dict[str, float]]:
    """The name of the equation that is nearest to measured cycles of a round, and each one's mean relative error.

    Where two are equally near (an issue limit that the mix does not reach) the one with fewer parts is named.
    """
    models = {
        "one subsystem": [one_subsystem(b, lambda_1, lambda_2) for b in betas],
        "two subsystems": [two_subsystems(b, lambda_1, lambda_2) for b in betas],
        "two subsystems with issue limit": [two_with_issue_limit(b, lambda_1, lambda_2, issue_limit) for b in betas],
    }
    errors = {
        name: sum(abs(p / c - 1) for p, c in zip(predicted, cycles, strict=True)) / len(betas)
        for name, predicted in models.items()
    }
    least = min(errors.values())
    return next(name for name in models if errors[name] <= least + 0.002), errors
