"""Numbers of Cornelis and Lemeire, "The pipeline performance model: a generic executable model for GPUs".

Most of the paper's figures are measured run times in plots. These can be recomputed: its Eq. 1, the law of one
pipeline, with the λ and Λ of Table II in both of its cases, compared with the simulation; the sum under Fig. 1; λ from
the processing elements of Table I (§III.B: λ = 1 is 32 instructions per cycle and compute unit). Eq. 1 and the sum are
printed as formulas, never evaluated: their rows are of kind `derived`.
"""

from __future__ import annotations

from ...hardware import load_gpu
from .row import Instruction, LeftOut, Row, chain, costs_of, derived, kernel, row, simulated_cycles

PAPER = "Cornelis"
GPUS = {"Fermi": "papers/cornelis-fermi", "Pascal": "papers/cornelis-pascal"}
BENCHMARKS = {"fadd": "alu", "cos": "sfu", "loop": "alu", "memory": "mem"}
LENGTH = 32
ELEMENTS = {"Fermi": 448, "Pascal": 1280}
"""# compute elements, Table I."""

LEFT_OUT = (
    LeftOut(PAPER, "Table II: average errors and standard deviations", "the measured run times are only plotted"),
    LeftOut(PAPER, "Table II: λ and Λ but λ of fadd", "measured; they are the inputs of the other rows"),
)


def pipeline_cycles(warps: int, length: int, lambda_: float, latency: float) -> float:
    """Eq. 1 as presumably intended: N·Λ + (W−1)·λ while W ≤ Λ/λ, else Λ + (N·W−1)·λ."""
    if warps * lambda_ <= latency:
        return length * latency + (warps - 1) * lambda_
    return latency + (length * warps - 1) * lambda_


def fig_1_cycles(index: float, memory: tuple[float, float], fmadd: float) -> float:
    """Fig. 1: Λ_index + Λ_mem + λ_mem + Λ_fmadd + λ_mem; the warp finishes when its store has issued."""
    lambda_mem, latency_mem = memory
    return index + latency_mem + lambda_mem + fmadd + lambda_mem


def rows() -> list[Row]:
    """Every number of the paper that follows from its own inputs."""
    return [*_table_1(), *_equation_1(), *_fig_1()]


def _table_1() -> list[Row]:
    found = []
    for name, printed in (("Fermi", "1"), ("Pascal", "0.25")):
        gpu = load_gpu(GPUS[name])
        lanes = ELEMENTS[name] / gpu.parameter("sm_count")
        lambda_ = gpu.parameter("warp_size") / lanes
        quantity = f"λ of fadd, {name}"
        found.append(row(PAPER, "Table II, from Table I", quantity, printed, lambda_, kind="input"))
    return found


def _equation_1() -> list[Row]:
    found = []
    for name, file in GPUS.items():
        costs = costs_of(file)
        for benchmark in BENCHMARKS:
            cost = costs[benchmark]
            ridge = cost.latency / cost.lambda_
            for warps, case in ((max(1, int(ridge / 2)), "W ≤ Λ/λ"), (int(ridge) + 9, "W > Λ/λ")):
                expected = pipeline_cycles(warps, LENGTH, cost.lambda_, cost.latency)
                cycles = simulated_cycles(chain(costs, benchmark, LENGTH), warps)
                quantity = f"cycles of {warps} warps of {LENGTH} dependent {benchmark}, {name} ({case})"
                found.append(derived(PAPER, "§III.A, Eq. 1, Table II", quantity, expected, cycles))
    return found


def _fig_1() -> list[Row]:
    """A load of X and one of Y, fmadd, a store; fadd's Λ is used for the index."""
    found = []
    for name, file in GPUS.items():
        costs = costs_of(file)
        line = [
            Instruction("fadd"),
            Instruction("memory", (0,)),
            Instruction("memory", (0,)),
            Instruction("fmadd", (1, 2)),
            Instruction("memory", (3,), store=True),
        ]
        memory = costs["memory"]
        expected = fig_1_cycles(costs["fadd"].latency, (memory.lambda_, memory.latency), costs["fmadd"].latency)
        cycles = simulated_cycles(kernel(costs, line, memory=("memory",)), 1)
        found.append(
            derived(PAPER, "Fig. 1", f"least cycles of one warp of Y = a X + Y, {name}", expected, cycles,
                    note="with Λ of fadd for the index, which the paper does not list")
        )  # fmt: skip
    return found
