"""How many thread blocks fit on one SM, and which resource limits them.

The rules follow NVIDIA's cuda_occupancy.h. From compute capability 2.0 on, registers are allocated per warp, from the
register file of the warp's partition. Shared memory is allocated in units, including the driver's reserve per block.
Compute capability 1.x, which that header no longer covers, allocates registers per block; its rule is that of NVIDIA's
occupancy calculator. Not modelled: the limit by named barriers, and the partitioned L1 caching of compute capability
5.2, 5.3, 6.1 and 6.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

import msgspec

from ..errors import UsageError

Count = Annotated[int, msgspec.Meta(ge=1)]
Bytes = Annotated[int, msgspec.Meta(ge=0, extra={"unit": "bytes"})]
Registers = Annotated[int, msgspec.Meta(ge=1, extra={"unit": "registers"})]

Extents = Annotated[tuple[Count, ...], msgspec.Meta(min_length=3, max_length=3)]

RESOURCES = ("warps", "registers", "shared_memory", "tensor_memory", "blocks")
"""The resources that can limit the blocks per SM; ties are reported in this order, as in cuda_occupancy.h."""


class OccupancyLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section `[occupancy]` of a GPU file: the resources of an SM, and their allocation units.

    `carveout_bytes` are the shared memory sizes that can be carved out of `unified_bytes_per_sm`, ascending; L1 gets
    the rest. `unified_bytes_per_sm` is absent if shared memory is a separate memory. Registers are allocated per `warp`
    or per `block`. The launch check rounds the warps of a block up to multiples of `warp_check_granularity`, if that
    differs from the allocation granularity. `max_block_extent` and `max_grid_extent` bound x, y and z of a launch. AMD
    GPUs hold fewer multi-warp blocks than single-warp ones (`max_multiwarp_blocks_per_sm`), and have scalar registers
    per warp, allocated in units of `scalar_register_unit`. `tensor_columns_per_sm` is absent without tensor memory.
    """

    warp_size: Count
    max_warps_per_sm: Count
    max_threads_per_sm: Count
    max_blocks_per_sm: Count
    max_threads_per_block: Count
    max_block_extent: Extents
    max_grid_extent: Extents
    registers_per_sm: Registers
    max_registers_per_block: Registers
    max_registers_per_thread: Registers
    register_allocation: Literal["warp", "block"]
    register_allocation_unit: Registers
    warp_allocation_granularity: Count
    warp_check_granularity: Count | None = None
    unified_bytes_per_sm: Bytes | None = None
    shared_bytes_per_sm: Bytes
    shared_bytes_per_block_default: Bytes
    shared_bytes_per_block_optin: Bytes
    shared_allocation_unit: Annotated[int, msgspec.Meta(ge=1, extra={"unit": "bytes"})]
    shared_reserved_per_block: Bytes
    carveout_bytes: Annotated[tuple[Bytes, ...], msgspec.Meta(min_length=1, extra={"unit": "bytes"})]
    max_multiwarp_blocks_per_sm: Count | None = None
    scalar_registers_per_partition: Registers | None = None
    scalar_register_unit: Registers = 1
    tensor_columns_per_sm: Count | None = None

    def inconsistency(self) -> tuple[str, str] | None:
        """The first key whose value contradicts the others, and what was expected of it."""
        if self.max_threads_per_sm != self.max_warps_per_sm * self.warp_size:
            return "max_threads_per_sm", f"max_warps_per_sm · warp_size = {self.max_warps_per_sm * self.warp_size}"
        if any(a >= b for a, b in pairwise(self.carveout_bytes)):
            return "carveout_bytes", "sizes in ascending order"
        if self.carveout_bytes[-1] != self.shared_bytes_per_sm:
            return "carveout_bytes", f"shared_bytes_per_sm = {self.shared_bytes_per_sm} as the largest size"
        if self.unified_bytes_per_sm is not None and self.shared_bytes_per_sm > self.unified_bytes_per_sm:
            return "shared_bytes_per_sm", f"at most unified_bytes_per_sm = {self.unified_bytes_per_sm}"
        if self.shared_bytes_per_block_optin + self.shared_reserved_per_block > self.shared_bytes_per_sm:
            most = self.shared_bytes_per_sm - self.shared_reserved_per_block
            return "shared_bytes_per_block_optin", f"at most {most}, which leaves room for the reserve"
        if self.max_registers_per_block > self.registers_per_sm:
            return "max_registers_per_block", f"at most registers_per_sm = {self.registers_per_sm}"
        return None


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The concurrent blocks and warps of a launch on one SM.

    `fraction` is warps over warp slots, 0..1. `limits` gives, for each resource of `RESOURCES`, the number of blocks
    that it alone would allow (None: no limit). `limiting` lists the resources that allow the fewest, in that order, and
    `limited_by` is the first of them. `carveout_bytes` is the shared memory that the driver sets aside for the resident
    blocks; `l1_bytes` is what remains for L1, or 0 if the two are separate memories.
    """

    blocks_per_sm: int
    warps_per_sm: int
    fraction: float
    limited_by: str
    limiting: tuple[str, ...]
    limits: dict[str, int | None]
    registers_per_block: int
    shared_bytes_per_block: int
    carveout_bytes: int
    l1_bytes: int


def occupancy(
    limits: OccupancyLimits,
    registers_per_thread: int,
    shared_bytes: int,
    threads_per_block: int,
    scalar_registers: int = 0,
    tensor_columns: int = 0,
) -> Occupancy:
    """Concurrent blocks and warps on one SM.

    `shared_bytes` is static plus dynamic shared memory of a block, without the driver's reserve; a kernel that needs
    more than the default limit is assumed to opt in. `scalar_registers` are per warp. `tensor_columns` are the most
    that a block holds; one that finds no room for them is on the SM and waits, which counts as not being there. Raises
    `UsageError` for a launch that exceeds the GPU's limits.
    """
    warps = _warps(limits, threads_per_block)
    by_block = limits.register_allocation == "block"
    registers, by_registers = (_block_registers if by_block else _warp_registers)(limits, registers_per_thread, warps)
    by_scalar = _blocks_by_scalar_registers(limits, scalar_registers, warps)
    by_registers = by_registers if by_scalar is None else min(by_registers, by_scalar)
    shared = _allocated_shared(limits, shared_bytes)
    several = limits.max_multiwarp_blocks_per_sm if warps > 1 else None
    by_resource: dict[str, int | None] = {
        "warps": limits.max_warps_per_sm // warps,
        "registers": by_registers,
        "shared_memory": blocks_by_shared(limits, shared_bytes),
        "blocks": min(limits.max_blocks_per_sm, several or limits.max_blocks_per_sm),
    }
    if tensor_columns and limits.tensor_columns_per_sm:
        by_resource["tensor_memory"] = limits.tensor_columns_per_sm // tensor_columns
    blocks = min(count for count in by_resource.values() if count is not None)
    limiting = tuple(name for name in RESOURCES if by_resource.get(name) == blocks)
    carved = carveout(limits, blocks * shared)
    return Occupancy(
        blocks_per_sm=blocks,
        warps_per_sm=blocks * warps,
        fraction=blocks * warps / limits.max_warps_per_sm,
        limited_by=limiting[0],
        limiting=limiting,
        limits=by_resource,
        registers_per_block=registers,
        shared_bytes_per_block=shared,
        carveout_bytes=carved,
        l1_bytes=limits.unified_bytes_per_sm - carved if limits.unified_bytes_per_sm else 0,
    )


def check_extents(limits: OccupancyLimits, grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
    """Raise `UsageError` if a grid or block exceeds the GPU's limit in any dimension."""
    for what, extents, most in (("grid", grid, limits.max_grid_extent), ("block", block, limits.max_block_extent)):
        for axis, extent, limit in zip("xyz", extents, most, strict=True):
            if extent > limit:
                raise UsageError(f"{what} extent {extent} in {axis} exceeds the limit of {limit}")


def clusters_at_once(gpc_sms: Sequence[int], blocks_per_sm: int, cluster_blocks: int) -> int:
    """Clusters that run at once on a GPU: those that fit into each GPC, whose SMs hold this many blocks each.

    All blocks of a cluster run at the same time within one GPC (CUDA C++ Programming Guide 13, "Thread Block
    Clusters"); several of them may share an SM.
    """
    return sum(sms * blocks_per_sm // cluster_blocks for sms in gpc_sms)


def blocks_by_shared(limits: OccupancyLimits, shared_bytes: int) -> int | None:
    """Blocks per SM that shared memory alone allows; None if a block allocates none."""
    allocated = _allocated_shared(limits, shared_bytes)
    return limits.shared_bytes_per_sm // allocated if allocated else None


def carveout(limits: OccupancyLimits, needed_bytes: int) -> int:
    """The smallest shared memory configuration, in bytes, that fits the resident blocks."""
    return next(size for size in limits.carveout_bytes if size >= needed_bytes)


def _warps(limits: OccupancyLimits, threads: int) -> int:
    if not 1 <= threads <= limits.max_threads_per_block:
        raise UsageError(f"{threads} threads per block: this GPU allows 1 to {limits.max_threads_per_block}")
    return -(-threads // limits.warp_size)


def _warp_registers(limits: OccupancyLimits, registers: int, warps: int) -> tuple[int, int]:
    """Registers of a block, and the blocks that they allow, with allocation per warp."""
    _check_registers(limits, registers)
    partitions = limits.warp_allocation_granularity
    # The launch check assumes that every partition gets as many warps as the fullest one.
    counted = _round_up(warps, limits.warp_check_granularity or partitions)

    def allocated(registers: int) -> int:
        return _round_up(registers * limits.warp_size, limits.register_allocation_unit)

    _check_block_registers(limits, registers, warps, lambda registers: allocated(registers) * counted)
    per_warp = allocated(registers)
    warps_that_fit = limits.registers_per_sm // partitions // per_warp * partitions
    return per_warp * warps, warps_that_fit // warps


def _block_registers(limits: OccupancyLimits, registers: int, warps: int) -> tuple[int, int]:
    """Registers of a block, and the blocks that they allow, with allocation per block and warps rounded up."""
    _check_registers(limits, registers)
    counted = _round_up(warps, limits.warp_allocation_granularity) * limits.warp_size

    def allocated(registers: int) -> int:
        return _round_up(counted * registers, limits.register_allocation_unit)

    _check_block_registers(limits, registers, warps, allocated)
    return allocated(registers), limits.registers_per_sm // allocated(registers)


def _blocks_by_scalar_registers(limits: OccupancyLimits, registers: int, warps: int) -> int | None:
    """Blocks that the scalar registers allow; None if there are none."""
    if not limits.scalar_registers_per_partition or not registers:
        return None
    per_warp = _round_up(registers, limits.scalar_register_unit)
    partitions = limits.warp_allocation_granularity
    return limits.scalar_registers_per_partition // per_warp * partitions // warps


def _check_registers(limits: OccupancyLimits, registers: int) -> None:
    if not 1 <= registers <= limits.max_registers_per_thread:
        raise UsageError(f"{registers} registers per thread: this GPU allows 1 to {limits.max_registers_per_thread}")


class TooManyRegisters(UsageError):  # noqa: N818 - it reads as what it says in `raise`
    """A block needs more registers than it can have; it would fit with `most` registers per thread."""

    def __init__(self, message: str, most: int) -> None:
        super().__init__(message)
        self.most = most


def _check_block_registers(limits: OccupancyLimits, registers: int, warps: int, count: Callable[[int], int]) -> None:
    """Check the registers of a block; `count` gives the registers per block for a number per thread."""
    taken = count(registers)
    if taken > limits.max_registers_per_block:
        most = next((r for r in range(registers - 1, 0, -1) if count(r) <= limits.max_registers_per_block), 0)
        raise TooManyRegisters(
            f"{registers} registers per thread and {warps} warps need {taken} registers per block: "
            f"this GPU has {limits.max_registers_per_block}",
            most,
        )


def _allocated_shared(limits: OccupancyLimits, shared_bytes: int) -> int:
    if not 0 <= shared_bytes <= limits.shared_bytes_per_block_optin:
        raise UsageError(
            f"{shared_bytes} bytes of shared memory per block: "
            f"this GPU allows 0 to {limits.shared_bytes_per_block_optin}"
        )
    return _round_up(shared_bytes + limits.shared_reserved_per_block, limits.shared_allocation_unit)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
