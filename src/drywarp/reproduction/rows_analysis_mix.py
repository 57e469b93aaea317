"""The analysis paper's §4.2: what the Instruction Mix kernel does on one, two and limited subsystems.

Eqs. 43 to 45 give the throughput of β instructions of type 1 for each of type 2 (Fig. 12: λ_1 = 1, λ_2 = 4,
IL = 1). Eqs. 44 and 45 are printed with 1/λ_2 where Fig. 12, which rises with β, needs β/λ_2: they hold for
β = 1 alone. A published number here is what the printed equation gives, in full; its tolerance is a
thousandth. The simulation runs 48 warps in steady state. Under an issue limit it reaches the bound of Eq. 45
from β = λ_2/λ_1 on; below, round robin leaves the second pipeline idle at times (β = 1: 0.231, β = 2:
0.444), so that the bound itself, the roofline, is what is compared for β = 1.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..models import get_model
from ..models.roofline_mix import mix_cycles
from .kernels import Cost, chain, costs_of, instruction_mix, issue_limit_of, steady_ipc
from .row import Row, inconsistent, row

PAPER = "analysis"
WARPS, TURNS = 48, 16
FIRST, SECOND = "one", "two"
LAMBDA = {FIRST: 1.0, SECOND: 4.0}
LATENCY = 8.0
"""Any Λ that 48 warps hide: the equations have none."""


def ipc_one_subsystem(beta: float, first: float, second: float) -> float:
    """Eq. 43: β / (β λ_1 + λ_2)."""
    return beta / mix_cycles({FIRST: beta, SECOND: 1}, {FIRST: first, SECOND: second})


def ipc_printed(first: float, second: float, issue: float = float("inf")) -> float:
    """Eqs. 44 and 45 as printed: min(1/λ_1, 1/λ_2, what the issue limit leaves)."""
    return min(1 / first, 1 / second, issue)


def issue_term(beta: float, limit: float) -> float:
    """The last term of Eq. 45: β/(β+1) · IL."""
    return beta / (beta + 1) * limit


def simulated_mix(
    costs: Mapping[str, Cost], beta: int, limit: float = 0.0, first: str = FIRST, second: str = SECOND
) -> float:
    """IPC of type 1 in the simulation's steady state."""
    short = instruction_mix(costs, first, second, beta, TURNS, limit)
    return steady_ipc(short, instruction_mix(costs, first, second, beta, 2 * TURNS, limit), TURNS * beta, WARPS)


def mix_rows() -> list[Row]:
    """Eqs. 43 to 45 against the simulation, and what §4.2 and §4.3 say of single pipelines."""
    one = {name: Cost("alu", value, LATENCY) for name, value in LAMBDA.items()}
    two = {name: Cost(name, value, LATENCY) for name, value in LAMBDA.items()}
    first, second = LAMBDA[FIRST], LAMBDA[SECOND]
    found = [
        _equation("§4.2, Eq. 43", f"IPC on one subsystem, β = {beta}", ipc_one_subsystem(beta, first, second),
                  simulated_mix(one, beta))
        for beta in (1, 2, 4, 8, 16)
    ]  # fmt: skip
    tonga = costs_of("papers/analysis-tonga")
    found.append(
        _equation("§4.2, Eq. 44", "IPC on two subsystems, β = 1", ipc_printed(first, second), simulated_mix(two, 1))
    )
    found.append(
        inconsistent(PAPER, "§4.2, Eq. 44", "IPC on two subsystems, β = 4", f"{ipc_printed(first, second)}",
                     simulated_mix(two, 4),
                     "printed min(1/λ1, 1/λ2) = min(1, 1/4) = 0.25 for every β; Fig. 12 and the simulation have"
                     " min(1/λ1, β/λ2) = min(1, 4/4) = 1")
    )  # fmt: skip
    bound = get_model("roofline").predict(instruction_mix(two, FIRST, SECOND, 1, TURNS, 1.0), [WARPS]).curve[0]
    found.append(
        _equation("§4.2, Eq. 45", "IPC under an issue limit of 1, β = 1",
                  ipc_printed(first, second, issue_term(1, 1)), bound.warps_per_cycle * TURNS)
    )  # fmt: skip
    found.append(
        inconsistent(PAPER, "§4.2, Eq. 45", "IPC under an issue limit of 1, β = 4",
                     f"{ipc_printed(first, second, issue_term(4, 1))}", simulated_mix(two, 4, 1.0),
                     "printed min(1/λ1, 1/λ2, β/(β+1) IL) = min(1, 1/4, 4/5) = 0.25; with β/λ2 it is"
                     " min(1, 4/4, 4/5) = 0.8, which the simulation gives")
    )  # fmt: skip
    found += [
        _equation("§4.2, Eq. 45", f"its issue term β/(β+1) · IL, IL = 1, β = {beta}", issue_term(beta, 1),
                  simulated_mix(two, beta, 1.0))
        for beta in (4, 8, 16)
    ]  # fmt: skip
    found.append(
        _equation("§4.2, Table 4", "IPC of the mix on Tonga's one subsystem, no issue limit, β = 4",
                  ipc_one_subsystem(4, tonga["mul_f32"].lambda_, tonga["cos_apx_f32"].lambda_),
                  simulated_mix(tonga, 4, first="mul_f32", second="cos_apx_f32"))
    )  # fmt: skip
    return [*found, *_single()]


def _single() -> list[Row]:
    """Pipelines alone: the most that a GPU of Table 4 can issue of one class."""

    def peak(gpu: str) -> float:
        name = f"papers/analysis-{gpu}"
        costs, limit = costs_of(name), issue_limit_of(name)
        short, long = (chain(costs, "mul_f32", length, limit) for length in (64, 128))
        return steady_ipc(short, long, 64, WARPS)

    return [
        row(PAPER, "§4.2", "largest IPC to expect of Kepler", "4", peak("kepler")),
        row(
            PAPER, "§4.2", "λ of 128 CUDA cores that issue 4 instructions a cycle (Pascal)", "0.25", 1 / peak("pascal")
        ),
        _equation("§4.3", "IPC of mul.f32 measured on Maxwell (8/3)", 8 / 3, peak("maxwell")),
        inconsistent(
            PAPER,
            "Table 4",
            "λ_ALU of the Quadro K620 (Maxwell)",
            "0.25",
            1 / peak("maxwell"),
            "Table 5 and §4.3 give 0.375 for mul.f32, an IPC of 8/3; 0.25 is what its 128 lanes would give",
        ),
    ]


def _equation(place: str, quantity: str, published: float, computed: float) -> Row:
    """A row whose published number is a printed equation's or fraction's, good to a thousandth."""
    return row(PAPER, place, quantity, f"{published:.3f}", computed)
