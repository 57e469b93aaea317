"""One GPU file as text: its location, its keys with their line numbers, and its errors."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import InputFileError

DATA = Path(__file__).parent / "data"
SHARED_FOLDERS = ("arch/", "cc/")
"""Folders of files shared by several GPUs; these are not GPUs themselves."""
_TABLE = re.compile(r"\s*\[([^\[\]]+)\]")
_KEY = re.compile(r"\s*([A-Za-z0-9_.-]+)\s*=")
_parsed = lru_cache(maxsize=256)(tomllib.loads)
"""Nobody changes what it returns: many GPUs inherit from the same files."""


@dataclass(frozen=True)
class TomlFile:
    """A parsed file. Other files inherit it by its `name`: ``a100``, ``arch/ga100``, a user's path."""

    name: str
    path: Path
    content: dict[str, Any]
    lines: dict[str, int] = field(repr=False)

    @property
    def is_gpu(self) -> bool:
        """Whether it describes a product, not an architecture shared by several products."""
        return not self.name.startswith(SHARED_FOLDERS)

    def error(self, key: str, problem: str) -> InputFileError:
        """An error at a dotted key, on the line of the key or of the nearest enclosing table."""
        at = key
        while at and at not in self.lines:
            at = at.rpartition(".")[0]
        place = f"{self.path}:{self.lines[at]}" if at else str(self.path)
        return InputFileError(f"{place}: {key}: {problem}")


def read(name: str, path: Path) -> TomlFile:
    """Parse a file. Raises InputFileError, with the line, if it is not TOML."""
    try:
        text = path.read_text(encoding="utf-8")
        content = _parsed(text)
    except OSError as error:
        raise InputFileError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputFileError(f"{path}: expected UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        problem, _, place = str(error).partition(" (at ")
        line = re.match(r"line (\d+)", place)
        where = line[1] if line else str(text.count("\n") + 1)
        raise InputFileError(f"{path}:{where}: not TOML: {problem}") from error
    return TomlFile(name, path, content, _lines(text))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean X?` if a known word is similar, else an empty text."""
    nearest = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {nearest[0]}?" if nearest else ""


@lru_cache(maxsize=256)
def _lines(text: str) -> dict[str, int]:
    """Line number of each dotted key; handles the plain style of GPU files, not all of TOML."""
    lines: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := _TABLE.match(line):
            table = header[1].strip()
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            lines.setdefault(f"{table}.{key[1]}" if table else key[1], number)
    return lines
