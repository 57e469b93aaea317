"""GPUPerf (Sim et al., PPoPP 2012): its statements about ITILP and SFU, and Volkov's numbers for it.

Few of the paper's results follow from its printed inputs; Volkov's thesis, §7.4, evaluates the model for the paper's
GPU and for his own GPUs.
"""

from __future__ import annotations

from ...hardware import load_gpu
from ...models import gpuperf_terms as eq
from .row import LeftOut, Row, differs, row

PAPER = "GPUPerf"
THESIS = "Volkov 2016"
GIGA = 1e9

LEFT_OUT = (
    LeftOut(PAPER, "Figures 1 and 6 to 16", "measured speed-ups, times and potential benefits are only plotted"),
    LeftOut(PAPER, "Figure 3: CWP of 5", "a drawing without numbers"),
    LeftOut(PAPER, "§4.1.1, Table 2: Γ = 64", "from simulations that it does not describe; docs/papers.md has ours"),
    LeftOut(
        PAPER,
        "§6.2.3: B_itilp = 6068, B_fp = 9691, B_memlp = 0 and B_serial = 0 of FMM_U",
        "neither the baseline's instructions, ILP and MLP nor its number of warps are printed",
    ),
    LeftOut(PAPER, "§6.2: 44 combinations of optimisations", "which they are, and their speed-ups, is only plotted"),
    LeftOut(
        PAPER,
        "§6.3.2, §6.4.2: B_itilp and B_memlp of 0",
        "of kernels whose instructions it does not print; docs/benefits.md has ours",
    ),
    LeftOut(PAPER, "Tables 4 and 5", "descriptions of kernels, and optimisations counted by the authors"),
)


def rows() -> list[Row]:
    """All rows of this paper, and of Volkov's §7.4."""
    return [*_itilp(), *_serial(), *_c2050(), *_volkov_gpus(), *_volkov_equations()]


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
        row(PAPER, place, "ITILP where performance is stable, lower end (ITILP_max)", "18", most),
        row(PAPER, place, "warps where performance is stable, ILP = 1", "18", enough(1)),
        differs(PAPER, place, "warps where performance is stable, ILP = 2", "10", enough(2),
                "18 / 2 = 9; measured: two schedulers of whole warps need ⌈4.5⌉ = 5 each, 10 in all"),
        differs(PAPER, place, "warps where performance is stable, ILP = 3", "8", enough(3),
                "18 / 3 = 6; measured: with 3 warps on each of two schedulers every issue slot has to be met, and only"
                " a reserve makes up for those that are missed"),
        row(PAPER, place, upper, "24", eq.itilp(3, 8, unbound), kind="input", note="3 · 8, both as printed"),
    ]  # fmt: skip


def _serial() -> list[Row]:
    ratio = eq.f_sfu(1, 8, _c2050_value("sfu_width"), _c2050_value("simd_width"))
    note = '"almost hidden when there is one SFU instruction per eight FMAs": 1/8 − 4/32'
    return [row(PAPER, "§6.1, Figure 8", "F_SFU with one SFU instruction per eight FMAs", "0", ratio, note=note)]


def _c2050() -> list[Row]:
    """Volkov §7.4 with the data that GPUPerf gives for the C2050."""
    latency = eq.avg_dram_lat(_c2050_value("dram_latency"), 1, _c2050_value("departure_delay"))
    each = eq.bw_per_warp(_c2050_value("clock_mhz") * 1e6, _c2050_value("transaction_bytes"), latency)
    sms = _c2050_value("sm_count")
    peak = eq.mwp_peak_bw(_c2050_value("memory_gbs") * GIGA, each, sms)
    mwp = eq.mwp(latency, _c2050_value("departure_delay"), peak, 48)
    place = "§7.4, C2050"
    return [
        row(THESIS, place, "MWP_peak_bw (warps)", "30.7", peak),
        row(THESIS, place, "avg_DRAM_lat / Δ (warps)", "22", mwp, note="MWP at 48 warps, which this term bounds"),
        row(THESIS, place, "BW_per_warp (GB/s)", "0.335", each / GIGA),
        row(THESIS, place, "throughput bound by the departure delay (GB/s)", "103", each * mwp * sms / GIGA),
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
        found.append(row(THESIS, "§7.4, Table 7.1", f"{title}: MWP_peak_bw (warps)", published, peak))
    return found


def _volkov_equations() -> list[Row]:
    """§7.4 at two warps of memory accesses only: the −1 in Eq. 15 halves the rate."""
    fermi, n = load_gpu("papers/volkov-fermi"), 2
    latency, arithmetic = fermi.parameter("dram_latency"), fermi.parameter("fp_latency")
    time = eq.comp_cycles(1, arithmetic, eq.itilp(1, n, arithmetic))
    itmlp = eq.itmlp(1, eq.mwp_cp(eq.cwp(eq.cwp_full(latency, time), n), n), 30.7)
    rate = eq.t_mem(1, n, 1, itmlp, latency) / latency
    return [row(THESIS, "§7.4", "factor by which throughput at two warps is too low", "2", rate)]
