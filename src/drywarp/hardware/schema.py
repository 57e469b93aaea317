"""The schema of a GPU file: the structure and units of each section, and error messages in plain words."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import msgspec

from ..errors import InputFileError
from .gpu import ClassCost, Device, FmaRate, Host, MachineCode, Memory, Parameters, Scheduler, Subsystem
from .occupancy import OccupancyLimits
from .toml_file import did_you_mean

SECTIONS: dict[str, type[msgspec.Struct]] = {
    "device": Device,
    "scheduler": Scheduler,
    "occupancy": OccupancyLimits,
    "memory": Memory,
    "parameters": Parameters,
    "machine_code": MachineCode,
    "host": Host,
}
"""Sections with fixed keys."""

TABLES: dict[str, Any] = {"subsystems": Subsystem, "classes": ClassCost, "tensor": FmaRate}
"""Sections whose keys are names, with the type of their values."""

HEADER = ("format", "title", "aliases", "inherits", "compute_capability", "arch", "sources")
FORMAT = 1

T = TypeVar("T")
ErrorAt = Callable[[str, str], InputFileError]
"""Creates the error for a dotted key and a problem."""

_WORDS = {
    "float": "a number", "int": "a whole number", "str": "text", "bool": "true or false",
    "object": "a table", "array": "a list",
}  # fmt: skip


def convert(value: Any, kind: type[T], key: str, error_at: ErrorAt) -> T:
    """Convert plain TOML data to a structure; `key` is its dotted path in the file."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$")
        inner = re.sub(r"\[[^\]]*\]", "", place.rstrip("`"))
        at = (key + inner).lstrip(".")
        if match := re.match(r"Object contains unknown field `(.*)`", problem):
            known = [field.encode_name for field in _fields(kind, inner)]
            raise error_at(f"{at}.{match[1]}".lstrip("."), "unknown key" + did_you_mean(match[1], known)) from None
        if match := re.match(r"Object missing required field `(.*)`", problem):
            missing = f"{at}.{match[1]}".lstrip(".")
            raise error_at(missing, f"missing; expected {_expected(kind, inner, match[1])}") from None
        raise error_at(at, _in_words(problem, _at(value, inner), _type_at(kind, inner))) from None


@cache
def unit_of(key: str) -> str:
    """Unit of the value at a dotted key; `""` for counts, names and unknown keys."""
    section, *names = key.split(".")
    if section in TABLES:
        return _unit(_type_info(TABLES[section]), names[1:])
    return _unit(_type_info(SECTIONS[section]), names) if section in SECTIONS else ""


@cache
def _type_info(kind: Any) -> msgspec.inspect.Type:
    return msgspec.inspect.type_info(kind)


def _unit(kind: msgspec.inspect.Type, names: list[str]) -> str:
    if isinstance(kind, msgspec.inspect.UnionType):
        kind = kind.types[0]
    if isinstance(kind, msgspec.inspect.StructType) and names:
        inner = [field.type for field in kind.fields if field.encode_name == names[0]]
        return _unit(inner[0], names[1:]) if inner else ""
    if isinstance(kind, msgspec.inspect.Metadata) and not names:
        return str((kind.extra or {}).get("unit", ""))
    return ""


def _type_at(kind: Any, inner: str) -> msgspec.inspect.Type:
    """The type at a path such as `.l2.bytes` below `kind`."""
    info = _type_info(kind)
    for name in filter(None, inner.split(".")):
        if isinstance(info, msgspec.inspect.StructType):
            info = next(field.type for field in info.fields if field.encode_name == name)
    return info


def _fields(kind: Any, inner: str) -> tuple[msgspec.inspect.Field, ...]:
    info = _type_at(kind, inner)
    return info.fields if isinstance(info, msgspec.inspect.StructType) else ()


def _expected(kind: Any, inner: str, name: str) -> str:
    field = next(field for field in _fields(kind, inner) if field.encode_name == name)
    if isinstance(field.type, msgspec.inspect.StructType):
        return "a table"
    unit = _unit(field.type, [])
    return "a value" + (f" in {unit}" if unit else "")


def _at(value: Any, inner: str) -> Any:
    for name in filter(None, inner.split(".")):
        value = value[name]
    return value


def _in_words(problem: str, value: Any, kind: msgspec.inspect.Type) -> str:
    """msgspec's message with type names in plain words, and the value that was found."""
    if isinstance(kind, msgspec.inspect.LiteralType) and isinstance(value, str):
        return f"expected one of {', '.join(map(str, kind.values))}, got {value!r}"
    expected = problem.partition(", got ")[0]
    expected = re.sub(r"`([\w| ]+)`", lambda match: _words(match[1]), expected)
    return f"{expected[0].lower()}{expected[1:].replace('.0', '')}, got {_shown(value)}"


def _words(types: str) -> str:
    """`float | null` as "a number": an optional key may be absent, but not null."""
    return " or ".join(_WORDS.get(name, name) for name in types.split(" | ") if name != "null")


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a table"
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
