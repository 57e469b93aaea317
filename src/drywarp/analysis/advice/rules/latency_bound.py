"""Warps that wait for results with too little in flight to hide the latency."""

from __future__ import annotations

from ..case import Case
from ..whatif import more_independent_instructions, more_loads_in_flight
from .base import Documentation, Suspicion, can_be_hidden, dependent_on, register

_LEAST_STALLS = 0.15
_MEMORY, _ARITHMETIC = ("long_scoreboard",), ("wait", "short_scoreboard")


@register
class LatencyBound:
    """Time spent waiting for results while no unit is saturated."""

    name = "latency-bound"
    title = "warps wait for memory or arithmetic, with too little in flight to hide the latency"
    documentation = Documentation(
        what="Finds kernels whose warps wait for memory, or for results of arithmetic, special functions and "
        "shared memory, while no unit is saturated.",
        why="By Little's law, throughput is the work in flight divided by the latency. With too few warps, or with "
        "dependent loads or one dependence chain per warp, the GPU idles while all warps wait.",
        evidence="The share of warp time in long_scoreboard (memory: little MLP) or in wait and short_scoreboard "
        "(arithmetic and shared memory: little ILP), whichever is larger, and the lines that wait. The gain "
        "comes from simulating these waits at half their length, the effect of twice as much in flight.",
        change="Issue independent loads before the first use: unroll the loop, process several elements per thread, "
        "load the next tile while computing on this one (prefetch, cp.async), or load 16 bytes per lane. For "
        "arithmetic, use several accumulators or interleave independent elements. Raise the occupancy.",
        before="for (int i = t; i < n; i += step) sum += x[i];",
        after="for (int i = t; i < n; i += 2 * step) {\n  float a = x[i], b = x[i + step];\n  even += a; odd += b;\n}",
    )

    def look(self, case: Case) -> Suspicion | None:
        """Memory or arithmetic, whichever warps wait for longer."""
        memory, arithmetic = case.stall_share(*_MEMORY), case.stall_share(*_ARITHMETIC)
        if max(memory, arithmetic) < _LEAST_STALLS or not can_be_hidden(case):
            return None
        at = f"at {case.setting.costed.warps_per_sm} warps per SM"
        if memory >= arithmetic:
            return Suspicion(
                more_loads_in_flight(),
                dependent_on(case, *_MEMORY),
                f"{memory:.0%} of warp time is spent waiting for memory, {at}",
                "issue several independent loads before the first use: unroll, prefetch, or more elements per thread",
                memory / 2,
            )
        return Suspicion(
            more_independent_instructions(),
            dependent_on(case, *_ARITHMETIC),
            f"{arithmetic:.0%} of warp time is spent waiting for arithmetic and shared memory, {at}",
            "use several independent accumulators or elements per thread, or raise the occupancy",
            arithmetic / 2,
        )


@register
class Unrolling:
    """Only with --advice, because the gain is unknown without compiling."""

    name = "unrolling"
    title = "another unroll factor is faster"
    documentation = Documentation(
        what="With --advice, recompiles a source that has #pragma unroll, or a macro with UNROLL in its name, with "
        "other factors.",
        why="Unrolling saves loop counters and branches, and lets loads of several iterations be in flight together. "
        "Too much of it costs registers, and with them occupancy.",
        evidence="The kernel is compiled, emulated and predicted with each factor; the gain is that of the best one.",
        change="Use the factor that is predicted to be fastest.",
        before="#pragma unroll\nfor (int k = 0; k < 64; ++k) sum += a[k] * b[k];",
        after="#pragma unroll 8\nfor (int k = 0; k < 64; ++k) sum += a[k] * b[k];",
    )

    def look(self, case: Case) -> Suspicion | None:
        """None: this rule needs compiling."""
        return None
