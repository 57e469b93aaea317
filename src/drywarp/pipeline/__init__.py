"""The Pipeline simulation: one SM, warp instruction by warp instruction, in exact ticks."""

from __future__ import annotations

from .blocks import Share, share_of
from .extrapolate import CURVE_BUDGET, LAUNCH_BUDGET, simulate
from .policies import POLICIES, Policy, policy_named
from .result import PROFILE_COLUMNS, REASONS, ExecutionProfile, SimulationResult

__all__ = [
    "CURVE_BUDGET",
    "LAUNCH_BUDGET",
    "POLICIES",
    "PROFILE_COLUMNS",
    "REASONS",
    "ExecutionProfile",
    "Policy",
    "Share",
    "SimulationResult",
    "policy_named",
    "share_of",
    "simulate",
]
