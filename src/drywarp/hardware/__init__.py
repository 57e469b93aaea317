"""GPU files: what the machine is, every number with its source, and how many blocks fit on an SM."""

from .fact import Fact
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
from .load import capabilities, gpu_names, limits_of, load_gpu
from .model_parameters import model_parameters
from .occupancy import (
    Occupancy,
    OccupancyLimits,
    TooManyRegisters,
    blocks_by_shared,
    carveout,
    check_extents,
    occupancy,
)
from .parameters import Parameters

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
    "blocks_by_shared",
    "capabilities",
    "carveout",
    "check_extents",
    "gpu_names",
    "limits_of",
    "load_gpu",
    "model_parameters",
    "occupancy",
]
