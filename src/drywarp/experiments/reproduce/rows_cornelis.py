"""Numbers of Cornelis and Lemeire, "The pipeline performance model: a generic executable model for GPUs".

Most of the paper's figures are measured run times in plots. These can be recomputed: its Eq. 1, the law of one
pipeline, with the λ and Λ of Table II in both of its cases, compared with the simulation; the sum under Fig. 1; λ from
the processing elements of Table I (§III.B: λ = 1 is 32 instructions per cycle and compute unit); how many occupancies
§IV.A explores. Eq. 1 and the sum are printed as formulas, never evaluated: their rows are of kind `derived`.
"""

from __future__ import annotations

from ...hardware import limits_of, load_gpu
from ...hardware.occupancy import OccupancyLimits, occupancy
from . import Value, Values
from .small_kernels import Instruction, chain, costs_of, kernel, simulated_cycles

PAPER = "Cornelis"
GPUS = {"Fermi": "papers/cornelis-fermi", "Pascal": "papers/cornelis-pascal"}
BENCHMARKS = {"fadd": "alu", "cos": "sfu", "loop": "alu", "memory": "mem"}
LENGTH = 32
ELEMENTS = {"Fermi": 448, "Pascal": 1280}
"""# compute elements, Table I."""


def pipeline_cycles(warps: int, length: int, lambda_: float, latency: float) -> float:
    """Eq. 1 as presumably intended: N·Λ + (W−1)·λ while W ≤ Λ/λ, else Λ + (N·W−1)·λ."""
    if warps * lambda_ <= latency:
        return length * latency + (warps - 1) * lambda_
    return latency + (length * warps - 1) * lambda_


def fig_1_cycles(index: float, memory: tuple[float, float], fmadd: float) -> float:
    """Fig. 1: Λ_index + Λ_mem + λ_mem + Λ_fmadd + λ_mem; the warp finishes when its store has issued."""
    lambda_mem, latency_mem = memory
    return index + latency_mem + lambda_mem + fmadd + lambda_mem


def computed() -> dict[str, Values]:
    """Every number of the paper that follows from its own inputs."""
    return {PAPER: {**_table_1(), **_equation_1(), **_fig_1(), **_occupancies()}}


def _table_1() -> Values:
    found: Values = {}
    for name, file in GPUS.items():
        p = load_gpu(file).parameter
        found[f"λ of fadd, {name}"] = p("warp_size") / (ELEMENTS[name] / p("sm_count"))
    return found


def _equation_1() -> Values:
    found: Values = {}
    for name, file in GPUS.items():
        costs = costs_of(file)
        for benchmark in BENCHMARKS:
            cost = costs[benchmark]
            ridge = cost.latency / cost.lambda_
            for warps, case in ((max(1, int(ridge / 2)), "W ≤ Λ/λ"), (int(ridge) + 9, "W > Λ/λ")):
                cycles = simulated_cycles(chain(costs, benchmark, LENGTH), warps)
                quantity = f"cycles of {warps} warps of {LENGTH} dependent {benchmark}, {name} ({case})"
                found[quantity] = Value(cycles, pipeline_cycles(warps, LENGTH, cost.lambda_, cost.latency))
    return found


def _fig_1() -> Values:
    """A load of X and one of Y, fmadd, a store; fadd's Λ is used for the index."""
    found: Values = {}
    line = [
        Instruction("fadd"),
        Instruction("memory", (0,)),
        Instruction("memory", (0,)),
        Instruction("fmadd", (1, 2)),
        Instruction("memory", (3,), store=True),
    ]
    for name, file in GPUS.items():
        costs = costs_of(file)
        memory = costs["memory"]
        expected = fig_1_cycles(costs["fadd"].latency, (memory.lambda_, memory.latency), costs["fmadd"].latency)
        cycles = simulated_cycles(kernel(costs, line, memory=("memory",)), 1)
        found[f"least cycles of one warp of Y = a X + Y, {name}"] = Value(cycles, expected)
    return found


def occupancies(limits: OccupancyLimits) -> set[tuple[int, int]]:
    """Warps per group, a power of two, and groups per SM that some allocation of shared memory allows."""
    sizes = [1 << power for power in range((limits.max_threads_per_block // limits.warp_size).bit_length())]
    allocations = range(0, limits.shared_bytes_per_block_optin + 1, limits.shared_allocation_unit)
    return {
        (warps, occupancy(limits, FEW_REGISTERS, shared, warps * limits.warp_size).blocks_per_sm)
        for warps in sizes
        for shared in allocations
    }


FEW_REGISTERS = 16
"""Registers per thread that limit no occupancy."""


def _occupancies() -> Values:
    """§IV.A: the occupancies of group sizes that are powers of two, from 32 threads on."""
    found: Values = {}
    for name, capability in (("Fermi", "2.0"), ("Pascal", "6.1")):
        every = occupancies(limits_of(capability))
        found[f"{name}: combinations of group size and count"] = len(every)
        found[f"{name}: different warp counts among them"] = len({size * groups for size, groups in every})
    return found
