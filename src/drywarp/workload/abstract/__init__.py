"""Abstract kernels: the packaged ones of the papers, and their costs on a GPU."""

from .costs import settings_of
from .tie import (
    PackagedWorkload,
    is_workload,
    load_workload,
    most_warps,
    occupancy_matters,
    read_workload,
    tie,
    workload_names,
)

__all__ = [
    "PackagedWorkload",
    "is_workload",
    "load_workload",
    "most_warps",
    "occupancy_matters",
    "read_workload",
    "settings_of",
    "tie",
    "workload_names",
]
