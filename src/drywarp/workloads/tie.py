"""An abstract kernel tied to a GPU: a `BoundWorkload`, like that of a real kernel."""

from __future__ import annotations

from collections.abc import Mapping

from ..binding import MemoryCosts
from ..bound import BlockType, BoundWorkload, Subsystem, to_ticks
from ..errors import UsageError
from ..frontends.abstract import AbstractFile, Costs, Cycles, Measured
from ..frontends.abstract_check import OCCUPANCY
from ..frontends.abstract_expression import Number
from ..hardware import Gpu, model_parameters
from .costs import Machine
from .path import make_path
from .settings import Settings

MOST_WARPS = 64
"""Warps per SM where neither file nor GPU says how many fit."""

CLOCK_MHZ = 1000.0
"""Clock where the GPU has none: times are then in nanoseconds a cycle."""


def tie(
    file: AbstractFile,
    gpu: Gpu,
    values: Mapping[str, Number],
    *,
    occupancy: int | None = None,
    runs: int = 1,
    clock_mhz: float | None = None,
    policy: str | None = None,
) -> BoundWorkload:
    """See `load_workload`; `values` holds every setting."""
    settings, launch = Settings(file, values), file.kernel.launch
    if runs < 1:
        raise UsageError(f"--runs {runs}: expected at least 1")
    per_block = settings.whole("launch.warps_per_block", launch.warps_per_block, 1)
    most = _most_blocks(settings, gpu, per_block)
    own = _own_occupancy(settings, per_block, most) if occupancy is None else occupancy
    if own % per_block or not 0 < own <= most * per_block:
        raise UsageError(
            f"occupancy {own}: expected a multiple of {per_block} warps (one block) up to {most * per_block}"
        )
    parameters = model_parameters(gpu, clock_mhz)
    clock = clock_mhz or parameters.get("clock_mhz", CLOCK_MHZ)
    names = {name: system.scope for name, system in gpu.subsystems.items()}
    names |= {name: scope for name, scope in file.kernel.subsystems.items() if name not in names}
    index = {name: number for number, name in enumerate(names)}
    upstream = {name: system.upstream for name, system in gpu.subsystems.items()}
    blocks = None if launch.blocks is None else settings.whole("launch.blocks", launch.blocks, 1)

    def memory(read: float, write: float) -> MemoryCosts:
        return MemoryCosts(gpu, clock, blocks or 0, index, read, write)

    machine = Machine(gpu, index, None if gpu.abstract_only else memory, own)
    scheduler = gpu.scheduler
    in_order = scheduler.in_order if launch.in_order is None else launch.in_order
    path = make_path(settings, machine, parameters.get("ilp_latency", 1.0) if in_order else 0.0)
    replaced = launch.replaced or runs > 1 or blocks is not None
    data = launch.data_bytes
    return BoundWorkload(
        paths=(path,),
        block_types=(BlockType((0,) * per_block, 1.0),),
        subsystems=tuple(Subsystem(name, scope, upstream.get(name, True)) for name, scope in names.items()),
        partitions=scheduler.partitions,
        issue_ticks=to_ticks(1 / scheduler.issue_per_cycle) if scheduler.issue_per_cycle else 0,
        policy=policy or scheduler.policy,
        in_order=in_order,
        launch_ticks=to_ticks(parameters.get("block_launch_latency", 0.0)) if replaced else 0,
        blocks=blocks or own // per_block,
        warps_per_block=per_block,
        blocks_per_sm=own // per_block,
        max_blocks_per_sm=most,
        sm_count=int(parameters.get("sm_count", 1)),
        clock_hz=clock * 1e6,
        runs=0 if blocks else runs,
        kinds={name: class_.kind for name, class_ in file.kernel.classes.items()},
        parameters=parameters,
        data_bytes=None if data is None else float(settings.number("launch.data_bytes", data)),
    )


def most_warps(file: AbstractFile, gpu: Gpu, values: Mapping[str, Number]) -> tuple[int, int]:
    """Warps of a block, and the most warps per SM."""
    settings = Settings(file, values)
    per_block = settings.whole("launch.warps_per_block", file.kernel.launch.warps_per_block, 1)
    return per_block, per_block * _most_blocks(settings, gpu, per_block)


def occupancy_matters(file: AbstractFile) -> bool:
    """Whether some λ or Λ depends on the occupancy."""

    def varies(value: Cycles | None) -> bool:
        return isinstance(value, Measured) or (isinstance(value, str) and OCCUPANCY in value)

    for class_ in file.kernel.classes.values():
        every: list[Costs] = [class_, *class_.when.values()]
        if any(varies(costs.lambda_) or varies(costs.latency) for costs in every):
            return True
        if class_.fallback and (varies(class_.fallback.lambda_) or varies(class_.fallback.latency)):
            return True
    return False


def _most_blocks(settings: Settings, gpu: Gpu, per_block: int) -> int:
    """Blocks that an SM holds: as the GPU says, else the file, else `MOST_WARPS`."""
    said = settings.file.kernel.launch.max_occupancy
    if not gpu.abstract_only:
        limit = gpu.occupancy.max_warps_per_sm
        blocks = min(limit // per_block, gpu.occupancy.max_blocks_per_sm)
    else:
        limit = gpu.parameters.max_warps_per_sm or MOST_WARPS
        if said is not None and gpu.parameters.max_warps_per_sm is None:
            limit = settings.whole("launch.max_occupancy", said, 1)
        blocks = limit // per_block
    if blocks < 1:
        raise settings.file.error(
            "launch.warps_per_block", f"expected at most {limit} warps, all that an SM holds, got {per_block}"
        )
    return blocks


def _own_occupancy(settings: Settings, per_block: int, most: int) -> int:
    said = settings.file.kernel.launch.occupancy
    if said is None:
        return most * per_block
    own = settings.whole("launch.occupancy", said, 1)
    if own % per_block or own > most * per_block:
        raise settings.file.error(
            "launch.occupancy",
            f"impossible: expected a multiple of {per_block} warps (one block) up to {most * per_block}, got {own}",
        )
    return own
