"""The formulas of GPUMech: interval analysis of one representative warp, then what the other warps overlap.

Huang, Lee, Kim and Lee, "GPUMech: GPU performance modeling technique based on interval analysis" (MICRO
2014), as Volkov, "Understanding latency hiding on GPUs" (2016), §§7.5-7.8 prints it with its authors'
corrections (Eq. 7 gives IPC, not CPI; max and min change places in Eqs. 15 and 16; the subscripts of
Eqs. 21 and 22), and as Lemeire, Cornelis and Konstantinidis, "Analysis of the analytical performance
models for GPUs", §2.5 reads and corrects it. The equations' numbers are GPUMech's.

Notation: n warps; interval i holds `interval_insts` instructions that issue without a stall, then
`stall_cycles` in which the warp waits; `p` is the issue probability; NO the instructions of the other
warps that do not overlap. Units: cycles of one scheduler, which issues one instruction a cycle.

Left out: MSHR_delay where requests exceed the MSHRs, since none of the papers at hand prints Eq. 20.
The bandwidth term is published with utilisations above 1, where it is negative: it is computed as
published, and `in_domain` says so.
"""

from __future__ import annotations

from math import inf


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
    """Whether MSHR_delay (Eq. 20) is zero: as many requests as MSHRs at the most."""
    return requests <= mshrs


def service_time(clock_ghz: float, transaction_bytes: float, memory_gbs: float) -> float:
    """s: cycles in which the memory of the whole GPU serves one transaction."""
    return clock_ghz * transaction_bytes / memory_gbs


def arrival_rate(requests: float, cores: float, mem_lat: float) -> float:
    """Eq. 23: transactions a cycle of all cores."""
    return requests * cores / mem_lat


def bandwidth_utilization(arrivals: float, service: float) -> float:
    """Eq. 22: ρ. Nothing keeps it below 1."""
    return arrivals * service


def bandwidth_delay(requests: float, cores: float, mem_lat: float, service: float) -> float:
    """Eq. 21 in cycles: min(λ s² / (2 (1 − ρ)), s · requests · cores / 2); negative where ρ > 1.

    At ρ = 1, where the first term has its pole, the second counts.
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
