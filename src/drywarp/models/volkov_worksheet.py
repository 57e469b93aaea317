"""The cycle counting of Volkov's worksheet: issue events, bytes and exclusive use of a resource.

Volkov, "Understanding latency hiding on GPUs" (2016), §3.6 (Tables 3.2 to 3.4), §3.8 and §6.7. Units: cycles of
one SM, bytes. The sums over a whole workload are `throughput.demand`; here is what turns hardware limits into
cycles per instruction.
"""

from __future__ import annotations

from collections.abc import Iterable


def issue_events(instructions: float, dual_issues: float = 0, reissues: float = 0) -> float:
    """Issue events per warp, §3.6: a pair is issued once, a diverging or conflicting instruction once more."""
    return instructions - dual_issues + reissues


def cycles_total(uses: Iterable[tuple[float, float]]) -> float:
    """Cycles that a warp keeps a resource to itself: Σ CPI · instructions, Table 3.4."""
    return sum(cpi * instructions for cpi, instructions in uses)


def bytes_per_cycle(gbs: float, clock_ghz: float, sm_count: float) -> float:
    """A bandwidth of the GPU in bytes per cycle and SM, §3.6."""
    return gbs / (clock_ghz * sm_count)


def transfer_cycles(transferred: float, bytes_per_cycle: float) -> float:
    """Cycles that a transfer keeps the memory system of one SM, §3.6."""
    return transferred / bytes_per_cycle


def transaction_latency(diverging: float, coalesced: float, transactions: float, base: float) -> float:
    """Λ that each further transaction adds, §6.7: of an access of `transactions` over one of `base`."""
    return (diverging - coalesced) / (transactions - base)
