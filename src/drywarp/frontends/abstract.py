"""Abstract kernel files: a workload stated by hand, in TOML (docs/abstract-kernels.md describes them).

Here a file becomes an `AbstractKernel`, checked as far as that is possible without a GPU; tying it to one
is the matter of `drywarp.workloads`.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec

from ..errors import InputFileError
from .abstract_words import in_words

FORMAT = 1
Kind = Literal["computation", "fp", "sfu", "shared", "memory", "barrier"]
Amount = int | float | str
"""A number, or an expression over the settings (and, in λ and Λ, `occupancy`)."""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the file."""


class Setting(_Table, frozen=True):
    """`[settings.NAME]`: what `--set NAME=VALUE` varies."""

    default: int | float
    about: str = ""
    least: int | float | None = None
    most: int | float | None = None


class Launch(_Table, frozen=True):
    """`[launch]`: how the warps run. `occupancy` is the launch's own, in warps per SM.

    `max_occupancy` is the most where the GPU does not say. `blocks` makes it a grid of so many blocks on
    all SMs; without it each SM runs its own warps, once. `replaced` counts the GPU's Λ_launch; `in_order`
    says otherwise than the GPU.
    """

    warps_per_block: Amount = 1
    occupancy: Amount | None = None
    max_occupancy: Amount | None = None
    blocks: Amount | None = None
    data_bytes: Amount | None = None
    replaced: bool = False
    in_order: bool | None = None


class Measured(_Table, frozen=True):
    """λ or Λ as a table over occupancy: straight lines (or steps) between, constant beyond the ends."""

    occupancy: Annotated[list[float], msgspec.Meta(min_length=1)]
    cycles: Annotated[list[float], msgspec.Meta(min_length=1)]
    steps: bool = False


Cycles = Amount | Measured


class Own(_Table, frozen=True, rename={"lambda_": "lambda"}):
    """Costs for a GPU that has none of the classes in `from`."""

    subsystem: str
    lambda_: Cycles
    latency: Cycles


class Costs(_Table, frozen=True, rename={"from_": "from", "lambda_": "lambda"}):
    """What a class costs: the GPU's first class of `from`, with what stands here in place of its numbers."""

    from_: str | list[str] | None = None
    subsystem: str | None = None
    lambda_: Cycles | None = None
    latency: Cycles | None = None
    transactions: Amount | None = None
    sectors: Amount | None = None
    l1_hit: Amount | None = None
    l2_hit: Amount | None = None


class AbstractClass(Costs, frozen=True, rename={"from_": "from", "lambda_": "lambda"}):
    """`[classes.NAME]`: an instruction class. `when` changes it where a setting is not 0.

    Nothing waits for the result of a `store`. A `queued` instruction issues at once and queues behind the
    subsystem's λ without holding up its warp.
    """

    kind: Kind = "computation"
    store: bool = False
    queued: bool = False
    fallback: Own | None = None
    when: dict[str, Costs] = {}


class Step(_Table, frozen=True, rename={"class_": "class"}):
    """An entry of `program`: an instruction (`id`, `class`), or a loop (`loop`, `body`)."""

    id: str | None = None
    class_: str | None = None
    needs: list[str] = []
    previous: list[str] = []
    copies: Amount = 1
    stall: Amount | None = None
    loop: Amount | None = None
    body: list[Step] | None = None


class AbstractKernel(_Table, frozen=True):
    """A whole file."""

    format: int
    title: str
    classes: Annotated[dict[str, AbstractClass], msgspec.Meta(min_length=1)]
    program: Annotated[list[Step], msgspec.Meta(min_length=1)]
    source: str = ""
    about: str = ""
    gpu: str | None = None
    settings: dict[str, Setting] = {}
    subsystems: dict[str, Literal["sm", "partition"]] = {}
    launch: Launch = Launch()


@dataclass(frozen=True)
class AbstractFile:
    """A file by its name, with its content, and its errors."""

    name: str
    path: str
    kernel: AbstractKernel

    def error(self, key: str, problem: str) -> InputFileError:
        """An error at a dotted key."""
        return InputFileError(f"{self.path}: {key}: {problem}")


def read_abstract(path: Path, name: str | None = None) -> AbstractFile:
    """Read and check a file. Raises InputFileError naming file, key and what was expected."""
    from .abstract_check import check_abstract

    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputFileError(f"{path}: no such file (expected an abstract kernel)") from None
    except OSError as error:
        raise InputFileError(f"{path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputFileError(f"{path}: not TOML: {error}") from None
    for section, kind in (("settings", Setting), ("classes", AbstractClass)):
        tables = content.get(section)
        for key, table in tables.items() if isinstance(tables, dict) else ():
            _convert(table, kind, path, f"{section}.{key}")  # the whole file's error would not name the table
    kernel = _convert(content, AbstractKernel, path, "")
    file = AbstractFile(name or str(path), str(path), kernel)
    check_abstract(file)
    return file


_T = TypeVar("_T", bound=_Table)
_KINDS: dict[str, tuple[type[_Table], ...]] = {
    "settings": (Setting,),
    "classes": (AbstractClass, Own, Measured),
    "program": (Step,),
    "launch": (Launch,),
}
"""What the tables of a section may hold."""


def _convert(value: object, kind: type[_T], path: Path, key: str) -> _T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InputFileError(f"{path}: {in_words(str(error), key, _keys)}") from None


def _keys(at: str) -> list[str]:
    """What may stand in the table at a dotted key."""
    kinds = _KINDS.get(re.split(r"[.\[]", at)[0], (AbstractKernel,))
    return sorted({field.encode_name for kind in kinds for field in msgspec.structs.fields(kind)})
