"""GPUMech on a workload: round robin and greedy-then-oldest as published, and round robin corrected.

The formulas and their sources are in `gpumech`. A scheduler issues one instruction a cycle; where the GPU issues more,
ω is divided among as many schedulers, as Volkov does with Kepler and Maxwell (§7.5). The published models count every
stall of the representative warp, as Volkov learned from GPUMech's authors; the corrected one counts only stalls for
memory, as the analysis does (§2.5), and is capped at the roof, which no formula of GPUMech includes.

CPI_rc_contention (Eq. 17) is added for uncoalesced accesses only (their §IV.B), each taken as one interval, with λ_mem
over the accesses' transactions as s · #cores. It is as published: with a utilisation above 1 the delay, and with it the
time, may be negative. Notes list such occupancies, and those with more requests than MSHRs, whose MSHR_delay is left
out (`gpumech`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from ..workload.cost import CostedWorkload
from .base import NotApplicable
from .cycles_per_run import Run, RunOf, Runs, run_model
from .inputs import Interval, ModelInputs, inputs_of, roof_side

# The formulas of GPUMech: interval analysis of one representative warp, then what the other warps overlap.
#
# Huang, Lee, Kim and Lee, "GPUMech: GPU performance modeling technique based on interval analysis" (MICRO
# 2014), as Volkov, "Understanding latency hiding on GPUs" (2016), §§7.5-7.8 prints it with its authors'
# corrections (Eq. 7 gives IPC, not CPI; max and min change places in Eqs. 15 and 16; the subscripts of
# Eqs. 21 and 22), and as Lemeire, Cornelis and Konstantinidis, "Analysis of the analytical performance
# models for GPUs", §2.5 reads and corrects it. The equations' numbers are GPUMech's.
#
# Notation: n warps; interval i holds `interval_insts` instructions that issue without a stall, then
# `stall_cycles` in which the warp waits; `p` is the issue probability; NO the instructions of the other
# warps that do not overlap. Units: cycles of one scheduler, which issues one instruction a cycle.
#
# Left out: MSHR_delay where requests exceed the MSHRs, since none of the papers at hand prints Eq. 20.
# The bandwidth term is published with utilisations above 1, where it is negative: it is computed as
# published, and `in_domain` says so.


def issue_probability(insts: float, total_cycles: float) -> float:
    """Eq. 9: instructions of the representative warp over the cycles that it takes alone."""
    return insts / total_cycles


def nonoverlapped_rr(p: float, warps: float, interval_insts: float) -> float:
    """Eqs. 10 and 11, round robin: NO_i = p · (n − 1) · (interval_insts − 1)."""
    return p * (warps - 1) * (interval_insts - 1)


def nonoverlapped_rr_corrected(warps: float, interval_insts: float, stall_cycles: float) -> float:
    """Analysis §2.5.1 in place of Eq. 11: each other warp overlaps one instruction, at most one a stall cycle."""
    overlapped = min(stall_cycles, warps - 1)
    return (warps - 1) * interval_insts - overlapped


def nonoverlapped_gto(p: float, warps: float, avg_interval_insts: float, stall_cycles: float) -> float:
    """Eqs. 12 to 16, greedy then oldest, with `avg_interval_insts` from Eq. 13."""
    prob_in_stall = min(p * stall_cycles, 1.0)
    issued_in_stall = prob_in_stall * (warps - 1) * avg_interval_insts
    return max(0.0, issued_in_stall - stall_cycles)


def ipc_multithreading(warps: float, insts: float, total_cycles: float, nonoverlapped: float) -> float:
    """Eq. 7 as corrected: n · insts / (total_cycles + NO)."""
    cycles = total_cycles + nonoverlapped
    return warps * insts / cycles if cycles > 0 else inf


def core_requests(warps: float, transactions: float = 1.0) -> float:
    """Eq. 18 for one access a warp: the memory transactions of a core's warps."""
    return warps * transactions


def mshrs_suffice(requests: float, mshrs: float) -> bool:
    """Whether MSHR_delay (Eq. 20) is zero: at most as many requests as MSHRs."""
    return requests <= mshrs


def service_time(clock_ghz: float, transaction_bytes: float, memory_gbs: float) -> float:
    """s: cycles in which the memory of the whole GPU serves one transaction."""
    return clock_ghz * transaction_bytes / memory_gbs


def arrival_rate(requests: float, cores: float, mem_lat: float) -> float:
    """Eq. 23: transactions a cycle of all cores."""
    return requests * cores / mem_lat


def bandwidth_utilization(arrivals: float, service: float) -> float:
    """Eq. 22: ρ. Nothing limits it to below 1."""
    return arrivals * service


def bandwidth_delay(requests: float, cores: float, mem_lat: float, service: float) -> float:
    """Eq. 21 in cycles: min(λ s² / (2 (1 − ρ)), s · requests · cores / 2); negative where ρ > 1.

    At ρ = 1, where the first term has its pole, the second term is used.
    """
    arrivals = arrival_rate(requests, cores, mem_lat)
    free = 1 - bandwidth_utilization(arrivals, service)
    most = service * requests * cores / 2
    return min(arrivals * service**2 / (2 * free), most) if free else most


def in_domain(requests: float, cores: float, mem_lat: float, service: float) -> bool:
    """Whether the utilisation factor is below 1, as a queue's must be."""
    return bandwidth_utilization(arrival_rate(requests, cores, mem_lat), service) < 1


def singular_warps(cores: float, mem_lat: float, service: float, transactions: float = 1.0) -> float:
    """The occupancy at which ρ = 1, the pole of Eq. 21."""
    return mem_lat / (cores * service * transactions)


def cpi_contention(delays: float, insts: float) -> float:
    """Eq. 17: the delays of MSHRs and bandwidth over the instructions that they fall on."""
    return delays / insts


def cpi_final(cpi_multithreading: float, contention: float = 0.0) -> float:
    """Eq. 3: CPI_multithreading + CPI_rc_contention."""
    return cpi_multithreading + contention


NonOverlapped = Callable[[float, float, float, Interval], float]
"""NO_i from p, n, the mean interval and interval i."""


def cycles_of(intervals: Sequence[Interval], warps: float, nonoverlapped: NonOverlapped) -> float:
    """Cycles in which one scheduler runs n warps: insts · n / IPC_multithreading (Eqs. 7 and 9)."""
    insts = sum(i.instructions * i.times for i in intervals)
    total = sum((i.instructions + i.stall) * i.times for i in intervals)
    p = issue_probability(insts, total)
    mean = insts / sum(i.times for i in intervals)
    over = sum(nonoverlapped(p, warps, mean, i) * i.times for i in intervals)
    return warps * insts / ipc_multithreading(warps, insts, total, over)


def rr(p: float, warps: float, mean: float, interval: Interval) -> float:
    """Round robin as published."""
    return nonoverlapped_rr(p, warps, interval.instructions)


def rr_corrected(p: float, warps: float, mean: float, interval: Interval) -> float:
    """Round robin as the analysis corrects it."""
    return nonoverlapped_rr_corrected(warps, interval.instructions, interval.stall)


def gto(p: float, warps: float, mean: float, interval: Interval) -> float:
    """Greedy then oldest."""
    return nonoverlapped_gto(p, warps, mean, interval.stall)


def schedulers_of(inputs: ModelInputs) -> float:
    """The number of schedulers of the SM that issue one instruction per cycle; 1 if it has no issue limit."""
    rate = inputs.issue_rate or 1.0
    if rate < 1:
        raise NotApplicable(f"GPUMech's scheduler issues one instruction per cycle, this GPU's SM only {rate:g}")
    return rate


def contention_cycles(inputs: ModelInputs, warps: int) -> float:
    """Bandwidth_delay of a run of ω warps over all their uncoalesced accesses; negative outside its domain."""
    if not inputs.uncoalesced:
        return 0.0
    requests, service = _queue(inputs, warps)
    delay = bandwidth_delay(requests, inputs.active_sms, inputs.memory.latency, service)
    return warps * inputs.instructions * cpi_contention(inputs.uncoalesced * delay, inputs.instructions)


def contention_notes(inputs: ModelInputs, occupancies: Sequence[int]) -> tuple[str, ...]:
    """The occupancies at which the contention term is outside its domain, or lacks its MSHR_delay."""
    if not inputs.uncoalesced:
        return ()
    mshrs = inputs.parameters.get("mshrs")
    overfull, unknown = [], []
    for warps in occupancies:
        requests, service = _queue(inputs, warps)
        if not in_domain(requests, inputs.active_sms, inputs.memory.latency, service):
            overfull.append(str(warps))
        if mshrs is not None and not mshrs_suffice(requests, mshrs):
            unknown.append(str(warps))
    notes = []
    if overfull:
        notes.append(f"outside the domain at {', '.join(overfull)} warps: bandwidth utilisation of 1 or more")
    if unknown:
        notes.append(f"MSHR_delay left out at {', '.join(unknown)} warps: more requests than MSHRs")
    if mshrs is None:
        notes.append("MSHR_delay assumed to be zero: the GPU's number of MSHRs is not known")
    return tuple(notes)


def _queue(inputs: ModelInputs, warps: int) -> tuple[float, float]:
    """#core_reqs and s."""
    requests = core_requests(warps, inputs.uncoalesced_transactions)
    return requests, inputs.memory.lambda_ / max(1.0, inputs.transactions) / inputs.active_sms


def _run_of(inputs: ModelInputs, nonoverlapped: NonOverlapped) -> RunOf:
    schedulers = schedulers_of(inputs)

    def run(warps: int) -> Run:
        each = max(1.0, warps / schedulers)
        return Run(
            cycles_of(inputs.intervals, each, nonoverlapped) + contention_cycles(inputs, warps),
            "latency" if warps <= schedulers else _bound(inputs, each, nonoverlapped),
        )

    return run


def _bound(inputs: ModelInputs, warps: float, nonoverlapped: NonOverlapped) -> str:
    """``latency`` if a run of n warps takes no longer than one warp."""
    alone = cycles_of(inputs.intervals, 1, nonoverlapped)
    return "computation" if cycles_of(inputs.intervals, warps, nonoverlapped) > alone * (1 + 1e-9) else "latency"


def _published(workload: CostedWorkload, nonoverlapped: NonOverlapped) -> Runs:
    inputs = inputs_of(workload)
    return Runs(_run_of(inputs, nonoverlapped), noted=lambda occupancies: contention_notes(inputs, occupancies))


@run_model("gpumech_rr", "interval analysis under round robin, as published: no throughput limit (Huang et al. 2014)")
def gpumech_rr(workload: CostedWorkload) -> Runs:
    """Eqs. 7 to 11, and 17 to 23 for uncoalesced accesses."""
    return _published(workload, rr)


@run_model("gpumech_gto", "interval analysis under greedy-then-oldest, as published (Huang et al. 2014)")
def gpumech_gto(workload: CostedWorkload) -> Runs:
    """Eqs. 7, 9 and 12 to 16, and 17 to 23 for uncoalesced accesses."""
    return _published(workload, gto)


@run_model(
    "gpumech_rr_corrected",
    "GPUMech's round robin with an issue probability of 1 (analysis §2.5.1), capped at the roof",
)
def gpumech_rr_corrected(workload: CostedWorkload) -> Runs:
    """Analysis §2.5.1, latencies of memory alone, never above the roof."""
    inputs = inputs_of(workload)
    schedulers = schedulers_of(inputs)
    alone = cycles_of(inputs.memory_intervals, 1, rr_corrected)

    def run_of(warps: int) -> Run:
        cycles = cycles_of(inputs.memory_intervals, max(1.0, warps / schedulers), rr_corrected)
        if cycles * inputs.roof < warps:
            return Run(warps / inputs.roof, roof_side(inputs))
        return Run(cycles, "computation" if cycles > alone * (1 + 1e-9) else "latency")

    return Runs(run_of)
