"""Terms of the older models that no prediction shows: MWP and CWP over N, CPI, sums over paths, arcs, coalescing.

Hong and Kim, "An analytical model for a GPU architecture with memory-level and thread-level parallelism awareness"
(ISCA 2009): MWP and CWP with the case that they select (Figs. 21 to 23, Eqs. 5, 9, 22 to 24), CPI (Eq. 25), divergent
branches as the sum over their paths (§6.3); Algorithms 1 and 2 are in `coalescing`. Lemeire, Cornelis and
Konstantinidis, "Analysis of the analytical performance models for GPUs", Fig. 5: the latencies of the work-flow graph's
arcs over occupancy. Units: cycles of one SM, warps per SM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..workload.cost import BlockType, CostedWorkload
from . import mwp_cwp_2009 as hk
from .base import NotApplicable
from .coalescing import AccessTerm
from .inputs import ModelInputs, inputs_of
from .mwp_cwp_2009_model import Terms as Published
from .mwp_cwp_2009_model import run_of_warps, terms_of
from .throughput import path_weights
from .wfg import arcs_of, corrected_arcs, issue_lambda

MOST_PATHS = 8
"""Maximum number of paths listed with their cycles: those that most warps follow."""


@dataclass(frozen=True, slots=True)
class Parallelism:
    """MWP and CWP of `n` warps, the case, the cycles of a run without synchronisation, and CPI.

    `without_bw` is MWP_Without_BW (Eq. 17), `peak_bw` MWP_peak_BW (Eq. 6), both before they are bounded by N_pw; `case`
    is ``few warps`` (Eq. 22), ``memory`` (Eq. 23) or ``computation`` (Eq. 24).
    """

    n: int
    without_bw: float
    peak_bw: float
    mwp: float
    cwp: float
    case: str
    exec_cycles: float
    cpi: float


@dataclass(frozen=True, slots=True)
class PathTerm:
    """A distinct path of warps: its share of all warps, its instructions, and the cycles of a run of warps on it."""

    share: float
    instructions: int
    cycles: float


@dataclass(frozen=True, slots=True)
class Arc:
    """An arc of the work-flow graph over the occupancies: node, its kind, and cycles as published and as corrected.

    `arc` is ``transition``, or ``exposed`` for the latency on a memory node's dependence arcs.
    """

    node: int
    kind: str
    arc: str
    published: tuple[float, ...]
    corrected: tuple[float, ...]


@dataclass(frozen=True)
class Terms:
    """All of them, at these occupancies. `all_paths` is the sum over the paths: of a warp whose threads take all."""

    occupancies: tuple[int, ...]
    parallelism: tuple[Parallelism, ...]
    paths: tuple[PathTerm, ...]
    all_paths: float
    arcs: tuple[Arc, ...]
    accesses: tuple[AccessTerm, ...] = ()


def terms_over(workload: CostedWorkload, occupancies: Sequence[int]) -> Terms:
    """The terms of a workload; MWP and CWP are left out where the model does not apply or there is no memory access."""
    inputs = inputs_of(workload)
    try:
        published = terms_of(workload, inputs)
    except NotApplicable:
        return Terms(tuple(occupancies), (), (), 0.0, arcs_over(inputs, occupancies))
    over = tuple(parallelism_of(published, inputs, n) for n in occupancies) if published.mem_insts else ()
    paths = _paths(workload)
    total = hk.divergent(path.cycles for path in paths)
    return Terms(tuple(occupancies), over, paths, total, arcs_over(inputs, occupancies))


def parallelism_of(t: Published, inputs: ModelInputs, n: int) -> Parallelism:
    """MWP, CWP and CPI of N warps."""
    mwp = hk.mwp(t.without_bw, t.peak_bw, hk.n_pw(n, t.mem_insts, t.ind_mem_req))
    cwp = hk.cwp(hk.cwp_full(t.mem_cycles, t.comp_cycles), n)
    case = hk.case_of(n, mwp, cwp, t.comp_cycles, t.mem_cycles)
    cycles = hk.exec_cycles_app(
        mem_cycles=t.mem_cycles, comp_cycles=t.comp_cycles, mem_insts=t.mem_insts, mem_l=t.mem_l, n=n, mwp=mwp, cwp=cwp
    )
    cpi = hk.cpi(cycles, inputs.instructions, t.warps_per_block, n / t.warps_per_block, 1)
    return Parallelism(n, hk.mwp_without_bw(t.without_bw, n), t.peak_bw, mwp, cwp, case, cycles, cpi)


def _paths(workload: CostedWorkload) -> tuple[PathTerm, ...]:
    weights = path_weights(workload)
    heaviest = sorted((-weight, number) for number, weight in enumerate(weights) if weight)[:MOST_PATHS]
    found = []
    for weight, number in heaviest:
        kinds = (BlockType((0,) * workload.warps_per_block, 1.0),)
        own = replace(workload, paths=(workload.paths[number],), block_types=kinds)
        try:
            cycles = run_of_warps(terms_of(own, inputs_of(own)), workload.warps_per_sm).cycles
        except NotApplicable:
            continue
        found.append(PathTerm(-weight, workload.paths[number].length, cycles))
    return tuple(found)


def arcs_over(inputs: ModelInputs, occupancies: Sequence[int]) -> tuple[Arc, ...]:
    """The arcs of the work-flow graph at each occupancy."""
    graph, lambda_mem = inputs.graph, inputs.memory.lambda_
    published = [arcs_of(graph, n, lambda_mem, issue_lambda(inputs)) for n in occupancies] if graph else []
    corrected = [corrected_arcs(graph, n, lambda_mem) for n in occupancies] if graph else []
    found = []
    for number, node in enumerate(graph):
        for arc, name in (("transition", "transitions"), ("exposed", "exposed")):
            if arc == "exposed" and (node.kind != "memory" or not node.waited_for):
                continue
            old, new = (tuple(getattr(each, name)[number] for each in series) for series in (published, corrected))
            found.append(Arc(number, node.kind, arc, old, new))
    return tuple(found)
