"""The first four stages of an analysis, from a user's request to a prepared kernel.

    load -> execute -> serve_memory -> cost

Each takes the frozen value that the previous one returned. To find the effect of a change (advice, confidence bands,
comparisons, rankings), pass a changed value to the same stages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..errors import EmulationLimitError, UsageError
from ..frontends import load as frontend
from ..frontends.loaded import LaunchComment, Loaded
from ..hardware import Gpu, Occupancy, load_gpu
from ..kernel.cfg import ControlFlowGraph
from ..kernel.kernel import Kernel
from ..kernel.launch.launch import Launch
from ..kernel.profile import MeasuredKernel, Profile
from ..memory.behaviour import MemoryBehaviour, analyse_memory
from ..memory.followed import Look
from ..models import get_model
from ..pipeline.reasons import policy_named
from ..workload.build import Workload, build_workload
from ..workload.cost import CostedWorkload
from ..workload.cost_model import Conditions, assign_costs
from ..workload.table_costs import bind_to_table
from .best_config import best, config_number, most_configs
from .emulation_cache import CacheEntry, WholeBlocks, cache_entry_of, followed_instead, may_be_followed
from .fits import check_clock, check_memory, clusters_that_start, geometry_of, occupancy_of, with_clusters
from .lacking import command_words, lacking, left_at_zero, ready_command, told_of_random_data
from .measured import check_mapper
from .prepared import Prepared
from .request import LaunchRequest, Options
from .settle import (
    cluster_extents,
    from_host_code,
    grid_extents,
    settle,
    stated_launch,
    with_counts,
    with_extents,
    with_stated,
)
from .without_data import arch_of, in_clusters, static_answer, static_launch

if TYPE_CHECKING:
    from ..execution.symbolic import StaticLaunch, StaticReport


@dataclass(frozen=True)
class LoadedKernel:
    """A kernel's machine code and its launch, which is complete (or partly assumed, if nothing is emulated).

    `place` is where its emulation is cached; the other fields are as in `Prepared`.
    """

    kernel: Kernel
    launch: Launch | StaticLaunch
    gpu: Gpu
    place: CacheEntry
    source: str = ""
    compile_s: float = 0.0
    measured: MeasuredKernel | None = None
    notes: tuple[str, ...] = ()
    tools: Mapping[str, str] = field(default_factory=dict)
    compiled: bool = False
    request: LaunchRequest | None = None


@dataclass(frozen=True)
class Executed:
    """What the code did.

    `emulate_blocks` executes more blocks for their addresses, `looks` are brief runs of all of them, `static` holds the
    assumptions if nothing was emulated.
    """

    loaded: LoadedKernel
    launch: Launch
    fits: Occupancy
    conditions: Conditions
    profile: Profile
    emulate_blocks: Callable[[Sequence[int]], Profile | None]
    looks: Iterable[Look] = ()
    static: StaticReport | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Served:
    """Where each access was served, and the kernel as a workload without costs."""

    executed: Executed
    workload: Workload
    behaviour: MemoryBehaviour
    seconds: float = 0.0


def prepare(request: LaunchRequest, options: Options) -> Prepared:
    """Run the first four stages. Raises DrywarpError with a one-line explanation."""
    loaded = load(request, options)
    with told_of_random_data(loaded.kernel, loaded.launch):
        return cost(serve_memory(execute(loaded, options), options))


def prepare_kernel(source: object, *, options: Options | None = None, **stated: Any) -> Prepared:
    """`prepare` with keyword arguments (see `LaunchRequest.of`)."""
    return prepare(LaunchRequest.of(source, **stated), options or Options())


def prepare_on(known: Prepared, gpu: str | Path | Gpu, options: Options | None = None) -> Prepared:
    """The same launch on another GPU with the same machine code, without recompiling or emulating it again."""
    machine, options = gpu if isinstance(gpu, Gpu) else load_gpu(str(gpu)), options or Options()
    if known.static is not None or arch_of(machine) != known.kernel.arch:
        raise UsageError(f"{known.kernel.name} on {machine.name}: expected emulated machine code of {arch_of(machine)}")
    loaded = LoadedKernel(
        known.kernel,
        known.launch,
        machine,
        _place_of(known.kernel, known.launch, options),
        known.source,
        notes=known.notes,
        tools=known.tools,
        compiled=known.compiled,
        request=known.request and replace(known.request, gpu=machine),
    )
    return cost(serve_memory(execute(loaded, options, known.profile), options))


# Load --------------------------------------------------------------------------------------------------------------


def load(request: LaunchRequest, options: Options) -> LoadedKernel:
    """Compile or read the kernel and settle its launch; finding the best configuration runs all stages."""
    started = perf_counter()
    gpu = request.machine
    arch = arch_of(gpu)
    options.on_stage(f"compiling for {arch}")
    source = frontend.as_source(request.source)
    loaded = frontend.load(source, arch=arch, entry=request.entry, options=request.compiler, gpu=gpu)
    said = loaded.comment
    arguments, constants = {**said.arguments, **(request.args or {})}, {**said.constants, **(request.constants or {})}
    if loaded.launch is not None:
        return _kept(request, options, loaded, gpu, started)
    loaded = loaded.with_fields(arguments, constants, options.static or gpu.is_amd)
    if options.static or gpu.is_amd:
        return _without_data(request, loaded, gpu, started)
    number = config_number(request.config, loaded.comment.config)
    if not isinstance(number, str):
        return _settled(request, options, loaded, gpu, started, number)
    listed = () if isinstance(loaded.kernel, Kernel) else loaded.kernel.configs(arch)
    model = get_model(options.models[0], full_simulation=options.full_simulation)

    def time_of(number: int, say: Callable[[str], None]) -> float:
        config = _settled(request, options, loaded, gpu, started, number)
        each = replace(options, on_stage=say, fall_back=False)  # loops that a limit cuts short would not compare
        return model.predict(cost(serve_memory(execute(config, each), each)).costed, ()).time_s

    number, notes = best(listed, time_of, most_configs(number), options.on_stage)
    return replace(_settled(request, options, loaded, gpu, started, number), notes=notes)


def load_code(kernel: Kernel, gpu: Gpu) -> LoadedKernel:
    """Existing machine code with an assumed launch."""
    launch = static_launch(kernel, LaunchComment(), gpu, None, None, None, None, None)
    return LoadedKernel(kernel, launch, gpu, CacheEntry("", kernel, launch.launch))


def _without_data(request: LaunchRequest, loaded: Loaded, gpu: Gpu, started: float) -> LoadedKernel:
    kernel = loaded.kernel
    if not isinstance(kernel, Kernel):
        raise UsageError(f"{kernel.origin}: {kernel.name} has no static mode: it is compiled for its arguments")
    if callable(request.grid):
        raise UsageError("grid: is a function of the arguments; the static mode expects numbers")
    found = from_host_code(loaded, kernel, request.grid, request.block, request.args, request.shared)
    given = {**found.comment.arguments, **(request.args or {})}
    grid = grid_extents(request.grid, found.comment.grid, given)
    comment = replace(found.comment, arguments=with_counts(found.comment.arguments, given))
    args = request.args and with_counts(request.args, given)
    stated = (grid, request.block, args, request.shared, request.constants)
    launch = static_launch(kernel, comment, gpu, *stated)
    launch = in_clusters(kernel, launch, cluster_extents(request.cluster, comment))
    place = CacheEntry("", kernel, launch.launch)
    seconds = perf_counter() - started
    notes = (*found.notes, *left_at_zero(kernel, launch.launch))
    notes += _to_state(request, found.comment, kernel, gpu) if gpu.is_amd else ()
    return LoadedKernel(kernel, launch, gpu, place, loaded.text, seconds, notes=notes, request=request)


def _to_state(request: LaunchRequest, comment: LaunchComment, kernel: Kernel, gpu: Gpu) -> tuple[str, ...]:
    """A command that states what a launch leaves to assumptions, for GPUs whose kernels are always followed."""
    said = with_extents(comment, request.grid, request.block)
    given = {**comment.arguments, **(request.args or {})}
    lacks = lacking(kernel, said, given, ())
    if not lacks:
        return ()
    words = command_words(request.source, gpu, kernel.name, request.compiler)
    return (f"{', '.join(lacks)}: assumed; to specify all of it: {ready_command(words, kernel, said, given)}",)


def _settled(
    request: LaunchRequest, options: Options, loaded: Loaded, gpu: Gpu, started: float, config: int | None
) -> LoadedKernel:
    said = settle(
        loaded,
        arch_of(gpu),
        grid=request.grid,
        block=request.block,
        args=request.args,
        shared=request.shared,
        config=config,
    )
    kernel = said.kernel
    launch = stated_launch(
        kernel,
        said.comment,
        said.grid,
        said.block,
        said.args,
        request.shared,
        request.constants,
        cluster=request.cluster,
        command=command_words(request.source, gpu, kernel.name, request.compiler),
        unsettled=said.unsettled,
    )
    return LoadedKernel(
        kernel,
        launch,
        gpu,
        _place_of(kernel, launch, options),
        loaded.text,
        perf_counter() - started,
        measured=_measured(kernel, launch, options),
        notes=(*said.notes, *left_at_zero(kernel, launch)),
        tools=loaded.tools,
        compiled=loaded.compiled,
        request=request,
    )


def _kept(request: LaunchRequest, options: Options, loaded: Loaded, gpu: Gpu, started: float) -> LoadedKernel:
    """The launch that the file holds; the user's grid, block, cluster and shared memory take precedence."""
    kernel, launch = loaded.kernel, loaded.launch
    assert isinstance(kernel, Kernel)
    assert launch is not None
    compiler = request.compiler.defines or request.compiler.includes or request.compiler.std
    for given, what in (
        (request.args, "--arg"),
        (request.constants, "--const"),
        (request.config, "--config"),
        (request.compiler.max_registers, "--max-registers"),
        (compiler, "-D, -I and --std"),
        (options.static, "--static"),
    ):
        if given:
            raise UsageError(f"{request.source}: holds a launch with its code and data: {what} cannot change it")
    launch = with_stated(launch, kernel, request.grid, request.block, request.shared, request.cluster)
    place, measured = _place_of(kernel, launch, options), _measured(kernel, launch, options)
    seconds = perf_counter() - started
    return LoadedKernel(
        kernel, launch, gpu, place, compile_s=seconds, measured=measured, tools=loaded.tools, request=request
    )


def _place_of(kernel: Kernel, launch: Launch, options: Options) -> CacheEntry:
    return cache_entry_of(kernel, launch, options.blocks, options.confidence, options.limits, options.full_emulation)


def _measured(kernel: Kernel, launch: Launch, options: Options) -> MeasuredKernel | None:
    check_mapper(options.memory)
    if options.profile is None:
        return None
    from ..frontends.profiles import matching, read_measured

    kernels = read_measured(options.profile).kernels
    return matching(kernels, kernel.name, kernel.symbol, launch.grid, launch.block)


# Execute -----------------------------------------------------------------------------------------------------------


def execute(loaded: LoadedKernel, options: Options, known: Profile | None = None) -> Executed:
    """Emulate a sample of blocks, or follow their code without data; `known` is an earlier execution's profile."""
    asked, kernel = loaded, loaded.kernel
    loaded, launch, fits = _placed(asked, known.kernel if known else kernel, options)
    gpu = loaded.gpu
    check_memory(launch, gpu)
    policy = policy_named(options.scheduler).name if options.scheduler else gpu.scheduler.policy
    clock = gpu.device.clock_mhz(options.clock_mhz)
    check_clock(gpu, clock)
    conditions = Conditions(clock, policy, fits.blocks_per_sm)
    started = perf_counter()
    if not isinstance(loaded.launch, Launch):
        options.on_stage("following a sample of blocks")
        profile, static, more, looks = static_answer(kernel, loaded.launch, options)
        loaded, launch, fits = _placed(asked, profile.kernel, options)
        conditions = replace(conditions, blocks_per_sm=fits.blocks_per_sm)
        return Executed(loaded, launch, fits, conditions, profile, more, looks, static, perf_counter() - started)
    if known is None or known.launch.starts != launch.starts:
        options.on_stage("emulating a sample of blocks")
        try:
            known = loaded.place.profile() or _emulated(loaded.place, options)
            if known.kernel.resources.tensor_columns:
                tried = launch.starts
                loaded, launch, fits = _placed(asked, known.kernel, options)
                if launch.starts != tried:
                    known = loaded.place.profile() or _emulated(loaded.place, options)
        except EmulationLimitError as stopped:
            if not may_be_followed(options, stopped):
                raise
            options.on_stage("following the code without data")
            launch = replace(launch, starts=0)
            profile, static, more, looks = followed_instead(kernel, launch, options, stopped)
            return Executed(loaded, launch, fits, conditions, profile, more, looks, static, perf_counter() - started)
    further, conditions = WholeBlocks(known, options.limits), replace(conditions, blocks_per_sm=fits.blocks_per_sm)
    seconds = perf_counter() - started
    return Executed(loaded, known.launch, fits, conditions, known, further, further.briefly(), None, seconds)


def _placed(asked: LoadedKernel, kernel: Kernel, options: Options) -> tuple[LoadedKernel, Launch, Occupancy]:
    """What was loaded with the SMs that its clusters fill and the clusters that start; its launch; its occupancy.

    `kernel` is the kernel with the columns of tensor memory that it allocates, if known: they limit the blocks per SM.
    """
    launch = asked.launch if isinstance(asked.launch, Launch) else asked.launch.launch
    fits = occupancy_of(kernel, launch, asked.gpu)
    gpu, notes = with_clusters(asked.gpu, launch, fits)
    loaded = replace(asked, gpu=gpu, notes=(*asked.notes, *notes))
    starts = clusters_that_start(kernel, launch, gpu, fits)
    if starts == launch.starts or not isinstance(asked.launch, Launch):
        return loaded, launch, fits
    launch = replace(launch, starts=starts)
    place = _place_of(asked.kernel, launch, options) if asked.place.key else CacheEntry("", asked.kernel, launch)
    return replace(loaded, launch=launch, place=place), launch, fits


def _emulated(place: CacheEntry, options: Options) -> Profile:
    """Emulate a launch that is not cached, and cache its profile."""
    from ..execution.emulator import emulate  # here, because loading it takes longer than an answer from the cache

    blocks, confidence, limits = options.blocks, options.confidence, options.limits
    profile = None
    alone = place.launch.cluster_blocks == 1 and not place.launch.starts
    if blocks is None and confidence is None and not options.full_emulation and alone:
        from ..execution.long_loops import extrapolated

        profile = extrapolated(place.kernel, place.launch, limits)
    if profile is None:
        launch = place.launch
        ran = emulate(place.kernel, launch, blocks=blocks, confidence=confidence, limits=limits, results=False)
        if ran.left:
            launch = replace(launch, starts=0)
            ran = emulate(place.kernel, launch, blocks=blocks, confidence=confidence, limits=limits, results=False)
        profile = ran.profile
    place.cache_profile(profile)
    return profile


# Serve memory ------------------------------------------------------------------------------------------------------


def serve_memory(executed: Executed, options: Options) -> Served:
    """Find the memory level that serves each access, at the launch's own occupancy."""
    started = perf_counter()
    profile, geometry = executed.profile, geometry_of(executed.loaded.gpu, executed.fits)
    options.on_stage("modelling memory accesses")
    workload = build_workload(profile)
    behaviour = executed.loaded.place.behaviour(
        geometry,
        options.warm_l2,
        lambda: analyse_memory(
            profile,
            geometry,
            warm_l2=options.warm_l2,
            emulate_blocks=executed.emulate_blocks,
            looks=executed.looks,
        ),
    )
    return Served(executed, workload, behaviour, perf_counter() - started)


# Cost --------------------------------------------------------------------------------------------------------------


def cost(served: Served) -> Prepared:
    """Assign each node its costs on the GPU."""
    started = perf_counter()
    executed, loaded = served.executed, served.executed.loaded
    cfg, gpu = executed.profile.cfg, loaded.gpu
    costed = cost_workload(served.workload, cfg, served.behaviour, gpu, executed.conditions)
    return Prepared(
        loaded.kernel,
        executed.launch,
        gpu,
        executed.fits,
        executed.profile,
        served.workload,
        served.behaviour,
        costed,
        loaded.source,
        loaded.compile_s,
        executed.seconds,
        served.seconds + perf_counter() - started,
        executed.static,
        loaded.measured,
        loaded.notes,
        loaded.tools,
        loaded.compiled,
        loaded.request,
    )


def cost_workload(
    workload: Workload, cfg: ControlFlowGraph, behaviour: MemoryBehaviour, gpu: Gpu, conditions: Conditions
) -> CostedWorkload:
    """A workload with a GPU's costs; the GPU may be one of the papers'."""
    if gpu.machine_code is not None:
        return bind_to_table(workload, cfg, behaviour, gpu, conditions)
    return assign_costs(workload, behaviour, gpu, conditions)
