"""From a GPU's name, or a file of the user's, to a checked `Gpu`."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any

from ..errors import UsageError
from .check import (
    check_classes,
    check_compilation,
    check_device,
    check_issue_limit,
    check_machine_code,
    check_memory,
    check_tensor,
)
from .gpu import ClassCost, FmaRate, Gpu, Scheduler, Subsystem
from .occupancy import OccupancyLimits
from .resolve import Resolved, resolve
from .schema import SECTIONS, convert
from .toml_file import DATA, capabilities, did_you_mean, find, gpu_names
from .vocabulary import AMD_CLASS_NAMES, CLASS_NAMES

__all__ = ["capabilities", "gpu_names", "limits_of", "load_gpu"]

_ORDER = ("device", "memory", "occupancy", "scheduler", "parameters", "machine_code", "classes", "tensor", "subsystems")
"""The sections as they are shown: the product first, the classes' long list late."""


def load_gpu(name_or_path: str) -> Gpu:
    """The GPU of a packaged name (`gpu_names` lists them) or of a path that ends in ``.toml``.

    Raises `UsageError` for a name or path that does not exist, naming the nearest, and
    `InputFileError` for a file that cannot be used: one line with file, line, key and what was expected.
    """
    name, path = find(name_or_path)
    resolved = resolve(name, path)
    values, error = resolved.values, resolved.error
    capability, arch = resolved.header.get("compute_capability", ""), resolved.header.get("arch", "")
    check_compilation(capability, arch, error)
    for required in ("scheduler", "subsystems", "classes", *(("device", "occupancy", "memory") if arch else ())):
        if required not in values:
            raise error(required, "missing; expected a table")
    sections = {key: convert(values[key], kind, key, error) for key, kind in SECTIONS.items() if key in values}
    subsystems = _table(resolved, "subsystems", Subsystem)
    classes = _table(resolved, "classes", ClassCost)
    tensor = _table(resolved, "tensor", FmaRate)
    scheduler: Scheduler = sections.pop("scheduler")  # type: ignore[assignment]
    check_classes(classes, subsystems, not arch, error, AMD_CLASS_NAMES if arch.startswith("gfx") else CLASS_NAMES)
    check_issue_limit(classes, subsystems, scheduler, error)
    check_tensor(tensor, error)
    _check_sections(sections, resolved)
    return Gpu(
        name=name,
        title=resolved.file.content["title"],
        compute_capability=capability,
        arch=arch,
        scheduler=scheduler,
        subsystems=subsystems,
        classes=classes,
        tensor=tensor,
        sources=resolved.sources,
        file_hash=_hash(resolved),
        sections=sections,
        known=dict(sorted(resolved.facts.items(), key=lambda item: _ORDER.index(item[0].partition(".")[0]))),
    )


def limits_of(compute_capability: str) -> OccupancyLimits:
    """What an SM of a compute capability, such as ``"8.6"``, has room for; `capabilities` lists them."""
    known = capabilities()
    if compute_capability not in known:
        hint = did_you_mean(compute_capability, known)
        raise UsageError(f"no occupancy limits are known for compute capability {compute_capability!r}{hint}")
    name = f"cc/{compute_capability}"
    resolved = resolve(name, DATA / f"{name}.toml")
    limits = convert(resolved.values["occupancy"], OccupancyLimits, "occupancy", resolved.error)
    _check_sections({"occupancy": limits}, resolved)
    return limits


def _table(resolved: Resolved, section: str, kind: Any) -> dict[str, Any]:
    table = resolved.values.get(section, {})
    return {name: convert(value, kind, f"{section}.{name}", resolved.error) for name, value in table.items()}


def _check_sections(sections: dict[str, Any], resolved: Resolved) -> None:
    if "device" in sections:
        check_device(sections["device"], resolved.error)
    if "memory" in sections:
        check_memory(sections["memory"], resolved.error)
    if "machine_code" in sections:
        check_machine_code(sections["machine_code"], resolved.values, resolved.error)
    if "occupancy" in sections and (wrong := sections["occupancy"].inconsistency()):
        raise resolved.error(f"occupancy.{wrong[0]}", f"expected {wrong[1]}")


def _hash(resolved: Resolved) -> str:
    """SHA-256 over everything that was said, whichever file said it."""
    content = {
        "header": {key: text for key, text in resolved.header.items() if key not in ("inherits", "title")},
        "title": resolved.file.content["title"],
        "values": resolved.values,
        "facts": {key: {**asdict(fact), "file": ""} for key, fact in resolved.facts.items()},
        "sources": resolved.sources,
    }
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
