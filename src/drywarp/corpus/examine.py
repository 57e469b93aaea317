"""What is done with one module: compile, parse, classify, analyse statically, emulate where a launch is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ..api import Options, analyze, analyze_code
from ..errors import CompileError, DrywarpError, InputFileError, ToolError, UsageError
from ..frontends.cuda import CudaOptions
from ..frontends.module import Module, load_module
from ..hardware import Gpu
from ..kernel.cfg import build_cfg
from ..kernel.classes import UNKNOWN
from ..kernel.dataflow import Dataflow
from ..kernel.kernel import Kernel
from ..time_box import OutOfTimeError, time_box
from ..workload import node_of
from .launches import KnownLaunch
from .result import ANALYSED, COMPILE_FAILED, FAILED, NO_KERNELS, KernelRow

_ONE_POINT = Options(models=("pipeline",), occupancies=range(0))
"""What a static prediction is asked for: the model that is believed, at the launch's own occupancy."""


@dataclass(frozen=True)
class Task:
    """One module to look at. `includes` holds the folders that were given and guessed, `macros` guessed ones."""

    path: Path
    gpu: Gpu
    defines: Mapping[str, str]
    includes: tuple[str, ...]
    std: str | None
    time_limit_s: float
    static_limit_s: float
    launches: tuple[KnownLaunch, ...] = ()
    macros: Mapping[str, str] = field(default_factory=dict)


def examine(
    task: Task, on_stage: Callable[[str], None], on_analysed: Callable[[dict[str, Any]], None] = lambda found: None
) -> dict[str, Any]:
    """Everything about one module, as the fields of a `Row` but its name and costs. Raises nothing of ours.

    `on_analysed` is told what is found when all that remains are times: predictions and emulation.
    """
    on_stage("read")
    try:
        module, defines = _loaded(task, on_stage)
    except (CompileError, ToolError, InputFileError, UsageError) as error:
        return {"status": COMPILE_FAILED, "reason": str(error)}
    if not module.kernels:
        why = f"templates that nothing here instantiates: {', '.join(module.uninstantiated)}"
        return {"status": NO_KERNELS, "reason": why if module.uninstantiated else "no __global__ function"}
    on_stage("classify")
    unclassified = Counter(i.opcode for k in module.kernels for i in k.instructions if i.class_ == UNKNOWN)
    found: dict[str, Any] = {"compiler": module.compiler, "unclassified": dict(unclassified), "notes": _notes(module)}
    on_stage("analyse")
    rows = [_analysed(kernel) for kernel in module.kernels]
    found["kernels"] = [asdict(row) for row in rows]
    launches = list(task.launches)
    if module.comment.grid and module.comment.block and not launches:
        launches.append(KnownLaunch())
    if launches:
        on_stage("emulate")
        try:
            _emulate(task, defines, launches, rows)
        except DrywarpError as error:
            return {**found, "status": FAILED, "reason": str(error)}
        found["kernels"] = [asdict(row) for row in rows]
    # Last: its time may run out in the middle of an import, and what needs that would then fail.
    on_analysed({**found, "status": ANALYSED})
    on_stage("predict")
    stopped, left_out = _predict(module.kernels, task, rows)
    found["kernels"] = [asdict(row) for row in rows]
    if left_out:
        found["notes"] = (*found["notes"], left_out)
    if stopped:
        return {**found, "status": FAILED, "reason": stopped}
    on_stage("done")
    return {**found, "status": ANALYSED}


def _loaded(task: Task, on_stage: Callable[[str], None]) -> tuple[Module, Mapping[str, str]]:
    """The module and the macros it was compiled with: those of its build files, where it needs them."""

    def loaded(defines: Mapping[str, str]) -> Module:
        options = CudaOptions(defines, task.includes, task.std)
        return load_module(task.path, arch=task.gpu.arch, options=options, on_stage=on_stage)

    try:
        return loaded(task.defines), task.defines
    except CompileError as error:
        macros = {name: value for name, value in task.macros.items() if name not in task.defines}
        if not macros:
            raise
        both = {**macros, **task.defines}
        try:
            module = loaded(both)
        except CompileError:
            # Macros meant for other files can do harm: the first message is the one to show.
            raise error from None
    listed = " ".join(f"-D{name}={value}" if value else f"-D{name}" for name, value in macros.items())
    return replace(module, notes=(*module.notes, f"macros taken from the build files: {listed}")), both


def _notes(module: Module) -> tuple[str, ...]:
    notes = [*module.notes]
    if module.uninstantiated:
        notes.append(f"templates that nothing here instantiates: {', '.join(module.uninstantiated)}")
    return tuple(notes)


def _analysed(kernel: Kernel) -> KernelRow:
    """Control flow, loops, dependences by registers and by scoreboards, and every instruction's node."""
    cfg = build_cfg(kernel.instructions, [s.offset for s in kernel.symbols.values() if s.space == "code"])
    flow = Dataflow(kernel.instructions, cfg)
    count = len(kernel.instructions)
    assert len(flow.producers) == len(flow.scoreboard_producers) == count
    for index in range(count):
        node_of(kernel.instructions, index)
    return KernelRow(kernel.name, count, kernel.resources.registers, len(cfg.loops))


def _predict(kernels: Sequence[Kernel], task: Task, rows: list[KernelRow]) -> tuple[str, str]:
    """Put what the static mode predicts into the rows. Returns the first error, and what time was too short for."""
    stopped, done = "", 0
    with suppress(OutOfTimeError), time_box(task.static_limit_s):
        for number, kernel in enumerate(kernels):
            try:
                answer = analyze_code(kernel, gpu=task.gpu, options=_ONE_POINT)
                rows[number] = replace(rows[number], predicted_s=answer.time_s)
            except DrywarpError as error:
                stopped = stopped or f"{kernel.name}: {error}"
            done += 1
    left = len(kernels) - done
    return (
        stopped,
        f"no static time for {left} of {len(kernels)} kernels within {task.static_limit_s:g} s" if left else "",
    )


def _emulate(task: Task, macros: Mapping[str, str], launches: list[KnownLaunch], rows: list[KernelRow]) -> None:
    """Analyse every known launch in full, and put the predicted times into the rows."""
    for launch in launches:
        answer = analyze(
            task.path,
            gpu=task.gpu,
            defines={**macros, **launch.defines},
            includes=task.includes,
            std=task.std,
            **launch.arguments(),
        )
        for number, row in enumerate(rows):
            if answer.kernel in (row.name, row.name.split("::")[-1]):
                rows[number] = replace(row, emulated_s=(row.emulated_s or 0.0) + answer.time_s * launch.times)
