"""Warps that wait for results with too little in flight, and issue slots spent on mere overhead."""

from __future__ import annotations

from ..case import Case
from ..whatif import dropped, more_independent_instructions, more_loads_in_flight
from .base import Suspicion, can_be_hidden, dependent_on, register

_LEAST_STALLS = 0.15
_MEMORY, _ARITHMETIC = ("long_scoreboard",), ("wait", "short_scoreboard")


@register
class LatencyBound:
    """Time spent waiting for results while no unit is saturated."""

    name = "latency-bound"

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
