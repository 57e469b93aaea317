"""Predicts the configurations of a tuning space in worker processes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

from ...._version import __version__
from ....errors import DrywarpError, InputFileError, UsageError
from ....frontends.cache import tool_versions
from ....hardware import Gpu, load_gpu
from ...rows import SPENT, Answer, Settings, values_hash
from ...rows.identity import content_of
from ...rows.pool import run_rows
from ...rows.recipe import CLOCK
from ...rows.row_file import RowFile
from ...rows.worker import Task
from ...sweep.row import FAILED, SweepRow, form_of
from .launch import launch_of
from .predictions import Key, Predictions, key_text
from .space import TuningSpace
from .values import by_place, constants

# Predictions stored in a file while a space is predicted, in the format of a sweep's rows: interrupted runs resume.

_DIGITS = 12
_OF_THE_RUN = ("time limit of ", "crashed with SIGKILL")
"""Prefixes of failure reasons that are not a property of the configuration (from `rows.pool`)."""


class KeptRows:
    """The rows of one file, as a context manager. Without a file (`out` None) nothing is stored."""

    def __init__(self, out: str | Path | None, names: Sequence[str], gpu: Gpu, settings: Settings) -> None:
        self.names, self.gpu, self.model = tuple(names), gpu, settings.models[0]
        self._base = repr((__version__, sorted(tool_versions().items()), values_hash(gpu), settings))
        self._file = None if out is None else RowFile(Path(out), form_of(self.names, (self.model,), False))
        self._there: dict[Key, SweepRow] = {}

    def __enter__(self) -> KeptRows:
        if self._file is not None:
            with_rows = self._file.__enter__()
            try:
                rows = [row for row in with_rows.rows() if row.gpu == self.gpu.name]
            except BaseException as error:
                # __exit__ is not called for a context that was not entered: the file would stay locked.
                self._file.__exit__(type(error), error, error.__traceback__)
                raise
            self._there = {self._key(row.parameters): row for row in rows}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.__exit__(kind, error, trace)

    def identity(self, launch: Mapping[str, Any]) -> str:
        """A hash of everything a prediction depends on."""
        return hashlib.sha256(self._base.encode() + content_of(launch)).hexdigest()[:_DIGITS]

    def time_of(self, parameters: Mapping[str, Any], identity: str) -> float | str | None:
        """Seconds or failure reason of a configuration in the file; None for any other.

        Also None for one that timed out or was killed, which another run may finish. Raises InputFileError if the
        file's prediction was made with other inputs.
        """
        row = self._there.get(self._key(parameters))
        if row is None or (row.status == FAILED and row.reason.startswith(_OF_THE_RUN)):
            return None
        if row.settings != identity:
            assert self._file is not None
            raise InputFileError(
                f"{self._file.path}: row {row.number} was predicted from another kernel, launch, option or version "
                f"(expected another out)"
            )
        return row.reason if row.time_s is None else row.time_s

    def add(self, number: int, parameters: Mapping[str, Any], identity: str, found: Answer | str) -> float | str:
        """Store an answer; returns its seconds or failure reason."""
        time = found if isinstance(found, str) else found.times.get(self.model)
        if not isinstance(found, str) and time is None:
            time = found.limiters.get(self.model, "no prediction")
        if self._file is not None:
            self._file.append(self._row(number, parameters, identity, found, time))
        assert time is not None
        return time

    def _row(
        self, number: int, parameters: Mapping[str, Any], identity: str, found: Answer | str, time: float | str | None
    ) -> SweepRow:
        row = SweepRow(number=number, gpu=self.gpu.name, parameters=dict(parameters), settings=identity)
        if isinstance(found, str) or not isinstance(time, float):
            return replace(row, status=FAILED, reason=str(time))
        facts = {name: value for name, value in found.facts.items() if name not in SPENT}
        limiter = found.limiters[self.model]
        return replace(row, time_s=time, limiter=limiter, facts=facts, times=found.times, limiters=found.limiters)

    def _key(self, parameters: Mapping[str, Any]) -> Key:
        return tuple(key_text(parameters[name]) for name in self.names)


MODEL = "pipeline"
LOOPED = Settings(models=(MODEL,), warm_l2=True, band=False, cap=False)
"""Kernel Tuner runs a configuration several times and takes the mean, so the L2 is warm. A configuration whose
registers do not fit fails."""
OnRow = Callable[[Mapping[str, Any], float | str, int, int], None]
"""Called with each configuration, its seconds or failure reason, the number done, and the total."""


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
    """Predict the time of all or some configurations of a space on a GPU, without needing that GPU.

    The work is shared by `jobs` parallel processes (None: one per core), with at most `time_limit_s` per configuration.
    With `out` (.csv, .jsonl or .parquet) each prediction is written as soon as it is done, in the format of a sweep's
    rows, and predictions already in the file are reused, unless they timed out or were killed. `Predictions.failed`
    holds what cannot be predicted, with the reason. Raises UsageError with one line if no configuration can be
    predicted, and InputFileError for a file of other predictions.
    """
    machine = gpu if isinstance(gpu, Gpu) else load_gpu(str(gpu))
    wanted = list(space.configurations() if configurations is None else configurations)
    if not wanted:
        raise UsageError(f"{space.kernel_name}: no configuration satisfies the restrictions")
    times: dict[Key, float] = {}
    failed: dict[Key, str] = {}
    with KeptRows(out, space.names, machine, settings) as kept, TemporaryDirectory(prefix="drywarp-") as folder:
        launches = _launches(space, wanted, clock, Path(folder))
        answers = _answers(launches, wanted, kept, machine, settings, jobs, time_limit_s)
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
    """Each configuration's launch, or why it cannot be launched."""
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
    gpu: Gpu,
    settings: Settings,
    jobs: int | None,
    time_limit_s: float,
) -> Iterator[tuple[int, float | str]]:
    """Configurations by index, with seconds or failure reason; stored ones first, the others as they finish.

    Each source has its own workers; most spaces have one source.
    """
    identities: dict[int, str] = {}
    tasks: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for number, launch in enumerate(launches):
        if isinstance(launch, str):
            yield number, launch
            continue
        identities[number] = kept.identity(launch)
        known = kept.time_of(wanted[number], identities[number])
        if known is not None:
            yield number, known
            continue
        tasks.setdefault(launch.pop("source"), []).append((number, launch))
    for source, held in tasks.items():
        workers = min(jobs or os.cpu_count() or 1, len(held))
        for number, answer, _ in run_rows(Task(source, gpu, settings), held, workers, time_limit_s):
            yield number, kept.add(number + 1, wanted[number], identities[number], answer)
