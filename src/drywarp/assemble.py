"""A bound kernel and its predictions, put together as the answer."""

from __future__ import annotations

from collections.abc import Mapping

from . import __version__
from .binding import class_totals
from .frontends.amd_tools import amd_tool_versions
from .frontends.toolchain import tool_versions
from .kernel.kernel import Kernel
from .kernel.launch import Buffer, Launch
from .lines import line_costs
from .models.base import Prediction
from .ready import BoundKernel, Options
from .result import Analysis, MemoryResult, OccupancyResult, Timing


def assemble(ready: BoundKernel, options: Options, predictions: Mapping[str, Prediction], timing: Timing) -> Analysis:
    """The answer; the first of the options' models is the one that is believed."""
    kernel, launch, gpu, fits, bound = ready.kernel, ready.launch, ready.gpu, ready.fits, ready.bound
    profile, workload, behaviour, source = ready.profile, ready.workload, ready.behaviour, ready.source
    executions = profile.executions().tolist()
    wave = gpu.device.sm_count * fits.blocks_per_sm
    model = options.models[0]
    notes = [*kernel.notes, *ready.notes, *profile.notes, *behaviour.notes, *bound.notes, *predictions[model].notes]
    if gpu.compiled_for_another:
        capability = gpu.compute_capability
        notes.insert(0, f"no compiler for compute capability {capability}: predicted from {gpu.arch} machine code")
    return Analysis(
        kernel=kernel.name,
        source_file=kernel.source_file,
        arch=kernel.arch,
        gpu=gpu.name,
        gpu_title=gpu.title,
        gpu_hash=gpu.file_hash,
        clock_hz=bound.clock_hz,
        start_s=bound.start_s,
        l2_state="warm" if options.warm_l2 else "cold",
        scheduler=bound.policy,
        grid=launch.grid,
        block=launch.block,
        dynamic_shared=launch.dynamic_shared,
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
        timing=timing,
        lines=tuple(line_costs(kernel, predictions[model].node_stalls, source)),
        versions={
            "drywarp": __version__,
            **(amd_tool_versions() if gpu.is_amd else tool_versions()),
            **ready.tools,
        },
        notes=tuple(dict.fromkeys(notes)),
        static=ready.static,
    )


def _argument_texts(kernel: Kernel, launch: Launch) -> dict[str, str]:
    texts = {}
    for parameter, value in zip(kernel.parameters, launch.arguments, strict=True):
        if isinstance(value, Buffer):
            text = f"{value.dtype}[{','.join(map(str, value.shape))}]:{value.fill}"
        else:
            text = value.text
        texts[parameter.name or f"arg{parameter.ordinal}"] = text
    return texts
