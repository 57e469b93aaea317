"""Compares predictions with measurements: reads a table of times, predicts each row, and reports the errors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from ...errors import InputFileError, UsageError
from ...hardware import Gpu, load_gpu
from ...models import get_model
from ...support.expressions import ExpressionError, evaluate
from ..rows import Answer, Settings, every_model
from ..rows.identity import fingerprint
from ..rows.pool import run_rows
from ..rows.recipe import Recipe, as_source, as_value, launch_of
from ..rows.row_file import RowFile, check_suffix
from ..rows.worker import Task, command_of, spread
from .accuracy import ValidationReport, report_of
from .compare import RowStore, check, read_rows
from .read import read_table
from .read_csv import MeasuredRow, Table, as_described, described_launches, is_described
from .row import FAILED, RowResult

# Selects rows of a table: filtered, evenly spread, from both halves or one.

HALVES = ("even", "odd")


def keep(table: Table, where: str | None) -> list[MeasuredRow]:
    """The rows that satisfy `where`, a condition over columns.

    Raises UsageError that names the row if the condition cannot be evaluated, and if no row is left.
    """
    if where is None:
        return list(table.rows)
    kept = []
    for row in table.rows:
        try:
            if evaluate(where, row.values()):
                kept.append(row)
        except ExpressionError as error:
            raise UsageError(f"{row.place}: --where {where!r}: {error}") from None
    if not kept:
        raise UsageError(f"{table.origin}: --where {where!r} matches none of {len(table.rows)} rows")
    return kept


def keep_like(table: Table, rows: Sequence[MeasuredRow], other: Path) -> list[MeasuredRow]:
    """The rows whose configurations are also in another output, in its order, so that the two can be compared.

    Configurations are matched by their common parameters. Raises UsageError if nothing matches.
    """
    names, _, found = read_rows(other)
    common = [name for name in names if name in table.parameters]
    at = {tuple(as_value(row.cells[name]) for name in common): row for row in rows}
    keys = (tuple(as_value(row.parameters[name]) for name in common) for row in found)
    kept = [at[key] for key in keys if key in at] if common else []
    if not kept:
        raise UsageError(f"{table.origin}: no row has the parameters of a row of {other}")
    return list({row.number: row for row in kept}.values())


def sample(rows: Sequence[MeasuredRow], count: int | None) -> list[MeasuredRow]:
    """The first `count` rows of `spread`; all of them if `count` is None."""
    if count is not None and count < 1:
        raise UsageError(f"--rows {count}: expected a positive number")
    return spread(rows)[:count]


def half_of(number: int) -> str:
    """The half that a row belongs to: by the parity of the ones in the binary digits of its number.

    This is the Thue-Morse sequence. It splits adjacent rows, pairs, groups of four, … evenly, and so every evenly
    spread sample; it does not matter which parameter alternates along the table.
    """
    return HALVES[number.bit_count() % 2]


def _check(split: str | None, jobs: int | None = None) -> None:
    if split not in (None, *HALVES):
        raise UsageError(f"--split {split}: expected one of {', '.join(HALVES)}")
    if jobs is not None and jobs < 1:
        raise UsageError(f"--jobs {jobs}: expected a positive number")


OnRow = Callable[[RowResult, int, int], None]
"""Called with each finished row, the number done, and the total; rows already in the file come first."""


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
    cluster: str | None = None,
    entry: str | None = None,
    max_registers: str | int | None = None,
    config: str | int | None = None,
    clock: str | float | None = None,
    includes: Sequence[str] = (),
    std: str | None = None,
    compiler_options: Sequence[str] = (),
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
    """Predict the rows of a table of measurements and compare the predictions with them.

    `measurements` is a CSV table, a Kernel Tuner file or a profiler's export (`read_table`); `time` is its column of
    times, ``COLUMN:UNIT``. `kernel` is a file, or source text with a line break or a brace. `Recipe` describes how a
    row becomes a launch. For a table of `drywarp measure`, `kernel` may be the folder of its paths (None: its own), and
    `clock` defaults to the measured one. `where` is a condition over columns, `rows` how many to use, evenly spread;
    `split` (``even`` or ``odd``) sets that half aside; `like` is another output, whose configurations alone are used.
    `models` None: all; the first is the primary one. `jobs` processes (None: one per core) predict the rows, each
    within `time_limit_s`, and append them to `out`; rows there are not repeated. Raises DrywarpError.
    """
    _check(split, jobs)
    machine = gpu if isinstance(gpu, Gpu) else load_gpu(str(gpu))
    chosen = replace(settings or Settings(), models=chosen_models(models))
    recipe = Recipe(
        macros=macros,
        defines=dict(defines or {}),
        grid=grid,
        block=block,
        args=dict(args or {}),
        constants=dict(constants or {}),
        entry=entry,
        includes=tuple(includes),
        std=std,
        compiler_options=tuple(compiler_options),
        cluster=cluster,
        **_texts(shared=shared, max_registers=max_registers, clock=clock, config=config),
    )
    table = read_table(Path(measurements), time=time, entry=entry)
    source = _source(kernel, table)
    if described := is_described(table) and isinstance(source, Path) and source.is_dir():
        table = as_described(table, recipe)
    wanted = _wanted(table, where, rows, split, like)
    launches = _launches(table, wanted, recipe, Path(str(source)) if described else None)
    run = _Run(table, machine, chosen, fingerprint(source, machine, recipe, chosen), time_limit_s)
    place, workers = Path(out) if out else None, jobs or os.cpu_count() or 1
    return report_of(
        sorted(run.results(source, wanted, launches, place, workers, on_row), key=lambda row: row.row),
        chosen.models,
        table=table.origin,
        kernel=str(source) if isinstance(source, Path) and not described else "",
        timed_by=table.timed_by,
        left_out=table.left_out,
        aside=split,
        seconds=perf_counter() - run.started,
        commands=run.commands,
    )


def _texts(**values: str | float | None) -> dict[str, str | None]:
    """Values that may be expressions, as texts."""
    return {name: None if value is None else str(value) for name, value in values.items()}


def _wanted(
    table: Table, where: str | None, count: int | None, split: str | None, like: str | Path | None
) -> list[MeasuredRow]:
    kept = [row for row in keep(table, where) if split is None or half_of(row.number) != split]
    wanted = sample(kept, count) if like is None else keep_like(table, kept, Path(like))[:count]
    if not wanted:
        raise UsageError(f"{table.origin}: no row is left outside the {split} half")
    return wanted


def _launches(
    table: Table, wanted: Sequence[MeasuredRow], recipe: Recipe, described: Path | None
) -> Mapping[int, Mapping[str, Any]]:
    """The launch of each row by number; with `described`, rows name files in that folder."""
    if described is not None:
        return described_launches(wanted, described, recipe)
    names = check(recipe, table)
    return {row.number: launch_of(recipe, row, names) for row in wanted}


def report_again(
    rows: str | Path, *, split: str | None = None, models: Sequence[str] | None = None
) -> ValidationReport:
    """The report of an output file of `validate`, without predicting anything; `split` and `models` as there."""
    path = Path(rows)
    _check(split)
    _, known, found = read_rows(path)
    unknown = [name for name in models or () if name not in known]
    if unknown:
        raise UsageError(f"{path}: has no predictions of {unknown[0]}; it has: {', '.join(known)}")
    kept = [row for row in found if split is None or half_of(row.row) != split]
    return report_of(sorted(kept, key=lambda row: row.row), tuple(models or known), table=str(path), aside=split)


def _source(kernel: str | Path | None, table: Table) -> str | Path:
    """The kernel's file or text; for a table whose rows name their files, the folder that these are relative to."""
    if is_described(table):
        if kernel is None:
            return Path(table.origin).parent
        if Path(kernel).is_dir():
            return Path(kernel)
    if kernel is None:
        raise UsageError("no kernel given (expected --kernel FILE)")
    return as_source(kernel)


class _Run:
    """Predicts the rows of one table, reusing what an output file already holds."""

    def __init__(self, table: Table, gpu: Gpu, settings: Settings, identity: str, time_limit_s: float) -> None:
        self.table, self.gpu, self.settings = table, gpu, settings
        self.identity, self.time_limit_s = identity, time_limit_s
        self.started = perf_counter()
        self.commands: Mapping[int, str] = {}

    def results(
        self,
        source: str | Path,
        wanted: Sequence[MeasuredRow],
        launches: Mapping[int, Mapping[str, Any]],
        out: Path | None,
        jobs: int,
        on_row: OnRow,
    ) -> Iterator[RowResult]:
        """Rows from the file first, then the others as they finish."""
        task = Task(source, self.gpu, self.settings)
        self.commands = {number: said for number, launch in launches.items() if (said := command_of(task, launch))}
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
    """Checked names of models; all models for None. Raises UsageError for an unknown one."""
    for name in models or ():
        get_model(name)
    return tuple(dict.fromkeys(models)) if models else every_model()
