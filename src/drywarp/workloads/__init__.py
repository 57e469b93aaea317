"""Abstract kernels: the packaged ones of the papers, and tying one to a GPU."""

from .load import PackagedWorkload, is_workload, load_workload, read_workload, workload_names
from .settings import settings_of
from .tie import most_warps, occupancy_matters, tie

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
