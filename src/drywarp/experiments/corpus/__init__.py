"""A whole folder of kernels in one run: which can be analysed, what each costs, and why one fails."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

from ...errors import UsageError
from ...frontends.cuda.options import CudaOptions
from ...hardware import Gpu, load_gpu
from .examine import Task
from .files import Module, Settings, find_modules, launches_below
from .headers import HeaderTree, guessed_macros, settle_parts
from .result import CorpusReport, Row, RowsFile, Totals
from .watch import OnRow, run_modules


def run_corpus(
    folder: str | Path,
    *,
    gpu: str | Path | Gpu = "a100",
    settings: Settings | None = None,
    on_row: OnRow = lambda row, done, of: None,
    rows_file: Path | None = None,
) -> CorpusReport:
    """Examine every module below a folder; a crash or hang is recorded in that module's row.

    Each row is appended to `rows_file` as soon as it is done; an interrupted run resumes from it.

    Raises UsageError or InputFileError if the folder holds no modules or a bad launches file.
    """
    settings = settings or Settings()
    root = Path(folder)
    machine = gpu if isinstance(gpu, Gpu) else load_gpu(str(gpu))
    if machine.abstract_only:
        raise UsageError(f"GPU {machine.name} only takes abstract workloads, not CUDA kernels")
    modules = find_modules(root)
    launches = launches_below(root, modules)
    headers = HeaderTree.below(root)
    given = [Path(place) for place in settings.includes]
    CudaOptions(compiler_options=settings.compiler_options)  # bad ones are refused before anything is examined

    def task_of(module: Module) -> Task:
        guessed = headers.folders_for(module.path, given) if module.path.suffix == ".cu" else []
        return Task(
            path=module.path,
            gpu=machine,
            defines=settings.defines,
            includes=tuple(str(place) for place in (*given, *guessed)),
            std=settings.std,
            compiler_options=settings.compiler_options,
            time_limit_s=settings.time_limit_s,
            static_limit_s=settings.static_limit_s,
            launches=launches.get(module.path, ()),
            macros=guessed_macros(module.path, root) if module.path.suffix == ".cu" else {},
        )

    started = perf_counter()
    with RowsFile(rows_file, machine.file_hash, settings) as held:
        found = [held.rows[module.name] for module in modules if module.name in held.rows]

        def store(row: Row, done: int, _: int) -> None:
            held.add(row)
            on_row(row, done + len(found), len(modules))

        left = [module for module in modules if module.name not in held.rows]
        fresh = run_modules(left, task_of, settings, store)
    rows = settle_parts(root, sorted([*found, *fresh], key=lambda row: row.file))
    return CorpusReport(str(folder), machine.name, machine.file_hash, tuple(rows), perf_counter() - started)


__all__ = ["CorpusReport", "Module", "Row", "Settings", "Totals", "find_modules", "run_corpus"]
