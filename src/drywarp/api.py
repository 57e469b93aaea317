"""The one place that wires the parts: from a source to an answer.

source -> frontends -> Kernel -> emulator -> Profile -> Workload -> bind(Gpu) -> models -> Analysis
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, wraps
from inspect import signature
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, ParamSpec

from .assemble import assemble
from .band import band_of, bounds_of, doubts_of, within
from .binding import Binding, bind
from .bound import BoundWorkload
from .curve_points import curve_occupancies
from .emulations import Kept, kept
from .errors import UsageError
from .execution_trace import trace_execution
from .fit import check_clock, check_memory, clock_notes, geometry_of, occupancy_of
from .frontends.comment import LaunchComment
from .frontends.cuda import CudaOptions
from .frontends.load import as_source, load
from .hardware import Gpu, load_gpu
from .kernel.cfg import ControlFlowGraph
from .kernel.kernel import Kernel
from .kernel.launch import Launch
from .kernel.measured import MeasuredKernel
from .kernel.profile import Profile
from .measured import check_mapper, compare_with, count_ratio, with_memory
from .memory.behaviour import MemoryBehaviour, analyse_memory
from .memory.followed import Look
from .models import get_model
from .models.base import Model
from .models.pipeline import Pipeline
from .pipeline.policies import policy_named
from .ready import DEFAULT_MODELS, BoundKernel, Options
from .result import Analysis, Timing
from .specialise import Grid, settle
from .stated_launch import stated_launch
from .static_api import always_static, arch_of, static_answer, static_launch
from .table_binding import bind_to_table
from .tuning import BEST, best, config_number
from .whole_blocks import WholeBlocks
from .workload import Workload, build_workload

if TYPE_CHECKING:
    from .static import StaticLaunch, StaticReport

P = ParamSpec("P")

TRACE_POINTS = 240
"""Intervals of an occupancy trace at most."""


def analyze(
    source: object,
    *,
    gpu: str | Path | Gpu = "a100",
    entry: str | None = None,
    grid: Grid = None,
    block: int | Sequence[int] | str | None = None,
    args: Mapping[str, Any] | None = None,
    shared: int | None = None,
    constants: Mapping[str, Any] | None = None,
    defines: Mapping[str, str] | None = None,
    includes: Sequence[str] = (),
    std: str | None = None,
    max_registers: int | None = None,
    config: int | str | None = None,
    options: Options | None = None,
    **settings: Any,
) -> Analysis:
    """Dry-run one kernel: predict its time, occupancy curve and limiter on a GPU that need not be there.

    `source` is a path to a file with a kernel (CUDA C++, PTX, Python, cubin, fat binary, executable), CUDA
    C++ or PTX itself (any string with a line break or a brace), or a kernel as a Python object (Triton's,
    Numba's or CuPy's; docs/inputs.md). What the file's launch comment says holds where an argument here is
    left out. `args` maps parameter names to NumPy arrays, numbers, or texts such as ``"f32[1024]:random"``.
    `config` chooses among the configurations of a kernel that is tuned: a number, or ``"best"``. `settings`
    are fields of `Options`. Raises DrywarpError, with one line that says what is wrong.
    """
    chosen = replace(options or Options(), **settings)
    ready = bind_kernel(
        source,
        gpu=gpu,
        entry=entry,
        grid=grid,
        block=block,
        args=args,
        shared=shared,
        constants=constants,
        defines=defines,
        includes=includes,
        std=std,
        max_registers=max_registers,
        config=config,
        options=chosen,
    )
    return _answer(ready, chosen)


def _bound(state: Callable[P, StatedKernel]) -> Callable[P, BoundKernel]:
    """State and bind; what is bound can be bound again with other arguments (see `BoundKernel.again`)."""

    @wraps(state)
    def bind_kernel(*args: P.args, **kwargs: P.kwargs) -> BoundKernel:
        given = signature(state).bind(*args, **kwargs).arguments

        def again(**changes: Any) -> BoundKernel:
            folders = (*given.get("includes", ()), *changes.get("includes", ()))
            return run(**{**given, **changes, "includes": folders})

        return replace(state(*args, **kwargs).bind(), again=again)

    run: Callable[..., BoundKernel] = bind_kernel
    return bind_kernel


@dataclass(frozen=True)
class StatedKernel:
    """A kernel that is compiled, and its launch; `bind` emulates and binds it.

    `place` says where its emulation is kept; None where the launch is assumed, or where all configurations were bound
    to choose the fastest.
    """

    kernel: Kernel
    bind: Callable[[], BoundKernel]
    place: Callable[[], Kept] | None = None


def state_kernel(
    source: object,
    *,
    gpu: str | Path | Gpu = "a100",
    entry: str | None = None,
    grid: Grid = None,
    block: int | Sequence[int] | str | None = None,
    args: Mapping[str, Any] | None = None,
    shared: int | None = None,
    constants: Mapping[str, Any] | None = None,
    defines: Mapping[str, str] | None = None,
    includes: Sequence[str] = (),
    std: str | None = None,
    max_registers: int | None = None,
    config: int | str | None = None,
    options: Options | None = None,
) -> StatedKernel:
    """What `analyze` does before it emulates; takes the same. With `config` ``"best"`` it emulates to choose."""
    chosen = options or Options()
    started = perf_counter()
    machine = gpu if isinstance(gpu, Gpu) else load_gpu(str(gpu))
    arch = arch_of(machine)
    chosen.on_stage(f"compiling for {arch}")
    compile_options = CudaOptions(defines, tuple(includes), std, max_registers)
    loaded = load(as_source(source), arch=arch, entry=entry, options=compile_options)
    if chosen.static or always_static(machine):
        kernel = loaded.kernel
        if not isinstance(kernel, Kernel):
            raise UsageError(f"{kernel.origin}: {kernel.name} is compiled for its arguments: it has no static mode")
        if callable(grid):
            raise UsageError("grid: a function of the arguments, expected numbers in the static mode")
        given = static_launch(kernel, loaded.comment, machine, grid, block, args, shared, constants)
        static_s = perf_counter() - started
        return StatedKernel(kernel, lambda: _bind(kernel, given, machine, chosen, static_s, loaded.text))
    listed = () if isinstance(loaded.kernel, Kernel) else loaded.kernel.configs(arch)
    wanted = config_number(config, loaded.comment.config)

    loaded_s = perf_counter() - started

    def state_config(number: int | None) -> StatedKernel:
        begun = perf_counter()
        said = settle(loaded, arch, grid=grid, block=block, args=args, shared=shared, config=number)
        launch = stated_launch(said.kernel, said.comment, said.grid, said.block, said.args, shared, constants)
        compile_s = loaded_s + perf_counter() - begun

        @cache
        def place() -> Kept:
            return _place_of(said.kernel, launch, chosen)

        def bind_it() -> BoundKernel:
            ready = _bind(said.kernel, launch, machine, chosen, compile_s, loaded.text, place=place())
            return replace(ready, tools=loaded.tools, measured=_measured(said.kernel, launch, chosen))

        return StatedKernel(said.kernel, bind_it, place)

    if wanted == BEST:
        model = _model(chosen.models[0], chosen)
        fastest = best(listed, lambda n: state_config(n).bind(), lambda one: model.predict(one.bound, ()).time_s)
        return StatedKernel(fastest.kernel, lambda: fastest)
    return state_config(int(wanted) if wanted is not None else None)


bind_kernel = _bound(state_kernel)
"""All of `analyze` but the models; takes the same."""


def bind_again(ready: BoundKernel, gpu: str | Path | Gpu, options: Options | None = None) -> BoundKernel:
    """A kernel that is bound already, on another GPU of the same machine code: not compiled or emulated again."""
    machine = gpu if isinstance(gpu, Gpu) else load_gpu(str(gpu))
    if ready.static is not None or arch_of(machine) != ready.kernel.arch:
        raise UsageError(f"{ready.kernel.name} on {machine.name}: expected emulated machine code of {arch_of(machine)}")
    again = _bind(ready.kernel, ready.launch, machine, options or Options(), 0.0, ready.source, ready.profile)
    return replace(again, tools=ready.tools, notes=ready.notes)


def analyze_bound(ready: BoundKernel, options: Options | None = None) -> Analysis:
    """The answer for a kernel that is bound already."""
    return _answer(ready, options or Options())


def analyze_code(kernel: Kernel, *, gpu: str | Path | Gpu = "a100", options: Options | None = None) -> Analysis:
    """Follow a kernel's machine code that is at hand already, its launch assumed: the static mode without a source."""
    machine = gpu if isinstance(gpu, Gpu) else load_gpu(str(gpu))
    chosen = replace(options or Options(), static=True)
    given = static_launch(kernel, LaunchComment(), machine, None, None, None, None, None)
    return _answer(_bind(kernel, given, machine, chosen, 0.0, ""), chosen)


def _bind(
    kernel: Kernel,
    stated: Launch | StaticLaunch,
    gpu: Gpu,
    options: Options,
    compile_s: float,
    source: str,
    known: Profile | None = None,
    place: Kept | None = None,
) -> BoundKernel:
    launch = stated if isinstance(stated, Launch) else stated.launch
    fits = occupancy_of(kernel, launch, gpu)
    check_memory(launch, gpu)
    policy = policy_named(options.scheduler).name if options.scheduler else gpu.scheduler.policy
    clock = options.clock_mhz or gpu.device.boost_clock_mhz
    check_clock(gpu, clock)
    started = perf_counter()
    assumed: StaticReport | None = None
    emulate_blocks: Callable[[Sequence[int]], Profile | None]
    looks: Iterable[Look] = ()
    place = place or Kept("", kernel, launch)
    if not isinstance(stated, Launch):
        options.on_stage("following a sample of blocks")
        profile, assumed, emulate_blocks = static_answer(kernel, stated, options)
    else:
        if known is None:
            options.on_stage("emulating a sample of blocks")
        place = place if place.key else _place_of(kernel, launch, options)
        profile = known or place.profile() or _emulated(place, options)
        emulate_blocks = further = WholeBlocks(profile, options.limits)
        looks = further.briefly()
    emulated = perf_counter()
    geometry = geometry_of(gpu, fits)
    options.on_stage("judging memory accesses")
    workload = build_workload(profile)
    behaviour = place.behaviour(
        geometry,
        options.warm_l2,
        lambda: analyse_memory(profile, geometry, warm_l2=options.warm_l2, emulate_blocks=emulate_blocks, looks=looks),
    )
    bound = bind_workload(workload, profile.cfg, behaviour, gpu, Binding(clock, policy, fits.blocks_per_sm))
    judged = perf_counter()
    times = (compile_s, emulated - started, judged - emulated)
    ready = BoundKernel(kernel, launch, gpu, fits, profile, workload, behaviour, bound, source, *times, assumed)
    return replace(ready, notes=clock_notes(gpu, clock))


def bind_workload(
    workload: Workload, cfg: ControlFlowGraph, behaviour: MemoryBehaviour, gpu: Gpu, binding: Binding
) -> BoundWorkload:
    """A workload with the costs of a GPU, which may be one of the papers."""
    if gpu.machine_code is not None:
        return bind_to_table(workload, cfg, behaviour, gpu, binding)
    return bind(workload, behaviour, gpu, binding)


def _place_of(kernel: Kernel, launch: Launch, options: Options) -> Kept:
    """Where the emulation of a launch is kept between runs."""
    return kept(kernel, launch, options.blocks, options.confidence, options.limits, options.full_emulation)


def _emulated(place: Kept, options: Options) -> Profile:
    """The profile of a launch that no earlier run has left, left for later ones."""
    from .emulator import emulate  # here, because loading it takes longer than an answer that is kept

    blocks, confidence, limits = options.blocks, options.confidence, options.limits
    profile = None
    if blocks is None and confidence is None and not options.full_emulation:
        from .long_loops import extrapolated

        profile = extrapolated(place.kernel, place.launch, limits)
    if profile is None:
        profile = emulate(place.kernel, place.launch, blocks=blocks, confidence=confidence, limits=limits).profile
    place.keep_profile(profile)
    return profile


def _measured(kernel: Kernel, launch: Launch, options: Options) -> MeasuredKernel | None:
    check_mapper(options.memory)
    if options.profile is None:
        return None
    from .frontends.measured_file import matching, read_measured

    kernels = read_measured(options.profile).kernels
    return matching(kernels, kernel.name, kernel.symbol, launch.grid, launch.block)


def _answer(ready: BoundKernel, options: Options) -> Analysis:
    started = perf_counter()
    options.on_stage("simulating")
    emulated, measured = ready, ready.measured
    ready, counts = with_memory(ready, options.memory, measured), count_ratio(ready, measured)
    bound = ready.bound
    occupancies = curve_occupancies(bound, options.occupancies)
    predictions = {name: counts.scale(_model(name, options).predict(bound, occupancies)) for name in options.models}
    comparison = None
    if measured and measured.time_s:
        believed = _model(options.models[0], options)
        comparison = compare_with(emulated, measured, lambda r: believed.predict(r.bound, [r.bound.warps_per_sm]))
    first = options.models[0]
    bounds = bounds_of(ready, predictions[first], lambda r: _model(first, options).predict(r.bound, ()))
    predictions[first] = within(ready, predictions[first], bounds)
    band = band_of(ready, options, predictions[first], bounds)
    timing = Timing(ready.compile_s, ready.emulate_s, ready.memory_s, perf_counter() - started)
    answer = replace(assemble(ready, options, predictions, timing), measured=comparison, band=band, bounds=bounds)
    doubts = doubts_of(ready)
    answer = replace(answer, doubts=doubts, notes=(*doubts, *answer.notes))
    if options.trace is not None:
        options.on_stage("tracing")
        trace = trace_execution(ready.kernel, bound, options.trace)
        answer = replace(answer, trace=trace, notes=(*answer.notes, *trace.notes))
    if options.detail is not None:
        from .in_detail import in_detail  # every model, and arrays of events: only where they are asked for

        answer = replace(answer, detail=in_detail(ready, options, predictions, occupancies))
    if options.advise is None:
        return answer
    options.on_stage("asking what each fix is worth")
    answer = options.advise(ready, answer, options)
    return replace(answer, timing=replace(timing, simulate_s=perf_counter() - started))


def _model(name: str, options: Options) -> Model:
    if name == Pipeline.name and options.occupancy_trace:
        return Pipeline(trace_points=TRACE_POINTS, full_simulation=options.full_simulation)
    return get_model(name, full_simulation=options.full_simulation)


__all__ = [
    "DEFAULT_MODELS",
    "BoundKernel",
    "Options",
    "analyze",
    "analyze_bound",
    "analyze_code",
    "bind_again",
    "bind_kernel",
    "bind_workload",
    "state_kernel",
]
