"""`gpuperf`: GPUPerf's model, which adds ILP, MLP, caches and serialisation to MWP-CWP.

Sim, Dasgupta, Kim, Vuduc, "A performance analysis framework for identifying potential benefits in GPGPU applications"
(PPoPP 2012), Eqs. 1 to 23 and A.1 to A.7; the equations are in `gpuperf_terms`. Units: cycles of one SM. Their inputs,
from the workload and the GPU:

- #insts: all instructions but SFU ones; avg_inst_lat: the mean Λ of its computations; warp_size /
  SIMD_width and warp_size / SFU_width: the GPU's, else λ of those computations and of SFU instructions.
- avg_DRAM_lat, Δ: the GPU's, else AMAT and λ_mem; AMAT: Eq. 12, its hits by level.
- MWP_peak_bw: Eqs. A.6, A.7 with the GPU's bandwidth and transaction size, else avg_DRAM_lat / λ_mem.
- Γ: the GPU's, which `drywarp calibrate` finds by experiment (64 on the paper's C2050: docs/papers.md). Without it
  O_sync is left out.
- O_bank: the cycles lost to bank conflicts.
- O_CFdiv: the time of the instructions that inactive lanes amount to, at the ITILP of the others. #insts counts both
  sides of a divergent branch, so W_parallel is that of the rest.
- size_of_data: the kernel's transfers with DRAM in warp accesses, or, if they are not known, all its accesses: then
  T_mem_min is too high and B_memlp too low.

Without memory instructions, T_mem is 0 and MWP undefined: T_exec = T_comp (Figs. 6 to 8 of the paper are such kernels).

Assumed: SFU instructions hide behind the others up to the ratio of the units; computation and memory
overlap between warps but for one (ζ). Left out: what one warp's own instructions overlap beyond ILP and
MLP, latencies under load.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from ..workload.cost import CostedWorkload
from . import gpuperf_terms as eq
from .base import NotApplicable
from .cycles_per_run import Run, Runs, issue_cycles_of, repetitions, run_model, running_warps
from .gpuperf_terms import BenefitChart
from .inputs import ModelInputs, inputs_of


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of a run, in cycles, and the ratios they are derived from."""

    itilp: float
    itmlp: float
    mwp: float
    cwp: float
    w_parallel: float
    w_parallel_at_max: float
    o_sync: float
    o_sfu: float
    o_cf_div: float
    o_bank: float
    t_comp: float
    t_mem: float
    t_overlap: float
    t_exec: float

    @property
    def w_serial(self) -> float:
        """W_serial, Eq. 6."""
        return eq.w_serial(self.o_sync, self.o_sfu, self.o_cf_div, self.o_bank)


@dataclass(frozen=True, slots=True)
class Kernel:
    """The table of inputs (Table 2), of one workload on one GPU."""

    insts: float
    mem_insts: float
    sync_insts: float
    sfu_insts: float
    fp_insts: float
    avg_inst_lat: float
    fp_lat: float
    warp_over_simd: float
    warp_over_sfu: float
    ilp: float
    mlp: float
    amat: float
    avg_dram_lat: float
    delta: float
    mwp_peak_bw: float
    bank_cycles: float
    idle_insts: float = 0.0
    gamma: float = 0.0

    @property
    def itilp_max(self) -> float:
        """ITILP_max, Eq. 5; infinite if an instruction takes the SM no time."""
        return eq.itilp_max(self.avg_inst_lat, self.warp_over_simd, 1) if self.warp_over_simd else inf


def kernel_of(inputs: ModelInputs) -> Kernel:
    """Table 2's inputs. Raises `NotApplicable` if there are memory instructions, but none has anything to wait for."""
    mem, comp, sfu = inputs.memory, inputs.computation, inputs.sfu
    if mem.count and not (inputs.amat > 0 and inputs.dram_latency > 0):
        raise NotApplicable("no memory instruction has a latency, so MWP is undefined")
    given, issue = inputs.parameters, issue_cycles_of(inputs)
    others = comp.count - sfu.count
    latency = (comp.count * comp.latency - sfu.count * sfu.latency) / others if others > 0 else issue
    own = (comp.count * comp.lambda_ - sfu.count * sfu.lambda_) / others if others > 0 else issue
    simd = given["warp_size"] / given["simd_width"] if {"warp_size", "simd_width"} <= given.keys() else own
    if {"warp_size", "sfu_width"} <= given.keys():
        sfu_time = given["warp_size"] / given["sfu_width"]
    else:
        sfu_time = sfu.lambda_ or simd
    return Kernel(
        insts=inputs.instructions - sfu.count,
        mem_insts=mem.count,
        sync_insts=inputs.barrier.count,
        sfu_insts=sfu.count,
        fp_insts=inputs.fp.count,
        avg_inst_lat=max(latency, simd),
        fp_lat=given.get("fp_latency", inputs.fp.latency),
        warp_over_simd=simd,
        warp_over_sfu=sfu_time,
        ilp=max(1.0, inputs.ilp),
        mlp=max(1.0, inputs.mlp),
        amat=inputs.amat,
        avg_dram_lat=inputs.dram_latency,
        delta=inputs.departure_delay,
        mwp_peak_bw=_peak_bw(inputs),
        bank_cycles=inputs.conflict_cycles,
        idle_insts=min(inputs.idle, inputs.instructions - sfu.count),
        gamma=given.get("sync_gamma", 0.0),
    )


def _peak_bw(inputs: ModelInputs) -> float:
    size = inputs.parameters.get("transaction_bytes")
    if inputs.memory_gbs and size:
        each = eq.bw_per_warp(inputs.clock_hz, size, inputs.dram_latency)
        return eq.mwp_peak_bw(inputs.memory_gbs * 1e9, each, inputs.active_sms)
    return inputs.dram_latency / inputs.memory.lambda_ if inputs.memory.lambda_ else inf


def costs_of(k: Kernel, n: float, warps: float | None = None) -> Costs:
    """The costs with N concurrent warps, of `warps` warps of one SM in total (default: a run of N)."""
    warps = n if warps is None else warps
    itilp = eq.itilp(k.ilp, n, k.itilp_max)
    comp_cycles = eq.comp_cycles(k.insts, k.avg_inst_lat, itilp) if itilp else 0.0
    cwp = eq.cwp(eq.cwp_full(eq.mem_cycles(k.mem_insts, k.amat, k.mlp), comp_cycles), n)
    # Nothing limits the warps that wait for memory where none does.
    mwp = eq.mwp(k.avg_dram_lat, k.delta, k.mwp_peak_bw, n) if k.mem_insts else n
    itmlp = eq.itmlp(k.mlp, eq.mwp_cp(cwp, mwp), k.mwp_peak_bw)
    useful = k.insts - k.idle_insts
    parallel = eq.w_parallel(useful, warps, 1, k.avg_inst_lat, itilp) if itilp else 0.0
    at_max = eq.w_parallel(useful, warps, 1, k.avg_inst_lat, k.itilp_max) if k.itilp_max else 0.0
    diverging = eq.w_parallel(k.idle_insts, warps, 1, k.avg_inst_lat, itilp) if itilp else 0.0
    sync = eq.o_sync(k.sync_insts, warps, 1, eq.f_sync(k.gamma, k.avg_dram_lat, k.mem_insts, k.insts))
    visible = eq.f_sfu(k.sfu_insts, k.insts, 1 / k.warp_over_sfu, 1 / k.warp_over_simd) if k.warp_over_simd else 0.0
    sfu = eq.o_sfu(k.sfu_insts, warps, 1, k.warp_over_sfu, 1, visible)
    bank = k.bank_cycles * warps
    t_comp = parallel + eq.w_serial(sync, sfu, diverging, bank)
    t_mem = eq.t_mem(k.mem_insts, warps, 1, itmlp, k.amat) if k.mem_insts else 0.0
    overlap = eq.t_overlap(t_comp, eq.f_overlap(n, cwp, mwp), t_mem)
    return Costs(
        itilp=itilp,
        itmlp=itmlp,
        mwp=mwp,
        cwp=cwp,
        w_parallel=parallel,
        w_parallel_at_max=at_max,
        o_sync=sync,
        o_sfu=sfu,
        o_cf_div=diverging,
        o_bank=bank,
        t_comp=t_comp,
        t_mem=t_mem,
        t_overlap=overlap,
        t_exec=eq.t_exec(t_comp, t_mem, overlap),
    )


def benefits_of(workload: CostedWorkload) -> BenefitChart:
    """Costs and potential benefits of the launch at its own occupancy, in cycles of one SM."""
    inputs = inputs_of(workload)
    k = kernel_of(inputs)
    n = running_warps(workload, workload.blocks_per_sm)
    warps = n * repetitions(workload, n // workload.warps_per_block)
    costs = costs_of(k, n, warps)
    size = inputs.parameters.get("transaction_bytes", 128.0)
    known = inputs.data_bytes is not None
    data = (inputs.data_bytes or 0.0) / size / inputs.active_sms if known else k.mem_insts * warps
    t_fp = eq.t_fp(k.fp_insts, warps, 1, k.fp_lat, costs.itilp) if costs.itilp else 0.0
    t_mem_min = eq.t_mem_min(data, k.avg_dram_lat, k.mwp_peak_bw) if k.mem_insts else 0.0
    b_itilp, b_serial = eq.b_itilp(costs.w_parallel, costs.w_parallel_at_max), eq.b_serial(costs.w_serial)
    return BenefitChart(
        t_comp=costs.t_comp,
        t_mem=costs.t_mem,
        t_overlap=costs.t_overlap,
        t_fp=t_fp,
        t_mem_min=t_mem_min,
        b_itilp=b_itilp,
        b_memlp=eq.b_memlp(costs.t_mem - costs.t_overlap, t_mem_min),
        b_fp=eq.b_fp(costs.t_comp, t_fp, b_itilp, b_serial),
        b_serial=b_serial,
    )


@run_model("gpuperf", "MWP-CWP with ILP, MLP, caches and serialisation, and four potential benefits (Sim et al. 2012)")
def gpuperf(workload: CostedWorkload) -> Runs:
    """T_exec of a run, and the potential benefits of the launch as notes."""
    k = kernel_of(inputs_of(workload))

    def run_of(warps: int) -> Run:
        costs = costs_of(k, warps)
        return Run(costs.t_exec, _bound(k, costs))

    gains = benefits_of(workload)
    named = (("B_itilp", gains.b_itilp), ("B_memlp", gains.b_memlp), ("B_fp", gains.b_fp))
    notes = tuple(f"{name} {value:.6g} cycles" for name, value in (*named, ("B_serial", gains.b_serial)))
    costs = costs_of(k, workload.warps_per_sm)
    if k.sync_insts and not k.gamma:
        notes += ("the GPU file has no Γ (parameters.sync_gamma): O_sync is left out",)
    elif costs.o_sync > costs.t_comp / 2:
        notes += (f"O_sync with Γ = {k.gamma:g} is {costs.o_sync / costs.t_comp:.0%} of T_comp",)
    return Runs(run_of, notes)


def _bound(k: Kernel, costs: Costs) -> str:
    """``latency`` as long as more warps would reduce the larger of the two costs."""
    if costs.t_comp >= costs.t_mem:
        return "computation" if costs.itilp >= k.itilp_max or costs.w_serial > costs.w_parallel else "latency"
    return "memory" if costs.mwp < costs.cwp or costs.itmlp >= k.mwp_peak_bw else "latency"
