"""When does each instruction issue?

The Pipeline simulation: one SM, warp instruction by warp instruction, in exact ticks.
"""

from __future__ import annotations

from .blocks import Share, share_of
from .extrapolate import CURVE_BUDGET, LAUNCH_BUDGET, simulate
from .occupancy import TRACE_POINTS, OccupancyTrace, occupancy_trace, trace_of
from .reasons import POLICIES, REASONS, Policy, policy_named
from .result import PROFILE_COLUMNS, ExecutionProfile, SimulationResult

__all__ = [
    "CURVE_BUDGET",
    "LAUNCH_BUDGET",
    "POLICIES",
    "PROFILE_COLUMNS",
    "REASONS",
    "TRACE_POINTS",
    "ExecutionProfile",
    "OccupancyTrace",
    "Policy",
    "Share",
    "SimulationResult",
    "occupancy_trace",
    "policy_named",
    "share_of",
    "simulate",
    "trace_of",
]
