"""Volkov's thesis, chapter 7: the prior models on the α-mix. GPUPerf (Sim et al., PPoPP 2012): what it says on ITILP
and SFU. Few of its results follow from its printed inputs; §7.4 evaluates the model for its GPU and the thesis's."""

from __future__ import annotations

from dataclasses import dataclass

from ...hardware import load_gpu
from ...models import gpumech, prior_on_mix
from ...models import gpuperf_terms as eq
from ...models.cusp import mix_of
from ...models.needed_occupancy import Mix, instruction_throughput, memory_gbs
from . import Row, differs, inconsistent, row
from .volkov_kernels import PAPER, WARP, volkov_gpu

GPUPERF = "GPUPerf"
GIGA = 1e9


def rows() -> list[Row]:
    """All rows of chapter 7, and of GPUPerf."""
    return [
        *_itilp(), *_serial(), *_c2050(), *_volkov_gpus(), *_volkov_equations(),
        *_hong_kim(), *_baghsorkhi(), *_sim(), *_huang_round_robin(), *_huang_greedy(),
        *_huang_bandwidth(), *_huang_fermi(), *_huang_diverging(),
    ]  # fmt: skip


def _hong_kim() -> list[Row]:
    """§7.1 on the GT200 GPU, with pin bandwidth."""
    gpu = volkov_gpu("gt200")
    p = gpu.parameter
    measured = mix_of(gpu)
    pins = instruction_throughput(p("memory_gbs"), p("clock_mhz") / 1000, p("sm_count"))
    mix = Mix(measured.mem_lat, pins, measured.alu_lat, measured.alu_thru, measured.issue_thru)
    alpha, most = 32, p("max_warps_per_sm")
    ratio = mix.latency(alpha) / prior_on_mix.hong_kim_latency_time(mix, alpha)
    return [
        row(PAPER, "§7.1", "MWP_peak_bw (warps per SM)", "12.4", prior_on_mix.mwp_peak_bw(mix)),
        row(PAPER, "§7.1", "CWP at α = 32", "4.3", prior_on_mix.hong_kim_cwp(mix, alpha, most)),
        row(PAPER, "§7.1", "time at n ≤ 4.3 that does not depend on α", "434",
            prior_on_mix.hong_kim_latency_time(mix, -1)),
        row(PAPER, "§7.1", "factor of throughput without arithmetic latency at α = 32", "2.1", ratio),
        row(PAPER, "§7.1", "time per instruction at one warp, α = ∞ (CPI)", "24", 1 / mix.adds_per_cycle(1, 1e9, 1),
            kind="input"),
    ]  # fmt: skip


def _baghsorkhi() -> list[Row]:
    """§7.2 on the G80 GPU."""
    mix = mix_of(volkov_gpu("g80"))

    def only_memory(warps: float) -> float:
        return prior_on_mix.baghsorkhi_warp_latency(mix, 0, warps)

    enough = next(n for n in range(1, 200) if only_memory(n) <= 1 / mix.mem_thru)
    observed = 0.95 * mix.mem_thru
    alpha = 11
    x = prior_on_mix.baghsorkhi_compute(mix, alpha, 3)
    at_3 = prior_on_mix.baghsorkhi_warp_latency(mix, alpha, 3)
    return [
        row(PAPER, "§7.2", "time to transfer a warp's access (CPI)", "37", 1 / mix.mem_thru, kind="input"),
        row(PAPER, "§7.2", "warp latency at α = 0 that does not depend on n", "448", only_memory(10) + 10 * 4),
        row(PAPER, "§7.2", "warp latency at α = 0 that each warp saves", "4", only_memory(10) - only_memory(11)),
        row(PAPER, "§7.2", "warp latency plus (n − 2) · x at α = 11, n = 3", "440", at_3 + (3 - 2) * x),
        row(PAPER, "§7.2", "warps that attain peak memory throughput at α = 0", "100", enough,
            note='the text says "over 100", which we read as up to 110', tolerance=10),
        row(PAPER, "§7.2", "throughput observed over estimated at 24 warps, α = 0", "8", observed * only_memory(24),
            note='the text says "more than 8x", which we read as up to 9; observed is 95 % of the peak by Table 6.4',
            tolerance=1),
    ]  # fmt: skip


def _sim() -> list[Row]:
    """§§7.4 and 7.9: Fermi at small occupancies, and the bound set by a departure delay of 32 cycles."""
    gpu = volkov_gpu("fermi")
    mix = mix_of(gpu)
    p = gpu.parameter

    def underestimate(warps: int) -> float:
        return prior_on_mix.sim_memory_time(mix, 1, warps) / mix.mem_lat

    delay = memory_gbs(1 / 32, p("clock_mhz") / 1000, p("sm_count"))
    return [
        row(PAPER, "§7.4", "memory throughput with a departure delay of 32 cycles (GB/s)", "84", delay, kind="input"),
        row(PAPER, "§7.9", "T_mem over that of n warps in parallel, n = 2", "2", underestimate(2)),
        row(PAPER, "§7.9", "T_mem over that of n warps in parallel, n = 4", "1.3", underestimate(4)),
    ]


def _huang_round_robin() -> list[Row]:
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
    return [
        row(PAPER, "§7.5", "Fermi, α = 0, 48 warps (GB/s)", "252",
            memory_gbs(ipc, p("clock_mhz") / 1000, p("sm_count"))),
        row(PAPER, "§7.5", "Maxwell, α = ∞, 64 warps (adds/cycle per SM)", "341", adds),
        row(PAPER, "§7.5", "Maxwell: adds/cycle per SM of 128 CUDA cores", "128",
            mix_of(maxwell).adds_per_cycle(most, 1e9), kind="input"),
        inconsistent(PAPER, "§7.5", "Kepler, α = 32, 64 warps (adds/cycle per SM)", "115", adds_kepler,
                     note=f"32 · 32 · 64 / (301 + 9 · 32) = {adds_kepler:.1f} by Table 4.2 and by Eq. 7; with the load"
                     f" counted, 32 · 33 · 64 / 589 = {both:.1f}"),
    ]  # fmt: skip


def _huang_greedy() -> list[Row]:
    """§7.6: issue of more than one instruction per cycle with adds only."""
    gpu = load_gpu("papers/gpumech")
    found = []
    for place, latency, excess in (
        ("alu_lat 25", gpu.parameter("fp_latency"), "4"),
        ("Maxwell", mix_of(volkov_gpu("maxwell")).alu_lat, "20"),
    ):
        warps, p = 1e6, gpumech.issue_probability(1, latency)
        extra = gpumech.nonoverlapped_gto(p, warps, 1, latency - 1)
        ipc = gpumech.ipc_multithreading(warps, 1, latency, extra)
        quantity = f"{place}: peak issue exceeded at α = ∞ (%)"
        note = "printed in whole percents" if len(excess) == 1 else ""
        found.append(row(PAPER, "§7.6", quantity, excess, 100 * (ipc - 1), rounded=bool(note), note=note))
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


def _huang_bandwidth() -> list[Row]:
    """§7.7 on GPUMech's synthetic GPU."""
    memory, place = memory_queue("gpumech"), "§7.7"
    warps = 29
    multithreading = 1 / gpumech.ipc_multithreading(warps, 1, memory.mem_lat, 0)
    delay = memory.delay(warps)
    return [
        row(PAPER, place, "s, time to serve a request (cycles)", "0.667", memory.service, kind="input"),
        row(PAPER, place, "ρ at 32 warps", "1.14", memory.utilization(32)),
        row(PAPER, place, "ρ at 29 warps", "1.03", memory.utilization(warps)),
        row(PAPER, place, "Bandwidth_delay at 29 warps (cycles)", "-11", delay),
        row(PAPER, place, "CPI at 29 warps, α = 0", "-0.7",
            gpumech.cpi_final(multithreading, gpumech.cpi_contention(delay, 1)),
            rounded=True, note="printed to a tenth"),
        row(PAPER, "§7.7, Figure 7.10", "occupancy of the singularity (warps per SM)", "28.1",
            gpumech.singular_warps(memory.cores, memory.mem_lat, memory.service)),
    ]  # fmt: skip


def _huang_fermi() -> list[Row]:
    """§7.7 on the Fermi GPU, α = 32 and 34 warps, both policies."""
    memory, mix = memory_queue("volkov-fermi"), mix_of(volkov_gpu("fermi"))
    warps, alpha = 34, 32
    contention = gpumech.cpi_contention(memory.delay(warps), 1 + alpha)
    p = gpumech.issue_probability(1 + alpha, mix.latency(alpha))
    greedy = gpumech.nonoverlapped_gto(p, warps, 1, mix.mem_lat - 1)
    greedy += alpha * gpumech.nonoverlapped_gto(p, warps, 1, mix.alu_lat - 1)
    found = []
    for policy, extra in (("round robin", 0.0), ("greedy then oldest", greedy)):
        multithreading = 1 / gpumech.ipc_multithreading(warps, 1 + alpha, mix.latency(alpha), extra)
        cpi = gpumech.cpi_final(multithreading, contention)
        quantity = f"Fermi, α = 32, 34 warps, {policy} (adds/cycle per SM)"
        found.append(row(PAPER, "§7.7", quantity, "-12", WARP * alpha / (alpha + 1) / cpi))
    return found


def _huang_diverging() -> list[Row]:
    """§7.8 on the Fermi GPU: stride 2, two transactions an access, 17 warps, α = 0."""
    memory, warps = memory_queue("volkov-fermi"), 17
    requests = gpumech.core_requests(warps, 2)
    delay = memory.delay(requests)
    multithreading = 1 / gpumech.ipc_multithreading(warps, 1, memory.mem_lat, 0)
    cpi = gpumech.cpi_final(multithreading, gpumech.cpi_contention(delay, 1))
    return [
        row(PAPER, "§7.8", "#core_reqs at 17 warps, stride 2", "34", requests, kind="input"),
        row(PAPER, "§7.8", "Bandwidth_delay at 17 warps, stride 2 (cycles)", "-120", delay),
        row(PAPER, "§7.8", "CPI at 17 warps, stride 2", "-89", cpi),
    ]


# GPUPerf.


def _c2050_value(name: str) -> float:
    return float(load_gpu("papers/c2050").parameter(name))


def _itilp_max() -> float:
    return eq.itilp_max(_c2050_value("fp_latency"), _c2050_value("warp_size"), _c2050_value("simd_width"))


def _itilp() -> list[Row]:
    """§6.1, Figure 6: where the throughput of the ITILP micro-benchmark saturates."""
    most, place = _itilp_max(), "§6.1, Figure 6"

    def enough(ilp: float) -> int:
        return next(n for n in range(1, 49) if eq.itilp(ilp, n, most) == most)

    unbound = float("inf")
    upper = "ITILP where performance is stable, upper end (ILP 3, 8 warps)"
    return [
        row(GPUPERF, place, "ITILP where performance is stable, lower end (ITILP_max)", "18", most),
        row(GPUPERF, place, "warps where performance is stable, ILP = 1", "18", enough(1)),
        differs(GPUPERF, place, "warps where performance is stable, ILP = 2", "10", enough(2),
                "18 / 2 = 9; measured: two schedulers of whole warps need ⌈4.5⌉ = 5 each, 10 in all"),
        differs(GPUPERF, place, "warps where performance is stable, ILP = 3", "8", enough(3),
                "18 / 3 = 6; measured: with 3 warps on each of two schedulers every issue slot has to be met, and only"
                " a reserve makes up for those that are missed"),
        row(GPUPERF, place, upper, "24", eq.itilp(3, 8, unbound), kind="input", note="3 · 8, both as printed"),
    ]  # fmt: skip


def _serial() -> list[Row]:
    ratio = eq.f_sfu(1, 8, _c2050_value("sfu_width"), _c2050_value("simd_width"))
    note = '"almost hidden when there is one SFU instruction per eight FMAs": 1/8 − 4/32'
    return [row(GPUPERF, "§6.1, Figure 8", "F_SFU with one SFU instruction per eight FMAs", "0", ratio, note=note)]


def _c2050() -> list[Row]:
    """Volkov §7.4 with the data that GPUPerf gives for the C2050."""
    latency = eq.avg_dram_lat(_c2050_value("dram_latency"), 1, _c2050_value("departure_delay"))
    each = eq.bw_per_warp(_c2050_value("clock_mhz") * 1e6, _c2050_value("transaction_bytes"), latency)
    sms = _c2050_value("sm_count")
    peak = eq.mwp_peak_bw(_c2050_value("memory_gbs") * GIGA, each, sms)
    mwp = eq.mwp(latency, _c2050_value("departure_delay"), peak, 48)
    place = "§7.4, C2050"
    return [
        row(PAPER, place, "MWP_peak_bw (warps)", "30.7", peak),
        row(PAPER, place, "avg_DRAM_lat / Δ (warps)", "22", mwp, note="MWP at 48 warps, which this term bounds"),
        row(PAPER, place, "BW_per_warp (GB/s)", "0.335", each / GIGA),
        row(PAPER, place, "throughput bound by the departure delay (GB/s)", "103", each * mwp * sms / GIGA),
    ]


def _volkov_gpus() -> list[Row]:
    """Table 7.1: MWP_peak_bw from the best sustainable throughput."""
    found = []
    for gpu, title, published in (
        ("volkov-fermi", "Fermi", "30.7"),
        ("volkov-kepler", "Kepler", "40.3"),
        ("volkov-maxwell", "Maxwell", "29.9"),
    ):
        p = load_gpu(f"papers/{gpu}").parameter
        each = eq.bw_per_warp(p("clock_mhz") * 1e6, 128, p("dram_latency"))
        peak = eq.mwp_peak_bw(p("memory_reached_gbs") * GIGA, each, p("sm_count"))
        found.append(row(PAPER, "§7.4, Table 7.1", f"{title}: MWP_peak_bw (warps)", published, peak))
    return found


def _volkov_equations() -> list[Row]:
    """§7.4 at two warps of memory accesses only: the −1 in Eq. 15 halves the rate."""
    fermi, n = load_gpu("papers/volkov-fermi"), 2
    latency, arithmetic = fermi.parameter("dram_latency"), fermi.parameter("fp_latency")
    time = eq.comp_cycles(1, arithmetic, eq.itilp(1, n, arithmetic))
    itmlp = eq.itmlp(1, eq.mwp_cp(eq.cwp(eq.cwp_full(latency, time), n), n), 30.7)
    rate = eq.t_mem(1, n, 1, itmlp, latency) / latency
    return [row(PAPER, "§7.4", "factor by which throughput at two warps is too low", "2", rate)]
