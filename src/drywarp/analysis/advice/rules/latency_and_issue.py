"""Warps that wait for results with too little in flight, and issue slots spent on mere overhead."""

from __future__ import annotations

from ..case import Case
from ..whatif import dropped, more_independent_instructions, more_loads_in_flight
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


OVERHEAD = (
    *("int", "imad", "imad_wide", "shift", "move", "predicate", "uniform", "special_register", "branch"),
    *("convergence", "constant_load", "convert_fast", "nop"),
)
"""Classes of instructions for addresses, counters, conditions and branches."""
_LEAST_USE, _LEAST_SHARE, _MOST_SHARE = 0.5, 0.3, 0.85


@register
class IssueBound:
    """Utilization of the issue slots, and how many of them go to indices, conditions and loops."""

    name = "issue-bound"
    title = "the schedulers mostly issue address, condition and loop instructions"
    documentation = Documentation(
        what="Finds kernels that use at least half of the issue slots, and spend 30 to 85 % of those on integer "
        "arithmetic, moves, predicates and branches.",
        why="A scheduler issues at most one instruction per cycle, whatever it does. Instructions that compute "
        "addresses and control loops take slots from those that do the work.",
        evidence="The utilization of the issue slots and the share of such instructions. The gain comes from "
        "simulating the kernel with every second one of them removed.",
        change="Unroll short loops, hoist address arithmetic out of them, load and store 8 or 16 bytes per "
        "instruction (float2, float4), process several elements per thread, use 32-bit indices, and make sizes "
        "compile-time constants.",
        before="for (int i = t; i < n; i += step) y[i] = a * x[i] + y[i];",
        after="for (int i = t; i < n / 4; i += step) {\n"
        "  float4 u = x4[i], v = y4[i];\n"
        "  // four results from one address\n"
        "}",
    )

    def look(self, case: Case) -> Suspicion | None:
        """The instructions, most often issued first."""
        setting = case.setting
        use = case.use("issue")
        share = case.share_of(lambda instruction: instruction.class_ in OVERHEAD)
        if use < _LEAST_USE or not _LEAST_SHARE <= share <= _MOST_SHARE:
            return None
        found = setting.indices(*OVERHEAD)
        return Suspicion(
            dropped(frozenset(found[::2]), "half the instructions for indices and loops"),
            setting.places(sorted(found, key=lambda index: -setting.executions[index])),
            f"{use:.0%} of the issue slots are used, {share:.0%} of them for indices, conditions and loops",
            "unroll, process several elements per thread, and load or store 16 bytes per instruction",
            use * share / 2,
        )
