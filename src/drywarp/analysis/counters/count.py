"""Nsight Compute's metrics for the whole grid, from a profile and its memory behaviour."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._version import __version__
from ...errors import UsageError
from ...frontends.cache import tool_versions
from ...kernel.profile import SPACE_GLOBAL, SPACE_LOCAL, SPACE_SHARED, Profile
from ...memory.behaviour import AccessBehaviour, MemoryBehaviour
from ...memory.dram import fetched_sectors
from ...pipeline.blocks import share_of
from ...pipeline.extrapolate import simulate
from ...workload.cost_model import matrix_work
from ..prepare import prepare_kernel
from ..prepared import Prepared
from ..request import Options
from ..result import SCHEMA_VERSION, Rate
from ..uncertainty import doubts_of, memory_doubt
from . import GROUPS, Counts, group_of, is_integer, operations_of, pipe_of

WARP_LANES = 32
_TEXTURES = {
    **dict.fromkeys(("TEX", "TLD", "TLD4", "TXD"), "texture"),
    "SULD": "surface_op_ld",
    "SUST": "surface_op_st",
}
_KINDS = {
    "load": "ld", "store": "st", "atomic": "atom", "reduction": "red", "copy": "ldgsts",
    "bulk_load": "tma_ld", "bulk_store": "tma_st", "bulk_reduction": "tma_red",
}  # fmt: skip


def count_metrics(
    profile: Profile,
    behaviour: MemoryBehaviour,
    pipes: Mapping[str, str],
    sector_bytes: int,
    achieved_occupancy: float | None = None,
    code_sectors: float = 0.0,
) -> dict[str, float]:
    """Map metric names to values, whole numbers as integers.

    `pipes` maps instruction class to pipe; `achieved_occupancy` is a fraction of the warp slots, None if unknown;
    `code_sectors` are the instruction-fetch sectors that the L2 serves. Sampled blocks represent the grid with their
    weights, so a value may be an estimate.
    """
    found = {
        **_instructions(profile),
        **_pipes(profile, pipes),
        **_memory(profile, behaviour, code_sectors),
        "dram__sectors_read.sum": behaviour.dram_read_bytes / sector_bytes,
        "dram__sectors_write.sum": (behaviour.dram_write_bytes - behaviour.dirty_bytes) / sector_bytes,
    }
    if achieved_occupancy is not None:
        found["sm__warps_active.avg.pct_of_peak_sustained_active"] = 100 * achieved_occupancy
    return {name: _tidy(value) for name, value in found.items()}


def active_lanes(profile: Profile) -> npt.NDArray[np.float64]:
    """Active lanes over all executions of each instruction in the whole grid, shape (instructions,).

    A lane whose predicate is false still counts as active.
    """
    blocks = profile.cfg.blocks
    per_path = np.stack([np.bincount(p.blocks, p.lanes, minlength=len(blocks)) for p in profile.paths])
    times = np.zeros(len(profile.paths))
    for sample in profile.blocks:
        np.add.at(times, list(sample.paths), sample.weight)
    totals = times @ per_path
    lanes = np.zeros(len(profile.kernel.instructions))
    for index, block in enumerate(blocks):
        lanes[block.start : block.end] = totals[index]
    return lanes


def _instructions(profile: Profile) -> dict[str, float]:
    weights = np.array([sample.weight for sample in profile.blocks])
    predicated = weights @ profile.thread_instructions
    executed = float(profile.executions().sum())
    lanes = float(active_lanes(profile).sum())
    groups = dict.fromkeys(GROUPS, 0.0)
    for instruction, threads in zip(profile.kernel.instructions, predicated.tolist(), strict=True):
        group = group_of(instruction)
        if group:
            groups[group] += threads
    ratio = lanes / executed if executed else 0.0
    return {
        "smsp__inst_executed.sum": executed,
        "smsp__thread_inst_executed.sum": lanes,
        "smsp__thread_inst_executed_pred_on.sum": float(predicated.sum()),
        "smsp__thread_inst_executed_per_inst_executed.ratio": ratio,
        "smsp__thread_inst_executed_per_inst_executed.pct": 100 * ratio / WARP_LANES,
        **{f"smsp__sass_thread_inst_executed_op_{group}_pred_on.sum": count for group, count in groups.items()},
    }


def _pipes(profile: Profile, pipes: Mapping[str, str]) -> dict[str, float]:
    totals = dict.fromkeys(sorted(set(pipes.values())), 0.0)
    for instruction, count in zip(profile.kernel.instructions, profile.executions().tolist(), strict=True):
        pipe = pipe_of(instruction, pipes)
        if pipe is not None:
            totals[pipe] += count
    return {f"smsp__inst_executed_pipe_{pipe}.sum": count for pipe, count in totals.items()}


def _memory(profile: Profile, behaviour: MemoryBehaviour, code_sectors: float) -> dict[str, float]:
    # By memory space and kind of access.
    requests, units, misses = (defaultdict[tuple[int, str], float](float) for _ in range(3))
    hits = asked = served = at_l2 = 0.0
    for index, access in behaviour.accesses.items():
        memory = profile.kernel.instructions[index].memory
        if memory is None:
            continue
        textured = memory.space == "texture"
        name = _TEXTURES[profile.kernel.instructions[index].opcode] if textured else _KINDS[memory.kind]
        key = (access.space, name)
        total = access.units * access.executions
        # The texels of one fetch may be recorded as several accesses.
        requests[key] += (min(access.requests, 1.0) if textured else access.requests) * access.executions
        units[key] += total
        if access.space == SPACE_SHARED:
            continue
        missed = total * (1 - _l1_hit(access, memory.kind))
        misses[key] += missed
        at_l2 += missed
        served += missed * access.l2_hit
        if memory.kind in ("load", "copy"):
            asked += total
            hits += total - missed
    metrics: dict[str, float] = {}
    for name in ("ld", "st", "atom", "red", "ldgsts"):
        metrics[f"l1tex__t_requests_pipe_lsu_mem_global_op_{name}.sum"] = requests[SPACE_GLOBAL, name]
        metrics[f"l1tex__t_sectors_pipe_lsu_mem_global_op_{name}.sum"] = units[SPACE_GLOBAL, name]
    for name in ("ld", "st"):
        metrics[f"l1tex__t_sectors_pipe_lsu_mem_local_op_{name}.sum"] = units[SPACE_LOCAL, name]
        metrics[f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{name}.sum"] = units[SPACE_SHARED, name]
    metrics["l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"] = behaviour.shared_wavefronts
    for name in dict.fromkeys(_TEXTURES.values()):
        metrics[f"l1tex__t_requests_pipe_tex_mem_{name}.sum"] = requests[SPACE_GLOBAL, name]
        metrics[f"l1tex__t_sectors_pipe_tex_mem_{name}.sum"] = units[SPACE_GLOBAL, name]
    reads = [(space, name) for space in (SPACE_GLOBAL, SPACE_LOCAL) for name in ("ld", "ldgsts")]
    reads += [(SPACE_GLOBAL, name) for name in ("texture", "surface_op_ld", "tma_ld")]
    metrics["lts__t_sectors_op_read.sum"] = sum(misses[key] for key in reads) + code_sectors
    writes = [(SPACE_GLOBAL, "st"), (SPACE_LOCAL, "st"), (SPACE_GLOBAL, "surface_op_st"), (SPACE_GLOBAL, "tma_st")]
    metrics["lts__t_sectors_op_write.sum"] = sum(misses[key] for key in writes)
    metrics["lts__t_sectors_op_atom.sum"] = misses[SPACE_GLOBAL, "atom"]
    metrics["lts__t_sectors_op_red.sum"] = misses[SPACE_GLOBAL, "red"] + misses[SPACE_GLOBAL, "tma_red"]
    if asked:
        metrics["l1tex__t_sector_hit_rate.pct"] = 100 * hits / asked
    if at_l2:
        metrics["lts__t_sector_hit_rate.pct"] = 100 * (served + code_sectors) / (at_l2 + code_sectors)
    return metrics


def _l1_hit(access: AccessBehaviour, kind: str) -> float:
    """The L1 hit rate: only loads can hit, because the L1 is write-through and the L2 performs atomics."""
    return access.l1_hit if kind in ("load", "copy") else 0.0


def _tidy(value: float) -> float:
    """Return whole numbers as integers, without rounding noise from fractional weights."""
    whole = round(value)
    return whole if abs(value - whole) <= 1e-9 * max(1.0, abs(value)) else value


# `count`: a kernel's counters, as a profiler would report them.

NO_PIPES = frozenset({"issue", "bar", "l2", "dram", "host", "atomics"})
"""Subsystems of the GPU files that are not pipes in Nsight Compute."""


def count(source: str | Path, *, options: Options | None = None, simulated: bool = True, **kernel: Any) -> Counts:
    """Nsight Compute's metrics of one launch, without a GPU. Takes the arguments of `prepare_kernel`.

    `sm__warps_active` is simulated (and omitted unless `simulated`), hit rates and DRAM sectors are modelled, all other
    metrics are counted.
    """
    # Lanes under guards are counted only if all of the code is run.
    chosen = replace(options or Options(), full_emulation=True)
    return counts_of(prepare_kernel(source, options=chosen, **kernel), chosen, simulated)


def counts_of(prepared: Prepared, options: Options, simulated: bool = True) -> Counts:
    """The metrics of a prepared kernel."""
    gpu, kernel, launch, costed = prepared.gpu, prepared.kernel, prepared.launch, prepared.costed
    if gpu.is_amd:
        raise UsageError(f"GPU {gpu.name}: counters are those of NVIDIA's profiler (expected an NVIDIA GPU)")
    active = None
    if simulated:
        options.on_stage("simulating")
        share = share_of(costed, costed.blocks_per_sm)
        active = simulate(costed, share, stalls=False, full=options.full_simulation).mean_occupancy
    slots = gpu.occupancy.max_warps_per_sm
    cache = gpu.memory.instructions
    # Nsight Compute counts barriers on the ADU pipe; the GPU files give them a subsystem of their own.
    pipes = {name: "adu" if cost.subsystem == "bar" else cost.subsystem for name, cost in gpu.classes.items()}
    found = count_metrics(
        prepared.profile,
        prepared.behaviour,
        {name: pipe for name, pipe in pipes.items() if pipe not in NO_PIPES},
        gpu.memory.sector_bytes,
        None if active is None else active / slots,
        fetched_sectors(prepared.profile, cache.bytes, cache.l2_share, gpu.memory.sector_bytes) if cache else 0.0,
    )
    doubts = (*doubts_of(prepared), *memory_doubt(prepared.behaviour))
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
        sampled_blocks=len(prepared.profile.blocks),
        method=prepared.behaviour.method,
        l2_state="warm" if options.warm_l2 else "cold",
        clock_hz=costed.clock_hz,
        counts=found,
        versions={"drywarp": __version__, **tool_versions(), **prepared.tools},
        schema_version=SCHEMA_VERSION,
        notes=tuple(
            dict.fromkeys([*doubts, *prepared.notes, *prepared.profile.notes, *prepared.behaviour.notes, *costed.notes])
        ),
    )


# Operations and bytes, for a roofline and for the rates that a kernel achieves.

MATRIX = "tensor "
"""Precedes the input type of matrix instructions."""


def operations_by_kind(prepared: Prepared) -> tuple[dict[str, float], dict[str, float], tuple[str, ...]]:
    """The grid's operations by kind, each kind's peak per cycle of one SM, and opcodes whose operations are unknown."""
    gpu, profile = prepared.gpu, prepared.profile
    warp = gpu.occupancy.warp_size
    lanes = np.array([sample.weight for sample in profile.blocks]) @ profile.thread_instructions
    total: dict[str, float] = {}
    peak: dict[str, float] = {}
    uncounted: set[str] = set()
    issued = profile.executions()
    for index, (instruction, executed) in enumerate(zip(profile.kernel.instructions, lanes.tolist(), strict=True)):
        if not executed:
            continue
        if matrix := instruction.class_ in ("tensor", "wgmma", "tcgen05"):
            work = matrix_work(instruction)
            if instruction.class_ == "tcgen05":  # once, however many lanes are there
                executed = warp * float(issued[index])
            found = (MATRIX + work[0], 2 * work[1] / warp, 2 * work[1] / warp) if work else None
        else:
            found = operations_of(instruction)
        if found is None:
            uncounted |= {instruction.opcode} if matrix and "MMA" in instruction.opcode else set()
            continue
        kind, each, most = found
        total[kind] = total.get(kind, 0.0) + executed * each
        cost = gpu.classes["tensor" if matrix else instruction.class_]
        pipes = gpu.scheduler.partitions if gpu.subsystems[cost.subsystem].scope == "partition" else 1
        rate = gpu.tensor_rate(kind.removeprefix(MATRIX)) if matrix else None
        peak[kind] = max(peak.get(kind, 0.0), pipes * (2 * rate if rate else warp * most / cost.lambda_))
    return total, peak, tuple(sorted(uncounted))


def l2_bytes(prepared: Prepared) -> float:
    """Bytes that the grid moves between L1 and L2: sectors that miss the L1, and stores."""
    gpu = prepared.gpu
    sector = gpu.machine_code.transaction_bytes if gpu.machine_code else gpu.memory.sector_bytes
    accesses = [access for access in prepared.behaviour.accesses.values() if access.space != SPACE_SHARED]
    return float(sector * sum(access.executions * access.units * (1 - access.l1_hit) for access in accesses))


def rates_of(prepared: Prepared, time_s: float) -> tuple[Rate, ...]:
    """What the kernel achieves in `time_s`: operations of each kind, the most first, then DRAM and L2.

    Integer operations are reported only for kernels that have no others. Empty without a time or a memory.
    """
    gpu, costed = prepared.gpu, prepared.costed
    if "memory" not in gpu.sections or not time_s > 0:
        return ()
    total, peak, _ = operations_by_kind(prepared)
    floating = {kind: count for kind, count in total.items() if not is_integer(kind.removeprefix(MATRIX))}
    unit = "FLOP" if floating else "operations"
    shown = sorted((floating or total).items(), key=lambda item: -item[1])
    rates = [Rate(kind, unit, n / time_s, float(peak[kind] * costed.sm_count * costed.clock_hz)) for kind, n in shown]
    dram, l2 = 1e9 * gpu.memory.dram.peak_gbs, gpu.memory.l2.bytes_per_cycle * costed.clock_hz
    rates.append(Rate("dram", "B", float(prepared.behaviour.dram_bytes) / time_s, dram))
    rates.append(Rate("l2", "B", l2_bytes(prepared) / time_s, l2))
    return tuple(rates)
