"""Predictions kept in a file while a space is predicted, in the form of a sweep's rows: later runs go on from there."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from ... import __version__
from ...errors import InputFileError
from ...frontends.toolchain import tool_versions
from ...hardware import Gpu
from ...rows.answer import Answer
from ...rows.facts import SPENT
from ...rows.gpu_values import values_hash
from ...rows.predict import Settings
from ...rows.row_file import RowFile
from ...sweeps.row import FAILED, SweepRow, form_of
from .predictions import Key, key_text

_DIGITS = 12
_OF_THE_RUN = ("time limit of ", "crashed with SIGKILL")
"""How the reasons of failures begin that are no property of the configuration (`rows.pool` writes them)."""


class KeptRows:
    """The rows of one file; a context. Without a file (`out` None) nothing is kept."""

    def __init__(self, out: str | Path | None, names: Sequence[str], gpu: Gpu, settings: Settings) -> None:
        self.names, self.gpu, self.model = tuple(names), gpu, settings.models[0]
        self._base = repr((__version__, sorted(tool_versions().items()), values_hash(gpu), settings))
        self._file = None if out is None else RowFile(Path(out), form_of(self.names, (self.model,), False))
        self._there: dict[Key, SweepRow] = {}
        self._files: dict[Path, str] = {}

    def __enter__(self) -> KeptRows:
        if self._file is not None:
            with_rows = self._file.__enter__()
            try:
                rows = [row for row in with_rows.rows() if row.gpu == self.gpu.name]
            except BaseException as error:
                # Nothing leaves a context that was not entered: the file would stay locked.
                self._file.__exit__(type(error), error, error.__traceback__)
                raise
            self._there = {self._key(row.parameters): row for row in rows}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.__exit__(kind, error, trace)

    def identity(self, launch: Mapping[str, Any], folder: Path) -> str:
        """What a prediction depends on, in a word; `folder` is that of `arrays.lasting`."""
        said = [f"{name}={self._content(value, folder)}" for name, value in sorted(launch.items())]
        return hashlib.sha256("\0".join([self._base, *said]).encode()).hexdigest()[:_DIGITS]

    def time_of(self, parameters: Mapping[str, Any], identity: str) -> float | str | None:
        """Seconds, or why there are none, of a configuration that the file holds; None for any other.

        None too for one that ran out of time or was killed, which another run may bring to an end.
        Raises InputFileError where the file's was predicted from something else.
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
        """Keep an answer; returns seconds, or why there are none."""
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

    def _content(self, value: Any, folder: Path) -> str:
        if isinstance(value, Mapping):
            return "{" + ",".join(f"{name}={self._content(held, folder)}" for name, held in sorted(value.items())) + "}"
        if isinstance(value, np.ndarray):
            return f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
        if isinstance(value, str) and (value.startswith("@") or ":@" in value):
            kind, _, file = value.partition("@")
            path = Path(file)
            # Those are named by their content, and in another folder each time.
            return path.name if path.parent == folder else f"{kind}@{self._file_content(path)}"
        return repr(value)

    def _file_content(self, path: Path) -> str:
        if path not in self._files:
            try:
                self._files[path] = hashlib.sha256(path.read_bytes()).hexdigest()
            except OSError:
                return str(path)  # The prediction says what is wrong with it.
        return self._files[path]
