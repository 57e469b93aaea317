"""Every module of a folder in a process of its own, several side by side, within limits."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import perf_counter
from typing import Any

from ..emulator.compiled.engine import prepare
from ..errors import UsageError
from ..hardware import Gpu, load_gpu
from .build_files import guessed_macros
from .examine import Task
from .files import Module, find_modules
from .headers import HeaderTree
from .launches import launches_below
from .parts import settle_parts
from .result import CorpusReport, Row, row_of
from .rows_file import RowsFile
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
    rows_file: Path | None = None,
) -> CorpusReport:
    """Look at every module below a folder; a crash or hang of one is a row.

    `rows_file` gets each row as soon as it is there; a run that was stopped goes on from what it holds.

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
            static_limit_s=settings.static_limit_s,
            launches=launches.get(module.path, ()),
            macros=guessed_macros(module.path, root) if module.path.suffix == ".cu" else {},
        )

    if launches:
        # What a worker compiles for its own use is lost where its time is over before; here it is kept for all.
        prepare()
    started = perf_counter()
    kept = RowsFile.opened(rows_file, machine.file_hash, settings) if rows_file else RowsFile(None)
    found = [kept.rows[module.name] for module in modules if module.name in kept.rows]
    of = len(modules)

    def keep(row: Row, done: int, _: int) -> None:
        kept.add(row)
        on_row(row, done + len(found), of)

    left = [module for module in modules if module.name not in kept.rows]
    fresh = run_modules(left, task_of, settings, keep)
    rows = settle_parts(root, sorted([*found, *fresh], key=lambda row: row.file))
    return CorpusReport(str(folder), machine.name, machine.file_hash, tuple(rows), perf_counter() - started)


def run_modules(
    modules: list[Module],
    task_of: Callable[[Module], Any],
    settings: Settings,
    on_row: OnRow,
    target: Callable[[Any, Connection], None] = work,
) -> list[Row]:
    """A row for each module, whatever becomes of its process. `target` is what such a process runs."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([target.__module__])
    pending = list(reversed(modules))
    running: list[tuple[Module, Watched]] = []
    rows: list[Row] = []
    try:
        while pending or running:
            while pending and len(running) < settings.jobs:
                module = pending.pop()
                receiver, sender = context.Pipe(duplex=False)
                process = context.Process(target=target, args=(task_of(module), sender), daemon=False)
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
