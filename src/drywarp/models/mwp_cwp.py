"""The MWP-CWP model in the terms of λ, Λ and ω, and with the latency of computations.

Hong and Kim (ISCA 2009) as Lemeire, Cornelis and Konstantinidis, "Analysis of the analytical performance
models for GPUs and extracting the underlying Pipeline model", §2.3, Eqs. 15 to 28, write it. A warp
is P = α_mem compute periods of CI computations each, ending in a memory request:

    MWP = Λ_mem / λ_mem,  CWP = Λ_mem / (CI · λ_comp) + 1

    MWP < min(ω, CWP):   CPR = α_mem · ω · λ_mem + CI · λ_comp · MWP          (memory-bound)
    CWP < min(ω, MWP):   CPR = α_comp · λ_comp · ω + Λ_mem                    (compute-bound)
    ω ≤ min(MWP, CWP):   CPR = Λ*_app + CI · λ_comp · (ω − 1)                 (occupancy-bound)

Without memory instructions MWP and CWP are undefined, and Eq. 27 is left: CPR = α_comp · λ_comp · ω.

Units: cycles of one SM per run of ω warps. Where MWP equals CWP and both are below ω, which the
conditions leave open, the memory-bound case holds (Hong and Kim, Eq. 23). Assumed: one computing and one
memory subsystem, equal compute periods, memory instructions do not count as computation (Hong and
Kim's own equations count them: `mwp_cwp_2009`); where a kernel computes on several subsystems their times
add up. Left out: the latency of computations and ILP,
barriers, the issue limit. For few warps the result lies above Volkov's bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from ..workload.cost import TICKS_PER_CYCLE, CostedWorkload
from .cycles_per_run import Run, Runs, run_model
from .inputs import ModelInputs, inputs_of, roof_side

NO_MEMORY = "no memory instructions: MWP and CWP are undefined, and the time is that of the computations"


@dataclass(frozen=True, slots=True)
class Symbols:
    """What the equations take (analysis Table 2)."""

    alpha_comp: float
    alpha_mem: float
    lambda_comp: float
    lambda_mem: float
    latency_mem: float

    @property
    def ci(self) -> float:
        """CI = α_comp / α_mem, which is also Q; infinite without memory instructions."""
        return self.alpha_comp / self.alpha_mem if self.alpha_mem else inf


def mwp_of(latency_mem: float, lambda_mem: float) -> float:
    """MWP = Λ_mem / λ_mem, Eq. 15."""
    return latency_mem / lambda_mem if lambda_mem else inf


def cwp_of(latency_mem: float, ci: float, lambda_comp: float) -> float:
    """CWP = Λ_mem / (CI · λ_comp) + 1, Eq. 16."""
    return latency_mem / (ci * lambda_comp) + 1 if ci * lambda_comp else inf


def cpr_memory_bound(s: Symbols, warps: float) -> float:
    """CPR = α_mem · ω · λ_mem + CI · λ_comp · MWP, Eq. 26; MWP is at most ω (Hong and Kim, Eq. 5)."""
    mwp = min(mwp_of(s.latency_mem, s.lambda_mem), warps)
    return s.alpha_mem * warps * s.lambda_mem + s.ci * s.lambda_comp * mwp


def cpr_compute_bound(s: Symbols, warps: float) -> float:
    """CPR = α_comp · λ_comp · ω + Λ_mem, Eq. 27."""
    return s.alpha_comp * s.lambda_comp * warps + s.latency_mem


def latency_app_star(s: Symbols) -> float:
    """Λ*_app = α_mem · Λ_mem + α_comp · λ_comp: a lone warp whose computations have no latency (Eq. 28)."""
    return s.alpha_mem * s.latency_mem + s.alpha_comp * s.lambda_comp


def cpr_occupancy_bound(s: Symbols, warps: float, latency_app: float | None = None) -> float:
    """CPR = Λ*_app + CI · λ_comp · (ω − 1), Eq. 28; with another Λ_app where one is given (§5.1)."""
    return (latency_app_star(s) if latency_app is None else latency_app) + s.ci * s.lambda_comp * (warps - 1)


def cpr_of(s: Symbols, warps: float) -> Run:
    """The run of ω warps by the case that it falls into."""
    if not s.alpha_mem:
        return Run(cpr_compute_bound(s, warps), "computation")
    mwp, cwp = mwp_of(s.latency_mem, s.lambda_mem), cwp_of(s.latency_mem, s.ci, s.lambda_comp)
    if warps <= min(mwp, cwp):
        return Run(cpr_occupancy_bound(s, warps), "latency")
    if mwp <= cwp:
        return Run(cpr_memory_bound(s, warps), "memory")
    return Run(cpr_compute_bound(s, warps), "computation")


def symbols_of(inputs: ModelInputs) -> Symbols:
    """α, λ and Λ of a workload."""
    comp, mem = inputs.computation, inputs.memory
    return Symbols(comp.count, mem.count, comp.lambda_, mem.lambda_, mem.latency)


@run_model(
    "mwp_cwp", "memory and computation warp parallelism decide between three formulas (Hong and Kim 2009, rephrased)"
)
def mwp_cwp(workload: CostedWorkload) -> Runs:
    """Eqs. 15 to 28, chosen by their conditions."""
    s = symbols_of(inputs_of(workload))
    notes = (NO_MEMORY,)
    if s.alpha_mem:
        mwp, cwp = mwp_of(s.latency_mem, s.lambda_mem), cwp_of(s.latency_mem, s.ci, s.lambda_comp)
        notes = (f"MWP {mwp:.6g}, CWP {cwp:.6g}",)
    return Runs(lambda warps: cpr_of(s, warps), notes)


# MWP-CWP*: the same with the latency of computations.
#
# Lemeire, Cornelis and Konstantinidis, §5.1: Λ_app of Eq. 2 takes the place of Λ*_app in Eq. 28, and, since it is then
# less clear which ω is occupancy-bound, CPR is the largest of the three cases (Eqs. 26, 27, 28). Without memory
# instructions the last term of Eq. 28, a period that ends in a memory request, is left out, and Eq. 26 is 0. The paper
# has two subsystems; where a kernel uses more, and for the issue limit, CPR is also no less than ω / WPC_roof (Eq. 1),
# which two subsystems never reach. Left out: barriers beyond what they add to Λ_app; that memory requests wait for each
# other between runs.


def cpr_corrected(s: Symbols, warps: float, latency_app: float) -> Run:
    """The largest of the three cases, the occupancy-bound one with Λ_app (§5.1)."""
    cases = {"latency": latency_app, "computation": cpr_compute_bound(s, warps)}
    if s.alpha_mem:
        cases |= {"latency": cpr_occupancy_bound(s, warps, latency_app), "memory": cpr_memory_bound(s, warps)}
    bound = max(cases, key=lambda name: cases[name])
    return Run(cases[bound], bound)


@run_model(
    "mwp_cwp_corrected", "MWP-CWP with the latency of computations, the largest of its three cases (analysis §5.1)"
)
def mwp_cwp_corrected(workload: CostedWorkload) -> Runs:
    """The largest of the three cases, and never above the roof."""
    inputs = inputs_of(workload)
    s = symbols_of(inputs)
    latency_app = inputs.latency_app - workload.launch_ticks / TICKS_PER_CYCLE
    side = roof_side(inputs)

    def run_of(warps: int) -> Run:
        run = cpr_corrected(s, warps, latency_app)
        roof = warps / inputs.roof
        return run if run.cycles >= roof else Run(roof, side)

    return Runs(run_of, (f"Λ_app {latency_app:.6g} cycles",))
