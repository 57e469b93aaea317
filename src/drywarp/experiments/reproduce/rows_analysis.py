"""Numbers of Lemeire, Cornelis and Konstantinidis, "Analysis of the analytical performance models for GPUs".

And of Cornelis and Lemeire, "The pipeline performance model: a generic executable model for GPUs".
"""

from __future__ import annotations

from collections.abc import Mapping

from ...hardware import limits_of, load_gpu
from ...hardware.occupancy import OccupancyLimits, occupancy
from ...models import get_model
from ...models.gpumech import issue_probability, nonoverlapped_rr, nonoverlapped_rr_corrected
from ...models.inputs import inputs_of
from ...models.mwp_cwp import cwp_of, mwp_of, symbols_of
from ...models.roofline import ipc_roof, mix_cycles
from ...models.volkov import latency_bound
from . import Value, Values, together
from .small_kernels import (
    Cost,
    Instruction,
    chain,
    costs_of,
    example,
    instruction_mix,
    issue_limit_of,
    kernel,
    simulated_cycles,
    steady_ipc,
)

# The analysis paper's §4.3: Table 6 from Table 5, and the ratios of λ in the text.
#
# Throughput = N · |ω| · 4 / λ_RAM · f, with N compute units, |ω| threads per warp, four bytes each. The paper prints
# neither N nor f; the GPU files give them with their sources. Kepler and Tonga are compared at the vendor's clock,
# because the clock in their files is derived from the number itself.

PAPER = "analysis"
VENDOR_GHZ = {"kepler": 0.928, "tonga": 0.970}
"""Clocks of the GeForce GTX 650 Ti and the Radeon R9 380 (TechPowerUp)."""
THREAD_BYTES = 4
NAMES = ("fermi", "kepler", "maxwell", "pascal", "turing", "tonga")


def throughput_gbs(units: float, warp_size: float, lambda_ram: float, clock_ghz: float) -> float:
    """§4.3: N · |ω| · 4 / λ_RAM · f."""
    return units * warp_size * THREAD_BYTES / lambda_ram * clock_ghz


def computed() -> dict[str, Values]:
    """Every number of the two papers that follows from their own inputs."""
    analysis = together(_example, _pairs, _gpumech, _mix, _single, _table_6, _ratios)
    return {CORNELIS: together(_table_1, _equation_1, _fig_1, _occupancies), PAPER: analysis}


def _table_6() -> Values:
    found: Values = {}
    for name in NAMES:
        gpu = load_gpu(f"papers/analysis-{name}")
        p, title = gpu.parameter, name.capitalize()
        clock = VENDOR_GHZ.get(name, p("clock_mhz") / 1000)
        gbs = throughput_gbs(p("sm_count"), p("warp_size"), gpu.classes["ld_global_s32"].lambda_, clock)
        # Of the two at the vendor's clock, the efficiency is that of the number that the paper prints.
        reached = p("memory_reached_gbs") if name == "kepler" else 172 if name == "tonga" else gbs
        found[f"memory throughput of {title}, GB/s"] = gbs
        found[f"efficiency of {title}, %"] = Value(100 * reached / p("memory_gbs"), shown={"gbs": gbs})
    return found


def _ratios() -> Values:
    """§4.3: λ_div,f32 / λ_mul,f32 and λ_mul,f64 / λ_mul,f32."""
    classes = {name: load_gpu(f"papers/analysis-{name}").classes for name in NAMES}
    return {
        f"λ_{quantity} / λ_mul,f32 of {name.capitalize()}": of[above].lambda_ / of["mul_f32"].lambda_
        for quantity, above in (("div,f32", "div_f32"), ("mul,f64", "mul_f64"))
        for name, of in classes.items()
    }


# The analysis paper's §4.2: the Instruction Mix kernel on one subsystem, on two, and under an issue limit.
#
# Eqs. 43 to 45 give the throughput of β instructions of type 1 for each of type 2 (Fig. 12: λ_1 = 1, λ_2 = 4, IL = 1).
# Eqs. 44 and 45 are printed with 1/λ_2 where Fig. 12, which rises with β, needs β/λ_2: they only hold for β = 1. They
# are printed as formulas, so their rows are of kind `derived`; the tolerance is a thousandth. The simulation runs
# 48 warps in steady state. Under an issue limit it reaches the bound of Eq. 45 for β ≥ λ_2/λ_1; below that, round robin
# sometimes leaves the second pipeline idle (β = 1: 0.231, β = 2: 0.444), so for β = 1 the bound itself, the roofline,
# is compared.

WARPS, ITERATIONS = 48, 16
FIRST, SECOND = "one", "two"
LAMBDA = {FIRST: 1.0, SECOND: 4.0}
LATENCY = 8.0
"""Any Λ that 48 warps hide will do: the equations do not contain it."""


def ipc_one_subsystem(beta: float, first: float, second: float) -> float:
    """Eq. 43: β / (β λ_1 + λ_2)."""
    return beta / mix_cycles({FIRST: beta, SECOND: 1}, {FIRST: first, SECOND: second})


def ipc_printed(first: float, second: float, issue: float = float("inf")) -> float:
    """Eqs. 44 and 45 as printed: min(1/λ_1, 1/λ_2, the term of the issue limit)."""
    return min(1 / first, 1 / second, issue)


def issue_term(beta: float, limit: float) -> float:
    """The last term of Eq. 45: β/(β+1) · IL."""
    return beta / (beta + 1) * limit


def simulated_mix(
    costs: Mapping[str, Cost], beta: int, limit: float = 0.0, first: str = FIRST, second: str = SECOND
) -> float:
    """IPC of type 1 in the simulation's steady state."""
    short = instruction_mix(costs, first, second, beta, ITERATIONS, limit)
    return steady_ipc(
        short, instruction_mix(costs, first, second, beta, 2 * ITERATIONS, limit), ITERATIONS * beta, WARPS
    )


def _mix() -> Values:
    """Eqs. 43 to 45 compared with the simulation, and the statements of §4.2 and §4.3 on single pipelines."""
    one = {name: Cost("alu", value, LATENCY) for name, value in LAMBDA.items()}
    two = {name: Cost(name, value, LATENCY) for name, value in LAMBDA.items()}
    tonga = costs_of("papers/analysis-tonga")
    first, second = LAMBDA[FIRST], LAMBDA[SECOND]
    bound = get_model("roofline").predict(instruction_mix(two, FIRST, SECOND, 1, ITERATIONS, 1.0), [WARPS]).curve[0]
    return {
        **{
            f"IPC on one subsystem, β = {beta}": Value(simulated_mix(one, beta), ipc_one_subsystem(beta, first, second))
            for beta in (1, 2, 4, 8, 16)
        },
        **{
            f"IPC on two subsystems, β = {beta}": Value(simulated_mix(two, beta), ipc_printed(first, second))
            for beta in (1, 4)
        },
        "IPC under an issue limit of 1, β = 1": Value(
            bound.warps_per_cycle * ITERATIONS, ipc_printed(first, second, issue_term(1, 1))
        ),
        "IPC under an issue limit of 1, β = 4": Value(
            simulated_mix(two, 4, 1.0), ipc_printed(first, second, issue_term(4, 1))
        ),
        **{
            f"its issue term β/(β+1) · IL, IL = 1, β = {beta}": Value(
                simulated_mix(two, beta, 1.0), issue_term(beta, 1)
            )
            for beta in (4, 8, 16)
        },
        "IPC of the mix on Tonga's one subsystem, no issue limit, β = 4": Value(
            simulated_mix(tonga, 4, first="mul_f32", second="cos_apx_f32"),
            ipc_one_subsystem(4, tonga["mul_f32"].lambda_, tonga["cos_apx_f32"].lambda_),
        ),
    }


def _single() -> Values:
    """Single pipelines: the highest rate of one class on a GPU of Table 4."""

    def peak(gpu: str) -> float:
        name = f"papers/analysis-{gpu}"
        costs, limit = costs_of(name), issue_limit_of(name)
        short, long = (chain(costs, "mul_f32", length, limit) for length in (64, 128))
        return steady_ipc(short, long, 64, WARPS)

    return {
        "largest IPC to expect of Kepler": peak("kepler"),
        "λ of 128 CUDA cores that issue 4 instructions a cycle (Pascal)": 1 / peak("pascal"),
        "IPC of mul.f32 measured on Maxwell": peak("maxwell"),
        "λ_ALU of the Quadro K620 (Maxwell)": 1 / peak("maxwell"),
    }


PAIRS = {1: (8, 6), 2: (11, 3), 3: (3, 11)}
"""Fig. 6: α_comp · Λ_comp and Λ_mem of each pair."""


def _example() -> Values:
    work = example()
    inputs = inputs_of(work)
    s = symbols_of(inputs)
    roofline = get_model("roofline").predict(work, [1]).curve[0].warps_per_cycle
    volkov = get_model("volkov").predict(work, range(1, 13)).curve
    peak = min(p.occupancy_warps for p in volkov if p.warps_per_cycle >= roofline)
    wfg = get_model("wfg").predict(work, range(1, 13)).curve
    above = [w.occupancy_warps for w, v in zip(wfg, volkov, strict=True) if w.warps_per_cycle > v.warps_per_cycle]
    ipc_comp, bandwidth = 1 / s.lambda_comp, 1 / s.lambda_mem
    return {
        "IPC_comp of the example": ipc_comp,
        "BW of the example": bandwidth,
        "compute intensity CI of the example": inputs.intensity,
        "ridge point λ_mem/λ_comp of the example": s.lambda_mem / s.lambda_comp,
        "IPC_roof of the example": ipc_roof(ipc_comp, bandwidth, s.ci),
        "WPC_roof of the example (1/4)": roofline,
        "Λ_app of the example": latency_bound(work),
        "WPC of Volkov's model for one warp (1/25)": volkov[0].warps_per_cycle,
        "warps at which the example reaches its peak": float(peak),
        "cycles of one warp of the example, simulated": simulated_cycles(work, 1),
        "MWP of the example": mwp_of(s.latency_mem, s.lambda_mem),
        "CWP of the example": cwp_of(s.latency_mem, s.ci, s.lambda_comp),
        "least ω at which WFG lies above Volkov's roofline": float(min(above)),
        "largest ω at which WFG lies above Volkov's roofline": float(max(above)),
    }


def _pairs() -> Values:
    """§2.4.2: "Volkov's model gives the same CPR for all pairs and all occupancies, namely 14"."""
    found: Values = {}
    for number, (compute, memory) in PAIRS.items():
        costs = {"comp": Cost("comp", 0.25, compute), "mem": Cost("mem", 0.25, memory)}
        work = kernel(costs, [Instruction("comp"), Instruction("mem", (0,))], memory=("mem",))
        for warps in (1, 8):
            cycles = get_model("volkov").predict(work, [warps]).curve[0].cycles_per_run
            found[f"CPR of pair {number} in Volkov's model, {warps} warps"] = cycles or 0.0
    return found


def _gpumech() -> Values:
    """§2.5.1: an interval of 3 instructions and 6 stall cycles, 4 warps."""
    insts, stall, warps = 3, 6, 4
    p = issue_probability(insts, insts + stall)
    return {
        "issue probability of 3 instructions and 6 stall cycles": p,
        "non-overlapped instructions of 4 warps": nonoverlapped_rr(p, warps, insts),
        "non-overlapped instructions of 4 warps, corrected": nonoverlapped_rr_corrected(warps, insts, stall),
    }


# Numbers of Cornelis and Lemeire, "The pipeline performance model: a generic executable model for GPUs".
#
# Most of the paper's figures are measured run times in plots. These can be recomputed: its Eq. 1, the law of one
# pipeline, with the λ and Λ of Table II in both of its cases, compared with the simulation; the sum under Fig. 1; λ
# from the processing elements of Table I (§III.B: λ = 1 is 32 instructions per cycle and compute unit); how many
# occupancies §IV.A explores. Eq. 1 and the sum are printed as formulas, never evaluated: their rows are of kind
# `derived`.


CORNELIS = "Cornelis"
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
