"""Raw timings on disk, one line a launch configuration, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any

from ..errors import InputFileError, UsageError
from .device import Attributes, Run, Timing, Zeros


class Journal:
    """A JSON-lines file: the device first, then a line for each run; a context that locks it.

    Without a path timings are kept in memory alone. Raises UsageError for a file that cannot be written, that another
    process writes, or that is of other settings, and InputFileError for one that is no journal, which is left alone.
    """

    def __init__(self, path: Path | None, device: Attributes, settings: dict[str, Any]) -> None:
        self.path = path
        self.head = {"device": asdict(device), **settings}
        self.known: dict[str, list[Timing]] = {}
        self._file: FileIO | None = None

    def __enter__(self) -> Journal:
        if self.path is None:
            return self
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("a+b", buffering=0)
            self._lock(self._file)
            self._read(self.path, self._file)
        except OSError as error:
            self.close()
            raise UsageError(f"{self.path}: cannot be written: {error.strerror}") from None
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let another process have the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def find(self, run: Run) -> list[Timing] | None:
        """What an earlier run left of the same launch."""
        return self.known.get(key_of(run))

    def add(self, run: Run, timings: Sequence[Timing]) -> None:
        """Keep the timings of a launch; a line is written whole or not at all."""
        key = key_of(run)
        self.known[key] = list(timings)
        if self._file is not None:
            rows = [[t.cycles, t.ns, t.sm_mhz] for t in timings]
            self._write(self._file, {"run": json.loads(key), "timings": rows})

    def _lock(self, file: FileIO) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{self.path}: another process is writing to it") from None

    def _write(self, file: FileIO, line: Mapping[str, Any]) -> None:
        before, left = os.fstat(file.fileno()).st_size, memoryview(_line(line))
        try:
            while left:
                left = left[file.write(left) :]
        except OSError as error:
            with contextlib.suppress(OSError):
                file.truncate(before)
            raise UsageError(
                f"{self.path}: cannot be written ({error.strerror}); its timings are kept: the same command goes on"
            ) from None

    def _read(self, path: Path, file: FileIO) -> None:
        data = path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        # What is no whole line may be the beginning of ours, if the run was stopped in the middle of it.
        if not whole and not _line(self.head).startswith(data):
            raise InputFileError(f"{path}:1: not a line of a journal of drywarp calibrate")
        try:
            lines = whole.decode().splitlines()
        except UnicodeDecodeError:
            raise InputFileError(f"{path}:1: not a journal of drywarp calibrate (expected JSON lines)") from None
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                if number == 1:
                    self._check_head(row)
                else:
                    self.known[json.dumps(row["run"], sort_keys=True)] = [
                        Timing(*map(float, t)) for t in row["timings"]
                    ]
            except (ValueError, KeyError, TypeError):
                raise InputFileError(f"{path}:{number}: not a line of a journal of drywarp calibrate") from None
        if len(whole) != len(data):
            file.truncate(len(whole))
        if not whole:
            self._write(file, self.head)

    def _check_head(self, head: dict[str, Any]) -> None:
        mine = json.loads(json.dumps(self.head))
        if "device" not in head:
            raise ValueError(head)
        for name, value in mine.items():
            if head.get(name) != value:
                raise UsageError(
                    f"{self.path}: timings of another {name} ({_shown(head.get(name, '?'))}; this is {_shown(value)}): "
                    "delete the file, or name another with --journal"
                )


def _line(row: Mapping[str, Any]) -> bytes:
    return (json.dumps(row) + "\n").encode()


def _shown(value: Any) -> str:
    return str(value.get("name", "?")) if isinstance(value, dict) else str(value)


def key_of(run: Run) -> str:
    """A launch as text: equal for equal launches."""
    arguments = {name: {"zeros": v.nbytes} if isinstance(v, Zeros) else v for name, v in run.arguments.items()}
    what = {
        "template": run.program.template,
        "defines": dict(run.program.defines),
        "grid": run.grid,
        "block": run.block,
        "shared": run.shared,
        "arguments": arguments,
    }
    return json.dumps(what, sort_keys=True)
