"""Numbers of Lemeire, Cornelis and Konstantinidis, "Analysis of the analytical performance models for GPUs"."""

from __future__ import annotations

from collections.abc import Mapping

from ...hardware import load_gpu
from ...models import get_model
from ...models.gpumech import issue_probability, nonoverlapped_rr, nonoverlapped_rr_corrected
from ...models.inputs import inputs_of
from ...models.mwp_cwp import cwp_of, mwp_of, symbols_of
from ...models.roofline import ipc_roof, mix_cycles
from ...models.volkov import latency_bound
from . import Row, derived, differs, inconsistent, of_kind, row
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


def throughput_gbs(units: float, warp_size: float, lambda_ram: float, clock_ghz: float) -> float:
    """§4.3: N · |ω| · 4 / λ_RAM · f."""
    return units * warp_size * THREAD_BYTES / lambda_ram * clock_ghz


def gpu_rows() -> list[Row]:
    """Table 6 and the ratios."""
    return of_kind("input", [*_table_6(), *_ratios()])


def _throughput(name: str) -> float:
    gpu = load_gpu(f"papers/analysis-{name}")
    clock = VENDOR_GHZ.get(name, gpu.parameter("clock_mhz") / 1000)
    return throughput_gbs(
        gpu.parameter("sm_count"), gpu.parameter("warp_size"), gpu.classes["ld_global_s32"].lambda_, clock
    )


def _bandwidth(name: str) -> float:
    return load_gpu(f"papers/analysis-{name}").parameter("memory_gbs")


def _table_6() -> list[Row]:
    place = "Table 6, from Table 5"
    found = []
    for name, printed, percent in (("fermi", "89.6", "62.2"), ("maxwell", "22.6", "77.8"), ("pascal", "160.6", "83.7")):
        gbs = _throughput(name)
        title = name.capitalize()
        found.append(row(PAPER, place, f"memory throughput of {title}, GB/s", printed, gbs))
        found.append(row(PAPER, place, f"efficiency of {title}, %", percent, 100 * gbs / _bandwidth(name)))
    kepler, turing, tonga = _throughput("kepler"), _throughput("turing"), _throughput("tonga")
    found += [
        differs(PAPER, place, "memory throughput of Kepler, GB/s", "70.5", kepler,
                f"4 SMs · 32 · 4 / 7.5 · 0.928 GHz (the vendor's clock of the GTX 650 Ti) = {kepler:.1f}; the paper"
                " prints neither clock nor SMs, and we believe that its card ran at 1.033 GHz, which gives 70.5"),
        differs(PAPER, "Table 6", "efficiency of Kepler, %", "81.5",
                100 * load_gpu("papers/analysis-kepler").parameter("memory_reached_gbs") / _bandwidth("kepler"),
                "truncated, not rounded: 70.5 / 86.4 = 81.597 %"),
        row(PAPER, "Table 6", "efficiency of Tonga, %", "97.7", 100 * 172 / _bandwidth("tonga"), note="172 / 176"),
        inconsistent(PAPER, place, "memory throughput of Turing, GB/s", "288", turing,
                     f"36 SMs · 32 · 4 / 18 · 1.41 GHz = {turing:.0f}, which is printed as the bandwidth; 288 is not"
                     " the 80.5 % of 361 (79.8 %), nor is 361 the bandwidth of an RTX 2070 (448)"),
        differs(PAPER, place, "efficiency of Turing, %", "80.5", 100 * turing / _bandwidth("turing"),
                f"truncated, not rounded: {turing:.2f} / 448 = 80.57 %; the printed 288 / 361 would be 79.8 %"),
        differs(PAPER, place, "memory throughput of Tonga, GB/s", "172", tonga,
                f"28 units · 64 · 4 / 42 · 0.97 GHz (the vendor's clock of the R9 380) = {tonga:.1f}; the paper prints"
                " neither clock nor units, and we believe that its card ran at 1.008 GHz, which gives 172"),
    ]  # fmt: skip
    return found


def _ratios() -> list[Row]:
    """§4.3: λ_div,f32 / λ_mul,f32 and λ_mul,f64 / λ_mul,f32."""
    found = []
    divide = {"fermi": "3", "kepler": "3", "maxwell": "3", "pascal": "3", "turing": "3", "tonga": "2.25"}
    double = {"fermi": "2", "kepler": "16", "maxwell": "20", "pascal": "32", "turing": "38", "tonga": "8"}
    for quantity, above, printed in (("div,f32", "div_f32", divide), ("mul,f64", "mul_f64", double)):
        for name, value in printed.items():
            classes = load_gpu(f"papers/analysis-{name}").classes
            ratio = classes[above].lambda_ / classes["mul_f32"].lambda_
            found.append(row(PAPER, "§4.3", f"λ_{quantity} / λ_mul,f32 of {name.capitalize()}", value, ratio))
    return found


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


def mix_rows() -> list[Row]:
    """Eqs. 43 to 45 compared with the simulation, and the statements of §4.2 and §4.3 on single pipelines."""
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
                     " min(1/λ1, β/λ2) = min(1, 4/4) = 1", kind="derived")
    )  # fmt: skip
    bound = get_model("roofline").predict(instruction_mix(two, FIRST, SECOND, 1, ITERATIONS, 1.0), [WARPS]).curve[0]
    found.append(
        _equation("§4.2, Eq. 45", "IPC under an issue limit of 1, β = 1",
                  ipc_printed(first, second, issue_term(1, 1)), bound.warps_per_cycle * ITERATIONS)
    )  # fmt: skip
    found.append(
        inconsistent(PAPER, "§4.2, Eq. 45", "IPC under an issue limit of 1, β = 4",
                     f"{ipc_printed(first, second, issue_term(4, 1))}", simulated_mix(two, 4, 1.0),
                     "printed min(1/λ1, 1/λ2, β/(β+1) IL) = min(1, 1/4, 4/5) = 0.25; with β/λ2 it is"
                     " min(1, 4/4, 4/5) = 0.8, which the simulation gives", kind="derived")
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
    """Single pipelines: the highest rate of one class on a GPU of Table 4."""

    def peak(gpu: str) -> float:
        name = f"papers/analysis-{gpu}"
        costs, limit = costs_of(name), issue_limit_of(name)
        short, long = (chain(costs, "mul_f32", length, limit) for length in (64, 128))
        return steady_ipc(short, long, 64, WARPS)

    lanes = "λ of 128 CUDA cores that issue 4 instructions a cycle (Pascal)"
    return of_kind("input", [
        row(PAPER, "§4.2", "largest IPC to expect of Kepler", "4", peak("kepler")),
        row(PAPER, "§4.2", lanes, "0.25", 1 / peak("pascal")),
        row(PAPER, "§4.3", "IPC of mul.f32 measured on Maxwell", f"{8 / 3:.3f}", peak("maxwell"),
            note="printed as 8/3"),
        inconsistent(PAPER, "Table 4", "λ_ALU of the Quadro K620 (Maxwell)", "0.25", 1 / peak("maxwell"),
                     "Table 5 and §4.3 give 0.375 for mul.f32, an IPC of 8/3; 0.25 is what its 128 lanes would give"),
    ])  # fmt: skip


def _equation(place: str, quantity: str, published: float, computed: float) -> Row:
    """A row whose expected number is the value of a printed equation, to a thousandth."""
    return derived(PAPER, place, quantity, published, computed, tolerance=1e-3)


PAIRS = {1: (8, 6), 2: (11, 3), 3: (3, 11)}
"""Fig. 6: α_comp · Λ_comp and Λ_mem of each pair."""


def rows() -> list[Row]:
    """Every number of the analysis paper that follows from its own inputs."""
    return [*_example(), *_pairs(), *_gpumech(), *mix_rows(), *gpu_rows()]


def _example() -> list[Row]:
    work = example()
    inputs = inputs_of(work)
    s = symbols_of(inputs)
    roofline = get_model("roofline").predict(work, [1]).curve[0].warps_per_cycle
    volkov = get_model("volkov").predict(work, range(1, 13)).curve
    peak = min(p.occupancy_warps for p in volkov if p.warps_per_cycle >= roofline)
    wfg = get_model("wfg").predict(work, range(1, 13)).curve
    above = [w.occupancy_warps for w, v in zip(wfg, volkov, strict=True) if w.warps_per_cycle > v.warps_per_cycle]
    ipc_comp, bandwidth = 1 / s.lambda_comp, 1 / s.lambda_mem
    return [
        row(PAPER, "§2, Table 2", "IPC_comp of the example", "1", ipc_comp, kind="input"),
        row(PAPER, "§2, Table 2", "BW of the example", "0.5", bandwidth, kind="input"),
        row(PAPER, "§2, Table 2", "compute intensity CI of the example", "2", inputs.intensity, kind="input"),
        row(PAPER, "§2.1", "ridge point λ_mem/λ_comp of the example", "2", s.lambda_mem / s.lambda_comp, kind="input"),
        row(PAPER, "§2.1, Eq. 1", "IPC_roof of the example", "1", ipc_roof(ipc_comp, bandwidth, s.ci)),
        row(PAPER, "§2.1", "WPC_roof of the example (1/4)", "0.25", roofline),
        row(PAPER, "§2.2", "Λ_app of the example", "25", latency_bound(work)),
        row(PAPER, "§2.2, Eq. 3", "WPC of Volkov's model for one warp (1/25)", "0.04", volkov[0].warps_per_cycle),
        row(PAPER, "§2.2", "warps at which the example reaches its peak", "7", float(peak)),
        row(PAPER, "Fig. 8", "cycles of one warp of the example, simulated", "25", simulated_cycles(work, 1),
            note="the text's Λ_app; Fig. 8 draws the run"),
        row(PAPER, "§2.3.2", "MWP of the example", "3", mwp_of(s.latency_mem, s.lambda_mem)),
        row(PAPER, "§2.3.2", "CWP of the example", "4", cwp_of(s.latency_mem, s.ci, s.lambda_comp)),
        row(PAPER, "§2.4.4", "least ω at which WFG lies above Volkov's roofline", "3", float(min(above))),
        row(PAPER, "§2.4.4", "largest ω at which WFG lies above Volkov's roofline", "4", float(max(above))),
    ]  # fmt: skip


def _pairs() -> list[Row]:
    """§2.4.2: "Volkov's model gives the same CPR for all pairs and all occupancies, namely 14"."""
    found = []
    for number, (compute, memory) in PAIRS.items():
        costs = {"comp": Cost("comp", 0.25, compute), "mem": Cost("mem", 0.25, memory)}
        work = kernel(costs, [Instruction("comp"), Instruction("mem", (0,))], memory=("mem",))
        for warps in (1, 8):
            cycles = get_model("volkov").predict(work, [warps]).curve[0].cycles_per_run
            found.append(
                row(PAPER, "§2.4.2", f"CPR of pair {number} in Volkov's model, {warps} warps", "14", cycles or 0.0)
            )
    return found


def _gpumech() -> list[Row]:
    """§2.5.1: an interval of 3 instructions and 6 stall cycles, 4 warps."""
    insts, stall, warps = 3, 6, 4
    p = issue_probability(insts, insts + stall)
    return [
        row(PAPER, "§2.5.1 (GPUMech Eq. 9)", "issue probability of 3 instructions and 6 stall cycles", "0.333", p),
        row(PAPER, "§2.5.1 (GPUMech Eq. 11)", "non-overlapped instructions of 4 warps", "2",
            nonoverlapped_rr(p, warps, insts)),
        row(PAPER, "§2.5.1 (GPUMech Fig. 8)", "non-overlapped instructions of 4 warps, corrected", "6",
            nonoverlapped_rr_corrected(warps, insts, stall)),
    ]  # fmt: skip
