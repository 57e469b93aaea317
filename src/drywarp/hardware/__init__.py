"""GPU files: what the machine is, every number with its source, and how many blocks fit on an SM."""

from .fact import Fact
from .gpu import ClassCost, Device, DramLevel, Gpu, L1Level, L2Level, Memory, Scheduler, SharedLevel, Subsystem
from .load import gpu_names, load_gpu
from .occupancy import Occupancy, OccupancyLimits, blocks_by_shared, carveout, check_extents, occupancy

__all__ = [
    "ClassCost",
    "Device",
    "DramLevel",
    "Fact",
    "Gpu",
    "L1Level",
    "L2Level",
    "Memory",
    "Occupancy",
    "OccupancyLimits",
    "Scheduler",
    "SharedLevel",
    "Subsystem",
    "blocks_by_shared",
    "carveout",
    "check_extents",
    "gpu_names",
    "load_gpu",
    "occupancy",
]
