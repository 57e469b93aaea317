"""The schema of a GPU file: the structure and units of each section, and error messages in plain words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec

from ..errors import InputFileError
from ..kernel.isa.nvidia.opcodes import MEMORY_CLASSES
from .fact import AMD_CLASS_NAMES, CLASS_NAMES, TENSOR_TYPES
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


# Consistency checks between the values of a GPU file, beyond each value's own range.


def check_compilation(compute_capability: str, arch: str, error: ErrorAt) -> None:
    """Check the architecture of a GPU that runs machine code: NVIDIA's also need a compute capability, AMD's none."""
    if arch.startswith("gfx"):
        if not re.fullmatch(r"gfx\d+[a-f]?", arch):
            raise error("arch", f'expected a text such as "gfx90a", got {arch!r}')
        if compute_capability:
            raise error("compute_capability", "expected only with an sm_ architecture")
        return
    if compute_capability and not re.fullmatch(r"\d+\.\d", compute_capability):
        raise error("compute_capability", f'expected a text such as "8.0", got {compute_capability!r}')
    if arch and not re.fullmatch(r"sm_\d+a?", arch):
        raise error("arch", f'expected a text such as "sm_80" or "gfx90a", got {arch!r}')
    if bool(compute_capability) != bool(arch):
        given, missing = ("arch", "compute_capability") if arch else ("compute_capability", "arch")
        raise error(missing, f"missing; required with {given}")


def check_classes(
    classes: Mapping[str, ClassCost],
    subsystems: Mapping[str, Subsystem],
    abstract: bool,
    error: ErrorAt,
    needed: frozenset[str] = CLASS_NAMES,
) -> None:
    """Check that each class runs on a subsystem of this GPU, and that a GPU for machine code has all `needed` classes.

    A GPU for machine code must not have unknown classes.
    """
    for name, cost in classes.items():
        if not abstract and name not in CLASS_NAMES:
            raise error(f"classes.{name}", "unknown instruction class" + did_you_mean(name, CLASS_NAMES))
        if cost.subsystem not in subsystems:
            hint = did_you_mean(cost.subsystem, subsystems)
            raise error(f"classes.{name}.subsystem", f"{cost.subsystem!r} is not in [subsystems]{hint}")
        if cost.latency is None and (abstract or name not in MEMORY_CLASSES):
            raise error(f"classes.{name}.latency", "missing; expected a value in cycles")
    if not abstract and (missing := sorted(needed - classes.keys())):
        raise error(f"classes.{missing[0]}", "missing; expected subsystem, lambda and latency")
    if abstract and not classes:
        raise error("classes", "missing; expected at least one instruction class")


def check_issue_limit(
    classes: Mapping[str, ClassCost], subsystems: Mapping[str, Subsystem], scheduler: Scheduler, error: ErrorAt
) -> None:
    """Check that no class is faster than the issue limit."""
    if scheduler.issue_per_cycle is None:
        return
    for name, cost in classes.items():
        whole = subsystems[cost.subsystem].scope == "sm"
        rate = scheduler.issue_per_cycle * (scheduler.partitions if whole else 1)
        if cost.lambda_ * rate < 1:
            owner = "an SM" if whole else "a partition"
            raise error(
                f"classes.{name}.lambda",
                f"expected at least {1 / rate:g} cycles, the issue limit of {owner}, got {cost.lambda_:g}",
            )


def check_tensor(tensor: Mapping[str, float], error: ErrorAt) -> None:
    """Check that all input types are known."""
    for name in tensor:
        if name not in TENSOR_TYPES:
            raise error(f"tensor.{name}", "unknown input type" + did_you_mean(name, TENSOR_TYPES))


def check_machine_code(code: MachineCode, sections: Mapping[str, Any], error: ErrorAt) -> None:
    """Check that a GPU from a paper that runs machine code maps every class, and has a device and occupancy limits."""
    if not re.fullmatch(r"gfx\d+[a-f]?", code.arch):
        raise error("machine_code.arch", f'expected a text such as "gfx90a", got {code.arch!r}')
    for name, table_class in code.classes.items():
        if name not in AMD_CLASS_NAMES:
            hint = did_you_mean(name, AMD_CLASS_NAMES)
            raise error(f"machine_code.classes.{name}", f"unknown instruction class{hint}")
        if table_class and table_class not in sections["classes"]:
            hint = did_you_mean(table_class, sections["classes"])
            raise error(f"machine_code.classes.{name}", f"{table_class!r} is not in [classes]{hint}")
    if missing := sorted(AMD_CLASS_NAMES - code.classes.keys()):
        raise error(f"machine_code.classes.{missing[0]}", 'missing; expected a class of [classes], or ""')
    for section in ("device", "occupancy"):
        if section not in sections:
            raise error(section, "missing; required with [machine_code]")


def check_device(device: Device, error: ErrorAt) -> None:
    """Check that base, boost and maximum clock are in ascending order."""
    if device.boost_clock_mhz < device.base_clock_mhz:
        raise error(
            "device.boost_clock_mhz",
            f"expected at least base_clock_mhz = {device.base_clock_mhz:g}, got {device.boost_clock_mhz:g}",
        )
    if device.max_clock_mhz is not None and device.max_clock_mhz < device.boost_clock_mhz:
        raise error(
            "device.max_clock_mhz",
            f"expected at least boost_clock_mhz = {device.boost_clock_mhz:g}, got {device.max_clock_mhz:g}",
        )


def check_memory(memory: Memory, error: ErrorAt) -> None:
    """Check bandwidths against the peak, the order of near and far latency, and that lines are whole sectors."""
    for name in ("read_gbs", "write_gbs", "copy_gbs"):
        if (reached := getattr(memory.dram, name)) > memory.dram.peak_gbs:
            raise error(f"memory.dram.{name}", f"expected at most peak_gbs = {memory.dram.peak_gbs:g}, got {reached:g}")
    if memory.l2.far_latency_ns < memory.l2.near_latency_ns:
        raise error("memory.l2.far_latency_ns", f"expected at least near_latency_ns = {memory.l2.near_latency_ns:g}")
    if memory.line_bytes % memory.sector_bytes:
        raise error("memory.line_bytes", f"expected a multiple of sector_bytes = {memory.sector_bytes}")
