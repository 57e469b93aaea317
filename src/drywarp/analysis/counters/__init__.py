"""What a profiler would count: an emulated kernel's counters under Nsight Compute's metric names."""

from __future__ import annotations

from .count import count_metrics
from .metrics import METRICS, describe

__all__ = ["METRICS", "count_metrics", "describe"]
