"""Volkov's model with a memory latency that grows with the load.

Volkov, "Understanding latency hiding on GPUs" (2016), §6.4 (fits of Table 6.5) and §6.5:

    Memory latency = a + b · T / (c − T),    T = memory throughput in GB/s

takes the place of mem_lat in the latency bound, and memory throughput is what solves

    x = min(n / Latency (x), mem_thru, alu_thru / α, issue_thru / (α + 1))

Units: a, b cycles; c, T 10⁹ bytes a second of the GPU; throughputs per cycle of one SM. The left side grows
and the right side falls, so there is one solution, found by bisection as in the thesis; T stays below c, so
no latency is negative (unlike GPUMech's, §7.7). Assumed: streaming access, fully coalesced, missing the caches, as
the fits were taken. Left out: what else makes throughput saturate gradually (the thesis finds more at
intermediate α on Kepler).

For a workload in general Λ_app is the latency bound of `volkov` with Λ of every memory instruction replaced; between
`SAMPLES` latencies it is interpolated, which is exact where the longest path stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from ..workload.cost import CostedPath, CostedWorkload, to_ticks
from .base import NotApplicable
from .cycles_per_run import Run, Runs, run_model
from .inputs import ModelInputs, inputs_of
from .inputs_parts import kind_of
from .needed_occupancy import Mix
from .volkov import latency_bound

WARP_ACCESS_BYTES = 128
"""Bytes of a fully coalesced access of a warp: 32 lanes of 4 bytes (§4.1)."""

SAMPLES = 9
BISECTIONS = 80


@dataclass(frozen=True, slots=True)
class Term:
    """One fitted term, b · T / (c − T)."""

    b: float
    c: float


@dataclass(frozen=True)
class Contention:
    """Memory latency over throughput, a + Σ b · T / (c − T): one term in Table 6.5, two in G80's refined fit."""

    a: float
    terms: tuple[Term, ...]

    @property
    def limit(self) -> float:
        """The throughput that is never reached: the smallest c."""
        return min(term.c for term in self.terms)

    def latency(self, throughput: float) -> float:
        """Mean memory latency in cycles at a throughput in the unit of c; infinite from `limit` on."""
        if throughput >= self.limit:
            return inf
        return self.a + sum(term.b * throughput / (term.c - throughput) for term in self.terms)

    def scaled(self, factor: float) -> Contention:
        """The same with throughput in another unit: c times `factor`."""
        return Contention(self.a, tuple(Term(term.b, term.c * factor) for term in self.terms))


FIT = ("contention_latency", "contention_slope", "contention_gbs")
REFINED = (
    *("contention_refined_latency", "contention_refined_slope", "contention_refined_gbs"),
    *("contention_refined_slope_2", "contention_refined_gbs_2"),
)


def fit_of(parameters: Mapping[str, float], refined: bool = True) -> Contention | None:
    """A GPU's fit, with throughput in GB/s: with both terms of §6.4 where its file has them, else that of Table 6.5."""
    for names in (REFINED, FIT) if refined else (FIT,):
        if all(name in parameters for name in names):
            a, *rest = (parameters[name] for name in names)
            return Contention(a, tuple(Term(b, c) for b, c in zip(rest[::2], rest[1::2], strict=True)))
    return None


def solve(occupancy: float, latency: Callable[[float], float], bound: float) -> float:
    """The x with x = min(n / Latency (x), bound), by bisection: the lower end of the last interval."""
    if bound * latency(bound) <= occupancy:
        return bound
    low, high = 0.0, bound
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if middle * latency(middle) <= occupancy:
            low = middle
        else:
            high = middle
    return low


def memory_throughput(mix: Mix, contention: Contention, occupancy: float, alpha: float) -> float:
    """Memory instructions per cycle and SM of the mix, §6.5; `contention` in the same unit (`Contention.scaled`)."""

    def latency(x: float) -> float:
        return contention.latency(x) + alpha * mix.alu_lat

    return solve(occupancy, latency, mix.throughput_bound(alpha))


def needed_occupancy(mix: Mix, contention: Contention, alpha: float, share: float = 0.9) -> float:
    """Warps that attain a `share` of the throughput bound, Fig. 4.6: x · Latency (x), at least 1.

    Infinite if the bound lies above what the fit allows.
    """
    x = share * mix.throughput_bound(alpha)
    return max(1.0, x * (contention.latency(x) + alpha * mix.alu_lat))


@run_model("volkov_contention", "Volkov's bounds with a memory latency that grows with the load (Volkov 6.4-6.5)")
def volkov_under_load(workload: CostedWorkload) -> Runs:
    """Volkov's bounds with memory latency under load."""
    given = inputs_of(workload)
    contention = _per_warp(given)
    latency_app = _latency_over_load(workload, contention, given.roof)

    def latency(x: float) -> float:
        return latency_app(contention.latency(x))

    def run_of(occupancy: int) -> Run:
        x = solve(occupancy, latency, min(given.roof, contention.limit))
        if x < given.roof:
            return Run(occupancy / x, "latency")
        memory = given.memory.count * given.memory.lambda_ * given.roof
        return Run(occupancy / x, "memory" if memory > 1 - 1e-9 else "computation")

    return Runs(run_of)


def _per_warp(given: ModelInputs) -> Contention:
    """The GPU's fit, with throughput in warps per cycle of one SM."""
    parameters = given.parameters
    fit = fit_of(parameters)
    if not given.memory.count:
        raise NotApplicable("it has no memory instructions, the only ones that contend")
    if fit is None:
        raise NotApplicable("the GPU file gives no contention_latency, contention_slope and contention_gbs")
    if given.uncoalesced:
        raise NotApplicable("latencies under load were measured for coalesced accesses only")
    bytes_per_warp = given.memory.count * WARP_ACCESS_BYTES
    return fit.scaled(1e9 / (given.clock_hz * given.sm_count * bytes_per_warp))


def _latency_over_load(workload: CostedWorkload, contention: Contention, roof: float) -> Callable[[float], float]:
    """Λ_app over Λ of memory instructions."""
    highest = contention.latency(min(roof, 0.999 * contention.limit))
    memory = np.linspace(contention.a, max(highest, 2 * contention.a), SAMPLES)
    whole = np.array([latency_bound(_with_latency(workload, float(cycles))) for cycles in memory])
    slope = (whole[-1] - whole[-2]) / (memory[-1] - memory[-2])

    def latency_app(cycles: float) -> float:
        if cycles > memory[-1]:
            return float(whole[-1] + (cycles - memory[-1]) * slope)
        return float(np.interp(cycles, memory, whole))

    return latency_app


def _with_latency(workload: CostedWorkload, cycles: float) -> CostedWorkload:
    ticks = to_ticks(cycles)

    def changed(path: CostedPath) -> CostedPath:
        nodes = (
            replace(node, latency_ticks=ticks) if kind_of(workload, node) == "memory" else node for node in path.nodes
        )
        return replace(path, nodes=tuple(nodes))

    return replace(workload, paths=tuple(changed(path) for path in workload.paths))
