"""A file that grows by whole lines during a run, so that a run that is killed loses only unfinished work."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from ..errors import InputFileError, UsageError


class GrowingFile:
    """A file that this process alone writes, from `open` to `close`.

    Messages name `path` (default: the file), and what it holds: `contents`, such as ``rows``. Every method raises
    UsageError if the file cannot be written.
    """

    def __init__(self, file: Path, path: Path | None = None, contents: str = "rows") -> None:
        self.file, self.path, self.contents = file, path or file, contents
        self._fd = -1

    def open(self) -> None:
        """Open or create the file and lock it. Raises UsageError if another process is writing to it."""
        while True:
            try:
                self._fd = os.open(self.file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except OSError as error:
                raise self._refused(error) from None
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self.close()
                raise UsageError(f"{self.path}: another process is writing to it") from None
            # Another process may have replaced the file just before the lock: try again.
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(self._fd), self.file.stat()):
                    return
            self.close()

    def open_and(self, read: Callable[[GrowingFile], None]) -> None:
        """Open the file and have its content read; close it again if that fails."""
        self.open()
        try:
            read(self)
        except BaseException:
            self.close()
            raise

    def read(self) -> bytes:
        """The whole content."""
        try:
            return self.file.read_bytes()
        except OSError as error:
            raise self._refused(error) from None

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return os.fstat(self._fd).st_size

    def cut(self, size: int = 0) -> None:
        """Shorten the file to so many bytes: what a run that was killed left behind, or all of it."""
        try:
            os.ftruncate(self._fd, size)
        except OSError as error:
            raise self._refused(error) from None

    def append(self, data: bytes) -> None:
        """Write at the end; on return the file holds all of `data`, after an error none of it."""
        before, left = self.size, memoryview(data)
        try:
            while left:
                left = left[os.write(self._fd, left) :]
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, before)
            raise UsageError(
                f"{self.path}: cannot be written ({error.strerror}); its {self.contents} are saved; "
                "rerun the same command to resume"
            ) from None

    def replace(self, data: bytes) -> None:
        """Replace the content atomically, unless it is the same."""
        beside = self.file.with_name(self.file.name + ".new")
        try:
            if self.file.read_bytes() == data:
                return
            with beside.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.file)
        except OSError as error:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise self._refused(error) from None

    def close(self) -> None:
        """Close and unlock the file, if it is open."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _refused(self, error: OSError) -> UsageError:
        return UsageError(f"{self.path}: cannot be written ({error.strerror})")


class JsonLines:
    """JSON objects in a growing file, one a line, as a context manager that locks it; without a path none is stored.

    The first line is `head`: what the others depend on. What another program wrote is left unchanged: InputFileError
    says that it is not what was `expected`.
    """

    expected = ""

    def __init__(self, path: Path | None, head: Mapping[str, Any], contents: str = "rows") -> None:
        self.path, self.head = path, json.loads(json.dumps(head))
        self._file = None if path is None else GrowingFile(path, contents=contents)

    def __enter__(self) -> Self:
        if self._file is not None:
            self._file.open_and(self._read)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def check_head(self, head: Mapping[str, Any]) -> None:
        """Raise UsageError for the lines of a run with another head, and ValueError for what is no head at all."""
        raise NotImplementedError

    def take(self, row: Mapping[str, Any]) -> None:
        """Take over a line that an earlier run has left. Raises ValueError, KeyError or TypeError for any other."""
        raise NotImplementedError

    def _read(self, file: GrowingFile) -> None:
        """Take over what an earlier run has left, or begin the file."""
        data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        if not whole and _line(self.head).startswith(data):  # new, or interrupted while its first line was written
            file.cut()
            file.append(_line(self.head))
            return
        number = 1
        try:
            for number, line in enumerate(whole.decode().splitlines() or [""], 1):
                if not isinstance(row := json.loads(line), dict):
                    raise ValueError(line)
                (self.take if number > 1 else self.check_head)(row)
        except (ValueError, KeyError, TypeError):
            raise InputFileError(f"{file.path}: line {number}: not {self.expected}") from None
        file.cut(len(whole))

    def append(self, row: Mapping[str, Any]) -> None:
        """Write a line completely, or not at all."""
        if self._file is not None:
            self._file.append(_line(row))


def _line(row: Mapping[str, Any]) -> bytes:
    return (json.dumps(row) + "\n").encode()
