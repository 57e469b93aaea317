"""Whether a launch fits a GPU, how many of its blocks an SM holds, and which memories serve them."""

from __future__ import annotations

import math

from ..errors import UsageError
from ..hardware import Gpu, Occupancy, check_extents, clusters_at_once, occupancy
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
    columns = kernel.resources.tensor_columns
    fits = occupancy(gpu.occupancy, kernel.resources.registers, shared, launch.threads_per_block, scalars, columns)
    _check_cluster(kernel, launch, gpu, fits)
    return fits


TAKES_OVER = "UGETNEXTWORKID"
"""The instruction that asks for a cluster that has not started, to do its work."""
PORTABLE_CLUSTER = 8
"""Most blocks of a cluster on any GPU that has clusters (CUDA C++ Programming Guide 13, "Thread Block Clusters")."""


def _check_cluster(kernel: Kernel, launch: Launch, gpu: Gpu, fits: Occupancy) -> None:
    blocks, gpcs = launch.cluster_blocks, gpu.device.gpc_sms
    if blocks == 1:
        return
    most = gpu.device.max_cluster_blocks or PORTABLE_CLUSTER
    if blocks > most:
        raise UsageError(f"{kernel.name}: clusters of {blocks} blocks: expected at most {most} on {gpu.name}")
    if gpcs and not clusters_at_once(gpcs, fits.blocks_per_sm, blocks):
        room = f"a GPC of {gpu.name} has room for at most {max(gpcs) * fits.blocks_per_sm} of these blocks"
        raise UsageError(f"{kernel.name}: clusters of {blocks} blocks: {room}")


def with_clusters(gpu: Gpu, launch: Launch, fits: Occupancy) -> tuple[Gpu, tuple[str, ...]]:
    """The GPU with the SMs that clusters can fill, and notes: within a GPC too few may be left for another cluster.

    Blocks on SMs that are filled in part are counted together.
    """
    blocks, each, device = launch.cluster_blocks, fits.blocks_per_sm, gpu.device
    if blocks == 1:
        return gpu, ()
    notes = [
        f"clusters of {blocks} blocks: one SM is simulated alone, as if each block received from itself what others"
        " of its cluster send it, at the same time"
    ]
    if blocks > PORTABLE_CLUSTER:
        notes.append(
            f"clusters of more than {PORTABLE_CLUSTER} blocks need cudaFuncAttributeNonPortableClusterSizeAllowed"
        )
    if not device.gpc_sms:
        notes.append(f"the GPCs of {gpu.name} are not known: clusters are assumed to fill all of its SMs")
        return gpu, tuple(notes)
    filled = max(1, clusters_at_once(device.gpc_sms, each, blocks) * blocks // each)
    if filled < device.sm_count:
        notes.append(f"clusters of {blocks} blocks lie within a GPC: they fill {filled} of {device.sm_count} SMs")
    return gpu.with_sms(filled), tuple(notes)


def clusters_that_start(kernel: Kernel, launch: Launch, gpu: Gpu, fits: Occupancy) -> int:
    """How many clusters start if they take over the others (see `Launch.starts`); 0 if all of them start."""
    if not any(i.opcode == TAKES_OVER for i in kernel.instructions):
        return 0
    room = gpu.device.sm_count * fits.blocks_per_sm // launch.cluster_blocks
    return room if 0 < room < math.prod(launch.clusters) else 0


def check_memory(launch: Launch, gpu: Gpu) -> None:
    """Raises UsageError if the launch's buffers together do not fit in the GPU's memory."""
    room = None if gpu.machine_code else gpu.memory.dram.bytes
    needed = sum(buffer.nbytes for argument in launch.arguments for buffer in buffers_in(argument) if not buffer.host)
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
    memory, constants = gpu.memory, gpu.memory.constants
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
        slice_bytes=memory.l2.slice_bytes or 0,
        merge_cycles=memory.l2.merge_cycles or 0.0,
        merged_reads=memory.l2.merged_reads or 1.0,
        row_bytes=memory.dram.row_bytes or 0,
        l2_rate=memory.l2.bytes_per_cycle if memory.l2.merge_cycles else 0.0,
        host_bus=gpu.host is not None and "host" in gpu.subsystems,
        constant_sets=constants.bytes // (constants.line_bytes * constants.ways) if constants else 0,
        constant_ways=constants.ways if constants else 0,
        constant_line_bytes=constants.line_bytes if constants else 0,
    )
