"""What does a GPU have, and who says so?

GPU files describe the machine, with a source for every number; this package also computes occupancy.
"""

from __future__ import annotations

import msgspec

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
    Parameters,
    Scheduler,
    SharedLevel,
    Subsystem,
)
from .load import add_gpu, capabilities, gpu_names, limits_of, load_gpu, own_names, remove_gpu
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


# The GPU parameters that analytical models need, under the names of `[parameters]`. For a GPU from a paper, its file
# gives them; for a product, they follow from its other sections.


def model_parameters(gpu: Gpu, clock_mhz: float | None = None) -> dict[str, float]:
    """The values of `[parameters]`, completed for a product from its other sections; cycles at `clock_mhz`."""
    found: dict[str, float] = {}
    if not gpu.abstract_only:
        found = _of_product(gpu, clock_mhz or gpu.device.boost_clock_mhz)
    given = msgspec.structs.asdict(gpu.parameters)
    return found | {name: value for name, value in given.items() if value is not None}


def _of_product(gpu: Gpu, clock_mhz: float) -> dict[str, float]:
    device, levels, limits, scheduler = gpu.device, gpu.memory, gpu.occupancy, gpu.scheduler
    shared_ilp = {} if scheduler.issue_per_cycle is None else {"ilp_latency": 1 / scheduler.issue_per_cycle}
    return {
        "sm_count": device.sm_count,
        "clock_mhz": clock_mhz,
        "warp_size": limits.warp_size,
        "warp_schedulers": scheduler.partitions,
        "max_warps_per_sm": limits.max_warps_per_sm,
        "simd_width": _lanes(gpu, "fp32"),
        "sfu_width": _lanes(gpu, "sfu"),
        "memory_gbs": levels.dram.peak_gbs,
        "memory_reached_gbs": levels.dram.read_gbs,
        "dram_latency": gpu.cycles(levels.dram.latency_ns, clock_mhz),
        "l1_latency": levels.l1.latency,
        "l2_latency": gpu.cycles(levels.l2.latency_ns, clock_mhz),
        "l2_bytes": levels.l2.bytes,
        "shared_bytes": limits.shared_bytes_per_sm,
        # A transaction in the papers is a line; an access takes as many as it touches.
        "transaction_bytes": levels.line_bytes,
        "block_launch_latency": device.block_launch_latency,
        "fp_latency": gpu.classes["fp32"].latency or 0.0,
        **shared_ilp,
    }


def _lanes(gpu: Gpu, class_: str) -> float:
    """Lanes of one SM, from λ of the class."""
    cost = gpu.classes[class_]
    inside = gpu.subsystems[cost.subsystem].scope == "partition"
    return gpu.occupancy.warp_size / cost.lambda_ * (gpu.scheduler.partitions if inside else 1)
