"""MWP-CWP*: the MWP-CWP model with the latency of computations.

Lemeire, Cornelis and Konstantinidis, "Analysis of the analytical performance models for GPUs", §5.1:
Λ_app of Eq. 2 takes the place of Λ*_app in Eq. 28, and, since it is then less clear which ω is
occupancy-bound, CPR is the largest of the three cases (Eqs. 26, 27, 28). Units: cycles of one SM per
run of ω warps. Without memory instructions the last term of Eq. 28, a period that ends in a memory request, is left
out, and Eq. 26 is 0. The paper has two subsystems; where a kernel uses more, and for the issue limit, CPR is
also no less than ω / WPC_roof (Eq. 1), which two subsystems never reach. Left out: barriers beyond
what they add to Λ_app; that memory requests wait for each other between runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..workload.cost import TICKS_PER_CYCLE, CostedWorkload
from .base import Prediction, register
from .cycles_per_run import Run, predict_runs
from .inputs import inputs_of, roof_side
from .mwp_cwp import Symbols, cpr_compute_bound, cpr_memory_bound, cpr_occupancy_bound, symbols_of


def cpr_corrected(s: Symbols, warps: float, latency_app: float) -> Run:
    """The largest of the three cases, the occupancy-bound one with Λ_app (§5.1)."""
    cases = {"latency": latency_app, "computation": cpr_compute_bound(s, warps)}
    if s.alpha_mem:
        cases |= {"latency": cpr_occupancy_bound(s, warps, latency_app), "memory": cpr_memory_bound(s, warps)}
    bound = max(cases, key=lambda name: cases[name])
    return Run(cases[bound], bound)


@register("mwp_cwp_corrected")
class MwpCwpCorrected:
    """The largest of the three cases, and never above the roof."""

    name = "mwp_cwp_corrected"
    summary = "MWP-CWP with the latency of computations, the largest of its three cases (analysis §5.1)"

    def predict(self, workload: CostedWorkload, occupancies: Sequence[int]) -> Prediction:
        """Predict `workload`, and the curve at `occupancies`."""
        inputs = inputs_of(workload)
        s = symbols_of(inputs)
        latency_app = inputs.latency_app - workload.launch_ticks / TICKS_PER_CYCLE
        side = roof_side(inputs)

        def run_of(warps: int) -> Run:
            run = cpr_corrected(s, warps, latency_app)
            roof = warps / inputs.roof
            return run if run.cycles >= roof else Run(roof, side)

        return predict_runs(self.name, workload, occupancies, run_of, (f"Λ_app {latency_app:.6g} cycles",))
