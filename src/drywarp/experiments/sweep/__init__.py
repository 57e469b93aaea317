"""Compiles and predicts every configuration of a space, and selects those worth trying on hardware.

Rows are predicted one by one; interrupted runs resume.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from ...errors import DrywarpError, InputFileError, UsageError
from ...frontends.cache import writable
from ...hardware import Gpu, load_gpu
from ...models import get_model
from ...pipeline.reasons import policy_named
from ..rows import SPENT, Answer, Settings
from ..rows.identity import changed, identity
from ..rows.pool import TRIES, run_rows
from ..rows.recipe import as_source, launch_of
from ..rows.row_file import RowFile, check_suffix, text_of
from ..rows.worker import GPU, Task, answer, spread
from .result import SweepResult
from .row import FAILED, TUNERS, Configuration, SweepRow, configurations, form_of, single
from .space import Cell, Optimisation, Space, checked, optimisations_of, read_space

AnySpace = str | Path | Space | Mapping[str, Any]
OnRow = Callable[[SweepRow, int, int], None]
"""Called with each finished row, the number done, and the total."""
Found = Iterator[tuple[int, Answer | str, float]]
OnNote = Callable[[str], None]
TOGETHER = 32
"""Configurations predicted on one GPU before the next GPU, which then finds their kernels compiled."""


def sweep(
    space: AnySpace,
    *,
    gpus: str | Sequence[str | Path | Gpu] | None = None,
    out: str | Path | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    band: bool = False,
    benefits: bool = False,
    time_limit_s: float = 300.0,
    restart: bool = False,
    retry_failed: bool = False,
    on_row: OnRow = lambda row, done, of: None,
    on_note: OnNote = lambda note: None,
) -> SweepResult:
    """Predict every configuration of a space.

    `space` is a space file, a `Space`, or a mapping with its keys; `gpus` replaces the GPUs that it names. Rows are
    predicted in `jobs` parallel processes (None: one per core; 0: in this process, without a time limit, which allows
    the kernel to be an object), for at most `time_limit_s` seconds each, or by the workers of a Dask `scheduler` (its
    address). With `out` (.csv, .jsonl or .parquet) each row is written as soon as it is done. Rows already in the file
    are not predicted again (failed ones only with `retry_failed`); at the end the file holds all rows in canonical
    order. A file with different inputs is rejected, unless `restart` discards it. `band` adds each row's confidence
    band, `benefits` GPUPerf's benefit chart. A configuration that fails is recorded as a row with the reason.

    `on_note` is called with remarks as they arise. Raises DrywarpError for bad input before anything is predicted.
    """
    if jobs is not None and jobs < 0:
        raise UsageError(f"--jobs {jobs}: expected a positive number, or 0 for this process")
    started = perf_counter()
    given, origin = _given(space)
    machines = _gpus(gpus if gpus is not None else given.gpus)
    for name in given.models:
        get_model(name)
    if given.policy:
        policy_named(given.policy)
    run = _Run(given, origin, machines, given.settings(band, benefits), on_note)
    _check_steps([one.parameters for one in run.wanted], given.optimisations, given.steps, origin)
    if not isinstance(run.source, str | Path) and (jobs != 0 or out is not None or scheduler is not None):
        raise UsageError("the kernel is a Python object: expected jobs=0, and neither out nor scheduler")
    if not writable():
        run.note("the cache folder is not writable: nothing is cached for later runs (DRYWARP_CACHE_DIR sets another)")
    predict = _executor(run, jobs, scheduler, time_limit_s)
    if out is None:
        rows, there = run.rows(predict, None, retry_failed, on_row), 0
    else:
        path = Path(out)
        check_suffix(path)
        with RowFile(path, run.form) as file:
            if restart:
                file.clear()
            rows = run.rows(predict, file, retry_failed, on_row)
            file.replace(rows)
        there = run.there
    return SweepResult(
        space=origin,
        rows=tuple(rows),
        parameters=given.names(),
        problem=tuple(given.problem),
        models=run.settings.models,
        band=band,
        benefits=benefits,
        optimisations=given.optimisations,
        steps=tuple(given.steps),
        notes=tuple(run.notes),
        there=there,
        kernel=given.entry or (Path(given.kernel).stem if isinstance(given.kernel, str | Path) else ""),
        seconds=perf_counter() - started,
    )


def _check_steps(
    configurations: Sequence[Mapping[str, Cell]], given: Mapping[str, Optimisation], steps: Sequence[str], origin: str
) -> None:
    """Raise InputFileError, before anything is predicted, if the space lacks a configuration of its steps."""
    held = [{name: text_of(value) for name, value in one.items()} for one in configurations]
    now = held[0]
    for name in steps:
        now = now | {parameter: text_of(value) for parameter, value in given[name].set.items()}
        if now not in held:
            said = " ".join(f"{parameter}={value}" for parameter, value in now.items())
            raise InputFileError(f"{origin}: steps: {name} leads to {said}, which is not a configuration of the space")


def count_of(space: AnySpace, gpus: str | Sequence[str | Path | Gpu] | None = None) -> int:
    """The number of rows of a sweep."""
    given, origin = _given(space)
    return len(configurations(given, _gpus(gpus if gpus is not None else given.gpus), origin))


def figure_names(space: AnySpace) -> list[str]:
    """The charts of the potential benefits that a space has (`SweepResult.figure`)."""
    given, _ = _given(space)
    values = dict(given.parameters)
    for name in () if values else given.names():
        values[name] = list(dict.fromkeys(one[name] for one in given.configurations))
    changes = optimisations_of(values, given.optimisations, given.problem)
    return [*(["steps"] if given.steps else []), "variants", "alone", *changes]


def check_export(space: AnySpace, gpus: str | None, path: Path, form: str) -> None:
    """Raise UsageError, before a sweep, if `SweepResult.export` could not write its rows to this file."""
    if form not in TUNERS:
        raise UsageError(f"--format {form}: expected {' or '.join(TUNERS)}")
    if path.suffix != ".json" or not path.parent.is_dir():
        raise UsageError(f"--export {path}: expected a file name that ends in .json, in an existing folder")
    given, origin = _given(space)
    rows = configurations(given, _gpus(gpus if gpus is not None else given.gpus), origin)
    single(rows, given.problem)


def _given(space: AnySpace) -> tuple[Space, str]:
    if isinstance(space, str | Path):
        return read_space(Path(space)), str(space)
    return checked(space, "the space"), "the space"


Predict = Callable[[Sequence[tuple[int, Mapping[str, Any]]]], Found]


def _executor(run: _Run, jobs: int | None, scheduler: str | None, time_limit_s: float) -> Predict:
    if scheduler is not None:
        from .dask_engine import run_on_dask

        return lambda rows: run_on_dask(run.task, rows, scheduler, time_limit_s, run.note)
    if jobs == 0:
        return lambda rows: _in_this_process(run.task, rows)
    return lambda rows: run_rows(
        run.task, rows, min(jobs or os.cpu_count() or 1, len(rows) or 1), time_limit_s, TRIES, run.note
    )


def _in_this_process(task: Task, rows: Sequence[tuple[int, Mapping[str, Any]]]) -> Found:
    for key, launch in rows:
        started = perf_counter()
        found = answer(task, launch)
        yield key, found, perf_counter() - started


class _Run:
    """Predicts the rows of one space, reusing what an output file already holds."""

    def __init__(
        self, space: Space, origin: str, machines: Mapping[str, Gpu], settings: Settings, on_note: OnNote
    ) -> None:
        self.recipe, self.settings = space.recipe(), settings
        kernel = space.kernel
        self.source = as_source(kernel) if isinstance(kernel, str | Path) else kernel
        self.wanted = configurations(space, machines, origin)
        self.macros = space.macro_names()
        first = next(iter(machines.values()))
        self.task = Task(self.source, first, self.settings, machines)
        self.identities = {
            name: identity(self.source, gpu, self.recipe, self.settings) for name, gpu in machines.items()
        }
        self.form = form_of(space.names(), settings.models, settings.band, settings.benefits)
        self.notes: list[str] = []
        self.on_note = on_note
        self.there = 0

    def note(self, text: str) -> None:
        """Record a remark, and report it once."""
        if text not in self.notes:
            self.notes.append(text)
            self.on_note(text)

    def rows(
        self, predict: Predict, file: RowFile[SweepRow] | None, retry_failed: bool, on_row: OnRow
    ) -> list[SweepRow]:
        """All rows in canonical order; rows missing from the file are predicted and appended to it."""
        found = {} if file is None else self._there(file, retry_failed)
        self.there = len(found)
        launches: list[tuple[int, Mapping[str, Any]]] = []

        def done(row: SweepRow) -> None:
            found[row.number] = row
            if file is not None:
                file.append(row)
            on_row(row, len(found), len(self.wanted))

        for configuration in self._in_turn([c for c in self.wanted if c.number not in found]):
            try:
                launch = launch_of(self.recipe, configuration, self.macros, dashes="")
            except DrywarpError as error:
                reason = str(error).removeprefix(configuration.place + ": ")
                done(self._row(configuration, " ".join(reason.split()), 0.0))
            else:
                launches.append((configuration.number, {**launch, GPU: configuration.gpu}))
        by_number = {configuration.number: configuration for configuration in self.wanted}
        with closing(predict(launches)) as answers:  # type: ignore[type-var]
            for number, answered, seconds in answers:
                for note in () if isinstance(answered, str) else answered.notes:
                    self.note(note)
                done(self._row(by_number[number], answered, seconds))
        return [found[number] for number in sorted(found)]

    def _there(self, file: RowFile[SweepRow], retry_failed: bool) -> dict[int, SweepRow]:
        by_key = {configuration.key: configuration for configuration in self.wanted}
        found: dict[int, SweepRow] = {}
        gone = 0
        for row in file.rows():
            configuration = by_key.get(row.key)
            if configuration is None:
                gone += 1
                continue
            now = self.identities[row.gpu]
            if row.settings != now:
                raise InputFileError(
                    f"{file.path}: row {row.number} was predicted from {changed(row.settings, now)} "
                    f"(expected another --out, or --restart to discard its rows)"
                )
            if row.ok or not retry_failed:
                found[configuration.number] = replace(
                    row, number=configuration.number, parameters=configuration.parameters
                )
        if gone:
            self.note(f"{file.path}: dropped {gone} rows of configurations that are no longer in the space")
        return found

    def _in_turn(self, left: Sequence[Configuration]) -> list[Configuration]:
        """An order in which every prefix is spread over the space, and GPUs alternate."""
        groups: dict[tuple[str, ...], list[Configuration]] = {}
        for configuration in left:
            groups.setdefault(configuration.key[1:], []).append(configuration)
        order = spread(list(groups.values()))
        ordered: list[Configuration] = []
        for start in range(0, len(order), TOGETHER):
            part = [configuration for group in order[start : start + TOGETHER] for configuration in group]
            ordered += sorted(part, key=lambda configuration: list(self.identities).index(configuration.gpu))
        return ordered

    def _row(self, configuration: Configuration, found: Answer | str, seconds: float) -> SweepRow:
        row = SweepRow(
            number=configuration.number,
            gpu=configuration.gpu,
            parameters=configuration.parameters,
            settings=self.identities[configuration.gpu],
            wall_s=round(seconds, 3),
        )
        if isinstance(found, str):
            return replace(row, status=FAILED, reason=found)
        primary = self.settings.models[0]
        if primary not in found.times:
            return replace(row, status=FAILED, reason=found.limiters.get(primary, "no prediction"))
        return replace(
            row,
            time_s=found.times[primary],
            limiter=found.limiters[primary],
            facts={name: value for name, value in found.facts.items() if name not in SPENT},
            times=found.times,
            limiters=found.limiters,
        )


def _gpus(given: str | Sequence[str | Path | Gpu]) -> dict[str, Gpu]:
    names = given.split(",") if isinstance(given, str) else given
    machines = [item if isinstance(item, Gpu) else load_gpu(str(item).strip()) for item in names]
    found = {gpu.name: gpu for gpu in machines}
    if len(found) < len(machines) or not found:
        raise UsageError("gpus: expected names of GPUs, each once")
    return found
