"""A launches file: several kernels of one source, or several launches of one, in a single run.

    [[launch]]
    kernel = "saxpy"                     # as --entry; may be left out where the source holds one
    grid = [65536]
    block = 256
    args = { n = 16777216, a = 2.0, x = "f32[16777216]:random", y = "f32[16777216]" }
    times = 10                           # how often it is launched; 1 unless said

Further keys: `name` (for the report), `shared` (bytes), `constants` and `defines` (tables), and `config`
(a number or "best") for a kernel that is tuned. A Triton kernel takes no `block`.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Generic, Literal, TypeVar

import msgspec

from ..errors import InputFileError

Extents = int | Annotated[list[int], msgspec.Meta(min_length=1, max_length=3)]


class LaunchEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One `[[launch]]` table; a grid may be a text with sums over the arguments."""

    grid: Extents | str
    block: Extents | None = None
    kernel: str | None = None
    name: str | None = None
    args: dict[str, str | int | float | bool] = {}
    constants: dict[str, str | int | float | bool] = {}
    defines: dict[str, str | int] = {}
    shared: Annotated[int, msgspec.Meta(ge=0)] | None = None
    times: Annotated[int, msgspec.Meta(ge=1)] = 1
    config: Annotated[int, msgspec.Meta(ge=0)] | Literal["best"] | None = None


Entry = TypeVar("Entry", bound=LaunchEntry)


class _File(msgspec.Struct, Generic[Entry], frozen=True, forbid_unknown_fields=True):
    launch: Annotated[list[Entry], msgspec.Meta(min_length=1)]


def read_launches(path: Path) -> list[LaunchEntry]:
    """The launches of a file. Raises InputFileError naming the file, the key and what was expected."""
    return read_entries(path, LaunchEntry)


def read_entries(path: Path, form: type[Entry]) -> list[Entry]:
    """The launches of a file, each as `form`. Raises InputFileError naming file, key and what was expected."""
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except FileNotFoundError:
        raise InputFileError(f"{path}: no such file (expected a launches file)") from None
    except OSError as error:
        raise InputFileError(f"{path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputFileError(f"{path}: not TOML: {error}") from None
    try:
        return msgspec.convert(content, _File[form]).launch  # type: ignore[valid-type]
    except msgspec.ValidationError as error:
        raise InputFileError(f"{path}: {error}") from None
