"""Two first-order models of multithreading: Chen and Aamodt's for identical threads, and Transit.

Chen and Aamodt, "A first-order fine-grained multithreaded throughput model" (HPCA 2009), as Volkov summarises them for
threads that are all identical, "Understanding latency hiding on GPUs" (2016), §4.13. With χ the throughput of one
thread alone:

    χ1(n) = χ,    χ2(n) = n · χ,    χ3(n) = 1 − (1 − χ)^n

Units: instructions per issue slot; n warps. A thread is a warp, and χ = instructions / Λ_app in issue slots. The models
assume one issue slot per cycle. Where an SM issues S > 1 instructions a cycle, n is occupancy per scheduler and the
result holds for each of the S, as Volkov does for GPUMech (§7.5); where it issues less often than once a cycle, a slot
is that much longer. Left out: their fourth model, which has no closed form; memory bandwidth and any throughput limit
but that of issue.
"""

from __future__ import annotations

from collections.abc import Callable

from ..workload.cost import CostedWorkload
from .base import NotApplicable
from .cycles_per_run import Run, Runs, run_model
from .inputs import inputs_of


def chi_1(chi: float, n: float) -> float:
    """χ1(n) = χ: multithreading has no effect."""
    return chi


def chi_2(chi: float, n: float) -> float:
    """χ2(n) = n · χ: threads do not disturb each other, and nothing limits them."""
    return n * chi


def chi_3(chi: float, n: float) -> float:
    """χ3(n) = 1 − (1 − χ)^n: one issue slot a cycle, which each thread wants with probability χ."""
    return float(1 - (1 - chi) ** n)


def _runs(formula: Callable[[float, float], float], workload: CostedWorkload) -> Runs:
    given = inputs_of(workload)
    if not given.instructions or not given.latency_app:
        raise NotApplicable("a warp without instructions or without latency has no throughput of its own")
    issue = given.issue_rate or 1.0
    schedulers = max(1, round(issue))
    slot = schedulers / issue
    chi = given.instructions / given.latency_app * slot
    if chi > 1:
        raise NotApplicable(f"a lone warp issues {chi:.3g} instructions per slot, the model allows one")

    def rate(occupancy: int) -> float:
        if formula is chi_1:  # one thread's throughput on the whole SM, however many there are
            return chi / slot / given.instructions
        each, more = divmod(occupancy, schedulers)
        total = more * formula(chi, each + 1) + (schedulers - more) * formula(chi, each)
        return total / slot / given.instructions

    return Runs(lambda warps: Run(warps / rate(warps), "latency"))


@run_model("chen_aamodt_1", "one warp's throughput at any occupancy (Chen and Aamodt 2009)")
def chen_aamodt_1(workload: CostedWorkload) -> Runs:
    """The throughput of one warp at every occupancy."""
    return _runs(chi_1, workload)


@run_model("chen_aamodt_2", "n times one warp's throughput, without limit (Chen and Aamodt 2009)")
def chen_aamodt_2(workload: CostedWorkload) -> Runs:
    """Throughput in proportion to occupancy."""
    return _runs(chi_2, workload)


@run_model("chen_aamodt_3", "gradual saturation of the issue slots, 1 - (1 - chi)^n (Chen and Aamodt 2009)")
def chen_aamodt_3(workload: CostedWorkload) -> Runs:
    """Throughput that saturates at the issue rate."""
    return _runs(chi_3, workload)


# The Transit model: warps split between a computing and a memory subsystem.
#
# Li, Tay, Kumar and Corporaal, "Transit: a visual analytical model for multithreaded machines" (HPDC
# 2015), as Lemeire, Cornelis and Konstantinidis, "Analysis of the analytical performance models for
# GPUs", §2.2.1, Eqs. 4 to 14, write it:
#
#     IPC_comp(x) = min(1/λ_comp, x/Λ_comp),  IPC_mem(k) = min(1/λ_mem, k/Λ_mem),  x + k = ω
#
# In the steady state the memory service that x computing warps ask for equals what k waiting ones get:
# the occupancy rooflines cross, one of them drawn backwards from ω. Units: cycles of one SM, warps per
# cycle. Assumed: every instruction depends on the one before (no ILP: 28 cycles for a lone warp of the
# analysis paper's example, not 25), one computing subsystem, latencies that do not change with load.
# Left out: ILP, the issue limit, barriers, finer subsystems. Theorem 1 of the analysis: this is Volkov's
# model without ILP.
#
# λ and Λ of a subsystem are means over a warp's instructions there: all computing instructions of a kernel
# count as one subsystem. Barriers count as none.


def ipc_of(warps: float, lambda_: float, latency: float) -> float:
    """Eqs. 4 and 5: the occupancy roofline of one subsystem, min(1/λ, warps/Λ)."""
    limits = [1 / lambda_ if lambda_ > 0 else float("inf"), warps / latency if latency > 0 else float("inf")]
    return min(limits)


def wpc_of(warps: float, alpha: float, lambda_: float, latency: float) -> float:
    """Eqs. 6 and 7 with the roof kept: warps per cycle of a subsystem on which a warp has α instructions."""
    return ipc_of(warps, lambda_, latency) / alpha


def crossing(omega: float, demand: Callable[[float], float], supply: Callable[[float], float]) -> float:
    """k at which supply(k) = demand(ω − k), Eq. 8; both rise with their argument.

    Where both lie on their flat parts, the least of the k that do.
    """
    low, high = 0.0, omega
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return high
        if supply(middle) < demand(omega - middle):
            low = middle
        else:
            high = middle


def wpc_transit(
    omega: float, alpha_comp: float, comp: tuple[float, float], alpha_mem: float, mem: tuple[float, float]
) -> float:
    """Warps per cycle at the crossing point; `comp` and `mem` are (λ, Λ)."""
    if alpha_mem == 0:
        return wpc_of(omega, alpha_comp, *comp)
    if alpha_comp == 0:
        return wpc_of(omega, alpha_mem, *mem)
    k = crossing(omega, lambda x: wpc_of(x, alpha_comp, *comp), lambda y: wpc_of(y, alpha_mem, *mem))
    return min(wpc_of(k, alpha_mem, *mem), wpc_of(omega - k, alpha_comp, *comp))


@run_model("transit", "warps split between computing and memory; Volkov's model without ILP (Li et al. 2015)")
def transit(workload: CostedWorkload) -> Runs:
    """Where the demand of computing warps meets what memory supplies."""
    inputs = inputs_of(workload)
    comp, mem = inputs.computation, inputs.memory
    alone = comp.count * comp.latency + mem.count * mem.latency
    if not alone:
        raise NotApplicable("no instruction has a latency, so no warp is ever computing or waiting")
    busy = {"computation": comp.count * comp.lambda_, "memory": mem.count * mem.lambda_}
    busiest = max(busy, key=lambda name: busy[name])

    def run_of(warps: int) -> Run:
        rate = wpc_transit(warps, comp.count, (comp.lambda_, comp.latency), mem.count, (mem.lambda_, mem.latency))
        return Run(warps / rate, "latency" if warps * busy[busiest] < alone else busiest)

    return Runs(run_of, (f"Λ_app {alone:.6g} cycles, without ILP",))
