"""A whole folder of kernels in one run: which can be analysed, what each costs, and why one fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from ..._version import __version__
from ...errors import UsageError
from ...frontends.cuda import CudaOptions
from ...frontends.cuda.source import decode, includes
from ...hardware import Gpu, load_gpu
from ...support.growing_file import JsonLines
from .examine import OnRow, Task, run_modules
from .files import HeaderTree, Module, Settings, find_modules, guessed_macros, launches_below
from .result import COMPILE_FAILED, PART, CorpusReport, Row, Totals, row_of


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
            settings=settings,
            includes=tuple(str(place) for place in (*given, *guessed)),
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


# Files that are not modules of their own: they do not compile alone, and another source includes them.

_INCLUDED_SUFFIXES = (".cu", ".cuh", ".h", ".hpp", ".cpp", ".cc", ".c")


def settle_parts(root: Path, rows: Sequence[Row]) -> list[Row]:
    """The rows; files that do not compile and that another file includes are marked as parts of it."""
    refused = {(root / row.file).resolve(): row for row in rows if row.status == COMPILE_FAILED}
    if not refused:
        return list(rows)
    names = {path.name for path in refused}
    includers: dict[Path, Path] = {}
    for file in sorted(p for p in root.rglob("*") if p.suffix in _INCLUDED_SUFFIXES and p.is_file()):
        try:
            text = decode(file.read_bytes())
        except (OSError, UnicodeDecodeError):
            continue
        for name, _ in includes(text):
            if Path(name).name in names:
                target = (file.parent / name).resolve()
                if target in refused and target != file.resolve():
                    includers.setdefault(target, file)
    settled = []
    for row in rows:
        includer = includers.get((root / row.file).resolve())
        if row.status == COMPILE_FAILED and includer is not None:
            note = f"included by {includer.relative_to(root).as_posix()}; does not compile alone: {row.reason}"
            row = replace(row, status=PART, reason=note)
        settled.append(row)
    return settled


# The rows on disk.


class RowsFile(JsonLines):
    """The rows in a file, by module, so that an interrupted run resumes.

    Raises UsageError for a file that cannot be written, that another process is writing, or that belongs to a run with
    other settings, and InputFileError for one that drywarp did not write (left unchanged).
    """

    expected = "the rows of a run (expected a file that drywarp corpus wrote)"

    def __init__(self, path: Path | None, gpu_hash: str, settings: Settings) -> None:
        asked = {**asdict(settings), "jobs": None}
        super().__init__(path, {"drywarp": __version__, "gpu_hash": gpu_hash, "settings": asked})
        self.rows: dict[str, Row] = {}

    def add(self, row: Row) -> None:
        """Append a row."""
        self.append(asdict(row))

    def check_head(self, head: Mapping[str, Any]) -> None:
        """The version, the GPU and the settings."""
        if head != self.head:
            raise UsageError(f"{self.path}: rows of a run with another GPU, version or settings (expected a new file)")

    def take(self, row: Mapping[str, Any]) -> None:
        """A module's row."""
        self.rows[row["file"]] = row_of(row)


__all__ = ["CorpusReport", "Module", "Row", "Settings", "Totals", "find_modules", "run_corpus"]
