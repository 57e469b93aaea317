"""Builds the user's answer from a prepared kernel and its predictions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .._version import __version__
from ..frontends.cache import tool_versions
from ..hardware import Gpu
from ..kernel.isa.nvidia.opcodes import is_barrier
from ..kernel.kernel import Kernel
from ..kernel.launch.launch import Launch
from ..models.base import Prediction
from ..workload.cost_model import class_totals
from .counters.count import rates_of
from .prepared import Prepared
from .request import Options
from .result import Analysis, LineCost, MemoryResult, OccupancyResult, Timing

# Where the cycles go, by source line: the summed stalls of a line's instructions.


def line_costs(kernel: Kernel, node_stalls: Mapping[int, Mapping[str, float]], source: str = "") -> list[LineCost]:
    """The cost of every line, costliest first. `source` is the text of the kernel's own file, if given as text.

    Time at a barrier is shown at the barrier (see `shown_stalls`).
    """
    by_line: dict[tuple[str, int], dict[str, float]] = {}
    for index, stalls in shown_stalls(kernel, node_stalls).items():
        place = kernel.instructions[index].source
        reasons = by_line.setdefault((place.file, place.line) if place else ("", 0), {})
        for reason, cycles in stalls.items():
            reasons[reason] = reasons.get(reason, 0.0) + cycles
    total = sum(sum(reasons.values()) for reasons in by_line.values())
    texts = {kernel.source_file: source.splitlines()} if source else {}
    costs = []
    for (file, line), reasons in by_line.items():
        cycles = sum(reasons.values())
        stall = max(reasons, key=lambda reason: reasons[reason])
        share = cycles / total if total else 0.0
        costs.append(LineCost(file, line, cycles, share, stall, _text(texts, file, line)))
    return sorted(costs, key=lambda cost: (-cost.cycles, cost.file, cost.line))


def shown_stalls(kernel: Kernel, node_stalls: Mapping[int, Mapping[str, float]]) -> dict[int, dict[str, float]]:
    """Warp-cycles by instruction and stall reason, each placed where a reader expects it.

    The simulation attributes time at a barrier to the next instruction, which waits to issue; here it is moved to the
    barrier.
    """
    shown: dict[int, dict[str, float]] = {}
    for index, stalls in node_stalls.items():
        # A barrier never branches, so the next instruction follows it.
        after_barrier = index > 0 and is_barrier(kernel.instructions[index - 1])
        for reason, cycles in stalls.items():
            reasons = shown.setdefault(index - 1 if reason == "barrier" and after_barrier else index, {})
            reasons[reason] = reasons.get(reason, 0.0) + cycles
    return shown


def _text(texts: dict[str, list[str]], file: str, line: int) -> str:
    if file and file not in texts:
        try:
            texts[file] = Path(file).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            texts[file] = []
    lines = texts.get(file, [])
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def build_result(prepared: Prepared, options: Options, predictions: Mapping[str, Prediction]) -> Analysis:
    """The answer; the first model of the options is the primary one."""
    kernel, launch, gpu, fits, costed = prepared.kernel, prepared.launch, prepared.gpu, prepared.fits, prepared.costed
    profile, workload, behaviour, source = prepared.profile, prepared.workload, prepared.behaviour, prepared.source
    executions = profile.executions().tolist()
    wave = gpu.device.sm_count * fits.blocks_per_sm
    model = options.models[0]
    notes = [*kernel.notes, *prepared.notes, *profile.notes, *behaviour.notes, *costed.notes, *predictions[model].notes]
    if gpu.compiled_for_another:
        capability = gpu.compute_capability
        notes.insert(0, f"no compiler for compute capability {capability}: predicted from machine code for {gpu.arch}")
    return Analysis(
        kernel=kernel.name,
        source_file=kernel.source_file,
        arch=kernel.arch,
        gpu=gpu.name,
        gpu_title=gpu.title,
        gpu_hash=gpu.file_hash,
        clock_hz=costed.clock_hz,
        start_s=costed.start_s,
        l2_state="warm" if options.warm_l2 else "cold",
        scheduler=costed.policy,
        grid=launch.grid,
        block=launch.block,
        dynamic_shared=launch.dynamic_shared,
        cluster=launch.cluster,
        arguments=_argument_texts(kernel, launch),
        resources=kernel.resources,
        occupancy=OccupancyResult(
            fits.warps_per_sm, fits.blocks_per_sm, fits.fraction, fits.limited_by, dict(fits.limits)
        ),
        warps_per_block=launch.warps_per_block,
        waves=launch.blocks / wave,
        warp_instructions=sum(executions),
        by_class=class_totals(workload, executions),
        memory=MemoryResult(
            global_load_sectors=round(behaviour.global_load_sectors),
            global_store_sectors=round(behaviour.global_store_sectors),
            shared_wavefronts=round(behaviour.shared_wavefronts),
            shared_conflict_degree=behaviour.shared_conflict_degree,
            l1_hit_rate=behaviour.l1_hit_rate,
            l2_hit_rate=behaviour.l2_hit_rate,
            dram_bytes=round(behaviour.dram_bytes),
            dram_read_bytes=round(behaviour.dram_read_bytes),
            dram_write_bytes=round(behaviour.dram_write_bytes),
            l2_method=behaviour.method,
        ),
        predictions=predictions,
        model=model,
        sampled_blocks=len(profile.blocks),
        sampling=profile.sampling,
        timing=Timing(prepared.compile_s, prepared.emulate_s, prepared.memory_s, 0.0),
        lines=tuple(line_costs(kernel, predictions[model].node_stalls, source)),
        versions={
            "drywarp": __version__,
            **compilers_of(gpu),
            **prepared.tools,
        },
        notes=tuple(dict.fromkeys(notes)),
        static=prepared.static,
        throughput=rates_of(prepared, predictions[model].time_s),
    )


def compilers_of(gpu: Gpu) -> dict[str, str]:
    """The versions of what makes machine code for a GPU."""
    if not gpu.is_amd:
        return tool_versions()
    from ..frontends.amd.metadata import amd_tool_versions

    return amd_tool_versions()


def _argument_texts(kernel: Kernel, launch: Launch) -> dict[str, str]:
    texts = {}
    for parameter, value in zip(kernel.parameters, launch.arguments, strict=True):
        texts[parameter.name or f"arg{parameter.ordinal}"] = value.text
    return texts
