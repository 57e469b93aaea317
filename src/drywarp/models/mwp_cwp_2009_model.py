"""`mwp_cwp_2009`: Hong and Kim's equations applied to a workload.

The equations are in `mwp_cwp_2009`. Their inputs, from the workload and the GPU's section `[parameters]`:

- #Issue_cycles is the GPU's, else the λ of its issue limit. M_Factor makes a computation take its own λ
  where that is longer. Memory and synchronisation instructions count with #Issue_cycles, as in Table 2.
- Mem_LD and the departure delays are the GPU's. If it gives none, the latencies are Λ of the coalesced and of the
  uncoalesced accesses (caches counted), and the departure delays are their λ on the subsystem that sends them.
- MWP_peak_BW follows Eqs. 6 and 7 on a GPU that gives those delays, which has no caches; else it is
  Mem_L / λ_mem (analysis Eq. 15), with λ_mem of the slowest level of memory.
- #ind_mem_req is α_mem · (1 − 1 / MLP): of MLP requests that are in flight together, one is dependent.
- Without memory instructions MWP and CWP are undefined, and Eq. 24 is left with Mem_L 0: Comp_cycles · N.
- Divergent paths: the instructions of a warp are those of all its paths, one after the other (§6.3).

Units: cycles of one SM per run of ω warps, with #Rep 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from ..workload.cost import TICKS_PER_CYCLE, CostedWorkload
from . import mwp_cwp_2009 as hk
from .base import NotApplicable
from .cycles_per_run import Run, Runs, issue_cycles_of, run_model
from .inputs import ModelInputs, inputs_of, kind_of
from .inputs_parts import scoped, weighed
from .mwp_cwp import NO_MEMORY
from .throughput import path_weights


@dataclass(frozen=True, slots=True)
class Access:
    """The memory instructions of one pattern: their number per warp, Mem_L and Departure_delay."""

    insts: float
    mem_l: float
    departure_delay: float


@dataclass(frozen=True, slots=True)
class Terms:
    """Inputs of the three cases, for one workload on one GPU; MWP and CWP before they are bounded by N."""

    mem_l: float
    departure_delay: float
    without_bw: float
    peak_bw: float
    mem_cycles: float
    comp_cycles: float
    mem_insts: float
    ind_mem_req: float
    synch_insts: float
    warps_per_block: int


def accesses_of(workload: CostedWorkload, inputs: ModelInputs) -> tuple[Access, Access]:
    """The uncoalesced and the coalesced accesses of a mean warp (Eqs. 10, 11 and 15)."""
    given = inputs.parameters
    sums = [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    for node, times in weighed(workload, path_weights(workload)):
        if kind_of(workload, node) == "memory":
            latency, delay = node.latency_ticks / TICKS_PER_CYCLE, scoped(workload, node, node.lambda_ticks)
            single = node.transactions <= 1
            if "dram_latency" in given and single and "departure_delay_coalesced" in given:
                latency, delay = given["dram_latency"], given["departure_delay_coalesced"]
            elif "dram_latency" in given and not single and "departure_delay_uncoalesced" in given:
                each = given["departure_delay_uncoalesced"]
                latency = hk.mem_l_uncoal(given["dram_latency"], node.transactions, each)
                delay = each * node.transactions
            total = sums[single]
            for place, value in enumerate((1.0, latency, delay)):
                total[place] += times * value
    uncoal, coal = (Access(n, lat / n, delay / n) if n else Access(0.0, 0.0, 0.0) for n, lat, delay in sums)
    return uncoal, coal


def terms_of(workload: CostedWorkload, inputs: ModelInputs) -> Terms:
    """Everything independent of N.

    Raises `NotApplicable` if there are memory instructions, but none has anything to wait for.
    """
    some = inputs.memory.count > 0
    uncoal, coal = accesses_of(workload, inputs)
    weight = hk.weight_uncoal(uncoal.insts, coal.insts) if some else 0.0
    latency = hk.mem_l(uncoal.mem_l, coal.mem_l, weight)
    if some and latency <= 0:
        raise NotApplicable("no memory instruction has a latency, so MWP is undefined")
    delay = hk.mem_l(uncoal.departure_delay, coal.departure_delay, weight)
    issue, comp = issue_cycles_of(inputs), inputs.computation
    others = inputs.memory.count + inputs.barrier.count
    factor = max(1.0, comp.lambda_ / issue) if issue else 1.0
    return Terms(
        mem_l=latency,
        departure_delay=delay,
        without_bw=hk.mwp_without_bw_full(latency, delay),
        peak_bw=_peak_bw(inputs, latency) if some else inf,
        mem_cycles=hk.mem_cycles(uncoal.mem_l, uncoal.insts, coal.mem_l, coal.insts),
        comp_cycles=hk.comp_cycles(issue, comp.count, factor) + hk.comp_cycles(issue, others),
        mem_insts=inputs.memory.count,
        ind_mem_req=inputs.memory.count * (1 - 1 / max(1.0, inputs.mlp)),
        synch_insts=inputs.barrier.count,
        warps_per_block=inputs.warps_per_block,
    )


def _peak_bw(inputs: ModelInputs, mem_l: float) -> float:
    bytes_per_warp = inputs.parameters.get("transaction_bytes")
    if inputs.memory_gbs and bytes_per_warp and "departure_delay_uncoalesced" in inputs.parameters:
        each = hk.bw_per_warp(inputs.clock_hz, bytes_per_warp, mem_l)
        return hk.mwp_peak_bw(inputs.memory_gbs * 1e9, each, inputs.active_sms)
    return mem_l / inputs.memory.lambda_ if inputs.memory.lambda_ else inf


def run_of_warps(t: Terms, n: int) -> Run:
    """The run of N warps: Eqs. 5, 9, 22 to 24, 26 to 30."""
    if not t.mem_insts:
        return Run(hk.exec_cycles_compute(0.0, t.comp_cycles, n), "computation")
    mwp = hk.mwp(t.without_bw, t.peak_bw, hk.n_pw(n, t.mem_insts, t.ind_mem_req))
    cwp = hk.cwp(hk.cwp_full(t.mem_cycles, t.comp_cycles), n)
    cycles = hk.exec_cycles_app(
        mem_cycles=t.mem_cycles,
        comp_cycles=t.comp_cycles,
        mem_insts=t.mem_insts,
        mem_l=t.mem_l,
        n=n,
        mwp=mwp,
        cwp=cwp,
    )
    blocks = n / t.warps_per_block
    synch = hk.synch_cost(t.departure_delay, hk.n_pwb(mwp, t.warps_per_block), t.synch_insts, blocks)
    bound = "latency" if mwp >= n and cwp >= n else "memory" if cwp >= mwp else "computation"
    return Run(hk.exec_cycles_with_synch(cycles, synch), bound)


@run_model("mwp_cwp_2009", "memory and computation warp parallelism as first published (Hong and Kim 2009)")
def mwp_cwp_2009(workload: CostedWorkload) -> Runs:
    """Eqs. 1 to 31 as published."""
    t = terms_of(workload, inputs_of(workload))
    note = f"MWP_without_BW_full {t.without_bw:.6g}, MWP_peak_BW {t.peak_bw:.6g}" if t.mem_insts else NO_MEMORY
    return Runs(lambda warps: run_of_warps(t, warps), (note,))
