"""Needed occupancy and cusp: how many warps hide the latencies of an instruction mix.

Volkov, "Understanding latency hiding on GPUs" (2016), §3.1-3.3 (Little's law), §4.1 (the mix and its
throughput), §4.5 (needed occupancy and cusp), §4.6 (concurrent instructions) and §4.7 (the same for SFU and
shared memory instructions in place of memory instructions).

The mix is α arithmetic instructions to one memory instruction, back to back dependent, evenly
interleaved and endless. Units: latencies in cycles, throughputs in warp instructions per cycle (IPC) of
one SM, occupancies in warps per SM. Assumed: latencies do not depend on the load. Left out: instruction-level
parallelism, interference between warps (the gradual saturation of §6.4: `volkov_contention`), that some instructions
may need several issue cycles (§4.7).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf


def concurrency(latency: float, throughput: float) -> float:
    """Little's law, §3.1: mean concurrency = mean latency · throughput."""
    return latency * throughput


def throughput(concurrent: float, latency: float) -> float:
    """Little's law, §3.2: instruction throughput = instructions in execution / instruction latency."""
    return concurrent / latency


def warps_for_concurrency(concurrent: float, per_warp: float) -> float:
    """Warps that keep so many instructions in execution, if each warp has `per_warp` at a time, §3.3."""
    return concurrent / per_warp


def instruction_throughput(gbs: float, clock_ghz: float, sm_count: float, bytes_per_instruction: float = 128) -> float:
    """A bandwidth of the GPU in memory instructions per cycle of one SM, §3.2."""
    return gbs / (clock_ghz * sm_count * bytes_per_instruction)


def memory_gbs(ipc: float, clock_ghz: float, sm_count: float, bytes_per_instruction: float = 128) -> float:
    """Memory instructions per cycle of one SM as a bandwidth of the GPU: the inverse, §6.5."""
    return ipc * clock_ghz * sm_count * bytes_per_instruction


@dataclass(frozen=True, slots=True)
class Mix:
    """Table 4.1: what the model knows of a GPU, for one kind of instruction that adds are mixed with.

    That kind is called `mem` as in §4.1; it may be SFU or shared memory instructions (§4.7). `mem_lat_alu` is its
    latency if the dependent instruction is an add and the latency then differs (None: the same).
    """

    mem_lat: float
    mem_thru: float
    alu_lat: float
    alu_thru: float
    issue_thru: float = inf
    mem_lat_alu: float | None = None

    def __post_init__(self) -> None:
        if min(self.mem_lat, self.mem_thru, self.alu_lat, self.alu_thru, self.issue_thru) <= 0:
            raise ValueError("latencies and throughputs of a mix are positive")

    def latency(self, alpha: float) -> float:
        """Latency = mem_lat + α · alu_lat: of α adds and one memory instruction, §4.1.

        Below α = 1 there are 1/α memory instructions to an add, of which one has an add to follow (§4.7).
        """
        before_add = min(1.0, alpha)
        to_alu = self.mem_lat if self.mem_lat_alu is None else self.mem_lat_alu
        return (1 - before_add) * self.mem_lat + before_add * to_alu + alpha * self.alu_lat

    def throughput_bound(self, alpha: float) -> float:
        """min(mem_thru, alu_thru / α, issue_thru / (α + 1)): memory instructions per cycle, §4.1."""
        arithmetic = self.alu_thru / alpha if alpha > 0 else inf
        return min(self.mem_thru, arithmetic, self.issue_thru / (alpha + 1))

    def memory_throughput(self, occupancy: float, alpha: float) -> float:
        """min(n / Latency, throughput bound), §4.1."""
        return min(occupancy / self.latency(alpha), self.throughput_bound(alpha))

    def adds_per_cycle(self, occupancy: float, alpha: float, lanes: int = 32) -> float:
        """Arithmetic throughput of one SM in operations of threads, Table 4.2: 32 · α · memory throughput."""
        return lanes * alpha * self.memory_throughput(occupancy, alpha)

    def bound(self, alpha: float) -> str:
        """Which throughput limits: ``memory``, ``arithmetic`` or ``issue``; the first if several."""
        limits = {
            "memory": self.mem_thru,
            "arithmetic": self.alu_thru / alpha if alpha > 0 else inf,
            "issue": self.issue_thru / (alpha + 1),
        }
        return min(limits, key=lambda name: limits[name])

    def needed_occupancy(self, alpha: float, share: float = 1.0) -> float:
        """n = Latency · throughput bound, §4.5: warps that attain the bound, or a `share` of it.

        At least 1: an SM without a warp runs nothing.
        """
        return max(1.0, share * self.latency(alpha) * self.throughput_bound(alpha))

    @property
    def warps_for_arithmetic(self) -> float:
        """alu_lat · alu_thru: n at α = ∞, §4.2; adds in execution when they are the bottleneck, §4.6."""
        return self.alu_lat * min(self.alu_thru, self.issue_thru)

    @property
    def warps_for_memory(self) -> float:
        """mem_lat · mem_thru: n at α = 0, §4.2; memory instructions in execution at their peak."""
        return self.mem_lat * min(self.mem_thru, self.issue_thru)

    def cusp_intensity(self) -> float:
        """α where the memory bound and the tighter of the arithmetic and the issue bound meet, §4.5.

        α = alu_thru / mem_thru, or issue_thru / mem_thru − 1 if that is less. Without an issue limit the
        needed occupancy there is `needed_at_cusp`, as the thesis has it. It is the most for any α, unless the issue
        bound is the tighter and mem_lat is shorter than alu_lat.
        """
        return max(0.0, min(self.alu_thru / self.mem_thru, self.issue_thru / self.mem_thru - 1))

    def needed_at_cusp(self) -> float:
        """n (maximum) = alu_lat · alu_thru + mem_lat · mem_thru, §4.5: issue not considered."""
        return self.alu_lat * self.alu_thru + self.mem_lat * self.mem_thru

    def arithmetic_in_execution(self, alpha: float) -> float:
        """Adds in execution at the throughput bound, §4.6: α · throughput · alu_lat."""
        return concurrency(self.alu_lat, alpha * self.throughput_bound(alpha))

    def memory_in_execution(self, alpha: float) -> float:
        """Memory instructions in execution at the throughput bound, §4.6."""
        return concurrency(self.latency(alpha) - alpha * self.alu_lat, self.throughput_bound(alpha))


# The cycle counting of Volkov's worksheet, §3.6 (Tables 3.2 to 3.4), §3.8 and §6.7, in cycles and bytes of one SM: what
# turns hardware limits into cycles per instruction. The sums over a whole workload are `throughput.demand`.


def cycles_total(uses: Iterable[tuple[float, float]]) -> float:
    """Cycles that a warp occupies a resource exclusively: Σ CPI · instructions, Table 3.4."""
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
