"""Prior models on the α-mix in closed form (Volkov, chapter 7).

Volkov, "Understanding latency hiding on GPUs" (2016), §7.1 (Hong and Kim 2009), §7.2 (Baghsorkhi et al. 2010), §7.4
(Sim et al. 2012), §§7.5-7.6 (Huang et al. 2014). One formula per step; equation numbers are the
originals'. Times are cycles per repeating group of α adds and one memory instruction; n is warps per SM. The
models themselves, on any workload, are `mwp_cwp`, `wfg`, `gpuperf` and `gpumech`; here is what the thesis compares with
its own model on this one mix, and what the needed occupancies of `cusp` come from. Left out: negligible terms
ε of §7.1, barriers, divergence.
"""

from __future__ import annotations

from .needed_occupancy import Mix


def mwp_peak_bw(mix: Mix) -> float:
    """MWP_peak_BW = mem_lat · mem_thru: Little's law (§7.1; Hong and Kim Eqs. 6 and 7)."""
    return mix.mem_lat * mix.mem_thru


def hong_kim_cwp(mix: Mix, alpha: float, occupancy: float) -> float:
    """CWP = min(n, 1 + mem_lat / ((α + 1) / alu_thru)), §7.1, Eqs. 8 and 9."""
    return min(occupancy, 1 + mix.mem_lat * mix.alu_thru / (alpha + 1))


def hong_kim_latency_time(mix: Mix, alpha: float) -> float:
    """Time at CWP = MWP = n, §7.1, Eq. 22: mem_lat + (α + 1) / alu_thru, whatever n."""
    return mix.mem_lat + (alpha + 1) / mix.alu_thru


def baghsorkhi_compute(mix: Mix, alpha: float, occupancy: float) -> float:
    """CYC_compute / NUM_mem = α · max(1 / alu_thru, alu_lat / n) + 1 / alu_thru, §7.2: x."""
    issue = 1 / mix.alu_thru
    return alpha * max(issue, mix.alu_lat / occupancy) + issue


def baghsorkhi_warp_latency(mix: Mix, alpha: float, occupancy: float) -> float:
    """Warp latency, §7.2, Eqs. 3 to 6: the longest path through compute, transition and data dependence arcs.

    On the G80 max(37, x, 440 − (n − 2) · x), with x of `baghsorkhi_compute`; the grid's time is the sum over warps.
    """
    issue, x = 1 / mix.alu_thru, baghsorkhi_compute(mix, alpha, occupancy)
    latency_bw = issue + max(0.0, 1 / mix.mem_thru - x)
    exposed = mix.mem_lat - (occupancy - 1) * x
    return x - issue + max(latency_bw, exposed)


def baghsorkhi_throughput(mix: Mix, alpha: float, occupancy: float) -> float:
    """Memory instructions per cycle and SM: 1 / warp latency, §7.2."""
    return 1 / baghsorkhi_warp_latency(mix, alpha, occupancy)


def sim_arithmetic_time(mix: Mix, occupancy: float) -> float:
    """max(alu_lat / n, 1 / alu_thru) cycles per instruction, §7.4, Eqs. 2 to 6."""
    return max(mix.alu_lat / occupancy, 1 / mix.alu_thru)


def sim_cwp(mix: Mix, alpha: float, occupancy: float) -> float:
    """CWP = min(n, 1 + mem_lat / ((α + 1) · arithmetic time)), §7.4, Eqs. 4, 5, A.1 to A.4."""
    return min(occupancy, 1 + mix.mem_lat / ((alpha + 1) * sim_arithmetic_time(mix, occupancy)))


def sim_mwp(mix: Mix, occupancy: float) -> float:
    """MWP = min(n, MWP_peak_BW), §7.4, Eq. A.5 without the departure delay, which the thesis finds redundant."""
    return min(occupancy, mwp_peak_bw(mix))


def sim_memory_time(mix: Mix, alpha: float, occupancy: float) -> float:
    """T_mem = n · mem_lat / min(MWP, max(1, CWP − 1)), §7.4, Eqs. 11 to 15."""
    parallel = min(sim_mwp(mix, occupancy), max(1.0, sim_cwp(mix, alpha, occupancy) - 1))
    return occupancy * mix.mem_lat / parallel


def sim_time(mix: Mix, alpha: float, occupancy: float) -> float:
    """T_exec, §7.4, Eqs. 1, 16 and 17: of n warps, with T_comp / n more where CWP ≤ MWP."""
    comp = (alpha + 1) * occupancy * sim_arithmetic_time(mix, occupancy)
    memory = sim_memory_time(mix, alpha, occupancy)
    if sim_cwp(mix, alpha, occupancy) > sim_mwp(mix, occupancy):
        return max(comp, memory)
    return max(comp, memory + comp / occupancy)


def sim_throughput(mix: Mix, alpha: float, occupancy: float) -> float:
    """Memory instructions per cycle and SM: n / T_exec, §7.4."""
    return occupancy / sim_time(mix, alpha, occupancy)


def zhang_owens_throughput(mix: Mix, alpha: float, occupancy: float) -> float:
    """Memory instructions per cycle and SM, §4.11: 1 / max(α · arithmetic time (n), memory time (n))."""
    arithmetic = alpha * max(mix.alu_lat / occupancy, 1 / min(mix.alu_thru, mix.issue_thru))
    return 1 / max(arithmetic, mix.mem_lat / occupancy, 1 / mix.mem_thru)


def huang_ipc(mix: Mix, alpha: float, occupancy: float) -> float:
    """IPC = n · (1 + α) / (mem_lat + α · alu_lat), §7.5, Eq. 7 under round robin: intervals of one instruction."""
    return occupancy * (1 + alpha) / mix.latency(alpha)
