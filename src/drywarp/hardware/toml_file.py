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

from ..errors import InputFileError, UsageError
from ..support.by_name import plugins_of
from ..support.folders import own_gpu_folder

DATA = Path(__file__).parent / "data"
GROUP = "drywarp.gpus"
"""Entry-point group: paths of folders with GPU files, which may inherit from the packaged ones."""
_SHARED = ("arch/", "cc/")
"""Folders of files shared by several GPUs; these are not GPUs themselves."""
_BRANDS = frozenset("nvidia geforce tesla quadro amd radeon instinct gpu graphics card".split())
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
        return not self.name.startswith(_SHARED)

    def error(self, key: str, problem: str) -> InputFileError:
        """An error at a dotted key, on the line of the key or of the nearest enclosing table."""
        at = key
        while at and at not in self.lines:
            at = at.rpartition(".")[0]
        place = f"{self.path}:{self.lines[at]}" if at else str(self.path)
        return InputFileError(f"{place}: {key}: {problem}")


def gpu_names() -> list[str]:
    """Names of all GPUs, also of other packages and the user's own, in alphabetical order; those of the papers last."""
    names = {name for folder in _folders() for name in _names(folder) if not name.startswith(_SHARED)}
    return sorted(names, key=lambda name: ("/" in name, name))


def own_names() -> list[str]:
    """Names of the user's own GPUs, which lie in `own_gpu_folder`, in alphabetical order."""
    return sorted(path.stem for path in own_gpu_folder().glob("*.toml"))


def capabilities() -> list[str]:
    """The compute capabilities whose occupancy limits are packaged, oldest first."""
    names = (name.removeprefix("cc/") for name in _names(DATA / "cc"))
    return sorted((n for n in names if n[0].isdigit()), key=lambda n: tuple(map(int, n.split("."))))


def _names(folder: Path) -> list[str]:
    root = DATA if folder.is_relative_to(DATA) else folder
    return [path.relative_to(root).as_posix().removesuffix(".toml") for path in folder.rglob("*.toml")]


def _folders() -> list[Path]:
    """The packaged folder of GPU files, those of other packages, and the user's own."""
    return [DATA, *plugins_of(GROUP, Path), own_gpu_folder()]


def find(name_or_path: str) -> tuple[str, Path]:
    """Name and path of a GPU: a packaged one, or a user's file whose path ends in ``.toml``.

    A product may be spelled as its driver or a shop does: ``RTX 2080 Ti``, ``NVIDIA A100-SXM4-80GB``.
    """
    if name_or_path.endswith(".toml"):
        path = Path(name_or_path)
        if not path.is_file():
            raise UsageError(f"GPU file {name_or_path} does not exist")
        return path.stem, path
    if not name_or_path.startswith(_SHARED):
        named = [folder for folder in _folders() if name_or_path in _names(folder)]
        if len(named) > 1 and named[-1] == own_gpu_folder():  # a packaged GPU that came later, say
            own = f"{named[-1] / name_or_path}.toml"
            raise UsageError(
                f"GPU {name_or_path!r} is also the name of your own file {own}; expected another name for it"
            )
        if named:
            return name_or_path, named[0] / f"{name_or_path}.toml"
    same, more = products(name_or_path)
    if len(same) == 1:
        return find(same[0])
    near = same or more or difflib.get_close_matches(name_or_path, gpu_names(), n=3, cutoff=0.3)
    known = f"nearest: {', '.join(near)}" if near else "drywarp gpus lists the known ones"
    raise UsageError(f"unknown GPU {name_or_path!r}; {known}; or a path ending in .toml")


def products(text: str) -> tuple[list[str], list[str]]:
    """GPUs with exactly these words in their name, title or alias, in any order and spelling; those with more."""
    wanted = _parts(text)
    same, more = [], []
    for folder in _folders() if wanted else []:
        for name in (name for name in _names(folder) if "/" not in name):
            content = read(name, folder / f"{name}.toml").content
            spellings = (name, str(content.get("title", "")), *str(content.get("aliases", "")).split(","))
            parts = [_parts(spelling) for spelling in spellings]
            same += [name] if wanted in parts else []
            more += [name] if any(wanted < known for known in parts) else []
    return same, sorted(more)


def _parts(text: str) -> frozenset[str]:
    """The words and numbers of a product's name, without those that tell no product from another."""
    return frozenset(part for part in re.findall(r"[a-z]+|[0-9]+", text.lower()) if part not in _BRANDS)


def find_parent(child: TomlFile, name: str) -> tuple[str, Path]:
    """Name and path of a file's parent: a GPU or architecture by name, or a .toml file beside it."""
    if name.endswith(".toml"):
        path = child.path.parent / name
        if path.is_file():
            return f"arch/{path.stem}" if path.resolve().parent.name == "arch" else path.stem, path
        raise child.error("inherits", f"expected an existing file, got {name!r}")
    for folder in (DATA, own_gpu_folder()):
        path = folder / f"{name}.toml"
        if path.is_file() and path.resolve().is_relative_to(folder.resolve()):
            return name, path
    raise child.error("inherits", f"unknown GPU {name!r}" + did_you_mean(name, [*_names(DATA), *own_names()]))


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
