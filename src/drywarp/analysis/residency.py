"""Whether a launch fits a GPU, how many of its blocks an SM holds, and which memories serve them."""

from __future__ import annotations

from ..errors import UsageError
from ..hardware import Gpu, Occupancy, check_extents, occupancy
from ..kernel.kernel import Kernel
from ..kernel.launch.launch import Launch, buffers_in
from ..memory.table import MemoryGeometry
from ..support.text import bytes_text
from ..workload.table_costs import LANE_BYTES

_LOWEST, _HIGHEST = 0.1, 1.5
"""Factors of the base and of the highest stock clock: no GPU idles lower or is overclocked higher."""


def occupancy_of(kernel: Kernel, launch: Launch, gpu: Gpu) -> Occupancy:
    """Blocks and warps that an SM holds at once. Raises UsageError if the launch does not fit an SM of this GPU."""
    if kernel.resources.max_threads and launch.threads_per_block > kernel.resources.max_threads:
        bounds = "its code is for at most" if gpu.is_amd else "its __launch_bounds__ allow"
        hint = " (OpenCL's reqd_work_group_size or HIP's __launch_bounds__ say otherwise)" if gpu.is_amd else ""
        raise UsageError(
            f"{kernel.name}: {launch.threads_per_block} threads per block, "
            f"{bounds} {kernel.resources.max_threads}{hint}"
        )
    check_extents(gpu.occupancy, launch.grid, launch.block)
    shared = kernel.resources.shared_bytes + launch.dynamic_shared
    scalars = kernel.resources.scalar_registers
    return occupancy(gpu.occupancy, kernel.resources.registers, shared, launch.threads_per_block, scalars)


def check_memory(launch: Launch, gpu: Gpu) -> None:
    """Raises UsageError if the launch's buffers together do not fit in the GPU's memory."""
    room = None if gpu.machine_code else gpu.memory.dram.bytes
    needed = sum(buffer.nbytes for argument in launch.arguments for buffer in buffers_in(argument))
    if room is not None and needed > room:
        raise UsageError(f"buffers of {bytes_text(needed)}: expected at most the {bytes_text(room)} of {gpu.name}")


def check_clock(gpu: Gpu, clock_mhz: float) -> None:
    """Raises UsageError for a clock that no GPU of this model can run at, however well it is cooled."""
    low, high = gpu.device.base_clock_mhz * _LOWEST, gpu.device.highest_clock_mhz
    if not low <= clock_mhz <= high * _HIGHEST:
        expected = f"expected {low:.0f} to {high * _HIGHEST:.0f}"
        raise UsageError(f"clock {clock_mhz:g} MHz: {expected}; the highest stock clock of {gpu.name} is {high:.0f}")


def geometry_of(gpu: Gpu, fits: Occupancy) -> MemoryGeometry:
    """The sizes of a GPU's memories for a launch with this occupancy."""
    if (code := gpu.machine_code) is not None:
        return MemoryGeometry(
            sector_bytes=code.transaction_bytes,
            line_bytes=code.line_bytes,
            banks=code.shared_banks,
            bank_bytes=LANE_BYTES,
            l1_bytes=code.l1_bytes,
            l2_bytes=code.l2_bytes,
            sm_count=gpu.device.sm_count,
            blocks_per_sm=fits.blocks_per_sm,
            shared_banks_serve_l1=False,
        )
    memory = gpu.memory
    return MemoryGeometry(
        sector_bytes=memory.sector_bytes,
        line_bytes=memory.line_bytes,
        banks=memory.shared.banks,
        bank_bytes=memory.shared.bank_bytes,
        l1_bytes=memory.l1.bytes or fits.l1_bytes,
        l2_bytes=memory.l2.bytes,
        sm_count=gpu.device.sm_count,
        blocks_per_sm=fits.blocks_per_sm,
        l3_bytes=memory.l3.bytes if memory.l3 else 0,
        shared_banks_serve_l1=memory.l1.bytes is None,
        dirty_share=1.0 if memory.l2.dirty_share is None else memory.l2.dirty_share,
    )
