"""`count`: a kernel's counters, as a profiler would report them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ..._version import __version__
from ...errors import UsageError
from ...frontends.cache import tool_versions
from ...memory.dram import fetched_sectors
from ...pipeline.blocks import share_of
from ...pipeline.extrapolate import simulate
from ..prepare import prepare_kernel
from ..prepared import Prepared
from ..request import Options
from ..result import SCHEMA_VERSION
from ..uncertainty import doubts_of, memory_doubt
from . import count_metrics
from .metrics import Counts

NO_PIPES = frozenset({"issue", "bar", "l2", "dram", "atomics"})
"""Subsystems of the GPU files that are not pipes in Nsight Compute."""


def count(source: str | Path, *, options: Options | None = None, simulated: bool = True, **kernel: Any) -> Counts:
    """Nsight Compute's metrics of one launch, without a GPU. Takes the arguments of `prepare_kernel`.

    `sm__warps_active` is simulated (and omitted unless `simulated`), hit rates and DRAM sectors are modelled, all other
    metrics are counted.
    """
    # Lanes under guards are counted only if all of the code is run.
    chosen = replace(options or Options(), full_emulation=True)
    return counts_of(prepare_kernel(source, options=chosen, **kernel), chosen, simulated)


def counts_of(ready: Prepared, options: Options, simulated: bool = True) -> Counts:
    """The metrics of a prepared kernel."""
    gpu, kernel, launch, bound = ready.gpu, ready.kernel, ready.launch, ready.costed
    if gpu.is_amd:
        raise UsageError(f"GPU {gpu.name}: counters are those of NVIDIA's profiler (expected an NVIDIA GPU)")
    active = None
    if simulated:
        options.on_stage("simulating")
        share = share_of(bound, bound.blocks_per_sm)
        active = simulate(bound, share, stalls=False, full=options.full_simulation).mean_occupancy
    slots = gpu.occupancy.max_warps_per_sm
    cache = gpu.memory.instructions
    # Nsight Compute counts barriers on the ADU pipe; the GPU files give them a subsystem of their own.
    pipes = {name: "adu" if cost.subsystem == "bar" else cost.subsystem for name, cost in gpu.classes.items()}
    found = count_metrics(
        ready.profile,
        ready.behaviour,
        {name: pipe for name, pipe in pipes.items() if pipe not in NO_PIPES},
        gpu.memory.sector_bytes,
        None if active is None else active / slots,
        fetched_sectors(ready.profile, cache.bytes, cache.l2_share, gpu.memory.sector_bytes) if cache else 0.0,
    )
    doubts = (*doubts_of(ready), *memory_doubt(ready.behaviour))
    return Counts(
        kernel=kernel.name,
        source_file=kernel.source_file,
        arch=kernel.arch,
        gpu=gpu.name,
        gpu_title=gpu.title,
        gpu_hash=gpu.file_hash,
        grid=launch.grid,
        block=launch.block,
        registers=kernel.resources.registers,
        shared_bytes=kernel.resources.shared_bytes + launch.dynamic_shared,
        local_bytes=kernel.resources.local_bytes,
        sampled_blocks=len(ready.profile.blocks),
        method=ready.behaviour.method,
        l2_state="warm" if options.warm_l2 else "cold",
        counts=found,
        versions={"drywarp": __version__, **tool_versions(), **ready.tools},
        schema_version=SCHEMA_VERSION,
        notes=tuple(dict.fromkeys([*doubts, *ready.notes, *ready.profile.notes, *ready.behaviour.notes, *bound.notes])),
    )


__all__ = ["count", "counts_of"]
