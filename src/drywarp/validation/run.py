"""`validate`: every row of a table of measurements predicted, and how far off the predictions are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from ..errors import InputFileError, UsageError
from ..hardware import Gpu, load_gpu
from ..models import get_model
from ..rows.answer import Answer
from ..rows.identity import fingerprint
from ..rows.pool import run_rows
from ..rows.predict import Settings, every_model
from ..rows.recipe import Recipe, launch_of
from ..rows.row_file import RowFile, check_suffix
from ..rows.source import as_source
from ..rows.worker import Task
from .accuracy import ValidationReport, report_of
from .choose_rows import HALVES, half_of, keep, keep_like, sample
from .described import as_described, check_none, described_launches, is_described
from .macros import check
from .read import read_table
from .row import FAILED, RowResult
from .store import RowStore, read_rows
from .table import MeasuredRow, Table

OnRow = Callable[[RowResult, int, int], None]
"""Told each finished row, how many are done, and how many there are; rows that were there already come first."""


def validate(
    measurements: str | Path,
    *,
    kernel: str | Path | None = None,
    gpu: str | Path | Gpu = "a100",
    grid: str | None = None,
    block: str | None = None,
    args: Mapping[str, Any] | None = None,
    macros: Sequence[str] | None = None,
    defines: Mapping[str, str] | None = None,
    constants: Mapping[str, Any] | None = None,
    shared: str | int | None = None,
    entry: str | None = None,
    max_registers: str | int | None = None,
    clock: str | float | None = None,
    includes: Sequence[str] = (),
    std: str | None = None,
    time: str | None = None,
    where: str | None = None,
    rows: int | None = None,
    split: str | None = None,
    like: str | Path | None = None,
    models: Sequence[str] | None = None,
    out: str | Path | None = None,
    jobs: int | None = None,
    time_limit_s: float = 300.0,
    settings: Settings | None = None,
    on_row: OnRow = lambda row, done, of: None,
) -> ValidationReport:
    """Predict the rows of a table of measurements and hold the predictions against them.

    `measurements` is a CSV table, a file of Kernel Tuner's or a profiler's export (`read_table`); `time` its column
    of times, ``COLUMN:UNIT``. `kernel` is a file, or source that has a line break or a brace. How a row becomes a
    launch is said as in `Recipe`. A table that `drywarp measure` wrote says both itself: `kernel` may then be the
    folder from which on its files are looked for (None: the table's own), and `clock` defaults to the one that was
    read. `where` is a condition over columns, `rows` how many rows to take, evenly spread; `split` (``even`` or
    ``odd``) sets that half of the table aside and takes the other; `like` is another output of this function, whose
    configurations alone are taken. `models` None are all that can answer; the first is the one that is believed.

    Rows are predicted in `jobs` processes (None: as many as there are cores), each for `time_limit_s` at most, and
    appended to `out` (.csv, .jsonl or .parquet) as they are done; rows that it holds already are not predicted again. A
    row that fails is a row with its reason. Raises DrywarpError for bad input; nothing is predicted then.
    """
    if split not in (None, *HALVES):
        raise UsageError(f"--split {split}: expected one of {', '.join(HALVES)}")
    if jobs is not None and jobs < 1:
        raise UsageError(f"--jobs {jobs}: expected a positive number")
    machine = gpu if isinstance(gpu, Gpu) else load_gpu(str(gpu))
    chosen = replace(settings or Settings(), models=chosen_models(models))
    recipe = Recipe(
        macros=macros,
        defines=dict(defines or {}),
        grid=grid,
        block=block,
        args=dict(args or {}),
        constants=dict(constants or {}),
        shared=None if shared is None else str(shared),
        entry=entry,
        max_registers=None if max_registers is None else str(max_registers),
        clock=None if clock is None else str(clock),
        includes=tuple(includes),
        std=std,
    )
    table = read_table(Path(measurements), time=time, entry=entry)
    source = _source(kernel, table)
    if described := is_described(table) and isinstance(source, Path) and source.is_dir():
        check_none(recipe)
        table = as_described(table)
    kept = [row for row in keep(table, where) if split is None or half_of(row.number) != split]
    wanted = sample(kept, rows) if like is None else keep_like(table, kept, Path(like))[:rows]
    if not wanted:
        raise UsageError(f"{table.origin}: no row is left outside the {split} half")
    launches: dict[int, Mapping[str, Any]]
    if described:
        launches = described_launches(wanted, Path(str(source)), recipe.includes, recipe.std, recipe.clock)
    else:
        names = check(recipe, table)
        launches = {row.number: launch_of(recipe, row, names) for row in wanted}
    run = _Run(table, machine, chosen, fingerprint(source, machine, recipe, chosen), time_limit_s)
    started = perf_counter()
    found = list(run.results(source, wanted, launches, Path(out) if out else None, jobs or os.cpu_count() or 1, on_row))
    return report_of(
        sorted(found, key=lambda row: row.row),
        chosen.models,
        table=table.origin,
        kernel=str(source) if isinstance(source, Path) and not described else "",
        timed_by=table.timed_by,
        left_out=table.left_out,
        aside=split,
        seconds=perf_counter() - started,
    )


def report_again(
    rows: str | Path, *, split: str | None = None, models: Sequence[str] | None = None
) -> ValidationReport:
    """The report of an output file of `validate`, without predicting anything; `split` and `models` as there."""
    path = Path(rows)
    if split not in (None, *HALVES):
        raise UsageError(f"--split {split}: expected one of {', '.join(HALVES)}")
    _, known, found = read_rows(path)
    unknown = [name for name in models or () if name not in known]
    if unknown:
        raise UsageError(f"{path}: holds no predictions of {unknown[0]}; it holds: {', '.join(known)}")
    kept = [row for row in found if split is None or half_of(row.row) != split]
    return report_of(sorted(kept, key=lambda row: row.row), tuple(models or known), table=str(path), aside=split)


def _source(kernel: str | Path | None, table: Table) -> str | Path:
    """The kernel's file or text; for a table whose rows name theirs the folder that these are seen from."""
    if is_described(table):
        if kernel is None:
            return Path(table.origin).parent
        if Path(kernel).is_dir():
            return Path(kernel)
    if kernel is None:
        raise UsageError("no kernel given (expected --kernel FILE)")
    return as_source(kernel)


class _Run:
    """Predicts the rows of one table, with what an output file holds already."""

    def __init__(self, table: Table, gpu: Gpu, settings: Settings, identity: str, time_limit_s: float) -> None:
        self.table, self.gpu, self.settings = table, gpu, settings
        self.identity, self.time_limit_s = identity, time_limit_s

    def results(
        self,
        source: str | Path,
        wanted: Sequence[MeasuredRow],
        launches: Mapping[int, Mapping[str, Any]],
        out: Path | None,
        jobs: int,
        on_row: OnRow,
    ) -> Iterator[RowResult]:
        """Rows of the file first, then the others as they are done."""
        task = Task(source, self.gpu, self.settings)
        if out is None:
            yield from self._predicted(task, wanted, launches, jobs, on_row, 0)
            return
        check_suffix(out)
        with RowStore(out, self.table.parameters, self.settings.models) as store:
            there = self._there(store, {row.number: row for row in wanted})
            yield from there.values()
            left = [row for row in wanted if row.number not in there]
            for result in self._predicted(task, left, launches, jobs, on_row, len(there)):
                store.append(result)
                yield result

    def _there(self, store: RowFile[RowResult], wanted: Mapping[int, MeasuredRow]) -> dict[int, RowResult]:
        found: dict[int, RowResult] = {}
        for result in store.rows():
            if result.settings != self.identity:
                raise InputFileError(
                    f"{store.path}: holds rows predicted with other settings ({result.settings}, these are "
                    f"{self.identity}): another kernel, GPU, launch, option or version (expected another --out)"
                )
            row = wanted.get(result.row)
            if row is not None:
                if abs(row.time_s / result.measured_s - 1) > 1e-9:
                    raise InputFileError(f"{store.path}: row {result.row} is not that of {row.place}: another table")
                found[result.row] = result
        return found

    def _predicted(
        self,
        task: Task,
        rows: Sequence[MeasuredRow],
        launches: Mapping[int, Mapping[str, Any]],
        jobs: int,
        on_row: OnRow,
        before: int,
    ) -> Iterator[RowResult]:
        by_number = {row.number: row for row in rows}
        given = ((row.number, launches[row.number]) for row in rows)
        done = before
        for number, found, seconds in run_rows(task, given, min(jobs, len(rows) or 1), self.time_limit_s):
            result = self._row(by_number[number], found, seconds)
            done += 1
            on_row(result, done, before + len(rows))
            yield result

    def _row(self, row: MeasuredRow, found: Answer | str, seconds: float) -> RowResult:
        result = RowResult(
            row=row.number,
            gpu=self.gpu.name,
            settings=self.identity,
            measured_s=row.time_s,
            parameters={name: row.cells.get(name, "") for name in self.table.parameters},
            wall_s=round(seconds, 3),
        )
        if isinstance(found, str):
            return replace(result, status=FAILED, reason=found)
        return replace(result, facts=found.facts, times=found.times, limiters=found.limiters)


def chosen_models(models: Sequence[str] | None) -> tuple[str, ...]:
    """Names of models, checked; all that can answer for None. Raises UsageError for one that does not exist."""
    for name in models or ():
        get_model(name)
    return tuple(dict.fromkeys(models)) if models else every_model()
