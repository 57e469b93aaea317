"""The MWP-CWP model as it was first published: Hong and Kim's equations, in their notation.

Hong and Kim, "An analytical model for a GPU architecture with memory-level and thread-level
parallelism awareness" (ISCA 2009), Eqs. 1 to 31. Units: cycles of an SM, bytes, bytes a second, hertz;
instructions per warp, warps per SM. Assumed: a warp's instructions depend on each other, but for
what N_pw says (Eq. 29); each SM has its share of the bandwidth; all blocks take equally long. Left out,
as in the paper: latencies of computations, caches, bank conflicts.

What is printed and how it is read (docs/papers.md):

- Eq. 29 is max(N, Eq. 29): as printed N_pw is 0 where all requests depend on each other. For N_pw to count
  at all, MWP_Without_BW in Eq. 30 is that of Eq. 16, as the bound N of Eq. 17 would hide it, and Eq. 22 is
  Eq. 4 in its first form, where N / MWP stands, which is the same while MWP is N.
- Eq. 23 holds under its printed condition, though that sends Case 5 of §3.2.2, Comp_cycles above
  Mem_cycles, to the memory-bound formula. Eq. 1, which explains that formula, adds MWP computation periods,
  Eq. 23 one fewer.
- Comp_cycles counts memory instructions (Eq. 19).

`exec_cycles_memory`, `exec_cycles_compute` and `exec_cycles_few_warps` are Eqs. 1, 3 and 4, which explain
the cases; `exec_cycles_app` is Eqs. 22 to 24, which the model uses.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf


def exec_cycles_memory(mem_cycles: float, comp_p: float, n: float, mwp: float) -> float:
    """Exec_cycles = Mem_cycles · N / MWP + Comp_p · MWP, Eq. 1: CWP above MWP."""
    return mem_cycles * n / mwp + comp_p * mwp


def exec_cycles_compute(mem_p: float, comp_cycles: float, n: float) -> float:
    """Exec_cycles = Mem_p + Comp_cycles · N, Eq. 3: MWP above CWP."""
    return mem_p + comp_cycles * n


def exec_cycles_few_warps(mem_cycles: float, comp_cycles: float, comp_p: float, n: float, mwp: float) -> float:
    """Exec_cycles = (Mem_cycles + Comp_cycles) · N / MWP + Comp_p · (MWP − 1), Eq. 4: MWP and CWP reach N."""
    return (mem_cycles + comp_cycles) * n / mwp + comp_p * (mwp - 1)


def mwp_peak_bw(mem_bandwidth: float, bw_per_warp: float, active_sms: float) -> float:
    """MWP_peak_BW = Mem_Bandwidth / (BW_per_warp · #ActiveSM), Eq. 6."""
    return mem_bandwidth / (bw_per_warp * active_sms) if bw_per_warp * active_sms else inf


def bw_per_warp(freq: float, load_bytes_per_warp: float, mem_l: float) -> float:
    """BW_per_warp = Freq · Load_bytes_per_warp / Mem_L, Eq. 7."""
    return freq * load_bytes_per_warp / mem_l


def cwp_full(mem_cycles: float, comp_cycles: float) -> float:
    """CWP_full = (Mem_cycles + Comp_cycles) / Comp_cycles, Eq. 8."""
    return (mem_cycles + comp_cycles) / comp_cycles if comp_cycles else inf


def cwp(full: float, n: float) -> float:
    """CWP = min(CWP_full, N), Eq. 9."""
    return min(full, n)


def mem_l_uncoal(mem_ld: float, uncoal_per_mw: float, departure_del_uncoal: float) -> float:
    """Mem_L_Uncoal = Mem_LD + (#Uncoal_per_mw − 1) · Departure_del_uncoal, Eq. 10; Mem_L_Coal is Mem_LD (Eq. 11)."""
    return mem_ld + (uncoal_per_mw - 1) * departure_del_uncoal


def weight_uncoal(uncoal_mem_insts: float, coal_mem_insts: float) -> float:
    """Weight_uncoal, Eq. 13; Weight_coal is what is left to 1 (Eq. 14)."""
    return uncoal_mem_insts / (uncoal_mem_insts + coal_mem_insts)


def mem_l(uncoal: float, coal: float, weight: float) -> float:
    """Mem_L = Mem_L_Uncoal · Weight_uncoal + Mem_L_Coal · Weight_coal, Eq. 12."""
    return uncoal * weight + coal * (1 - weight)


def departure_delay(
    departure_del_uncoal: float, uncoal_per_mw: float, departure_del_coal: float, weight: float
) -> float:
    """Departure_delay of a warp's mean access, Eq. 15."""
    return departure_del_uncoal * uncoal_per_mw * weight + departure_del_coal * (1 - weight)


def mwp_without_bw_full(mem_l: float, departure_delay: float) -> float:
    """MWP_Without_BW_full = Mem_L / Departure_delay, Eq. 16."""
    return mem_l / departure_delay if departure_delay else inf


def mwp_without_bw(full: float, active_warps_per_sm: float) -> float:
    """MWP_Without_BW = min(MWP_Without_BW_full, #Active_warps_per_SM), Eq. 17."""
    return min(full, active_warps_per_sm)


def mwp(without_bw: float, peak_bw: float, n_pw: float) -> float:
    """MWP = min(MWP_Without_BW, MWP_peak_BW, N_pw), Eq. 30; with N for N_pw it is Eq. 5."""
    return min(without_bw, peak_bw, n_pw)


def n_pw(n: float, mem_req: float, ind_mem_req: float) -> float:
    """N_pw = max(N, N · #ind_mem_req / (#mem_req − #ind_mem_req)), Eq. 29 read as the text means it."""
    dependent = mem_req - ind_mem_req
    return max(n, n * ind_mem_req / dependent) if dependent > 0 else inf if ind_mem_req else n


def mem_cycles(uncoal: float, uncoal_mem_insts: float, coal: float, coal_mem_insts: float) -> float:
    """Mem_cycles = Mem_L_Uncoal · #Uncoal_Mem_insts + Mem_L_Coal · #Coal_Mem_insts, Eq. 18."""
    return uncoal * uncoal_mem_insts + coal * coal_mem_insts


def comp_cycles(issue_cycles: float, total_insts: float, m_factor: float = 1.0) -> float:
    """Comp_cycles = (#Issue_cycles · M_Factor) · #total_insts, Eq. 31; Eq. 19 where M_Factor is 1."""
    return issue_cycles * m_factor * total_insts


def m_factor(units: float, ops_per_cycle: float) -> float:
    """M_Factor: the functional units of an SM over the operations that it completes in a cycle (Table 7)."""
    return units / ops_per_cycle


def issue_cycles(threads_per_warp: float, units: float) -> float:
    """Issue_cycles: a warp's threads over the functional units of an SM (§2.3)."""
    return threads_per_warp / units


def arithmetic_intensity(comp_insts: float, mem_insts: float) -> float:
    """Computation instructions per memory instruction (§1, Table 5)."""
    return comp_insts / mem_insts


def active_warps_per_sm(threads_per_block: float, threads_per_warp: float, active_blocks_per_sm: float) -> float:
    """#Active_warps_per_SM, N (Eq. 20, Table 1): warps of a block times the blocks of an SM."""
    return threads_per_block / threads_per_warp * active_blocks_per_sm


def rep(blocks: float, active_blocks_per_sm: float, active_sms: float) -> float:
    """#Rep = #Blocks / (#Active_blocks_per_SM · #Active_SMs), Eq. 21; not rounded."""
    return blocks / (active_blocks_per_sm * active_sms)


def case_of(n: float, mwp: float, cwp: float, comp_cycles: float, mem_cycles: float) -> str:
    """Which of Eqs. 22 to 24 holds, under their printed conditions: ``few warps``, ``memory`` or ``computation``."""
    if mwp >= n and cwp >= n:
        return "few warps"
    return "memory" if cwp >= mwp or comp_cycles > mem_cycles else "computation"


def exec_cycles_app(
    *,
    mem_cycles: float,
    comp_cycles: float,
    mem_insts: float,
    mem_l: float,
    n: float,
    mwp: float,
    cwp: float,
    rep: float = 1.0,
) -> float:
    """Exec_cycles_app, Eqs. 22 to 24, under their printed conditions; MWP − 1 is 0 where MWP is below 1."""
    comp_p = comp_cycles / mem_insts
    case = case_of(n, mwp, cwp, comp_cycles, mem_cycles)
    if case == "few warps":
        return exec_cycles_few_warps(mem_cycles, comp_cycles, comp_p, n, mwp) * rep
    if case == "memory":
        return (mem_cycles * n / mwp + comp_p * max(0.0, mwp - 1)) * rep
    return exec_cycles_compute(mem_l, comp_cycles, n) * rep


def cpi(exec_cycles_app: float, total_insts: float, warps_per_block: float, blocks: float, active_sms: float) -> float:
    """CPI = Exec_cycles_app over the warp instructions that an SM runs, Eq. 25."""
    return exec_cycles_app / (total_insts * warps_per_block * blocks / active_sms)


def n_pwb(mwp: float, active_warps_per_block: float) -> float:
    """NpWB = min(MWP, #Active_warps_per_block), Eq. 27."""
    return min(mwp, active_warps_per_block)


def synch_cost(
    departure_delay: float, n_pwb: float, synch_insts: float, active_blocks_per_sm: float, rep: float = 1.0
) -> float:
    """Synch_cost = Departure_delay · (NpWB − 1) · #synch_insts · #Active_blocks_per_SM · #Rep, Eq. 26.

    NpWB − 1 is 0 where MWP is below 1.
    """
    return departure_delay * max(0.0, n_pwb - 1) * synch_insts * active_blocks_per_sm * rep


def exec_cycles_with_synch(exec_cycles_app: float, synch_cost: float) -> float:
    """Exec_cycles_with_synch = Exec_cycles_app + Synch_cost, Eq. 28."""
    return exec_cycles_app + synch_cost


def divergent(cycles_of_paths: Iterable[float]) -> float:
    """Cycles of a warp whose threads diverge: the sum over all its paths (§6.3)."""
    return sum(cycles_of_paths)
