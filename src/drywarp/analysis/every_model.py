"""All registered models on one workload: an abstract kernel (packaged or the user's own) or a real one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..hardware import Gpu, load_gpu
from ..kernel.dataflow import Dataflow
from ..models.base import NotApplicable, Prediction, get_model, model_names
from ..models.comparison import Comparison, curve_occupancies
from ..models.inputs import inputs_of
from ..models.inputs_parts import sources_of_file, sources_of_kernel
from ..pipeline.result import policy_named
from ..workload.abstract import is_workload, most_warps, occupancy_matters, read_workload, settings_of, tie
from ..workload.cost import CostedWorkload
from .measured import count_ratio, with_memory
from .prepare import prepare_kernel
from .prepared import Prepared
from .request import Options
from .uncertainty import doubts_of, memory_doubt

DEFAULT_GPU = "a100"


def compare_models(
    target: str | Path,
    gpu: str | Gpu | None = None,
    *,
    occupancies: Sequence[int] | None = None,
    settings: Mapping[str, float | str] | None = None,
    runs: int | None = None,
    models: Sequence[str] | None = None,
    options: Options | None = None,
    **launch: Any,
) -> Comparison:
    """Every model's curve for `target`: an abstract kernel (a packaged name, a .toml path) or a kernel's source.

    `gpu` None selects the abstract kernel's own GPU, or the A100. `settings` and `runs` apply to abstract kernels,
    `launch` (grid, block, args, … as for `analyze`) to real ones; `options` holds clock and policy.
    """
    if str(target).startswith("papers/") or is_workload(str(target)):
        if any(value for value in launch.values()):
            given = ", ".join(name for name, value in launch.items() if value)
            raise UsageError(f"{target} is an abstract kernel: it takes no {given}")
        return _abstract(str(target), gpu, occupancies, settings or {}, runs or 1, models, options or Options())
    if settings or runs:
        raise UsageError(f"{target} is not an abstract kernel: it takes neither --set nor --runs")
    return _real(target, gpu or DEFAULT_GPU, occupancies, models, options or Options(), launch)


def _real(
    target: str | Path,
    gpu: str | Gpu,
    occupancies: Sequence[int] | None,
    models: Sequence[str] | None,
    options: Options,
    launch: Mapping[str, Any],
) -> Comparison:
    prepared = prepare_kernel(target, gpu=gpu, options=options, **launch)
    counts = count_ratio(prepared, prepared.measured)
    prepared = with_memory(prepared, options.memory, prepared.measured)
    bound = with_producers(prepared)
    at = tuple(curve_occupancies(bound, occupancies))
    full = options.full_simulation
    options.on_stage("running every model")
    found = _ask(models, lambda name: counts.scale(get_model(name, full_simulation=full).predict(bound, at)))
    doubts = (*doubts_of(prepared), *memory_doubt(prepared.behaviour))
    notes = (*doubts, *prepared.notes, *prepared.profile.notes, *prepared.behaviour.notes, *bound.notes)
    answer = _comparison(
        prepared.kernel.name, str(prepared.kernel.source_file), prepared.gpu, at, bound, found, {}, notes
    )
    sources = sources_of_kernel(prepared.measured is not None and options.memory != "emulated", counts.matters)
    return replace(answer, input_sources=sources)


def with_producers(prepared: Prepared) -> CostedWorkload:
    """The bound workload with the machine code's def-use chains, from which ILP is counted."""
    chains = Dataflow(prepared.kernel.instructions, prepared.profile.cfg).producers
    return replace(prepared.costed, producers=chains)


def _abstract(
    target: str,
    gpu: str | Gpu | None,
    occupancies: Sequence[int] | None,
    settings: Mapping[str, float | str],
    runs: int,
    models: Sequence[str] | None,
    options: Options,
) -> Comparison:
    file = read_workload(target)
    named = gpu or file.kernel.gpu or DEFAULT_GPU
    machine = named if isinstance(named, Gpu) else load_gpu(named)
    values = settings_of(file, settings)
    policy = policy_named(options.scheduler).name if options.scheduler else None

    def bind_at(occupancy: int | None) -> CostedWorkload:
        return tie(file, machine, values, occupancy=occupancy, runs=runs, clock_mhz=options.clock_mhz, policy=policy)

    wanted = None if occupancies is None else _whole(occupancies, *most_warps(file, machine, values))
    # The launch's own occupancy is the file's; without one, the highest requested.
    bound = bind_at(None if wanted is None or file.kernel.launch.occupancy is not None else wanted[-1])
    at = tuple(curve_occupancies(bound, None) if wanted is None else wanted)
    varies = occupancy_matters(file)

    def predict(name: str) -> Prediction:
        model = get_model(name, full_simulation=options.full_simulation)
        if not varies:
            return model.predict(bound, at)
        curve = [point for warps in at for point in model.predict(bind_at(warps), (warps,)).curve]
        return replace(model.predict(bound, ()), curve=tuple(curve))

    options.on_stage("running every model")
    found = _ask(models, predict)
    return _comparison(file.name, file.kernel.title, machine, at, bound, found, values, bound.notes)


def _whole(wanted: Sequence[int], per_block: int, most: int) -> list[int]:
    """The occupancies in ascending order: a range is reduced to whole blocks, other values are checked."""
    fits = [warps for warps in wanted if 0 < warps <= most and warps % per_block == 0]
    wrong = [warps for warps in wanted if warps not in fits]
    if not fits or (wrong and not isinstance(wanted, range)):
        shown = f"{wanted[0]}-{wanted[-1]}" if isinstance(wanted, range) and wanted else f"{wrong[0] if wrong else ''}"
        raise UsageError(f"occupancy {shown}: expected multiples of {per_block} warps (one block) up to {most}")
    return sorted(set(fits))


Found = tuple[dict[str, Prediction], dict[str, str]]


def _ask(models: Sequence[str] | None, predict: Any) -> Found:
    predictions: dict[str, Prediction] = {}
    refused: dict[str, str] = {}
    for name in models or model_names():
        try:
            predictions[name] = predict(name)
        except (NotApplicable, UsageError) as reason:
            if models and name not in model_names():
                raise
            refused[name] = str(reason)
    return predictions, refused


def _comparison(
    name: str,
    title: str,
    gpu: Gpu,
    at: tuple[int, ...],
    bound: CostedWorkload,
    found: Found,
    settings: Mapping[str, float],
    notes: Sequence[str],
) -> Comparison:
    return Comparison(
        workload=name,
        title=title,
        gpu=gpu.name,
        gpu_title=gpu.title,
        gpu_hash=gpu.file_hash,
        occupancies=at,
        settings=settings,
        runs=bound.runs,
        scheduler=bound.policy,
        inputs=inputs_of(bound),
        predictions=found[0],
        not_applicable=found[1],
        notes=tuple(dict.fromkeys(notes)),
        input_sources=sources_of_file(),
    )


__all__ = ["compare_models", "with_producers"]
