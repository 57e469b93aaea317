"""Compiles and predicts every configuration of a space, and selects those worth trying on hardware."""

from .prune import Kept, Pruned
from .result import SweepResult, check_target, write_rows
from .row import SweepRow
from .run import check_export, count_of, figure_names, sweep
from .space import Space, read_space

__all__ = [
    "Kept",
    "Pruned",
    "Space",
    "SweepResult",
    "SweepRow",
    "check_export",
    "check_target",
    "count_of",
    "figure_names",
    "read_space",
    "sweep",
    "write_rows",
]
