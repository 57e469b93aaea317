"""All registered models on one workload, abstract or real; and the execution profile of an abstract one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UsageError
from ..hardware import Gpu, load_gpu
from ..kernel.dataflow import Dataflow
from ..kernel.profile import SPACE_GLOBAL
from ..models.base import NotApplicable, Prediction, get_model, model_names
from ..models.coalescing import AccessTerm, coalescing
from ..models.comparison import Comparison, curve_occupancies
from ..models.inputs import inputs_of
from ..models.inputs_parts import sources_of_file, sources_of_kernel
from ..models.terms import terms_over
from ..pipeline import share_of, simulate
from ..pipeline.reasons import policy_named
from ..workload.abstract import is_workload, most_warps, occupancy_matters, read_workload, settings_of, tie
from ..workload.cost import TICKS_PER_CYCLE, CostedWorkload
from .detail import issue_events
from .measured import count_ratio, with_memory
from .prepare import prepare_kernel
from .prepared import Prepared
from .request import Options
from .result.detail import Events
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
    costed = with_producers(prepared)
    at = tuple(curve_occupancies(costed, occupancies))
    full = options.full_simulation
    options.on_stage("running every model")
    found = _ask(models, lambda name: counts.scale(get_model(name, full_simulation=full).predict(costed, at)))
    doubts = (*doubts_of(prepared), *memory_doubt(prepared.behaviour))
    notes = (*doubts, *prepared.notes, *prepared.profile.notes, *prepared.behaviour.notes, *costed.notes)
    answer = _comparison(
        prepared.kernel.name, str(prepared.kernel.source_file), prepared.gpu, at, costed, found, {}, notes
    )
    sources = sources_of_kernel(prepared.measured is not None and options.memory != "emulated", counts.matters)
    terms = replace(terms_over(costed, at), accesses=coalescing_of(prepared))
    return replace(answer, input_sources=sources, terms=terms)


MOST_PATTERNS = 256
"""Different accesses of an instruction that Algorithms 1 and 2 are asked about, the most frequent first."""


def coalescing_of(prepared: Prepared) -> tuple[AccessTerm, ...]:
    """Hong and Kim's Algorithms 1 and 2 on each global memory instruction, by the addresses of the emulated warps."""
    log, code = prepared.profile.accesses, prepared.kernel.instructions
    whole = (log.space == SPACE_GLOBAL) & (log.masks[log.pattern] == np.uint32(0xFFFFFFFF))
    found = []
    for index in np.unique(log.instruction[whole]).tolist():
        memory = code[index].memory
        size = memory.width if memory else 0
        rows = np.flatnonzero(whole & (log.instruction == index))
        if not size:
            continue
        # Only where the first element lies within 16 matters, and the steps from it.
        keys = np.stack([log.base[rows] % (16 * size), log.pattern[rows]], axis=1)
        different, counts = np.unique(keys, axis=0, return_counts=True)
        often = np.argsort(-counts, kind="stable")[:MOST_PATTERNS]
        accesses = [
            (((start + log.offsets[pattern]) // size).tolist(), count)
            for (start, pattern), count in zip(different[often].tolist(), counts[often].tolist(), strict=True)
        ]
        source = code[index].source
        term = coalescing(index, source.line if source else 0, size, accesses)
        found += [term] if term else []
    return tuple(found)


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
    clock = options.clock_mhz
    if isinstance(clock, str):
        clock = machine.device.clock_mhz(clock)

    def bind_at(occupancy: int | None) -> CostedWorkload:
        return tie(file, machine, values, occupancy=occupancy, runs=runs, clock_mhz=clock, policy=policy)

    wanted = None if occupancies is None else _whole(occupancies, *most_warps(file, machine, values))
    # The launch's own occupancy is the file's; without one, the highest requested.
    costed = bind_at(None if wanted is None or file.kernel.launch.occupancy is not None else wanted[-1])
    at = tuple(curve_occupancies(costed, None) if wanted is None else wanted)
    varies = occupancy_matters(file)

    def predict(name: str) -> Prediction:
        model = get_model(name, full_simulation=options.full_simulation)
        if not varies:
            return model.predict(costed, at)
        curve = [point for warps in at for point in model.predict(bind_at(warps), (warps,)).curve]
        return replace(model.predict(costed, ()), curve=tuple(curve))

    options.on_stage("running every model")
    found = _ask(models, predict)
    answer = _comparison(file.name, file.kernel.title, machine, at, costed, found, values, costed.notes)
    return replace(answer, terms=terms_over(costed, at))


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
    costed: CostedWorkload,
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
        runs=costed.runs,
        scheduler=costed.policy,
        inputs=inputs_of(costed),
        predictions=found[0],
        not_applicable=found[1],
        notes=tuple(dict.fromkeys(notes)),
        input_sources=sources_of_file(),
    )


# The execution profile of an abstract kernel: when each instruction of each warp issues (Figs. 8 and 9 of Lemeire,
# Cornelis, Konstantinidis, "Analysis of the Analytical Performance Models for GPUs").


@dataclass(frozen=True)
class AbstractProfile:
    """The simulation of one SM, instruction by instruction, until its last warp has ended after `cycles`.

    `warps` run on it in total, `occupancy_warps` at a time. `events` are the first instructions that issue; in a node,
    `instruction` is an index into `names`. `busy` is the share of the time, 0..1, in which a subsystem is occupied
    (the mean over its instances); `costs` are subsystem, λ and Λ of each instruction, in cycles.
    """

    workload: str
    title: str
    gpu: str
    gpu_title: str
    gpu_hash: str
    settings: Mapping[str, float]
    scheduler: str
    in_order: bool
    occupancy_warps: int
    warps: int
    cycles: float
    clock_hz: float
    names: tuple[str, ...]
    costs: tuple[tuple[str, float, float], ...]
    busy: Mapping[str, float]
    events: Events
    notes: tuple[str, ...]


def profile_abstract(
    target: str,
    gpu: str | Gpu | None = None,
    *,
    warps: int | None = None,
    policy: str | None = None,
    settings: Mapping[str, float | str] | None = None,
    runs: int = 1,
    events: int = 10_000,
) -> AbstractProfile:
    """The first `events` instructions of an abstract kernel that one SM issues, with `warps` on it at a time.

    `gpu` None selects the file's own, `warps` None the file's occupancy or else the most that fit, `policy` None the
    GPU's. Raises UsageError or InputFileError.
    """
    if not is_workload(target) and not target.startswith("papers/"):
        hint = "for the file of a real kernel: drywarp analyze FILE --figure profile=FILE.svg"
        raise UsageError(f"{target}: expected an abstract kernel (.toml, or a name of drywarp workloads); {hint}")
    file = read_workload(target)
    named = gpu or file.kernel.gpu or DEFAULT_GPU
    machine = named if isinstance(named, Gpu) else load_gpu(named)
    values = settings_of(file, settings or {})
    per_block, most = most_warps(file, machine, values)
    if warps is not None and (warps % per_block or not 0 < warps <= most):
        raise UsageError(f"--warps {warps}: expected a multiple of {per_block} (the warps of one block) up to {most}")
    chosen = policy_named(policy).name if policy else None
    costed = tie(file, machine, values, occupancy=warps, runs=runs, policy=chosen)
    share = share_of(costed, costed.blocks_per_sm)
    result = simulate(costed, share, stalls=False)
    issued = issue_events(costed, events)
    if issued is None:
        raise UsageError(f"{target}: no instruction issues; expected at least one (are all loops without iterations?)")
    costs = {
        node.instruction: (
            costed.subsystems[node.subsystem].name,
            node.lambda_ticks / TICKS_PER_CYCLE,
            node.latency_ticks / TICKS_PER_CYCLE,
        )
        for path in costed.paths
        for node in path.nodes
    }
    return AbstractProfile(
        workload=file.name,
        title=file.kernel.title,
        gpu=machine.name,
        gpu_title=machine.title,
        gpu_hash=machine.file_hash,
        settings=values,
        scheduler=costed.policy,
        in_order=costed.in_order,
        occupancy_warps=costed.warps_per_sm,
        warps=share.blocks * costed.warps_per_block,
        cycles=result.cycles,
        clock_hz=costed.clock_hz,
        names=costed.names,
        costs=tuple(costs.get(number, ("", 0.0, 0.0)) for number in range(len(costed.names))),
        busy={
            subsystem.name: ticks / result.total_ticks
            for subsystem, ticks in zip(costed.subsystems, result.busy_ticks, strict=True)
            if ticks and result.total_ticks
        },
        events=issued,
        notes=costed.notes,
    )


__all__ = ["AbstractProfile", "compare_models", "profile_abstract", "with_producers"]
