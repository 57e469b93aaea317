"""Numbers of Lemeire, Cornelis and Konstantinidis, "Analysis of the analytical performance models for GPUs"."""

from __future__ import annotations

from ..models import get_model
from ..models.gpumech import issue_probability, nonoverlapped_rr, nonoverlapped_rr_corrected
from ..models.inputs import inputs_of
from ..models.mwp_cwp import cwp_of, mwp_of, symbols_of
from ..models.roofline import ipc_roof
from ..models.volkov import latency_bound
from .kernels import Cost, Instruction, example, kernel, simulated_cycles
from .row import Row, row
from .rows_analysis_gpus import gpu_rows
from .rows_analysis_mix import mix_rows

PAPER = "analysis"
PAIRS = {1: (8, 6), 2: (11, 3), 3: (3, 11)}
"""Fig. 6: α_comp · Λ_comp and Λ_mem of each pair."""


def rows() -> list[Row]:
    """Every number of the analysis paper that its own inputs give."""
    return [*_example(), *_pairs(), *_gpumech(), *mix_rows(), *gpu_rows()]


def _example() -> list[Row]:
    work = example()
    inputs = inputs_of(work)
    s = symbols_of(inputs)
    roofline = get_model("roofline").predict(work, [1]).curve[0].warps_per_cycle
    volkov = get_model("volkov").predict(work, range(1, 13)).curve
    peak = min(p.occupancy_warps for p in volkov if p.warps_per_cycle >= roofline)
    wfg = get_model("wfg").predict(work, range(1, 13)).curve
    above = [w.occupancy_warps for w, v in zip(wfg, volkov, strict=True) if w.warps_per_cycle > v.warps_per_cycle]
    ipc_comp, bandwidth = 1 / s.lambda_comp, 1 / s.lambda_mem
    return [
        row(PAPER, "§2, Table 2", "IPC_comp of the example", "1", ipc_comp),
        row(PAPER, "§2, Table 2", "BW of the example", "0.5", bandwidth),
        row(PAPER, "§2, Table 2", "compute intensity CI of the example", "2", inputs.intensity),
        row(PAPER, "§2.1", "ridge point λ_mem/λ_comp of the example", "2", s.lambda_mem / s.lambda_comp),
        row(PAPER, "§2.1, Eq. 1", "IPC_roof of the example", "1", ipc_roof(ipc_comp, bandwidth, s.ci)),
        row(PAPER, "§2.1", "WPC_roof of the example (1/4)", "0.25", roofline),
        row(PAPER, "§2.2", "Λ_app of the example", "25", latency_bound(work)),
        row(PAPER, "§2.2, Eq. 3", "WPC of Volkov's model for one warp (1/25)", "0.04", volkov[0].warps_per_cycle),
        row(PAPER, "§2.2", "warps at which the example reaches its peak", "7", float(peak)),
        row(PAPER, "Fig. 8", "cycles of one warp of the example, simulated", "25", simulated_cycles(work, 1),
            note="the text's Λ_app; Fig. 8 draws the run"),
        row(PAPER, "§2.3.2", "MWP of the example", "3", mwp_of(s.latency_mem, s.lambda_mem)),
        row(PAPER, "§2.3.2", "CWP of the example", "4", cwp_of(s.latency_mem, s.ci, s.lambda_comp)),
        row(PAPER, "§2.4.4", "least ω at which WFG lies above Volkov's roofline", "3", float(min(above))),
        row(PAPER, "§2.4.4", "largest ω at which WFG lies above Volkov's roofline", "4", float(max(above))),
    ]  # fmt: skip


def _pairs() -> list[Row]:
    """§2.4.2: "Volkov's model gives the same CPR for all pairs and all occupancies, namely 14"."""
    found = []
    for number, (compute, memory) in PAIRS.items():
        costs = {"comp": Cost("comp", 0.25, compute), "mem": Cost("mem", 0.25, memory)}
        work = kernel(costs, [Instruction("comp"), Instruction("mem", (0,))], memory=("mem",))
        for warps in (1, 8):
            cycles = get_model("volkov").predict(work, [warps]).curve[0].cycles_per_run
            found.append(
                row(PAPER, "§2.4.2", f"CPR of pair {number} in Volkov's model, {warps} warps", "14", cycles or 0.0)
            )
    return found


def _gpumech() -> list[Row]:
    """§2.5.1: an interval of 3 instructions and 6 stall cycles, 4 warps."""
    insts, stall, warps = 3, 6, 4
    p = issue_probability(insts, insts + stall)
    return [
        row(PAPER, "§2.5.1 (GPUMech Eq. 9)", "issue probability of 3 instructions and 6 stall cycles", "0.333", p),
        row(PAPER, "§2.5.1 (GPUMech Eq. 11)", "non-overlapped instructions of 4 warps", "2",
            nonoverlapped_rr(p, warps, insts)),
        row(PAPER, "§2.5.1 (GPUMech Fig. 8)", "non-overlapped instructions of 4 warps, corrected", "6",
            nonoverlapped_rr_corrected(warps, insts, stall)),
    ]  # fmt: skip
