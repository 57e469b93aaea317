"""GPUMech on a workload: round robin and greedy-then-oldest as published, and round robin corrected.

The formulas and their sources are in `gpumech`. A scheduler issues one instruction a cycle; where the
GPU issues more, ω is divided among as many schedulers, as Volkov does with Kepler and Maxwell (§7.5).
The published models take every stall of the representative warp, as Volkov has it from GPUMech's
authors; the corrected one only stalls for memory, as the analysis does (§2.5), and is kept at or below
the roof, which no formula of GPUMech knows.

CPI_rc_contention (Eq. 17) is added for uncoalesced accesses only (their §IV.B), each taken as one
interval, with λ_mem over the accesses' transactions as s · #cores. It is as published: with a
utilisation above 1 the delay, and with it the time, may be negative. Notes name such occupancies, and
those with more requests than MSHRs, whose MSHR_delay is left out (`gpumech`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..bound import BoundWorkload
from . import gpumech
from .base import NotApplicable, Prediction, register
from .cycles_per_run import Run, predict_runs
from .inputs import Interval, ModelInputs, inputs_of
from .roof_side import roof_side

NonOverlapped = Callable[[float, float, float, Interval], float]
"""NO_i from p, n, the mean interval and interval i."""


def cycles_of(intervals: Sequence[Interval], warps: float, nonoverlapped: NonOverlapped) -> float:
    """Cycles in which one scheduler runs n warps: insts · n / IPC_multithreading (Eqs. 7 and 9)."""
    insts = sum(i.instructions * i.times for i in intervals)
    total = sum((i.instructions + i.stall) * i.times for i in intervals)
    p = gpumech.issue_probability(insts, total)
    mean = insts / sum(i.times for i in intervals)
    over = sum(nonoverlapped(p, warps, mean, i) * i.times for i in intervals)
    return warps * insts / gpumech.ipc_multithreading(warps, insts, total, over)


def rr(p: float, warps: float, mean: float, interval: Interval) -> float:
    """Round robin as published."""
    return gpumech.nonoverlapped_rr(p, warps, interval.instructions)


def rr_corrected(p: float, warps: float, mean: float, interval: Interval) -> float:
    """Round robin as the analysis corrects it."""
    return gpumech.nonoverlapped_rr_corrected(warps, interval.instructions, interval.stall)


def gto(p: float, warps: float, mean: float, interval: Interval) -> float:
    """Greedy then oldest."""
    return gpumech.nonoverlapped_gto(p, warps, mean, interval.stall)


def schedulers_of(inputs: ModelInputs) -> float:
    """How many schedulers of one instruction a cycle the SM has; one where it has no issue limit."""
    rate = inputs.issue_rate or 1.0
    if rate < 1:
        raise NotApplicable(f"GPUMech's scheduler issues an instruction a cycle, this GPU's SM only {rate:g}")
    return rate


def contention_cycles(inputs: ModelInputs, warps: int) -> float:
    """Bandwidth_delay of a run of ω warps over all their uncoalesced accesses; negative out of its domain."""
    if not inputs.uncoalesced:
        return 0.0
    requests, service = _queue(inputs, warps)
    delay = gpumech.bandwidth_delay(requests, inputs.active_sms, inputs.memory.latency, service)
    return warps * inputs.instructions * gpumech.cpi_contention(inputs.uncoalesced * delay, inputs.instructions)


def contention_notes(inputs: ModelInputs, occupancies: Sequence[int]) -> tuple[str, ...]:
    """At which occupancies the contention term is outside its domain, or lacks its MSHR_delay."""
    if not inputs.uncoalesced:
        return ()
    mshrs = inputs.parameters.get("mshrs")
    overfull, unknown = [], []
    for warps in occupancies:
        requests, service = _queue(inputs, warps)
        if not gpumech.in_domain(requests, inputs.active_sms, inputs.memory.latency, service):
            overfull.append(str(warps))
        if mshrs is not None and not gpumech.mshrs_suffice(requests, mshrs):
            unknown.append(str(warps))
    notes = []
    if overfull:
        notes.append(f"outside the domain at {', '.join(overfull)} warps: bandwidth utilisation of 1 and more")
    if unknown:
        notes.append(f"MSHR_delay left out at {', '.join(unknown)} warps: more requests than MSHRs")
    if mshrs is None:
        notes.append("MSHR_delay taken as zero: the GPU's MSHRs are not known")
    return tuple(notes)


def _queue(inputs: ModelInputs, warps: int) -> tuple[float, float]:
    """#core_reqs and s."""
    requests = gpumech.core_requests(warps, inputs.uncoalesced_transactions)
    return requests, inputs.memory.lambda_ / max(1.0, inputs.transactions) / inputs.active_sms


def _run_of(inputs: ModelInputs, nonoverlapped: NonOverlapped) -> Callable[[int], Run]:
    schedulers = schedulers_of(inputs)

    def run(warps: int) -> Run:
        each = max(1.0, warps / schedulers)
        return Run(
            cycles_of(inputs.intervals, each, nonoverlapped) + contention_cycles(inputs, warps),
            "latency" if warps <= schedulers else _bound(inputs, each, nonoverlapped),
        )

    return run


def _bound(inputs: ModelInputs, warps: float, nonoverlapped: NonOverlapped) -> str:
    """``latency`` while a run of n warps takes no longer than one warp."""
    alone = cycles_of(inputs.intervals, 1, nonoverlapped)
    return "computation" if cycles_of(inputs.intervals, warps, nonoverlapped) > alone * (1 + 1e-9) else "latency"


@register("gpumech_rr")
class GpuMechRoundRobin:
    """Eqs. 7 to 11, and 17 to 23 for uncoalesced accesses."""

    name = "gpumech_rr"
    summary = "interval analysis under round robin, as published: no throughput limit (Huang et al. 2014)"

    def predict(self, workload: BoundWorkload, occupancies: Sequence[int]) -> Prediction:
        """Predict `workload`, and the curve at `occupancies`."""
        inputs = inputs_of(workload)
        notes = contention_notes(inputs, occupancies)
        return predict_runs(self.name, workload, occupancies, _run_of(inputs, rr), notes)


@register("gpumech_gto")
class GpuMechGreedyThenOldest:
    """Eqs. 7, 9 and 12 to 16, and 17 to 23 for uncoalesced accesses."""

    name = "gpumech_gto"
    summary = "interval analysis under greedy-then-oldest, as published (Huang et al. 2014)"

    def predict(self, workload: BoundWorkload, occupancies: Sequence[int]) -> Prediction:
        """Predict `workload`, and the curve at `occupancies`."""
        inputs = inputs_of(workload)
        notes = contention_notes(inputs, occupancies)
        return predict_runs(self.name, workload, occupancies, _run_of(inputs, gto), notes)


@register("gpumech_rr_corrected")
class GpuMechRoundRobinCorrected:
    """Analysis §2.5.1, latencies of memory alone, never above the roof."""

    name = "gpumech_rr_corrected"
    summary = "GPUMech's round robin with an issue probability of 1 (analysis §2.5.1), kept below the roof"

    def predict(self, workload: BoundWorkload, occupancies: Sequence[int]) -> Prediction:
        """Predict `workload`, and the curve at `occupancies`."""
        inputs = inputs_of(workload)
        schedulers = schedulers_of(inputs)
        alone = cycles_of(inputs.memory_intervals, 1, rr_corrected)

        def run_of(warps: int) -> Run:
            cycles = cycles_of(inputs.memory_intervals, max(1.0, warps / schedulers), rr_corrected)
            if cycles * inputs.roof < warps:
                return Run(warps / inputs.roof, roof_side(inputs))
            return Run(cycles, "computation" if cycles > alone * (1 + 1e-9) else "latency")

        return predict_runs(self.name, workload, occupancies, run_of)
