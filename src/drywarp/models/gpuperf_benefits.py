"""GPUPerf's potential benefits: what could be won along each of four dimensions.

Sim, Dasgupta, Kim, Vuduc (PPoPP 2012), §4.2, Eqs. 18 to 23, in the paper's notation. Units: cycles of
an SM. Assumed: the ideal computation is the floating point instructions alone, at the ITILP that the
kernel has, and the ideal of memory is each datum once at the peak bandwidth. `size_of_data` is what one
SM moves, in transactions: Eq. 19 multiplies it by a latency and divides by warps, so that it
can only be a number of warp accesses; the paper does not give its unit (docs/papers.md).
"""

from __future__ import annotations

from dataclasses import dataclass


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
class Benefits:
    """The four potential benefits and the two ideals that they come from, in cycles of an SM."""

    b_itilp: float
    b_memlp: float
    b_fp: float
    b_serial: float
    t_fp: float
    t_mem_min: float
