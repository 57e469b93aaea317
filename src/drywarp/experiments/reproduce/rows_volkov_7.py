"""Volkov's thesis, chapter 7: the prior models on the α-mix. GPUPerf (Sim et al., PPoPP 2012): what it says on ITILP
and SFU. Few of its results follow from its printed inputs; §7.4 evaluates the model for its GPU and the thesis's."""

from __future__ import annotations

from dataclasses import dataclass

from ...hardware import load_gpu
from ...models import gpumech, prior_on_mix
from ...models import gpuperf_terms as eq
from ...models.cusp import mix_of
from ...models.needed_occupancy import Mix, instruction_throughput, memory_gbs
from . import Value, Values, together
from .volkov_kernels import PAPER, WARP, volkov_gpu

GPUPERF = "GPUPerf"
GIGA = 1e9


def computed() -> dict[str, Values]:
    """All numbers of chapter 7, of GPUPerf, and of chapter 4 on GPUMech's GPU."""
    sim = together(_c2050, _volkov_gpus, _volkov_equations, _sim)
    huang = together(_huang_round_robin, _huang_greedy, _huang_bandwidth, _huang_fermi, _huang_diverging)
    others = together(_balanced_design, _hong_kim, _baghsorkhi)
    return {GPUPERF: together(_itilp, _serial), PAPER: sim | huang | others}


def _hong_kim() -> Values:
    """§7.1 on the GT200 GPU, with pin bandwidth."""
    gpu = volkov_gpu("gt200")
    p = gpu.parameter
    measured = mix_of(gpu)
    pins = instruction_throughput(p("memory_gbs"), p("clock_mhz") / 1000, p("sm_count"))
    mix = Mix(measured.mem_lat, pins, measured.alu_lat, measured.alu_thru, measured.issue_thru)
    alpha, most = 32, p("max_warps_per_sm")
    ratio = mix.latency(alpha) / prior_on_mix.hong_kim_latency_time(mix, alpha)
    return {
        "MWP_peak_bw (warps per SM)": prior_on_mix.mwp_peak_bw(mix),
        "CWP at α = 32": prior_on_mix.hong_kim_cwp(mix, alpha, most),
        "time at n ≤ 4.3 that does not depend on α": prior_on_mix.hong_kim_latency_time(mix, -1),
        "factor of throughput without arithmetic latency at α = 32": ratio,
        "time per instruction at one warp, α = ∞ (CPI)": 1 / mix.adds_per_cycle(1, 1e9, 1),
    }


def _baghsorkhi() -> Values:
    """§7.2 on the G80 GPU."""
    mix = mix_of(volkov_gpu("g80"))

    def only_memory(warps: float) -> float:
        return prior_on_mix.baghsorkhi_warp_latency(mix, 0, warps)

    enough = next(n for n in range(1, 200) if only_memory(n) <= 1 / mix.mem_thru)
    observed = 0.95 * mix.mem_thru
    alpha = 11
    x = prior_on_mix.baghsorkhi_compute(mix, alpha, 3)
    at_3 = prior_on_mix.baghsorkhi_warp_latency(mix, alpha, 3)
    return {
        "time to transfer a warp's access (CPI)": 1 / mix.mem_thru,
        "warp latency at α = 0 that does not depend on n": only_memory(10) + 10 * 4,
        "warp latency at α = 0 that each warp saves": only_memory(10) - only_memory(11),
        "warp latency plus (n − 2) · x at α = 11, n = 3": at_3 + (3 - 2) * x,
        "warps that attain peak memory throughput at α = 0": enough,
        "throughput observed over estimated at 24 warps, α = 0": observed * only_memory(24),
    }


def _sim() -> Values:
    """§§7.4 and 7.9: Fermi at small occupancies, and the bound set by a departure delay of 32 cycles."""
    gpu = volkov_gpu("fermi")
    mix = mix_of(gpu)
    p = gpu.parameter

    def underestimate(warps: int) -> float:
        return prior_on_mix.sim_memory_time(mix, 1, warps) / mix.mem_lat

    delay = memory_gbs(1 / 32, p("clock_mhz") / 1000, p("sm_count"))
    return {
        "memory throughput with a departure delay of 32 cycles (GB/s)": delay,
        "T_mem over that of n warps in parallel, n = 2": underestimate(2),
        "T_mem over that of n warps in parallel, n = 4": underestimate(4),
    }


def _huang_round_robin() -> Values:
    """§7.5: no throughput limit."""
    fermi, kepler, maxwell = (volkov_gpu(name) for name in ("fermi", "kepler", "maxwell"))
    p = fermi.parameter
    ipc = prior_on_mix.huang_ipc(mix_of(fermi), 0, p("max_warps_per_sm"))
    most = maxwell.parameter("max_warps_per_sm")
    # α = ∞: all instructions are adds.
    adds = WARP * gpumech.ipc_multithreading(most, 1, mix_of(maxwell).alu_lat, 0)
    alpha, warps = 32, kepler.parameter("max_warps_per_sm")
    both = WARP * prior_on_mix.huang_ipc(mix_of(kepler), alpha, warps)
    adds_kepler = both * alpha / (alpha + 1)
    return {
        "Fermi, α = 0, 48 warps (GB/s)": memory_gbs(ipc, p("clock_mhz") / 1000, p("sm_count")),
        "Maxwell, α = ∞, 64 warps (adds/cycle per SM)": adds,
        "Maxwell: adds/cycle per SM of 128 CUDA cores": mix_of(maxwell).adds_per_cycle(most, 1e9),
        "Kepler, α = 32, 64 warps (adds/cycle per SM)": Value(adds_kepler, shown={"both": both}),
    }


def _huang_greedy() -> Values:
    """§7.6: issue of more than one instruction per cycle with adds only."""
    gpu = load_gpu("papers/gpumech")
    found: Values = {}
    maxwell = mix_of(volkov_gpu("maxwell"))
    for place, latency in (("alu_lat 25", gpu.parameter("fp_latency")), ("Maxwell", maxwell.alu_lat)):
        warps, p = 1e6, gpumech.issue_probability(1, latency)
        extra = gpumech.nonoverlapped_gto(p, warps, 1, latency - 1)
        ipc = gpumech.ipc_multithreading(warps, 1, latency, extra)
        found[f"{place}: peak issue exceeded at α = ∞ (%)"] = 100 * (ipc - 1)
    return found


@dataclass(frozen=True, slots=True)
class MemoryQueue:
    """The inputs of GPUMech's bandwidth term."""

    cores: float
    mem_lat: float
    service: float

    def utilization(self, requests: float) -> float:
        """ρ at so many requests per core; it may exceed 1 (§7.7)."""
        return gpumech.bandwidth_utilization(gpumech.arrival_rate(requests, self.cores, self.mem_lat), self.service)

    def delay(self, requests: float) -> float:
        """Bandwidth_delay in cycles, negative where ρ exceeds 1."""
        return gpumech.bandwidth_delay(requests, self.cores, self.mem_lat, self.service)


def memory_queue(name: str) -> MemoryQueue:
    """The inputs for a GPU of the papers."""
    p = load_gpu(f"papers/{name}").parameter
    service = gpumech.service_time(p("clock_mhz") / 1000, 128, p("memory_gbs"))
    return MemoryQueue(p("sm_count"), p("dram_latency"), service)


def _huang_bandwidth() -> Values:
    """§7.7 on GPUMech's synthetic GPU."""
    memory = memory_queue("gpumech")
    warps = 29
    multithreading = 1 / gpumech.ipc_multithreading(warps, 1, memory.mem_lat, 0)
    delay = memory.delay(warps)
    return {
        "s, time to serve a request (cycles)": memory.service,
        "ρ at 32 warps": memory.utilization(32),
        "ρ at 29 warps": memory.utilization(warps),
        "Bandwidth_delay at 29 warps (cycles)": delay,
        "CPI at 29 warps, α = 0": gpumech.cpi_final(multithreading, gpumech.cpi_contention(delay, 1)),
        "occupancy of the singularity (warps per SM)": gpumech.singular_warps(
            memory.cores, memory.mem_lat, memory.service
        ),
    }


def _huang_fermi() -> Values:
    """§7.7 on the Fermi GPU, α = 32 and 34 warps, both policies."""
    memory, mix = memory_queue("volkov-fermi"), mix_of(volkov_gpu("fermi"))
    warps, alpha = 34, 32
    contention = gpumech.cpi_contention(memory.delay(warps), 1 + alpha)
    p = gpumech.issue_probability(1 + alpha, mix.latency(alpha))
    greedy = gpumech.nonoverlapped_gto(p, warps, 1, mix.mem_lat - 1)
    greedy += alpha * gpumech.nonoverlapped_gto(p, warps, 1, mix.alu_lat - 1)
    found: Values = {}
    for policy, extra in (("round robin", 0.0), ("greedy then oldest", greedy)):
        multithreading = 1 / gpumech.ipc_multithreading(warps, 1 + alpha, mix.latency(alpha), extra)
        cpi = gpumech.cpi_final(multithreading, contention)
        quantity = f"Fermi, α = 32, 34 warps, {policy} (adds/cycle per SM)"
        found[quantity] = WARP * alpha / (alpha + 1) / cpi
    return found


def _huang_diverging() -> Values:
    """§7.8 on the Fermi GPU: stride 2, two transactions an access, 17 warps, α = 0."""
    memory, warps = memory_queue("volkov-fermi"), 17
    requests = gpumech.core_requests(warps, 2)
    delay = memory.delay(requests)
    multithreading = 1 / gpumech.ipc_multithreading(warps, 1, memory.mem_lat, 0)
    cpi = gpumech.cpi_final(multithreading, gpumech.cpi_contention(delay, 1))
    return {
        "#core_reqs at 17 warps, stride 2": requests,
        "Bandwidth_delay at 17 warps, stride 2 (cycles)": delay,
        "CPI at 17 warps, stride 2": cpi,
    }


def _balanced_design() -> Values:
    """§4.13: the consequences of GPUMech's assumption of a balanced design on its synthetic GPU."""
    gpu = load_gpu("papers/gpumech")
    p = gpu.parameter
    issue = gpu.scheduler.issue_per_cycle or 0
    device = issue * p("sm_count")
    gbs = memory_gbs(issue, p("clock_mhz") / 1000, p("sm_count"), p("transaction_bytes"))
    return {
        "peak issue throughput of GPUMech's GPU (IPC per device)": device,
        "memory throughput of loads at that rate (GB/s)": gbs,
    }


# GPUPerf.


def _c2050_value(name: str) -> float:
    return float(load_gpu("papers/c2050").parameter(name))


def _itilp_max() -> float:
    return eq.itilp_max(_c2050_value("fp_latency"), _c2050_value("warp_size"), _c2050_value("simd_width"))


def _itilp() -> Values:
    """§6.1, Figure 6: where the throughput of the ITILP micro-benchmark saturates."""
    most = _itilp_max()

    def enough(ilp: float) -> int:
        return next(n for n in range(1, 49) if eq.itilp(ilp, n, most) == most)

    unbound = float("inf")
    return {
        "ITILP where performance is stable, lower end (ITILP_max)": most,
        "warps where performance is stable, ILP = 1": enough(1),
        "warps where performance is stable, ILP = 2": enough(2),
        "warps where performance is stable, ILP = 3": enough(3),
        "ITILP where performance is stable, upper end (ILP 3, 8 warps)": eq.itilp(3, 8, unbound),
    }


def _serial() -> Values:
    ratio = eq.f_sfu(1, 8, _c2050_value("sfu_width"), _c2050_value("simd_width"))
    return {"F_SFU with one SFU instruction per eight FMAs": ratio}


def _c2050() -> Values:
    """Volkov §7.4 with the data that GPUPerf gives for the C2050."""
    latency = eq.avg_dram_lat(_c2050_value("dram_latency"), 1, _c2050_value("departure_delay"))
    each = eq.bw_per_warp(_c2050_value("clock_mhz") * 1e6, _c2050_value("transaction_bytes"), latency)
    sms = _c2050_value("sm_count")
    peak = eq.mwp_peak_bw(_c2050_value("memory_gbs") * GIGA, each, sms)
    mwp = eq.mwp(latency, _c2050_value("departure_delay"), peak, 48)
    return {
        "MWP_peak_bw (warps)": peak,
        "avg_DRAM_lat / Δ (warps)": mwp,
        "BW_per_warp (GB/s)": each / GIGA,
        "throughput bound by the departure delay (GB/s)": each * mwp * sms / GIGA,
    }


def _volkov_gpus() -> Values:
    """Table 7.1: MWP_peak_bw from the best sustainable throughput."""
    found: Values = {}
    for generation in ("fermi", "kepler", "maxwell"):
        p = volkov_gpu(generation).parameter
        each = eq.bw_per_warp(p("clock_mhz") * 1e6, 128, p("dram_latency"))
        peak = eq.mwp_peak_bw(p("memory_reached_gbs") * GIGA, each, p("sm_count"))
        found[f"{generation.capitalize()}: MWP_peak_bw (warps)"] = peak
    return found


def _volkov_equations() -> Values:
    """§7.4 at two warps of memory accesses only: the −1 in Eq. 15 halves the rate."""
    fermi, n = load_gpu("papers/volkov-fermi"), 2
    latency, arithmetic = fermi.parameter("dram_latency"), fermi.parameter("fp_latency")
    time = eq.comp_cycles(1, arithmetic, eq.itilp(1, n, arithmetic))
    itmlp = eq.itmlp(1, eq.mwp_cp(eq.cwp(eq.cwp_full(latency, time), n), n), 30.7)
    rate = eq.t_mem(1, n, 1, itmlp, latency) / latency
    return {"factor by which throughput at two warps is too low": rate}
