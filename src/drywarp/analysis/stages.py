"""The one place that wires the parts together, from a user's request to an answer.

    load -> execute -> serve_memory -> cost -> predict -> enrich

A stage is a function from one frozen value to the next. `prepare` holds the first four, which what-ifs also use; the
last two are here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from ..errors import DrywarpError, UsageError
from ..hardware import Gpu, load_gpu
from ..kernel.kernel import Kernel
from ..models import get_model
from ..models.base import Model, Prediction
from ..models.comparison import curve_occupancies
from ..models.pipeline import Pipeline
from .advice import add_findings
from .build_result import build_result
from .lacking import told_of_random_data
from .measured import CountRatio, compare_with, count_ratio, with_memory
from .prepare import cost, execute, load, load_code, serve_memory
from .prepared import Prepared
from .request import LaunchRequest, Options
from .result import Analysis, GpuBeside, MemoryBounds, Timing
from .result.detail import trace_execution
from .settle import Block, Grid
from .several_gpus import SeveralGpus, chosen_gpus
from .uncertainty import band_of, bounded, doubts_of

TRACE_POINTS = 240
"""Most intervals of an occupancy trace."""


def analyze(
    source: object,
    *,
    gpu: str | Path | Gpu = "a100",
    entry: str | None = None,
    grid: Grid = None,
    block: Block = None,
    args: Mapping[str, Any] | None = None,
    shared: int | None = None,
    cluster: Block = None,
    constants: Mapping[str, Any] | None = None,
    defines: Mapping[str, str] | None = None,
    includes: Sequence[str] = (),
    std: str | None = None,
    max_registers: int | None = None,
    compiler_options: Sequence[str] = (),
    config: int | str | None = None,
    options: Options | None = None,
    **settings: Any,
) -> Analysis:
    """Dry-run one kernel: predict its time, occupancy curve and limiter on a GPU, without needing that GPU.

    `source` is a path to a file with a kernel (CUDA C++, PTX, Python, cubin, fat binary, executable), CUDA C++ or PTX
    source text (any string with a line break or a brace), or a kernel as a Python object (from Triton, Numba or CuPy;
    docs/inputs.md). The file's launch comment supplies any argument that is omitted here. `args` maps parameter names
    to NumPy arrays, numbers, or texts such as ``"f32[1024]:random"``. `compiler_options` are further options in nvcc's
    spelling, such as ``"-use_fast_math"``; `config` selects a configuration of an autotuned kernel: a number,
    ``"best"``, or ``"best:N"`` of N evenly spaced ones. `settings` are fields of `Options`. Raises DrywarpError with a
    one-line reason.
    """
    request = LaunchRequest.of(
        source,
        gpu=gpu,
        entry=entry,
        grid=grid,
        block=block,
        args=args,
        shared=shared,
        cluster=cluster,
        constants=constants,
        defines=defines,
        includes=includes,
        std=std,
        max_registers=max_registers,
        compiler_options=compiler_options,
        config=config,
    )
    return answer_request(request, replace(options or Options(), **settings))


def answer_request(request: LaunchRequest, options: Options) -> Analysis:
    """Run all stages in order; then again for each GPU to compare with."""
    others = chosen_gpus(options.compare_to) if options.compare_to else []
    if others and request.machine in others:
        raise UsageError(f"GPU {request.machine.name} cannot be compared with itself (expected another GPU)")
    loaded = load(request, options)
    with told_of_random_data(loaded.kernel, loaded.launch):
        executed = execute(loaded, options)
        served = serve_memory(executed, options)
    prepared = cost(served)
    predicted = predict(prepared, options)
    answer = enrich(predicted, options)
    return replace(answer, compared=_beside(request, others, answer, options)) if others else answer


def _beside(request: LaunchRequest, others: Sequence[Gpu], answer: Analysis, options: Options) -> tuple[GpuBeside, ...]:
    """The launch on other GPUs. The clock and the profile of the first one do not apply there."""
    alone = replace(
        options, clock_mhz=None, profile=None, memory=None, models=options.models[:1], occupancies=range(0),
        occupancy_trace=False, findings=False, advice=False, other_gpus=(), trace=None, detail=None, compare_to=(),
    )  # fmt: skip
    several, found = SeveralGpus(request, alone), []
    for gpu in others:
        options.on_stage(f"the same on {gpu.name}")
        try:
            there = answer_prepared(several.prepare(gpu), alone)
        except DrywarpError as error:
            raise UsageError(f"GPU {gpu.name}, to compare with: {error}") from None
        found.append(
            GpuBeside(
                gpu=there.gpu,
                gpu_title=there.gpu_title,
                gpu_hash=there.gpu_hash,
                arch=there.arch,
                clock_hz=there.clock_hz,
                time_s=there.time_s,
                low_s=there.band.low_s if there.band else None,
                high_s=there.band.high_s if there.band else None,
                ratio=there.time_s / answer.time_s,
                limiter=there.limiter,
                warps_per_sm=there.occupancy.warps_per_sm,
                occupancy=there.occupancy.fraction,
                notes=there.notes,
            )
        )
    return tuple(found)


def answer_prepared(prepared: Prepared, options: Options | None = None) -> Analysis:
    """Run the last two stages, for a prepared launch."""
    chosen = options or Options()
    return enrich(predict(prepared, chosen), chosen)


def answer_code(kernel: Kernel, *, gpu: str | Path | Gpu = "a100", options: Options | None = None) -> Analysis:
    """Run all stages except the first on existing machine code with an assumed launch: static mode without a source."""
    chosen = replace(options or Options(), static=True)
    loaded = load_code(kernel, gpu if isinstance(gpu, Gpu) else load_gpu(str(gpu)))
    return answer_prepared(cost(serve_memory(execute(loaded, chosen), chosen)), chosen)


@dataclass(frozen=True)
class Predicted:
    """Each model's prediction of a launch.

    `prepared` has its accesses served as `Options.memory` specifies, `emulated` as the emulation found. `counts` is the
    instruction count of a profile over the emulated one, by which times are scaled; `bounds` is set if DRAM traffic is
    only known as a range.
    """

    prepared: Prepared
    emulated: Prepared
    counts: CountRatio
    occupancies: list[int]
    predictions: Mapping[str, Prediction]
    bounds: MemoryBounds | None
    started: float


def predict(emulated: Prepared, options: Options) -> Predicted:
    """Run each model for its time and curve; the primary model's limiter is unknown where the bounds contradict it."""
    started = perf_counter()
    options.on_stage("simulating")
    prepared = with_memory(emulated, options.memory, emulated.measured)
    counts = count_ratio(prepared, emulated.measured)
    at = curve_occupancies(prepared.costed, options.occupancies)
    found = {name: counts.scale(_model(name, options).predict(prepared.costed, at)) for name in options.models}
    first = options.models[0]
    found[first], bounds = bounded(prepared, found[first], _model(first, options))
    return Predicted(prepared, emulated, counts, at, found, bounds, started)


def enrich(found: Predicted, options: Options) -> Analysis:
    """The answer, with everything requested beyond the predictions."""
    prepared, measured = found.prepared, found.emulated.measured
    first = options.models[0]
    answer = build_result(prepared, options, found.predictions)
    doubts = doubts_of(prepared)
    answer = replace(
        answer,
        bounds=found.bounds,
        band=None if options.brief else band_of(prepared, options, found.predictions[first], found.bounds),
        doubts=doubts,
        notes=(*doubts, *answer.notes),
    )
    if measured and measured.time_s:
        answer = replace(answer, measured=compare_with(found.emulated, measured, _model(first, options)))
    if options.trace is not None:
        options.on_stage("tracing")
        trace = trace_execution(prepared.kernel, prepared.costed, options.trace)
        answer = replace(answer, trace=trace, notes=(*answer.notes, *trace.notes))
    if options.detail is not None:
        from .detail import in_detail  # runs every model and records events: only on request

        detail = in_detail(prepared, options, found.predictions, found.occupancies)
        answer = replace(answer, detail=detail)
    if options.findings:
        options.on_stage("simulating each fix")
        answer = add_findings(prepared, answer, options)
    spent = perf_counter() - found.started
    return replace(answer, timing=Timing(prepared.compile_s, prepared.emulate_s, prepared.memory_s, spent))


def _model(name: str, options: Options) -> Model:
    if name == Pipeline.name and options.occupancy_trace:
        return Pipeline(trace_points=TRACE_POINTS, full_simulation=options.full_simulation)
    return get_model(name, full_simulation=options.full_simulation, brief=options.brief)
