"""Nsight Compute's metrics for the whole grid, from a profile and its memory behaviour."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ...kernel.profile import SPACE_GLOBAL, SPACE_LOCAL, SPACE_SHARED, Profile
from ...memory.behaviour import AccessBehaviour, MemoryBehaviour
from .metrics import GROUPS, group_of, pipe_of

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
