"""Every module of a folder in a process of its own, several side by side, within limits."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import wait
from pathlib import Path
from time import perf_counter

from ..errors import UsageError
from ..hardware import Gpu, load_gpu
from .examine import Task
from .files import Module, find_modules
from .headers import HeaderTree
from .launches import launches_below
from .parts import settle_parts
from .result import CorpusReport, Row, row_of
from .settings import Settings
from .watch import Watched
from .worker import work

_POLL_S = 0.05
"""How often limits are looked after."""

OnRow = Callable[[Row, int, int], None]
"""Told each finished row, how many are done, and how many there are."""


def run_corpus(
    folder: str | Path,
    *,
    gpu: str | Path | Gpu = "a100",
    settings: Settings | None = None,
    on_row: OnRow = lambda row, done, of: None,
) -> CorpusReport:
    """Look at every module below a folder; a crash or hang of one is a row.

    Raises UsageError or InputFileError where the folder holds no modules, or a launches file in it is bad.
    """
    settings = settings or Settings()
    root = Path(folder)
    machine = gpu if isinstance(gpu, Gpu) else load_gpu(str(gpu))
    if machine.abstract_only:
        raise UsageError(f"GPU {machine.name} takes abstract workloads only, not CUDA kernels")
    modules = find_modules(root)
    launches = launches_below(root, modules)
    headers = HeaderTree.below(root)
    given = [Path(place) for place in settings.includes]

    def task_of(module: Module) -> Task:
        guessed = headers.folders_for(module.path, given) if module.path.suffix == ".cu" else []
        return Task(
            path=module.path,
            gpu=machine,
            defines=settings.defines,
            includes=tuple(str(place) for place in (*given, *guessed)),
            std=settings.std,
            time_limit_s=settings.time_limit_s,
            launches=launches.get(module.path, ()),
        )

    started = perf_counter()
    rows = settle_parts(root, _run(modules, task_of, settings, on_row))
    return CorpusReport(str(folder), machine.name, machine.file_hash, tuple(rows), perf_counter() - started)


def _run(modules: list[Module], task_of: Callable[[Module], Task], settings: Settings, on_row: OnRow) -> list[Row]:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([work.__module__])
    pending = list(reversed(modules))
    running: list[tuple[Module, Watched]] = []
    rows: list[Row] = []
    try:
        while pending or running:
            while pending and len(running) < settings.jobs:
                module = pending.pop()
                receiver, sender = context.Pipe(duplex=False)
                process = context.Process(target=work, args=(task_of(module), sender), daemon=False)
                process.start()
                sender.close()
                running.append((module, Watched(process, receiver)))
            wait([watched.connection for _, watched in running], timeout=_POLL_S)
            for item in [*running]:
                module, watched = item
                if watched.look(settings):
                    running.remove(item)
                    rows.append(_row(module, watched))
                    on_row(rows[-1], len(rows), len(modules))
    finally:
        for _, watched in running:
            watched.stop()
    return sorted(rows, key=lambda row: row.file)


def _row(module: Module, watched: Watched) -> Row:
    found = watched.found or {}
    seconds = perf_counter() - watched.started
    return row_of(
        {"file": module.name, "stage": watched.stage, "seconds": seconds, "peak_rss_bytes": watched.peak, **found}
    )
