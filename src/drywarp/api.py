"""The one place that wires the parts: from a source to an answer.

source -> frontends -> Kernel -> emulator -> Profile -> Workload -> bind(Gpu) -> models -> Analysis
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from inspect import signature
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, ParamSpec

from .arguments import make_launch, parse_dim3
from .assemble import assemble
from .band import band_of
from .binding import Binding, bind
from .bound import BoundWorkload
from .emulations import Kept, kept
from .errors import UsageError
from .execution_trace import trace_execution
from .frontends.comment import LaunchComment
from .frontends.cuda import CudaOptions
from .frontends.launches import read_launches
from .frontends.load import load
from .hardware import Gpu, Occupancy, check_extents, load_gpu, occupancy
from .kernel.cfg import ControlFlowGraph
from .kernel.kernel import Kernel
from .kernel.launch import Launch
from .kernel.measured import MeasuredKernel
from .kernel.profile import Profile
from .measured import check_mapper, compare_with, count_ratio, with_memory
from .memory.behaviour import MemoryBehaviour, analyse_memory
from .memory.geometry import MemoryGeometry
from .models import get_model
from .models.base import Model
from .models.pipeline import Pipeline
from .pipeline.extrapolate import CURVE_BUDGET, instructions
from .pipeline.policies import policy_named
from .ready import DEFAULT_MODELS, BoundKernel, Options
from .result import Analysis, LaunchAnswer, LaunchSeries, Timing
from .specialise import Grid, settle
from .static_api import always_static, arch_of, static_answer, static_launch
from .table_binding import LANE_BYTES, bind_to_table
from .tuning import BEST, best, config_number
from .whole_blocks import WAVE_WARP_STEPS, WholeBlocks
from .workload import Workload, build_workload

if TYPE_CHECKING:
    from .static import StaticLaunch, StaticReport

MOST_CURVE_POINTS = 16
"""Occupancies on a curve; where more are possible they are spread evenly."""

FEWEST_CURVE_POINTS, CURVE_STEPS = 5, 4_000_000
"""Points that a curve has at least where the GPU allows them, and warp instructions that all may take."""


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
        config=config,
        options=chosen,
    )
    return _answer(ready, chosen)


def _repeatable(bind_it: Callable[P, BoundKernel]) -> Callable[P, BoundKernel]:
    """What is bound can be bound again with other arguments (see `BoundKernel.again`)."""

    @wraps(bind_it)
    def run(*args: P.args, **kwargs: P.kwargs) -> BoundKernel:
        given = signature(bind_it).bind(*args, **kwargs).arguments

        def again(**changes: Any) -> BoundKernel:
            folders = (*given.get("includes", ()), *changes.get("includes", ()))
            return bind_kernel(**{**given, **changes, "includes": folders})

        return replace(bind_it(*args, **kwargs), again=again)

    return run


@_repeatable
def bind_kernel(
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
) -> BoundKernel:
    """All of `analyze` but the models; takes the same."""
    chosen = options or Options()
    started = perf_counter()
    machine = gpu if isinstance(gpu, Gpu) else load_gpu(str(gpu))
    arch = arch_of(machine)
    chosen.on_stage(f"compiling for {arch}")
    compile_options = CudaOptions(defines, tuple(includes), std, max_registers)
    loaded = load(_as_source(source), arch=arch, entry=entry, options=compile_options)
    if chosen.static or always_static(machine):
        kernel = loaded.kernel
        if not isinstance(kernel, Kernel):
            raise UsageError(f"{kernel.origin}: {kernel.name} is compiled for its arguments: it has no static mode")
        if callable(grid):
            raise UsageError("grid: a function of the arguments, expected numbers in the static mode")
        given = static_launch(kernel, loaded.comment, machine, grid, block, args, shared, constants)
        return _bind(kernel, given, machine, chosen, perf_counter() - started, loaded.text)
    listed = () if isinstance(loaded.kernel, Kernel) else loaded.kernel.configs(arch)
    wanted = config_number(config, loaded.comment.config)

    loaded_s = perf_counter() - started

    def bind_config(number: int | None) -> BoundKernel:
        begun = perf_counter()
        said = settle(loaded, arch, grid=grid, block=block, args=args, shared=shared, config=number)
        launch = _launch(said.kernel, said.comment, said.grid, said.block, said.args, shared, constants)
        compile_s = loaded_s + perf_counter() - begun
        ready = _bind(said.kernel, launch, machine, chosen, compile_s, loaded.text)
        return replace(ready, tools=loaded.tools, measured=_measured(said.kernel, launch, chosen))

    if wanted == BEST:
        model = _model(chosen.models[0], chosen)
        return best(listed, bind_config, lambda ready: model.predict(ready.bound, ()).time_s)
    return bind_config(int(wanted) if wanted is not None else None)


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


def analyze_launches(
    source: object,
    launches: str | Path,
    *,
    gpu: str | Path | Gpu = "a100",
    entry: str | None = None,
    defines: Mapping[str, str] | None = None,
    includes: Sequence[str] = (),
    std: str | None = None,
    options: Options | None = None,
) -> LaunchSeries:
    """Dry-run every launch of a launches file (see `drywarp.frontends.launches`), one after the other."""
    machine = gpu if isinstance(gpu, Gpu) else load_gpu(str(gpu))
    done = []
    for number, item in enumerate(read_launches(Path(launches)), 1):
        place = f"{launches}: launch {number}"
        try:
            answer = analyze(
                source,
                gpu=machine,
                entry=item.kernel or entry,
                grid=item.grid,
                block=item.block,
                args=item.args,
                shared=item.shared,
                constants=item.constants,
                config=item.config,
                defines={**(defines or {}), **{name: str(value) for name, value in item.defines.items()}},
                includes=includes,
                std=std,
                options=options,
            )
        except UsageError as error:
            raise UsageError(f"{place}: {error}") from None
        done.append(LaunchAnswer(item.name or answer.kernel, item.times, answer))
    return LaunchSeries(tuple(done))


def _as_source(source: object) -> object:
    """A string with a line break or a brace is source, any other a path; objects stay."""
    return Path(source) if isinstance(source, str) and "\n" not in source and "{" not in source else source


def _launch(
    kernel: Kernel,
    comment: LaunchComment,
    grid: int | Sequence[int] | str | None,
    block: int | Sequence[int] | str | None,
    args: Mapping[str, Any] | None,
    shared: int | None,
    constants: Mapping[str, Any] | None,
) -> Launch:
    extents = {}
    for what, given, said in (("grid", grid, comment.grid), ("block", block, comment.block)):
        value = given if given is not None else said
        if value is None:
            raise UsageError(
                f"{kernel.source_file}: no {what} given (expected --{what} X,Y,Z, or a launch comment in the file)"
            )
        text = value if isinstance(value, str) else str(value) if isinstance(value, int) else ",".join(map(str, value))
        extents[what] = parse_dim3(text, what)
    # A comment's arguments belong to the kernel that it names; another entry may take others.
    names = {p.name for p in kernel.parameters}
    said_args = {name: value for name, value in comment.arguments.items() if name in names or not args}
    said_shared = int(comment.shared or 0)
    return make_launch(
        kernel,
        extents["grid"],
        extents["block"],
        {**said_args, **(args or {})},
        dynamic_shared=said_shared if shared is None else shared,
        constants={**comment.constants, **(constants or {})},
    )


def _bind(
    kernel: Kernel,
    stated: Launch | StaticLaunch,
    gpu: Gpu,
    options: Options,
    compile_s: float,
    source: str,
    known: Profile | None = None,
) -> BoundKernel:
    launch = stated if isinstance(stated, Launch) else stated.launch
    fits = _occupancy(kernel, launch, gpu)
    policy = policy_named(options.scheduler).name if options.scheduler else gpu.scheduler.policy
    clock = options.clock_mhz or gpu.device.boost_clock_mhz
    if clock <= 0:
        raise UsageError(f"clock {clock} MHz: expected a positive number")
    started = perf_counter()
    assumed: StaticReport | None = None
    emulate_blocks: Callable[[range], Profile | None]
    place = Kept("", kernel, launch)
    if not isinstance(stated, Launch):
        options.on_stage("following a sample of blocks")
        profile, assumed, emulate_blocks = static_answer(kernel, stated, options, WAVE_WARP_STEPS)
    else:
        options.on_stage("emulating a sample of blocks")
        place = kept(kernel, launch, options.blocks, options.confidence, options.limits, options.full_emulation)
        profile = known or place.profile() or _emulated(place, options)
        emulate_blocks = WholeBlocks(profile, options.limits, perf_counter() - started)
    emulated = perf_counter()
    geometry = geometry_of(gpu, fits)
    options.on_stage("judging memory accesses")
    workload = build_workload(profile)
    behaviour = place.behaviour(
        geometry,
        options.warm_l2,
        emulate_blocks,
        lambda ask: analyse_memory(profile, geometry, warm_l2=options.warm_l2, emulate_blocks=ask),
    )
    bound = bind_workload(workload, profile.cfg, behaviour, gpu, Binding(clock, policy, fits.blocks_per_sm))
    judged = perf_counter()
    times = (compile_s, emulated - started, judged - emulated)
    return BoundKernel(kernel, launch, gpu, fits, profile, workload, behaviour, bound, source, *times, assumed)


def bind_workload(
    workload: Workload, cfg: ControlFlowGraph, behaviour: MemoryBehaviour, gpu: Gpu, binding: Binding
) -> BoundWorkload:
    """A workload with the costs of a GPU, which may be one of the papers."""
    if gpu.machine_code is not None:
        return bind_to_table(workload, cfg, behaviour, gpu, binding)
    return bind(workload, behaviour, gpu, binding)


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
    band = band_of(ready, options, predictions[options.models[0]])
    timing = Timing(ready.compile_s, ready.emulate_s, ready.memory_s, perf_counter() - started)
    answer = replace(assemble(ready, options, predictions, timing), measured=comparison, band=band)
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


def _occupancy(kernel: Kernel, launch: Launch, gpu: Gpu) -> Occupancy:
    if kernel.resources.max_threads and launch.threads_per_block > kernel.resources.max_threads:
        bounds = "its code is for at most" if gpu.is_amd else "its __launch_bounds__ allow"
        hint = " (OpenCL's reqd_work_group_size or HIP's __launch_bounds__ say otherwise)" if gpu.is_amd else ""
        raise UsageError(
            f"{kernel.name}: {launch.threads_per_block} threads per block, "
            f"{bounds} {kernel.resources.max_threads}{hint}"
        )
    check_extents(gpu.occupancy, launch.grid, launch.block)
    shared = kernel.resources.shared_bytes + launch.dynamic_shared
    scalars = kernel.resources.scalar_registers
    return occupancy(gpu.occupancy, kernel.resources.registers, shared, launch.threads_per_block, scalars)


def geometry_of(gpu: Gpu, fits: Occupancy) -> MemoryGeometry:
    """The sizes of a GPU's memories for a launch with this occupancy."""
    if (code := gpu.machine_code) is not None:
        return MemoryGeometry(
            sector_bytes=code.transaction_bytes,
            line_bytes=code.line_bytes,
            banks=code.shared_banks,
            bank_bytes=LANE_BYTES,
            l1_bytes=code.l1_bytes,
            l2_bytes=code.l2_bytes,
            sm_count=gpu.device.sm_count,
            blocks_per_sm=fits.blocks_per_sm,
            shared_banks_serve_l1=False,
        )
    memory = gpu.memory
    return MemoryGeometry(
        sector_bytes=memory.sector_bytes,
        line_bytes=memory.line_bytes,
        banks=memory.shared.banks,
        bank_bytes=memory.shared.bank_bytes,
        l1_bytes=memory.l1.bytes or fits.l1_bytes,
        l2_bytes=memory.l2.bytes,
        sm_count=gpu.device.sm_count,
        blocks_per_sm=fits.blocks_per_sm,
        l3_bytes=memory.l3.bytes if memory.l3 else 0,
        shared_banks_serve_l1=memory.l1.bytes is None,
        dirty_share=1.0 if memory.l2.dirty_share is None else memory.l2.dirty_share,
    )


def curve_occupancies(bound: BoundWorkload, wanted: Sequence[int] | None) -> list[int]:
    """Warps per SM in whole blocks; the launch's own occupancy is always among them.

    Of a range the whole blocks are taken; numbers that are named one by one must be whole blocks. Unless
    told, the more a point costs to simulate the fewer there are.
    """
    warps = bound.warps_per_block
    if isinstance(wanted, range):
        whole = [w for w in wanted if 0 < w <= bound.max_blocks_per_sm * warps and w % warps == 0]
        return sorted({*whole, bound.warps_per_sm})
    if wanted is not None:
        for occupancy_warps in wanted:
            if occupancy_warps % warps or not 0 < occupancy_warps <= bound.max_blocks_per_sm * warps:
                raise UsageError(
                    f"occupancy {occupancy_warps}: expected a multiple of {warps} warps (one block) "
                    f"up to {bound.max_blocks_per_sm * warps}"
                )
        return sorted({*wanted, bound.warps_per_sm})
    most = bound.max_blocks_per_sm
    cost = min(instructions(bound, -(-bound.blocks // bound.sm_count)), CURVE_BUDGET)
    affordable = max(FEWEST_CURVE_POINTS, CURVE_STEPS // max(1, cost))
    count = min(most, MOST_CURVE_POINTS, affordable)
    blocks = {round(1 + i * (most - 1) / max(1, count - 1)) for i in range(count)}
    return [b * warps for b in sorted(blocks | {bound.blocks_per_sm})]


__all__ = [
    "DEFAULT_MODELS",
    "BoundKernel",
    "Options",
    "analyze",
    "analyze_bound",
    "analyze_code",
    "analyze_launches",
    "bind_again",
    "bind_kernel",
    "bind_workload",
    "curve_occupancies",
    "geometry_of",
]
