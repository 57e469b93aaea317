"""Abstract kernels by name, and their costs on a GPU."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

from ...errors import UsageError
from ...hardware import Gpu, model_parameters
from ...support.expressions import Number
from ..cost import CostedWorkload, Subsystem, to_ticks
from ..memory_costs import MemoryCosts
from .check import OCCUPANCY, AbstractFile, read_abstract
from .costs import Machine, Settings, settings_of
from .file import Costs, Cycles, Measured
from .graphs import branches, make_paths

# Costs of an abstract kernel on a GPU: a `CostedWorkload`, like that of a real kernel.

MOST_WARPS = 64
"""Warps per SM if neither the file nor the GPU states how many fit."""

CLOCK_MHZ = 1000.0
"""Clock if the GPU has none: one cycle is then a nanosecond."""


def tie(
    file: AbstractFile,
    gpu: Gpu,
    values: Mapping[str, Number],
    *,
    occupancy: int | None = None,
    runs: int = 1,
    clock_mhz: float | None = None,
    policy: str | None = None,
) -> CostedWorkload:
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
    sm_count = int(parameters.get("sm_count", 1))
    on_sm = -(-blocks // sm_count) if blocks else runs * own // per_block
    made = make_paths(settings, machine, parameters.get("ilp_latency", 1.0) if in_order else 0.0, per_block, on_sm)
    replaced = launch.replaced or runs > 1 or blocks is not None
    data = launch.data_bytes
    return CostedWorkload(
        paths=made.paths,
        block_types=made.block_types,
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
        sm_count=sm_count,
        clock_hz=clock * 1e6,
        notes=made.notes,
        names=made.names,
        runs=0 if blocks else runs,
        kinds={name: class_.kind for name, class_ in file.kernel.classes.items()},
        parameters=parameters,
        data_bytes=None if data is None else float(settings.number("launch.data_bytes", data)),
    )


def most_warps(file: AbstractFile, gpu: Gpu, values: Mapping[str, Number]) -> tuple[int, int]:
    """Warps per block, and the maximum of warps per SM."""
    settings = Settings(file, values)
    per_block = settings.whole("launch.warps_per_block", file.kernel.launch.warps_per_block, 1)
    return per_block, per_block * _most_blocks(settings, gpu, per_block)


def occupancy_matters(file: AbstractFile) -> bool:
    """Whether some λ or Λ depends on the occupancy, or branches are drawn for the blocks that run."""
    if any(branches(program) for program in file.kernel.programs().values()):
        return True

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
    """Blocks that an SM holds: from the GPU, else the file, else `MOST_WARPS`."""
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
            "launch.warps_per_block", f"expected at most {limit} warps (the most an SM holds), got {per_block}"
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


PackagedWorkload = AbstractFile
_FOLDER = Path(__file__).parent


def workload_names() -> list[str]:
    """Names of the packaged abstract kernels."""
    names = (path.relative_to(_FOLDER).as_posix().removesuffix(".toml") for path in _FOLDER.rglob("*.toml"))
    return sorted(names, key=lambda name: ("/mb" in name, name))


def is_workload(name_or_path: str) -> bool:
    """Whether this names an abstract kernel rather than source or machine code."""
    return name_or_path.endswith(".toml") or name_or_path in workload_names()


def read_workload(name_or_path: str) -> AbstractFile:
    """Read a packaged abstract kernel or a user's file."""
    if name_or_path.endswith(".toml"):
        return read_abstract(Path(name_or_path))
    names = workload_names()
    if name_or_path in names:
        return read_abstract(_FOLDER / f"{name_or_path}.toml", name_or_path)
    nearest = difflib.get_close_matches(name_or_path, names, n=3, cutoff=0.3) or names
    raise UsageError(f"unknown workload {name_or_path!r}; nearest: {', '.join(nearest)}; or a path ending in .toml")


def load_workload(
    name_or_path: str,
    gpu: Gpu,
    settings: Mapping[str, float | str] | None = None,
    *,
    occupancy: int | None = None,
    runs: int = 1,
    clock_mhz: float | None = None,
    policy: str | None = None,
) -> CostedWorkload:
    """An abstract kernel with its costs on a GPU.

    `settings` vary it (numbers, or text as a user types it). `occupancy` in warps per SM overrides the file's; λ and Λ
    that depend on occupancy are evaluated there. With `runs` 1, that many warps start together and nothing replaces
    them; with N, each SM runs N times as many. `policy` and `clock_mhz` override the GPU's. Raises InputFileError or
    UsageError with one line that states what was expected.
    """
    file = read_workload(name_or_path)
    return tie(
        file, gpu, settings_of(file, settings or {}), occupancy=occupancy, runs=runs, clock_mhz=clock_mhz, policy=policy
    )
