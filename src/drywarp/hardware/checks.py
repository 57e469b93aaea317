"""Consistency checks between the values of a GPU file, beyond each value's own range."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..kernel.isa.nvidia.opcodes import MEMORY_CLASSES
from .fact import AMD_CLASS_NAMES, CLASS_NAMES, TENSOR_TYPES
from .gpu import ClassCost, Device, MachineCode, Memory, Scheduler, Subsystem
from .schema import ErrorAt
from .toml_file import did_you_mean


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


_WAYS, _WORD = (1, 2, 4, 8, 16, 32, 64), 4
"""Ways of a set that replaces by a tree, and the bytes of a constant."""


def check_memory(memory: Memory, error: ErrorAt) -> None:
    """Check bandwidths against the peak, the order of near and far latency, and that lines are whole sectors."""
    for name in ("read_gbs", "write_gbs", "copy_gbs"):
        if (reached := getattr(memory.dram, name)) > memory.dram.peak_gbs:
            raise error(f"memory.dram.{name}", f"expected at most peak_gbs = {memory.dram.peak_gbs:g}, got {reached:g}")
    if memory.l2.far_latency_ns < memory.l2.near_latency_ns:
        raise error("memory.l2.far_latency_ns", f"expected at least near_latency_ns = {memory.l2.near_latency_ns:g}")
    if memory.line_bytes % memory.sector_bytes:
        raise error("memory.line_bytes", f"expected a multiple of sector_bytes = {memory.sector_bytes}")
    if (constants := memory.constants) is not None:
        if constants.ways not in _WAYS:
            raise error("memory.constants.ways", f"expected {', '.join(map(str, _WAYS))}, got {constants.ways}")
        if constants.line_bytes % _WORD:
            raise error("memory.constants.line_bytes", f"expected a multiple of {_WORD}, got {constants.line_bytes}")
        if constants.bytes % (size := constants.ways * constants.line_bytes):
            raise error("memory.constants.bytes", f"expected a multiple of ways · line_bytes = {size}")
