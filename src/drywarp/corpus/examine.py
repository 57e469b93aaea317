"""What is done with one module: compile, parse, classify, analyse statically, emulate where a launch is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..api import Options, analyze
from ..emulator import Limits
from ..errors import CompileError, DrywarpError, InputFileError, ToolError, UsageError
from ..frontends.cuda import CudaOptions
from ..frontends.module import Module, load_module
from ..hardware import Gpu
from ..kernel.cfg import build_cfg
from ..kernel.classes import UNKNOWN
from ..kernel.dataflow import Dataflow
from ..kernel.kernel import Kernel
from ..workload import node_of
from .launches import KnownLaunch
from .result import ANALYSED, COMPILE_FAILED, FAILED, NO_KERNELS, KernelRow

_EMULATION_SHARE = 0.5
"""Part of a module's time that one emulation may take."""


@dataclass(frozen=True)
class Task:
    """One module to look at. `includes` holds the folders that were given and guessed."""

    path: Path
    gpu: Gpu
    defines: Mapping[str, str]
    includes: tuple[str, ...]
    std: str | None
    time_limit_s: float
    launches: tuple[KnownLaunch, ...] = ()


def examine(task: Task, on_stage: Callable[[str], None]) -> dict[str, Any]:
    """Everything about one module, as the fields of a `Row` but its name and costs. Raises nothing of ours."""
    on_stage("read")
    options = CudaOptions(task.defines, task.includes, task.std)
    try:
        module = load_module(task.path, arch=task.gpu.arch, options=options, on_stage=on_stage)
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
            _emulate(task, launches, rows)
        except DrywarpError as error:
            return {**found, "status": FAILED, "reason": str(error)}
        found["kernels"] = [asdict(row) for row in rows]
    on_stage("done")
    return {**found, "status": ANALYSED}


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


def _emulate(task: Task, launches: list[KnownLaunch], rows: list[KernelRow]) -> None:
    """Analyse every known launch in full, and put the predicted times into the rows."""
    limits = Limits(seconds=min(Limits().seconds, task.time_limit_s * _EMULATION_SHARE))
    for launch in launches:
        answer = analyze(
            task.path,
            gpu=task.gpu,
            defines={**task.defines, **launch.defines},
            includes=task.includes,
            std=task.std,
            options=Options(limits=limits),
            **launch.arguments(),
        )
        for number, row in enumerate(rows):
            if answer.kernel in (row.name, row.name.split("::")[-1]):
                rows[number] = replace(row, emulated_s=(row.emulated_s or 0.0) + answer.time_s * launch.times)
