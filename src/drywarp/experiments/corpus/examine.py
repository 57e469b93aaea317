"""The process that examines one module, reports its progress, and exits; and the parent that watches it.

It is forked from a server that has everything imported, so starting one takes milliseconds. It may crash or hang: the
parent knows the stage from the last message.
"""

from __future__ import annotations

import os
import resource
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import perf_counter
from typing import Any

from ...analysis.request import Options
from ...analysis.stages import analyze, answer_code
from ...errors import CompileError, DrywarpError, InputFileError, ToolError, UsageError
from ...frontends.binary.kept import SUFFIX
from ...frontends.binary.module import Module, load_module
from ...frontends.cuda import CudaOptions
from ...hardware import Gpu
from ...kernel.cfg import build_cfg
from ...kernel.dataflow import Dataflow
from ...kernel.isa.nvidia.opcodes import UNKNOWN
from ...kernel.kernel import Kernel
from ...support.child import Child, lead_group, raised_at
from ...support.folders import OutOfTimeError, time_box
from ...workload.build import node_of
from . import files
from .files import KnownLaunch, Settings
from .result import ANALYSED, COMPILE_FAILED, FAILED, NO_KERNELS, KernelRow, Row, row_of

# The steps for one module: compile, parse, classify, analyse statically, and emulate if a launch is known.

_ONE_POINT = Options(models=("pipeline",), occupancies=range(0), findings=False)
"""Options of a static prediction: only the primary model, at the launch's own occupancy."""


@dataclass(frozen=True)
class Task:
    """One module to examine. `includes` holds the given and the guessed folders, `macros` the guessed macros."""

    path: Path
    gpu: Gpu
    settings: Settings
    includes: tuple[str, ...]
    launches: tuple[KnownLaunch, ...] = ()
    macros: Mapping[str, str] = field(default_factory=dict)


def examine(
    task: Task, on_stage: Callable[[str], None], on_analysed: Callable[[dict[str, Any]], None] = lambda found: None
) -> dict[str, Any]:
    """Everything about one module, as the fields of a `Row` except its name and costs. Raises no DrywarpError.

    `on_analysed` is called with the results once only predictions of times remain.
    """
    on_stage("read")
    try:
        module, defines = _loaded(task, on_stage)
    except (CompileError, ToolError, InputFileError, UsageError) as error:
        return {"status": COMPILE_FAILED, "reason": str(error)}
    if not module.kernels:
        why = f"templates that are not instantiated here: {', '.join(module.uninstantiated)}"
        return {"status": NO_KERNELS, "reason": why if module.uninstantiated else "no __global__ function"}
    on_stage("classify")
    unclassified = Counter(i.opcode for k in module.kernels for i in k.instructions if i.class_ == UNKNOWN)
    found: dict[str, Any] = {"compiler": module.compiler, "unclassified": dict(unclassified), "notes": _notes(module)}
    on_stage("analyse")
    rows = [_analysed(kernel) for kernel in module.kernels]
    found["kernels"] = [asdict(row) for row in rows]
    launches = list(task.launches)
    if ((module.comment.grid and module.comment.block) or task.path.suffix == SUFFIX) and not launches:
        launches.append(KnownLaunch())
    if launches:
        on_stage("emulate")
        try:
            _emulate(task, defines, launches, rows)
        except DrywarpError as error:
            return {**found, "status": FAILED, "reason": str(error)}
        found["kernels"] = [asdict(row) for row in rows]
    # Last, because it may time out in the middle of an import, and later steps that need the import would fail.
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
    """The module and the macros it was compiled with, including its build files' macros if it needs them."""

    def loaded(defines: Mapping[str, str]) -> Module:
        options = CudaOptions(
            defines, task.includes, task.settings.std, compiler_options=task.settings.compiler_options
        )
        return load_module(task.path, arch=task.gpu.arch, options=options, on_stage=on_stage)

    try:
        return loaded(task.settings.defines), task.settings.defines
    except CompileError as error:
        macros = {name: value for name, value in task.macros.items() if name not in task.settings.defines}
        if not macros:
            raise
        both = {**macros, **task.settings.defines}
        try:
            module = loaded(both)
        except CompileError:
            # Macros meant for other files can break it: show the first message.
            raise error from None
    listed = " ".join(f"-D{name}={value}" if value else f"-D{name}" for name, value in macros.items())
    return replace(module, notes=(*module.notes, f"macros taken from the build files: {listed}")), both


def _notes(module: Module) -> tuple[str, ...]:
    notes = [*module.notes]
    if module.uninstantiated:
        notes.append(f"templates that are not instantiated here: {', '.join(module.uninstantiated)}")
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
    """Put static predictions into the rows. Returns the first error, and what was left out for lack of time."""
    stopped, done = "", 0
    with suppress(OutOfTimeError), time_box(task.settings.static_limit_s):
        for number, kernel in enumerate(kernels):
            try:
                answer = answer_code(kernel, gpu=task.gpu, options=_ONE_POINT)
                rows[number] = replace(rows[number], predicted_s=answer.time_s)
            except DrywarpError as error:
                stopped = stopped or f"{kernel.name}: {error}"
            done += 1
    left = len(kernels) - done
    return (
        stopped,
        f"no static time for {left} of {len(kernels)} kernels within {task.settings.static_limit_s:g} s"
        if left
        else "",
    )


def _emulate(task: Task, macros: Mapping[str, str], launches: list[KnownLaunch], rows: list[KernelRow]) -> None:
    """Analyse every known launch in full, and put the predicted times into the rows."""
    for launch in launches:
        answer = analyze(
            task.path,
            gpu=task.gpu,
            defines={**macros, **launch.defines},
            includes=task.includes,
            std=task.settings.std,
            compiler_options=task.settings.compiler_options,
            findings=False,
            **launch.arguments(),
        )
        for number, row in enumerate(rows):
            if answer.kernel in (row.name, row.name.split("::")[-1]):
                rows[number] = replace(row, emulated_s=(row.emulated_s or 0.0) + answer.time_s * launch.times)


def work(task: Task, connection: Connection) -> None:
    """Entry point of the process. Sends ("stage", name) messages, and ("row", fields) at the end."""
    lead_group()
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, sys.stdout.fileno())
    os.dup2(silent, sys.stderr.fileno())
    try:
        found = examine(
            task, lambda stage: connection.send(("stage", stage)), lambda found: connection.send(("analysed", found))
        )
    except MemoryError:
        found = {"status": FAILED, "reason": "out of memory"}
    except RecursionError as error:
        found = {"status": FAILED, "reason": f"RecursionError: {error} ({raised_at(error)})"}
    except Exception as error:  # our own bug: it is recorded in the row and does not stop the run
        found = {"status": FAILED, "reason": f"{type(error).__name__}: {error} ({raised_at(error)})"}
    own, tools = (resource.getrusage(who).ru_maxrss * 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    connection.send(("row", {**found, "peak_rss_bytes": max(own, tools)}))
    connection.close()


# The parent: modules in supervised processes, several in parallel, with time and memory limits.


_POLL_S = 0.05
"""How often limits are checked, in seconds."""

OnRow = Callable[[Row, int, int], None]
"""Called with each finished row, the number done, and the total."""


@dataclass
class Watched:
    """One running worker. `found` is its final message, or why it was ended; None while it runs.

    `analysed` is what it sent before it started to predict times.
    """

    child: Child
    started: float = field(default_factory=perf_counter)
    stage: str = "read"
    peak: int = 0
    found: dict[str, Any] | None = None
    analysed: dict[str, Any] | None = None

    def look(self, settings: Settings) -> bool:
        """Read messages and enforce the limits; true once the worker has finished and exited."""
        ended = self._receive()
        if self.found is None and not ended:
            self.peak = max(self.peak, self.child.resident_bytes())
            seconds = perf_counter() - self.started
            if seconds > settings.time_limit_s:
                self._ended_by(f"time limit of {settings.time_limit_s:g} s", by_time=True)
            elif self.peak > settings.memory_limit:
                self._ended_by(f"memory limit of {settings.memory_limit >> 20} MiB")
            else:
                return False
        elif self.found is None:
            self._ended_by(self.child.ended())
            return True
        self.child.stop()
        return True

    def _receive(self) -> bool:
        """Read all messages; true at the end of the stream."""
        try:
            while self.child.connection.poll():
                kind, value = self.child.connection.recv()
                if kind == "stage":
                    self.stage = value
                elif kind == "analysed":
                    self.analysed = value
                else:
                    self.found = value
                    self.peak = max(self.peak, value.pop("peak_rss_bytes"))
        except (EOFError, OSError):
            return True
        return False

    def _ended_by(self, reason: str, by_time: bool = False) -> None:
        if by_time and self.stage == "predict" and self.analysed:
            # Its analysis is complete; compiled code that predicts a time cannot always be interrupted.
            notes = (*self.analysed["notes"], f"no static times: {reason}")
            self.found = {**self.analysed, "notes": notes}
            return
        # If the compiler exceeds a limit or crashes, the module counts as not compiling.
        status = COMPILE_FAILED if self.stage in ("read", "compile") else FAILED
        self.found = {"status": status, "reason": f"{reason} at stage {self.stage}"}


def run_modules(
    modules: list[files.Module],
    task_of: Callable[[files.Module], Any],
    settings: Settings,
    on_row: OnRow,
    target: Callable[[Any, Connection], None] = work,
) -> list[Row]:
    """One row for each module, however its process ends. `target` is what each process runs."""
    pending = list(reversed(modules))
    running: list[tuple[files.Module, Watched]] = []
    rows: list[Row] = []
    try:
        while pending or running:
            while pending and len(running) < settings.jobs:
                module = pending.pop()
                running.append((module, Watched(Child.forked(target, task_of(module)))))
            wait([watched.child.connection for _, watched in running], timeout=_POLL_S)
            for item in [*running]:
                module, watched = item
                if watched.look(settings):
                    running.remove(item)
                    rows.append(_row(module, watched))
                    on_row(rows[-1], len(rows), len(modules))
    finally:
        for _, watched in running:
            watched.child.stop()
    return sorted(rows, key=lambda row: row.file)


def _row(module: files.Module, watched: Watched) -> Row:
    found = watched.found or {}
    seconds = perf_counter() - watched.started
    return row_of(
        {"file": module.name, "stage": watched.stage, "seconds": seconds, "peak_rss_bytes": watched.peak, **found}
    )
