"""Configurations of a tuning space predicted, in processes of their own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...errors import DrywarpError, UsageError
from ...hardware import Gpu, load_gpu
from ...rows.pool import run_rows
from ...rows.predict import Settings
from ...rows.recipe import CLOCK
from ...rows.worker import Task
from .arrays import by_place, constants
from .kept import KeptRows
from .launch import launch_of
from .predictions import Key, Predictions, key_text
from .space import TuningSpace

MODEL = "pipeline"
LOOPED = Settings(models=(MODEL,), warm_l2=True, band=False, cap=False)
"""Kernel Tuner runs a configuration several times and takes the mean: the L2 is warm. One whose registers do not fit
fails."""
OnRow = Callable[[Mapping[str, Any], float | str, int, int], None]
"""Told each configuration with its seconds or the reason why there are none, how many are done, and of how many."""


def predict(
    space: TuningSpace,
    *,
    gpu: str | Path | Gpu = "a100",
    configurations: Iterable[Mapping[str, Any]] | None = None,
    out: str | Path | None = None,
    settings: Settings = LOOPED,
    clock: float | None = None,
    jobs: int | None = None,
    time_limit_s: float = 300.0,
    on_row: OnRow = lambda configuration, found, done, of: None,
) -> Predictions:
    """Predict the time of every configuration of a space, or of some, on a GPU that need not be there.

    `jobs` processes share the work (None: as many as there are cores), a configuration gets `time_limit_s` at most.
    With `out` (.csv, .jsonl or .parquet) each is in that file as soon as it is done, in the form of a sweep's rows, and
    those that it holds already are not predicted again, unless they ran out of time or were killed. What cannot be
    predicted is in `Predictions.failed`, with the reason. Raises UsageError, in one line, where that holds for every
    single one, and InputFileError for a file of other predictions.
    """
    machine = gpu if isinstance(gpu, Gpu) else load_gpu(str(gpu))
    wanted = list(space.configurations() if configurations is None else configurations)
    if not wanted:
        raise UsageError(f"{space.kernel_name}: no configuration fulfils the restrictions")
    times: dict[Key, float] = {}
    failed: dict[Key, str] = {}
    with KeptRows(out, space.names, machine, settings) as kept, TemporaryDirectory(prefix="drywarp-") as folder:
        answers = _answers(
            _launches(space, wanted, clock, Path(folder)),
            wanted,
            kept,
            Path(folder),
            machine,
            settings,
            jobs,
            time_limit_s,
        )
        for done, (number, found) in enumerate(answers, 1):
            key = tuple(key_text(wanted[number][name]) for name in space.names)
            if isinstance(found, str):
                failed[key] = found
            else:
                times[key] = found
            on_row(wanted[number], found, done, len(wanted))
    if not times:
        reasons = list(dict.fromkeys(failed.values()))
        more = f" ({len(reasons) - 1} other reasons)" if len(reasons) > 1 else ""
        raise UsageError(
            f"{space.kernel_name}: none of {len(wanted)} configurations can be predicted: {reasons[0]}{more}"
        )
    return Predictions(space.names, times, failed)


def _launches(
    space: TuningSpace, wanted: Sequence[Mapping[str, Any]], clock: float | None, folder: Path
) -> Iterator[dict[str, Any] | str]:
    """What each configuration is launched with, or why it cannot be."""
    arguments = by_place(space.arguments, folder)
    space = replace(space, cmem_args=constants(space.cmem_args, folder))
    for parameters in wanted:
        try:
            yield {**launch_of(space, parameters, arguments), CLOCK: clock}
        except DrywarpError as error:
            yield str(error)


def _answers(
    launches: Iterable[dict[str, Any] | str],
    wanted: Sequence[Mapping[str, Any]],
    kept: KeptRows,
    folder: Path,
    gpu: Gpu,
    settings: Settings,
    jobs: int | None,
    time_limit_s: float,
) -> Iterator[tuple[int, float | str]]:
    """Configurations by their places, with seconds or a reason; those that are kept first, the others as they are done.

    Workers are started for each source by itself: most spaces have one.
    """
    identities: dict[int, str] = {}
    tasks: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for number, launch in enumerate(launches):
        if isinstance(launch, str):
            yield number, launch
            continue
        identities[number] = kept.identity(launch, folder)
        known = kept.time_of(wanted[number], identities[number])
        if known is not None:
            yield number, known
            continue
        tasks.setdefault(launch.pop("source"), []).append((number, launch))
    for source, held in tasks.items():
        workers = min(jobs or os.cpu_count() or 1, len(held))
        for number, answer, _ in run_rows(Task(source, gpu, settings), held, workers, time_limit_s):
            yield number, kept.add(number + 1, wanted[number], identities[number], answer)
