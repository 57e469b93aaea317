"""What does a GPU have, and who says so?

GPU files describe the machine, with a source for every number; this package also computes occupancy.
"""

from .fact import Fact, Parameters
from .gpu import (
    ClassCost,
    Device,
    DramLevel,
    Gpu,
    L1Level,
    L2Level,
    L3Level,
    MachineCode,
    Memory,
    Scheduler,
    SharedLevel,
    Subsystem,
)
from .load import add_gpu, capabilities, gpu_names, limits_of, load_gpu, own_names, remove_gpu
from .model_parameters import model_parameters
from .occupancy import (
    Occupancy,
    OccupancyLimits,
    TooManyRegisters,
    blocks_by_shared,
    carveout,
    check_extents,
    clusters_at_once,
    occupancy,
)

__all__ = [
    "ClassCost",
    "Device",
    "DramLevel",
    "Fact",
    "Gpu",
    "L1Level",
    "L2Level",
    "L3Level",
    "MachineCode",
    "Memory",
    "Occupancy",
    "OccupancyLimits",
    "Parameters",
    "Scheduler",
    "SharedLevel",
    "Subsystem",
    "TooManyRegisters",
    "add_gpu",
    "blocks_by_shared",
    "capabilities",
    "carveout",
    "check_extents",
    "clusters_at_once",
    "gpu_names",
    "limits_of",
    "load_gpu",
    "model_parameters",
    "occupancy",
    "own_names",
    "remove_gpu",
]
