"""Warps that wait for results with too little else to do."""

from __future__ import annotations

from ..case import Case
from ..whatifs.shorter_latency import more_independent_instructions, more_loads_in_flight
from .base import Documentation, Suspicion, register
from .hiding import can_be_hidden, dependent_on

_LEAST_STALLS = 0.15
_MEMORY, _ARITHMETIC = ("long_scoreboard",), ("wait", "short_scoreboard")


@register
class LatencyBound:
    """Time spent waiting for results while nothing is full."""

    name = "latency-bound"
    title = "warps wait for memory or for their own arithmetic, with too little in flight to hide it"
    documentation = Documentation(
        what="Finds kernels whose warps wait for memory, or for results of arithmetic, special functions and "
        "shared memory, while no part of the machine is in use all the time.",
        why="By Little's law throughput is what is in flight over the latency. With too few warps, or one load or "
        "one chain of arithmetic after the other in each, the machine idles while all warps wait.",
        evidence="The share of the warps' time in long_scoreboard (memory: little MLP) or in wait and short_scoreboard "
        "(arithmetic and shared memory: little ILP), whichever is more, and the lines that wait. The gain is "
        "that of simulating these waits half as long, which is what twice as much in flight makes of them.",
        change="Issue independent loads before the first use: unroll the loop, let a thread take several elements, "
        "load the next tile while computing on this one (prefetch, cp.async), or load 16 bytes per lane. For "
        "arithmetic, keep several accumulators or interleave independent elements. Raise the occupancy.",
        before="for (int i = t; i < n; i += step) sum += x[i];",
        after="for (int i = t; i < n; i += 2 * step) {\n  float a = x[i], b = x[i + step];\n  even += a; odd += b;\n}",
    )

    def look(self, case: Case) -> Suspicion | None:
        """Memory or arithmetic, whichever warps wait for longer."""
        memory, arithmetic = case.stall_share(*_MEMORY), case.stall_share(*_ARITHMETIC)
        if max(memory, arithmetic) < _LEAST_STALLS or not can_be_hidden(case):
            return None
        at = f"at {case.setting.bound.warps_per_sm} warps per SM"
        if memory >= arithmetic:
            return Suspicion(
                more_loads_in_flight(),
                dependent_on(case, *_MEMORY),
                f"{memory:.0%} of the warps' time is waiting for memory, {at}",
                "issue several independent loads before the first use: unroll, prefetch, or more elements per thread",
                memory / 2,
            )
        return Suspicion(
            more_independent_instructions(),
            dependent_on(case, *_ARITHMETIC),
            f"{arithmetic:.0%} of the warps' time is waiting for arithmetic and shared memory, {at}",
            "keep several independent accumulators or elements per thread, or raise the occupancy",
            arithmetic / 2,
        )
