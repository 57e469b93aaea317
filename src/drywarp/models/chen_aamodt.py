"""Chen and Aamodt's first three models of fine-grained multithreading.

Chen and Aamodt, "A first-order fine-grained multithreaded throughput model" (HPCA 2009), as Volkov summarises
them for threads that are all identical, "Understanding latency hiding on GPUs" (2016), §4.13. With χ the throughput
of one thread alone:

    χ1(n) = χ,    χ2(n) = n · χ,    χ3(n) = 1 − (1 − χ)^n

Units: instructions per issue slot; n warps. A thread is a warp, and χ = instructions / Λ_app in issue slots.
The models assume one issue slot per cycle. Where an SM issues S > 1 instructions a cycle, n is occupancy per
scheduler and the result holds for each of the S, as Volkov does for GPUMech (§7.5); where it issues less often
than once a cycle, a slot is that much longer. Left out: their fourth model, which has no closed form; memory
bandwidth and any throughput limit but that of issue.
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
