"""GPUPerf's equations: computation, memory and overlapped cost, in the paper's notation.

Sim, Dasgupta, Kim, Vuduc, "A performance analysis framework for identifying potential benefits in
GPGPU applications" (PPoPP 2012), Eqs. 1 to 17 and A.1 to A.7. Units: cycles of an SM, instructions
per warp, warps; bytes, bytes a second and hertz in A.6 and A.7. `#insts` leaves SFU instructions out
(Table 2) and counts memory instructions; `avg_inst_lat` is their mean latency without the waiting for
memory. The averages of ILP and MLP that the paper takes over basic blocks divide by the accesses, not
by the number of blocks as printed: an average weighted by accesses (docs/papers.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import Any


def t_exec(t_comp: float, t_mem: float, t_overlap: float) -> float:
    """T_exec = T_comp + T_mem − T_overlap, Eq. 1."""
    return t_comp + t_mem - t_overlap


def w_parallel(insts: float, total_warps: float, active_sms: float, avg_inst_lat: float, itilp: float) -> float:
    """W_parallel = (#insts · #total_warps / #active_SMs) · (avg_inst_lat / ITILP), Eq. 3."""
    return insts * total_warps / active_sms * avg_inst_lat / itilp


def itilp(ilp: float, n: float, itilp_max: float) -> float:
    """ITILP = min(ILP · N, ITILP_max), Eq. 4."""
    return min(ilp * n, itilp_max)


def itilp_max(avg_inst_lat: float, warp_size: float, simd_width: float) -> float:
    """ITILP_max = avg_inst_lat / (warp_size / SIMD_width), Eq. 5."""
    return avg_inst_lat / (warp_size / simd_width)


def w_serial(o_sync: float, o_sfu: float, o_cf_div: float, o_bank: float) -> float:
    """W_serial = O_sync + O_SFU + O_CFdiv + O_bank, Eq. 6."""
    return o_sync + o_sfu + o_cf_div + o_bank


def o_sync(sync_insts: float, total_warps: float, active_sms: float, f_sync: float) -> float:
    """O_sync = (#sync_insts · #total_warps / #active_SMs) · F_sync, Eq. 7."""
    return sync_insts * total_warps / active_sms * f_sync


def f_sync(gamma: float, avg_dram_lat: float, mem_insts: float, insts: float) -> float:
    """F_sync = Γ · avg_DRAM_lat · (#mem_insts / #insts), Eq. 8, as printed."""
    return gamma * avg_dram_lat * mem_insts / insts if insts else 0.0


def o_sfu(
    sfu_insts: float, total_warps: float, active_sms: float, warp_size: float, sfu_width: float, f_sfu: float
) -> float:
    """O_SFU = (#SFU_insts · #total_warps / #active_SMs) · (warp_size / SFU_width) · F_SFU, Eq. 9."""
    return sfu_insts * total_warps / active_sms * warp_size / sfu_width * f_sfu


def f_sfu(sfu_insts: float, insts: float, sfu_width: float, simd_width: float) -> float:
    """F_SFU = min(max(#SFU_insts / #insts − SFU_width / SIMD_width, 0), 1), Eq. 10."""
    if not sfu_insts:
        return 0.0
    ratio = sfu_insts / insts if insts else inf
    return min(max(ratio - sfu_width / simd_width, 0.0), 1.0)


def t_mem(mem_insts: float, total_warps: float, active_sms: float, itmlp: float, amat: float) -> float:
    """T_mem = #mem_insts · #total_warps / (#active_SMs · ITMLP) · AMAT, Eq. 11."""
    return mem_insts * total_warps / (active_sms * itmlp) * amat


def amat(avg_dram_lat: float, miss_ratio: float, hit_lat: float) -> float:
    """AMAT = avg_DRAM_lat · miss_ratio + hit_lat, Eq. 12."""
    return avg_dram_lat * miss_ratio + hit_lat


def avg_dram_lat(dram_lat: float, avg_trans_warp: float, delta: float) -> float:
    """avg_DRAM_lat = DRAM_lat + (avg_trans_warp − 1) · Δ, Eq. 13."""
    return dram_lat + (avg_trans_warp - 1) * delta


def itmlp(mlp: float, mwp_cp: float, mwp_peak_bw: float) -> float:
    """ITMLP = min(MLP · MWP_cp, MWP_peak_bw), Eq. 14."""
    return min(mlp * mwp_cp, mwp_peak_bw)


def mwp_cp(cwp: float, mwp: float) -> float:
    """MWP_cp = min(max(1, CWP − 1), MWP), Eq. 15."""
    return min(max(1.0, cwp - 1), mwp)


def t_overlap(t_comp: float, f_overlap: float, t_mem: float) -> float:
    """T_overlap = min(T_comp · F_overlap, T_mem), Eq. 16."""
    return min(t_comp * f_overlap, t_mem)


def f_overlap(n: float, cwp: float, mwp: float) -> float:
    """F_overlap = (N − ζ) / N, with ζ 1 where CWP is at most MWP, else 0, Eq. 17."""
    zeta = 1 if cwp <= mwp else 0
    return (n - zeta) / n


def cwp(full: float, n: float) -> float:
    """CWP = min(CWP_full, N), Eq. A.1."""
    return min(full, n)


def cwp_full(mem_cycles: float, comp_cycles: float) -> float:
    """CWP_full = (mem_cycles + comp_cycles) / comp_cycles, Eq. A.2."""
    return (mem_cycles + comp_cycles) / comp_cycles if comp_cycles else inf


def comp_cycles(insts: float, avg_inst_lat: float, itilp: float) -> float:
    """comp_cycles = #insts · avg_inst_lat / ITILP, Eq. A.3."""
    return insts * avg_inst_lat / itilp


def mem_cycles(mem_insts: float, amat: float, mlp: float) -> float:
    """mem_cycles = #mem_insts · AMAT / MLP, Eq. A.4."""
    return mem_insts * amat / mlp


def mwp(avg_dram_lat: float, delta: float, mwp_peak_bw: float, n: float) -> float:
    """MWP = min(avg_DRAM_lat / Δ, MWP_peak_bw, N), Eq. A.5."""
    return min(avg_dram_lat / delta if delta else inf, mwp_peak_bw, n)


def mwp_peak_bw(mem_peak_bandwidth: float, bw_per_warp: float, active_sms: float) -> float:
    """MWP_peak_bw = mem_peak_bandwidth / (BW_per_warp · #active_SMs), Eq. A.6."""
    return mem_peak_bandwidth / (bw_per_warp * active_sms) if bw_per_warp * active_sms else inf


def bw_per_warp(freq: float, transaction_size: float, avg_dram_lat: float) -> float:
    """BW_per_warp = freq · transaction_size / avg_DRAM_lat, Eq. A.7."""
    return freq * transaction_size / avg_dram_lat


def average(blocks: Iterable[tuple[float, float]]) -> float:
    """ILP or MLP of the kernel from (value, accesses) of its basic blocks: §5.3, weighted by accesses."""
    pairs = list(blocks)
    accesses = sum(count for _, count in pairs)
    return sum(value * count for value, count in pairs) / accesses if accesses else 1.0


# GPUPerf's potential benefits: possible gains along each of four dimensions.
#
# Sim, Dasgupta, Kim, Vuduc (PPoPP 2012), §4.2, Eqs. 18 to 23, in the paper's notation. Units: cycles of
# an SM. Assumed: the ideal computation is the floating point instructions alone, at the ITILP that the
# kernel has, and the ideal of memory is each datum once at the peak bandwidth. `size_of_data` is what one
# SM moves, in transactions: Eq. 19 multiplies it by a latency and divides by warps, so that it
# can only be a number of warp accesses; the paper does not give its unit (docs/papers.md).


def t_fp(fp_insts: float, total_warps: float, active_sms: float, fp_lat: float, itilp: float) -> float:
    """T_fp = #FP_insts · #total_warps · FP_lat / (#active_SMs · ITILP), Eq. 18."""
    return fp_insts * total_warps * fp_lat / (active_sms * itilp)


def t_mem_min(size_of_data: float, avg_dram_lat: float, mwp_peak_bw: float) -> float:
    """T_mem_min = size_of_data · avg_DRAM_lat / MWP_peak_bw, Eq. 19."""
    return size_of_data * avg_dram_lat / mwp_peak_bw


def b_itilp(w_parallel: float, w_parallel_at_max: float) -> float:
    """B_itilp = W_parallel less what it would be at ITILP_max, Eq. 20."""
    return w_parallel - w_parallel_at_max


def b_serial(w_serial: float) -> float:
    """B_serial = W_serial, Eq. 21."""
    return w_serial


def b_fp(t_comp: float, t_fp: float, b_itilp: float, b_serial: float) -> float:
    """B_fp = T_comp − T_fp − B_itilp − B_serial, Eq. 22."""
    return t_comp - t_fp - b_itilp - b_serial


def b_memlp(t_mem_exposed: float, t_mem_min: float) -> float:
    """B_memlp = max(T'_mem − T_mem_min, 0), Eq. 23; T'_mem is T_mem − T_overlap (Table 1)."""
    return max(t_mem_exposed - t_mem_min, 0.0)


@dataclass(frozen=True, slots=True)
class BenefitChart:
    """GPUPerf's benefit chart (Sim et al. 2012, §3, Fig. 4), in cycles of an SM.

    A is the kernel without overlap: x is T_mem, y is T_comp. A' is the kernel with overlap: x is T'_mem, which is T_mem
    − T_overlap, so x + y is T_exec. From A', B_itilp, B_fp and B_serial lead down and B_memlp leads left to the ideal
    (T_mem_min, T_fp). If the paper's inputs are missing, `not_applicable` is the reason and all numbers are 0.
    """

    t_comp: float = 0.0
    t_mem: float = 0.0
    t_overlap: float = 0.0
    t_fp: float = 0.0
    t_mem_min: float = 0.0
    b_itilp: float = 0.0
    b_memlp: float = 0.0
    b_fp: float = 0.0
    b_serial: float = 0.0
    not_applicable: str = ""

    @property
    def t_exec(self) -> float:
        """T_exec = T_comp + T_mem − T_overlap (Eq. 1)."""
        return t_exec(self.t_comp, self.t_mem, self.t_overlap)

    @property
    def bound(self) -> str:
        """The side of the diagonal that A lies on: ``compute`` or ``memory``."""
        return "compute" if self.t_comp >= self.t_mem else "memory"

    def cycles(self) -> dict[str, float]:
        """The numbers by name, in cycles; empty if the paper's inputs are missing."""
        return {} if self.not_applicable else {f"{name}_cycles": float(getattr(self, name)) for name in CHARTED}

    def to_dict(self) -> dict[str, Any]:
        """As in JSON, in cycles."""
        if self.not_applicable:
            return {"not_applicable": self.not_applicable}
        return {"bound": self.bound, **self.cycles()}


BENEFITS = ("b_itilp", "b_memlp", "b_fp", "b_serial")
CHARTED = ("t_exec", "t_comp", "t_mem", "t_overlap", "t_fp", "t_mem_min", *BENEFITS)
