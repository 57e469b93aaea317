"""Rows on disk as they come, one JSON object a line, so that a run over a large folder may be stopped and go on."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .. import __version__
from ..errors import InputFileError, UsageError
from .result import Row, row_of
from .settings import Settings


@dataclass
class RowsFile:
    """The rows that a file holds, by module; without a path nothing is kept."""

    path: Path | None
    rows: dict[str, Row] = field(default_factory=dict)

    @classmethod
    def opened(cls, path: Path, gpu_hash: str, settings: Settings) -> RowsFile:
        """Read what is there, or begin a file.

        Raises UsageError where it belongs to a run with other settings, InputFileError where it is none of ours.
        """
        asked = {**asdict(settings), "jobs": None}
        head = json.loads(json.dumps({"drywarp": __version__, "gpu_hash": gpu_hash, "settings": asked}))
        try:
            if not path.exists():
                path.write_text(json.dumps(head) + "\n", encoding="utf-8")
                return cls(path)
            first, *lines = path.read_text(encoding="utf-8").splitlines()
            if json.loads(first) != head:
                raise UsageError(f"{path}: rows of a run with another GPU, version or settings (expected a new file)")
            if lines and not _whole(lines[-1]):
                # The run was stopped while it wrote.
                lines.pop()
                path.write_text("\n".join([first, *lines]) + "\n", encoding="utf-8")
            found = [row_of(json.loads(line)) for line in lines]
        except OSError as error:
            raise InputFileError(f"{path}: {error.strerror} (expected a file for the rows of a run)") from None
        except (ValueError, TypeError):
            raise InputFileError(f"{path}: not the rows of a run (expected a file that drywarp corpus wrote)") from None
        return cls(path, {row.file: row for row in found})

    def add(self, row: Row) -> None:
        """Write a row down. Raises InputFileError where that is not possible."""
        if self.path is None:
            return
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(row)) + "\n")
        except OSError as error:
            raise InputFileError(f"{self.path}: {error.strerror} (expected a file for the rows of a run)") from None


def _whole(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False
